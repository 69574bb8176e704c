"""Whether the rows can know what a formula claims, and the gentlest form of a claim that they cannot.

exp(-1.9e114*day) is one on the first day and zero on all others, and half of the constant gives the same values. Nobody would
write such steps, nor constants of an extreme size that might as well be another, nor sums whose value is made of the last digits
of huge terms. A jump that many rows show is real all the same: 2*tanh(6e14*t) says no more than 2*tanh(40*t) if no row lies
nearer to the jump, and that is how it is written (`gentler`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, build, calls, exponent_of, fold, used_columns
from gmeql.search.polish.config import POLISH
from gmeql.search.polish.observed import SATURATING
from gmeql.search.polish.scoring import JudgedRows


def is_knowable(root: Node, loss: float, rows: JudgedRows) -> bool:
    """Whether every steep function and every huge or tiny constant matters to more than a few rows, no function is
    steeper than the rows can tell, no power is higher than people write, and no sum lives on cancelling digits.

    A formula that is exact to rounding is taken as it is.
    """
    if rows.is_exact(loss):
        return True
    if any(_exponent(node) > POLISH.highest_power for node in calls(root)):
        return False
    for steep in _steep_parts(root):
        # a step through one or two rows is fitted to them, and to nothing else
        if not _is_felt(with_part(root, steep, _usual(steep, rows)), root, loss, rows, by_few=False):
            return False
        if not _is_felt(_scaled(root, steep, 0.5), root, loss, rows, by_few=True):
            return False
    expression = Expression(root, rows.names)
    constants = expression.constants
    for i, constant in enumerate(constants):
        if constant and not 1 / POLISH.silly_constant < abs(constant) < POLISH.silly_constant:
            other = expression.with_constants([*constants[:i], constant / 2, *constants[i + 1 :]]).root
            if not _is_felt(other, root, loss, rows, by_few=False):
                return False
    return not any(
        cancellation(node, rows) > POLISH.cancelling for node in calls(root) if node.operator in ("add", "sub")
    )


def gentler(root: Node, loss: float, rows: JudgedRows) -> Node:
    """The formula with the argument of every steep function divided by 2 as often as the rows do not feel it."""
    for steep in _steep_parts(root):
        halvings = 0
        for more in POLISH.halvings:
            if not _is_felt(_scaled(root, steep, 0.5 ** (halvings + more)), root, loss, rows, by_few=True):
                halvings += more
        if halvings:
            root = _scaled(root, steep, 0.5**halvings)
    return root


def _steep_parts(root: Node) -> list[Call]:
    """Functions that a steep argument turns into a step, each once, in the order of the formula."""
    parts = [node for node in calls(root) if node.operator in SATURATING and used_columns(node)]
    return list(dict.fromkeys(parts))


def _exponent(node: Call) -> float:
    """The size of the exponent that something with a column is raised to; 0 for anything else."""
    exponent = exponent_of(node.operator, node.args)
    return 0.0 if exponent is None or not used_columns(node) else abs(exponent)


def _usual(part: Call, rows: JudgedRows) -> Constant:
    """The value that a part of the formula has on most rows."""
    with np.errstate(all="ignore"):
        values = Expression(part, rows.names)(rows.X)
    finite = values[np.isfinite(values)]
    return Constant(float(np.median(finite)) if len(finite) else 0.0)


def _scaled(root: Node, steep: Call, factor: float) -> Node:
    """The formula with the argument of one of its functions multiplied."""
    argument = build("mul", Constant(factor), steep.args[0])
    return with_part(root, steep, Call(steep.operator, (argument,), steep.protected))


def _is_felt(other: Node, root: Node, loss: float, rows: JudgedRows, *, by_few: bool) -> bool:
    """Whether the log-likelihood moves when the formula is exchanged for another; unless `by_few`, a few rows that feel
    it most do not count."""
    with np.errstate(all="ignore"):
        change = Expression(other, rows.names)(rows.X) - Expression(root, rows.names)(rows.X)
        felt = np.sort(rows.weights * change**2) / (2 * loss)
    counted = felt if by_few else felt[: -POLISH.few_rows]
    return not float(counted.sum()) < POLISH.least_felt


def with_part(root: Node, old: Node, new: Node) -> Node:
    """The formula with one of its parts exchanged, wherever it stands."""

    def call(node: Call, args: list[Node]) -> Node:
        return new if node == old else Call(node.operator, tuple(args), node.protected)

    exchanged: Node = fold(root, lambda leaf: leaf, call)
    return exchanged


def largest(values: np.ndarray) -> float:
    """The largest absolute value."""
    return float(np.abs(values).max())


def cancellation(total: Call, rows: JudgedRows, *, size: Callable[[np.ndarray], Any] = largest) -> float:
    """How much larger than a sum its largest term is over the rows; how much more one varies, where that is its size."""
    with np.errstate(all="ignore"):
        most = max(float(size(Expression(arg, rows.names)(rows.X))) for arg in total.args)
        whole = float(size(Expression(total, rows.names)(rows.X)))
    return most / whole if whole > 0 else float("inf") if whole == 0 < most else 0.0
