"""Smithers from a program or a web service: start, wait, signal, decide, read."""
