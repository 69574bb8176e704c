"""What direct methods build sums of: small terms, functions of one column, what may stand below a line."""
