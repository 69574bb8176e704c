"""Differential equations: found in data, and solved."""
