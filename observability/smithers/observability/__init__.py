"""Events become metrics, logs and traces."""
