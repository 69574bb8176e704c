"""The ranges of the columns a model was fitted to, and rows that lie outside them.

A formula is tested between the smallest and the largest value of each column; beyond them it only continues. `N` rows,
`V` columns.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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

    def text(self, names: Sequence[str]) -> str:
        """One sentence for people; `names` are those of all columns."""
        parts = [
            f"{names[j]} ({self.ranges[j, 0]:.6g} to {self.ranges[j, 1]:.6g})" for j in self.columns[:NAMED_COLUMNS]
        ]
        more = f" and {len(self.columns) - NAMED_COLUMNS} more" if len(self.columns) > NAMED_COLUMNS else ""
        verb = "row lies" if self.rows == 1 else "rows lie"
        return f"{self.count} of {self.rows} {verb} outside what the formula was fitted to: {', '.join(parts)}{more}"


def column_ranges(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Smallest and largest value of each column of `X` [N, V] -> [V, 2].

    >>> column_ranges(np.array([[1.0, 5.0], [3.0, 4.0]])).tolist()
    [[1.0, 3.0], [4.0, 5.0]]
    """
    return np.column_stack([X.min(axis=0), X.max(axis=0)])


def rows_outside(
    X: NDArray[np.float64], ranges: NDArray[np.float64] | None, columns: Iterable[int]
) -> OutsideRows | None:
    """Rows of `X` [N, V] with a value beyond its column's range in `columns`, those a formula uses; None without any.

    `ranges` [V, 2] are None for models of earlier versions, which kept none. A missing value is not outside.
    """
    used = sorted(columns)
    if ranges is None or not used:
        return None
    outside: NDArray[np.bool_] = (X[:, used] < ranges[used, 0]) | (X[:, used] > ranges[used, 1])
    if not outside.any():
        return None
    where = tuple(used[j] for j in np.flatnonzero(outside.any(axis=0)))
    return OutsideRows(int(outside.any(axis=1).sum()), len(X), where, ranges)


def rows_are_held_out() -> bool:
    """Whether scikit-learn's cross-validation is asking: the ends of a table lie outside of what is left without them, so
    that each fold would warn of nothing but the folds."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == HOLDING_OUT:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
