"""Every form a formula can leave in: text, SymPy, LaTeX, MathML, source code, callables, spreadsheet, JSON.

All written forms come from one walk over the tree (`writing.write`) that decides signs, parentheses and order once; a
`Notation` only says how a language spells numbers, names, products, powers and functions. Notations for people
(`pretty`) round constants and arrange as a person would; the others keep the order of the floating-point operations, so
that they compute the numbers that `Expression` computes. `export.EXPORTS` is the one table of formats.

Functions themselves are known to `operators.py` alone. What a language has no word for (protected forms, a user's own
operator) is traced from there and written out as a small helper function.

Column names can hold any text. They never reach code: identifiers are made from `[A-Za-z0-9_]` only, and the given name
stands beside them in an escaped comment.
"""
