"""What a step leaves over fewer columns or rows: y = (x4**2)(x3 + x4) f(x1, x2), where f is seen once the factor is off.

A vocabulary over all columns has little room for each, and small formulas of many columns are soon too many. What stands before
or beside the rest often holds columns that the rest lacks: where rows that are near each other in the others have nearly the
same value of what is left, methods for small tables are asked about these alone.

Legend: `N` rows, `V` columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, transform, used_columns
from gmeql.network.families import FunctionSet
from gmeql.search.direct.fractions import rational, roots
from gmeql.search.direct.middle import meeting
from gmeql.search.direct.sums import vocabulary
from gmeql.search.direct.table import DirectMethod, DirectTable, Effort

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class FewerConfig:
    """Numbers of the look."""

    max_columns: int = 4  # that may be left
    rows: int = 300  # by which it is told whether they are all there is
    near: float = 0.5  # difference of neighbours, relative to that of any two rows, from which they may be
    digits: float = 1e-13  # share of what is typical of a target up to which a row may have lost
    few_rows: int = 100
    stages: int = 2  # targets that are looked at, those that are told best
    seconds: tuple[float, ...] = (0.1, 0.1, 0.1, 0.5)  # of one core for the methods, in their order


FEWER = FewerConfig()
METHODS: tuple[DirectMethod, ...] = (vocabulary.propose, rational.propose, roots.propose, meeting.propose)


_MARK = Constant(0.5)
"""Stands for what a step leaves."""


class Left(NamedTuple):
    """What a step leaves of a target [N], the way back to a formula of that, and whether the step was seen clearly and was terms
    taken off."""

    target: FloatArray
    undo: Callable[[Node], Node]
    is_clear: bool
    is_less: bool


def behind_one(
    table: DirectTable,
    X: FloatArray,
    lefts: Sequence[Left],
    *,
    functions: FunctionSet,
    effort: Effort,
    rng: np.random.Generator,
) -> Node | None:
    """The first formula of what a step leaves on rows X [N, V] that is of the columns alone that the step lacks, or on the rows
    alone on which terms that were taken off left digits of it; None where there is none."""
    looks: list[tuple[float, int, list[int], NDArray[np.bool_]]] = []
    for place, left in enumerate(lefts):
        taken = used_columns(left.undo(_MARK))
        columns = [j for j in range(X.shape[1]) if j not in taken]
        known = knows_digits(table.y[: len(X)], left.target) if left.is_less else np.ones(len(X), bool)
        if np.sum(known) <= FEWER.few_rows and not known.all():
            continue  # too little is left of it
        if 0 < len(columns) <= min(FEWER.max_columns, X.shape[1] - 1):
            looks.append((told_by(X[:, columns], left.target), place, columns, known))
        elif left.is_clear and not known.all() and X.shape[1] <= FEWER.max_columns:
            looks.append((0.0, place, list(range(X.shape[1])), known))
    for share, place, columns, rows in sorted(looks, key=lambda look: look[:2])[: FEWER.stages]:
        if share > FEWER.near:
            break
        left, effort = lefts[place], effort.on_trail()
        few = DirectTable(X[rows], left.target[rows], np.ones(int(np.sum(rows))))
        for root in over_fewer(few, columns, functions=functions, effort=effort, rng=rng):
            whole = left.undo(root)
            if table.error(whole) < vocabulary.VOCABULARY.verified:
                return whole
    return None


def told_by(X: FloatArray, target: FloatArray) -> float:
    """How much a target [N] differs between rows that are next to each other in columns [N, V], relative to any two: little
    where it is a function of these, 1 where it has nothing to do with them. Both by their ranks: no row counts for more."""
    n = min(len(target), FEWER.rows)
    places = np.argsort(np.argsort(X[:n], axis=0), axis=0) / n
    values = np.argsort(np.argsort(target[:n])) / n
    squares = np.sum(places**2, axis=1)
    apart = squares[:, None] + squares - 2 * places @ places.T
    np.fill_diagonal(apart, np.inf)
    return float(np.mean(np.abs(values - values[np.argmin(apart, axis=1)]))) * 3.0  # 1/3 of two at random


def knows_digits(before: FloatArray, left: FloatArray) -> NDArray[np.bool_]:
    """The rows on which what is left of a target [N] has digits enough: of 12.6*exp(-x) + sqrt(x) none are left of the root where
    x is far below 0."""
    lost = np.finfo(float).eps * np.abs(before)
    return np.asarray(lost < FEWER.digits * max(float(np.median(np.abs(left))), np.finfo(float).tiny))


def over_fewer(
    table: DirectTable, columns: Sequence[int], *, functions: FunctionSet, effort: Effort, rng: np.random.Generator
) -> Iterator[Node]:
    """Formulas of some columns alone that are a table's target."""
    few = DirectTable(table.X[:, list(columns)], table.y, table.weights)
    for method, seconds in zip(METHODS, FEWER.seconds, strict=True):
        if effort.out_of_time():
            return
        given = Effort(min(seconds, effort.seconds), effort.out_of_time)
        for root in method(few, functions=functions, effort=given, rng=rng):
            yield transform(root, lambda leaf: Variable(columns[leaf.index]) if isinstance(leaf, Variable) else leaf)
