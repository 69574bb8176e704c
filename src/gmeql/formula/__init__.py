"""Formulas: the table of elementary functions, trees of them, algebra, text in and out."""
