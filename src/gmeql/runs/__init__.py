"""Fits in folders: settings, steering, what a run leaves on disk, and running one."""
