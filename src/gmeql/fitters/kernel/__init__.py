"""Compiled CPU kernel: walk flat programs, differentiate them in reverse, fit their constants.

A program is a list of nodes over *slots*. Slots 0..S-1 are the input columns; node k writes slot S + k and reads
slots `left[k]` and `right[k]`, each times a constant of its own where `left_constant[k]` (`right_constant[k]`) is not
-1. The last node is the output.

The loops over data rows have no branches, call no library and create no views of arrays, so the compiler vectorises
them and nothing else is left beside them; sine, exponential and logarithm are polynomials good to about one unit in the
last place (`elementary.py`). One node and its slopes are `node.py`, a whole program is `tape.py`, the memory they share
`memory.py`, the fit `levenberg_marquardt.py`.

What need not be computed is not: parts without free constants once a fit, slopes only at points that are accepted,
slopes only towards free constants. A slope is a row times a scalar, so sums, signs and factors cost nothing on the way
back, and the Jacobian column of a constant in a sum is the slot itself. Products of two columns that never change are
taken once.

Legend: `N` data rows, `P` constants, `F` free ones (the first F of P), `S` input slots.
"""
