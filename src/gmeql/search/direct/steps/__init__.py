"""Formulas behind several steps: terms taken off, factors divided out, readings undone."""
