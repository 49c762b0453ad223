-- The manifest of a stored bundle, without its bytes.
select s.manifest from smithers.sources s where s.source_hash = %(source_hash)s
