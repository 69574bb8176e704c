"""The table as a search sees it: its rows, readings of its target, views of its columns."""
