"""Searching inside a user's outer form: only its free functions and constants are open."""
