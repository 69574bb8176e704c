"""Direct methods: formulas seen at once in a table, by linear algebra or look-up, instead of sampled."""
