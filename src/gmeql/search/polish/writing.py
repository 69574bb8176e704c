"""The last step of polishing: a formula as people write it, with constants rounded in that form."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gmeql.formula.customary import MOST_ADDED, customary
from gmeql.formula.expression import Expression
from gmeql.search.polish.config import POLISH
from gmeql.search.polish.rounding import snap
from gmeql.search.polish.scoring import JudgedRows, Scored, description_length, refit


def written(scored: Scored, rows: JudgedRows) -> Scored:
    """The formula in its customary form, where that keeps the value and takes no numbers that people write from it."""
    root = customary(scored.root)
    if root == scored.root:
        return scored
    with np.errstate(all="ignore"):
        residual = Expression(root, rows.names)(rows.X) - rows.target
        loss = float(np.average(residual**2, weights=rows.weights))
    form = Scored(root, loss, description_length(root, loss, rows))
    return form if form.length <= scored.length + MOST_ADDED * POLISH.node_cost + POLISH.same_length else scored


def written_and_rounded(scored: Scored, rows: JudgedRows, out_of_time: Callable[[], bool] = lambda: False) -> Scored:
    """The formula in its customary form with its constants rounded anew, where the rows support that as well.

    Rounded constants of one form are none in the other: 3.27/(1/S + 0.78) is 4.1923...*S/(S + 1.282...).
    """
    root = customary(scored.root)
    if root == scored.root:
        return scored
    fitted = refit([root], rows, keep_recognised=False)
    if not fitted:
        return scored
    loss = fitted[0].loss
    form = snap(Scored(fitted[0].root, loss, description_length(fitted[0].root, loss, rows)), rows, out_of_time)
    # on exact data a short number is the truth; under noise one constant more or less that could be rounded is chance
    chance = 0.0 if rows.is_exact(scored.loss) else 0.5 * math.log(max(len(rows.target), 2))
    longest = scored.length + MOST_ADDED * POLISH.node_cost + chance + POLISH.same_length
    return form if form.length <= longest else scored
