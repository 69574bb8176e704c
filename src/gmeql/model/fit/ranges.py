"""The ranges of the columns a model was fitted to, and rows that lie outside them.

A formula is tested between the smallest and the largest value of each column; beyond them it only continues. Where it divides,
it may come beside a pole there, or beyond one. `N` rows, `V` columns.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.bounds import bounds
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import evaluate, used_columns
from gmeql.search.judging.soundness import denominators

NEARER = 0.5
"""Share of the least size of a divisor within the ranges of the fit below which a row lies beside its pole."""
NAMED_COLUMNS = 5
"""Columns that a message names before it only counts them."""


HOLDING_OUT = "sklearn.model_selection._validation"
"""The module that fits to a part of a table and asks about the rest."""


class RangeWarning(UserWarning):
    """Rows to predict lie outside the values that the formula was fitted to."""


@dataclass(frozen=True)
class OutsideRows:
    """How many rows lie outside the ranges of fit, and in which columns."""

    count: int
    rows: int
    columns: tuple[int, ...]
    ranges: NDArray[np.float64]
    """[V, 2]."""
    at_poles: int = 0
    """Of these, rows where a divisor lies far nearer to 0 than anywhere within the ranges, or has the other sign."""

    def text(self, names: Sequence[str]) -> str:
        """One sentence for people; `names` are those of all columns."""
        parts = [
            f"{names[j]} ({self.ranges[j, 0]:.6g} to {self.ranges[j, 1]:.6g})" for j in self.columns[:NAMED_COLUMNS]
        ]
        more = f" and {len(self.columns) - NAMED_COLUMNS} more" if len(self.columns) > NAMED_COLUMNS else ""
        verb = f"row{'s' * (self.rows != 1)} lie{'s' * (self.count == 1)}"
        text = f"{self.count} of {self.rows} {verb} outside what the formula was fitted to: {', '.join(parts)}{more}"
        beside = "it divides by less than half of what it does within, or has passed a pole: its values may mean nothing there"
        return text + (f"; on {self.at_poles} of these {beside}" if self.at_poles else "")


def column_ranges(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Smallest and largest value of each column of `X` [N, V] -> [V, 2].

    >>> column_ranges(np.array([[1.0, 5.0], [3.0, 4.0]])).tolist()
    [[1.0, 3.0], [4.0, 5.0]]
    """
    return np.column_stack([X.min(axis=0), X.max(axis=0)])


def rows_outside(
    X: NDArray[np.float64],
    ranges: NDArray[np.float64] | None,
    columns: Iterable[int],
    formulas: Iterable[Expression] = (),
) -> OutsideRows | None:
    """Rows of `X` [N, V] with a value beyond its column's range in `columns`, those a formula uses; None without any.

    Of these, rows beside a pole of one of the `formulas` are counted. `ranges` [V, 2] are None for models of earlier
    versions, which kept none. A missing value is not outside.
    """
    used = sorted(columns)
    if ranges is None or not used:
        return None
    outside: NDArray[np.bool_] = (X[:, used] < ranges[used, 0]) | (X[:, used] > ranges[used, 1])
    if not outside.any():
        return None
    where = tuple(used[j] for j in np.flatnonzero(outside.any(axis=0)))
    rows = outside.any(axis=1)
    at_poles = np.zeros(int(rows.sum()), dtype=bool)
    for formula in formulas:
        at_poles |= _at_poles(formula, X[rows], ranges)
    return OutsideRows(len(at_poles), len(X), where, ranges, int(at_poles.sum()))


def _at_poles(formula: Expression, X: NDArray[np.float64], ranges: NDArray[np.float64]) -> NDArray[np.bool_]:
    """On which rows [N] a divisor that keeps its sign within the ranges comes far nearer to 0 than there, or loses it."""
    found = np.zeros(len(X), dtype=bool)
    for part in denominators(formula.root):
        used = used_columns(part)
        if not used or max(used) >= len(ranges):  # constants of groups are no columns
            continue
        within = bounds(part, ranges)
        if not within.finite or within.low <= 0.0 <= within.high:
            continue
        with np.errstate(all="ignore"):
            values = np.asarray(evaluate(part, lambda index: X[:, index], np.float64, np))
        found |= values < NEARER * within.low if within.low > 0 else values > NEARER * within.high
    return found


def rows_are_held_out() -> bool:
    """Whether scikit-learn's cross-validation is asking: the ends of a table lie outside of what is left without them, so
    that each fold would warn of nothing but the folds."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == HOLDING_OUT:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
