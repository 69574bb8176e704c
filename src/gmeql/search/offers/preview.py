"""A first look at a table with nothing but NumPy, for the seconds in which a new machine compiles the search's kernels.

Sums of columns and fractions of polynomials need no kernels to be proposed. What is found is shown as one event of progress. The
search itself begins anew, so its results are those of a machine that has its kernels already.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node
from gmeql.network.families import FunctionSet
from gmeql.search.config import SearchConfig
from gmeql.search.direct.fractions import rational
from gmeql.search.direct.sums import linear
from gmeql.search.direct.table import DirectTable, Effort, worked
from gmeql.search.events import Member, Progress
from gmeql.search.losses.losses import is_reweighed


@dataclass(frozen=True)
class PreviewConfig:
    """Numbers of the look."""

    seconds: float = 0.5
    """For the fractions; a sum of columns takes no time worth mentioning."""
    rows: int = 1000
    """Rows looked at; the same ones each time."""
    least_error: float = 1e-12
    """Errors below this, relative to the target's spread, are rounding: nothing is gained by less."""


PREVIEW = PreviewConfig()


def first_look(
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    names: tuple[str, ...],
    config: SearchConfig,
    *,
    note: str,
) -> Progress | None:
    """What two direct methods see in columns `X` [N, V] and a target `y` [N], with a note that says why it is all.

    None where they see nothing, or where the user asked for more than a small squared error: a formula that breaks what he
    knows is not shown.
    """
    if config.knowledge is not None or config.architecture is not None or is_reweighed(config.loss):
        return None
    order = np.random.default_rng(0).permutation(len(y))[: PREVIEW.rows]
    chosen = np.ones(len(order)) if weights is None else weights[order] / weights[order].mean()
    table = DirectTable(X[order], y[order], chosen)
    members = [_member(table, root, names) for root in _proposals(table, FunctionSet(config.functions))]
    front: list[Member] = []
    for member in sorted(members, key=lambda member: (member.complexity, member.loss)):
        if member.loss < (front[-1].loss if front else math.inf):
            front.append(member)
    if not front:
        return None
    best = min(front, key=lambda member: _length(member, table))
    return Progress(elapsed=0.0, candidates=0, rate=0.0, islands=0, front=tuple(front), best=best, note=note)


def _proposals(table: DirectTable, functions: FunctionSet) -> list[Node]:
    """Formulas over the columns, the plainest method's first."""
    rng = np.random.default_rng(0)
    effort = Effort.timed(PREVIEW.seconds, until=worked() + PREVIEW.seconds)
    found = list(linear.propose(table, functions=functions, effort=effort, rng=rng))
    return found + list(rational.propose(table, functions=functions, effort=effort, rng=rng))


def _member(table: DirectTable, root: Node, names: tuple[str, ...]) -> Member:
    """A formula over the table's columns, with its loss on the rows."""
    expression = Expression(root, names)
    return Member(expression, table.error(root) * table.spread, expression.complexity)


def _length(member: Member, table: DirectTable) -> float:
    """Nats to state errors and formula, roughly: half a logarithm of the rows for each unit of complexity."""
    error = max(member.loss / table.spread, PREVIEW.least_error)
    return len(table.y) * math.log(error) + 0.5 * math.log(len(table.y)) * member.complexity
