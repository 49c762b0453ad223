"""The truth and the queue: migrations, functions, queries, and how to reach them."""
