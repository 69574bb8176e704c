"""Processes beside a search that look at the data for it."""
