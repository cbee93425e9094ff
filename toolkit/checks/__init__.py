"""What `mapping check --live` examines, and the results of its checks."""
