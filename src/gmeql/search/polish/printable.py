"""Whether a formula still fits as people see it: with constants of a few digits.

Large terms that cancel live on digits that nobody prints: `8e-42*(5.5538e+11*x1**5 - ...)` fits the rows, and its text does
not. Under noise there is a formula as good without them. A wave of many turns needs more digits too, but by its nature.
"""

from __future__ import annotations

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node, calls
from gmeql.formula.printing.notation import round_constants
from gmeql.search.polish.config import POLISH
from gmeql.search.polish.knowable import cancellation
from gmeql.search.polish.scoring import JudgedRows


def is_printable(root: Node, loss: float, rows: JudgedRows) -> bool:
    """Whether the printed formula fits the rows as the formula does, or at least not for want of terms that cancel."""
    with np.errstate(all="ignore"):
        residual = Expression(round_constants(root), rows.names)(rows.X) - rows.target
        printed = float(np.average(residual**2, weights=rows.weights))
    if printed <= POLISH.printed_loss * loss:
        return True
    sums = (node for node in calls(root) if node.operator in ("add", "sub"))
    return all(cancellation(total, rows) < POLISH.lost_digits for total in sums)
