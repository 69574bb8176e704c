"""Closed forms of differential equations: solved in numbers, searched for, polished on the equation, proven."""
