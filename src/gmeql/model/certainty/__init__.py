"""How sure the rows are of a formula: intervals, alternatives, digits."""
