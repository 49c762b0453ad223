"""Run a workflow in a test: scripted agents, a fake clock, no database."""
