"""Whether a formula still fits as people see it: with constants of a few digits.

Large terms that cancel depend on digits that nobody prints: `8e-42*(5.5538e+11*x1**5 - ...)` fits the rows, but its text does
not. Under noise there is a formula as good without them. A wave of many turns needs more digits too, but by its nature, and so
does a slope over a column far from zero, such as a date. These get the digits that they need.
"""

from __future__ import annotations

import numpy as np

from gmeql.formula.constants import round_exponents
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node, calls
from gmeql.formula.printing.notation import DIGITS, MOST_DIGITS, round_constants
from gmeql.search.polish.config import POLISH
from gmeql.search.polish.knowable import cancellation
from gmeql.search.polish.scoring import JudgedRows


def is_printable(root: Node, loss: float, rows: JudgedRows) -> bool:
    """Whether the printed formula fits the rows as the formula does, or at least not for want of terms that cancel."""
    if _loss(round_constants(root), rows) <= POLISH.printed_loss * loss:
        return True
    sums = (node for node in calls(root) if node.operator in ("add", "sub"))
    return all(
        cancellation(total, rows, size=np.ptp) < POLISH.lost_digits for total in sums
    )  # an offset cancels nothing


def as_printed(root: Node, loss: float, rows: JudgedRows) -> Node:
    """The formula with constants of as many digits as it takes to fit: then the text that people see is the formula.

    As it is where the usual digits suffice, where the rows know the constants to more than can be printed, and where the
    rows are met exactly.
    """
    if rows.is_exact(loss) or _loss(round_constants(root), rows) <= POLISH.printed_loss * loss:
        return root
    expression, most = Expression(root, rows.names), POLISH.shown_loss * loss
    for digits in range(DIGITS + 1, MOST_DIGITS + 1):
        shown = [_rounded(value, digits) for value in expression.constants]
        if _loss(expression.with_constants(shown).root, rows) > most:
            continue
        for i, value in enumerate(expression.constants):  # most constants need no more than usual
            for fewer in range(DIGITS, digits):
                trial = [*shown[:i], _rounded(value, fewer), *shown[i + 1 :]]
                if _loss(expression.with_constants(trial).root, rows) <= most:
                    shown = trial
                    break
        return expression.with_constants(shown).root
    return root


def with_known_digits(expression: Expression, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Expression:
    """The formula with constants of no more digits than the rows know: by least squares each constant costs unseen rows
    1/N of the squared error, and rounding may cost a small share of that."""

    def loss(shown: Expression) -> float:
        with np.errstate(all="ignore"):
            return float(np.average((shown(X) - y) ** 2, weights=weights))

    most = loss(expression) * (1.0 + POLISH.known_share * len(expression.constants) / len(y))
    held = round_exponents(expression)  # 2/3 is no number of three digits
    for digits in range(POLISH.fewest_digits, MOST_DIGITS + 1):
        shorter = expression.with_constants(
            [value if i in held else _rounded(value, digits) for i, value in enumerate(expression.constants)]
        )
        if loss(shorter) <= most:
            return shorter
    return expression


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def _loss(root: Node, rows: JudgedRows) -> float:
    with np.errstate(all="ignore"):
        residual = Expression(root, rows.names)(rows.X) - rows.target
        return float(np.average(residual**2, weights=rows.weights))
