"""What a person or a program can do to runs: typed functions and results."""
