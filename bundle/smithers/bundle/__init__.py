"""Source bundles: a workflow's module graph, its hash, its store, and how it is loaded."""
