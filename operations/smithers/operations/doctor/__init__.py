"""Look at the whole installation and say what is wrong, each with its fix; nothing is changed.

`examine` runs the checks. Modules named after what they judge (host, programs, database, fleet)
are pure: facts in, a finding out. Those that look are looking_host, looking_programs and
looking_database.
"""
