"""What is kept on disk: whole or not at all, data and never code."""
