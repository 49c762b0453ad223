"""Coding agents as values and as commands."""
