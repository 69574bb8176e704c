"""The numbers of the fit, shared by every engine.

Levenberg-Marquardt: each step solves (JᵀWJ + damping diag(JᵀWJ)) step = JᵀWr; a step that lowers the loss is taken and
the damping lowered, another is rejected and the damping raised (Marquardt 1963).
"""

from __future__ import annotations

FIRST_DAMPING = 1e-3
"""Damping of the first step."""
DAMPING_DOWN, DAMPING_UP = 0.1, 10.0
"""Factors of the damping after a step that was taken, and after one that was rejected."""
LEAST_DAMPING = 1e-14
STUCK_DAMPING = 1e8
"""Where the equations cannot be solved even with this damping, the fit ends."""
MAX_REJECTED = 5
"""More steps than this rejected in a row, and the fit has converged."""
PIVOT_SHARE = 1e-14
"""Pivots below this share of their diagonal entry count as 0."""
TINY = 1e-300
"""Losses below this are perfect; added where a sum of squares must not be 0."""
HOPELESS_AFTER = 3
"""Steps that every candidate is given before it can be hopeless."""
HOPELESS_FACTOR, HOPELESS_GAIN = 4.0, 0.3
"""Hopeless: the loss is still this many times the one to beat, and the last step gained less than this share of it."""
SCREEN_FACTOR = 2.0
"""Candidates whose loss on the first few rows is below this many times the one to beat see all rows."""
