"""Whether the rows can know what a formula claims.

exp(-1.9e114*day) is one on the first day and zero on all others: twice the constant gives the same values, and so does
half of it. Such steps, constants of a silly size that might as well be another, and sums whose value is made of the
last digits of huge terms are nothing that a person would write.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, build, calls, fold, used_columns
from gmeql.search.polish.config import POLISH
from gmeql.search.polish.observed import SATURATING
from gmeql.search.polish.scoring import JudgedRows


def is_knowable(root: Node, loss: float, rows: JudgedRows) -> bool:
    """Whether every steep function and every huge or tiny constant matters to more than a few rows, and no sum lives
    on cancelling digits.

    What could be doubled or halved while the log-likelihood hardly moves was not learnt from the rows. A formula that
    is exact to rounding is taken as it is.
    """
    if rows.is_exact(loss):
        return True
    value = Expression(root, rows.names)(rows.X)
    for other in _otherwise(root, rows):
        with np.errstate(all="ignore"):
            change = Expression(other, rows.names)(rows.X) - value
            felt = np.sort(rows.weights * change**2) / (2 * loss)
        # a step through one or two rows is fitted to them, and to nothing else
        if float(felt[: -POLISH.few_rows].sum()) < POLISH.least_felt:
            return False
    return not any(_cancels(node, rows) for node in calls(root) if node.operator in ("add", "sub"))


def _otherwise(root: Node, rows: JudgedRows) -> Iterator[Node]:
    """The formula with the argument of a steep function doubled or halved, or a constant of a silly size halved."""
    for steep in {node for node in calls(root) if node.operator in SATURATING and used_columns(node)}:
        for factor in (2.0, 0.5):
            other = Call(steep.operator, (build("mul", Constant(factor), steep.args[0]),), steep.protected)
            yield _with_part(root, steep, other)
    expression = Expression(root, rows.names)
    constants = expression.constants
    for i, constant in enumerate(constants):
        if constant and not 1 / POLISH.silly_constant < abs(constant) < POLISH.silly_constant:
            yield expression.with_constants([*constants[:i], constant / 2, *constants[i + 1 :]]).root


def _with_part(root: Node, old: Node, new: Node) -> Node:
    """The formula with one of its parts exchanged, wherever it stands."""

    def call(node: Call, args: list[Node]) -> Node:
        return new if node == old else Call(node.operator, tuple(args), node.protected)

    exchanged: Node = fold(root, lambda leaf: leaf, call)
    return exchanged


def _cancels(total: Call, rows: JudgedRows) -> bool:
    """Whether the terms of a sum are so much larger than the sum that rounding makes its value."""
    with np.errstate(all="ignore"):
        largest = max(float(np.abs(Expression(arg, rows.names)(rows.X)).max()) for arg in total.args)
        return largest > POLISH.cancelling * float(np.abs(Expression(total, rows.names)(rows.X)).max())
