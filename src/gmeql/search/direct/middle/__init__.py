"""Meet in the middle: all small formulas of a table, and pairs of them that make the target."""
