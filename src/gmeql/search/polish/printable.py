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
from gmeql.search.polish.scoring import JudgedRows


def is_printable(root: Node, loss: float, rows: JudgedRows) -> bool:
    """Whether the printed formula fits the rows as the formula does, or at least not for want of terms that cancel."""
    with np.errstate(all="ignore"):
        residual = Expression(round_constants(root), rows.names)(rows.X) - rows.target
        printed = float(np.average(residual**2, weights=rows.weights))
    return printed <= POLISH.printed_loss * loss or cancellation(root, rows) < POLISH.cancelling


def cancellation(root: Node, rows: JudgedRows) -> float:
    """How much larger the terms of a sum are than the sum, at the worst sum of the formula: ratio of root mean squares.

    >>> from gmeql.formula.parsing import parse_tree
    >>> rows = JudgedRows.of(np.linspace(1, 2, 20)[:, None], np.ones(20), None, ("x",))
    >>> round(cancellation(parse_tree("2*x + 3", ("x",)), rows), 3)
    1.0
    >>> cancellation(parse_tree("2000*x - 2000*x**1.001", ("x",)), rows) > 1000
    True
    """
    largest = 1.0
    for node in calls(root):
        if node.operator not in ("add", "sub"):
            continue
        with np.errstate(all="ignore"):
            terms = [Expression(term, rows.names)(rows.X) for term in node.args]
            whole = Expression(node, rows.names)(rows.X)
            ratio = np.sqrt(np.mean(sum(np.abs(term) for term in terms) ** 2) / np.mean(whole**2))
        largest = max(largest, float(ratio)) if np.isfinite(ratio) else np.inf
    return largest
