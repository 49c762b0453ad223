"""Code versions: a workflow's own source files, named by content, stored, loaded by hash."""
