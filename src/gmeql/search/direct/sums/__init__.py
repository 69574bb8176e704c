"""Sums of several terms, plain or with constants inside, and such sums behind a function."""
