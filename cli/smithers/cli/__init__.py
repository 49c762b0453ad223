"""The smithers command: thin shells over operations."""
