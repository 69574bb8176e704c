"""Columns of which none follows from the others, and the columns that tell kinds of rows apart.

The columns of 0 and 1 that a category gives add up to 1, totals are the sums of their parts, and one quantity may stand in two
units. A sum of all such columns with a constant has factors that no rows determine. So what follows from the rest is left out;
of a category, that is the most frequent kind. The constant then stands for that kind, the reference, and the other factors say
how the other kinds differ from it.

Legend: `N` rows, `V` columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

INDEPENDENT = 1e-10
"""Share of a column's square that must be left beside the constant and those before it."""


def independent_columns(X: FloatArray, weights: FloatArray | None = None) -> list[int]:
    """The columns, in their order, without those that are constant or follow from the others.

    Of columns that depend on each other the first ones stay, and those of 0 and 1 that are most often 1 go.

    >>> red, size = np.array([1.0, 0, 0, 0, 1, 0]), np.array([5.0, 2, 8, 1, 3, 4])
    >>> independent_columns(np.column_stack([size, 1 - red, red, 2 * size + 3]))
    [0, 2]
    """
    root = np.ones(len(X)) if weights is None else np.sqrt(weights)
    centred = (X - np.average(X, axis=0, weights=root**2)) * root[:, None]
    largest = np.abs(centred).max(axis=0, initial=0.0)
    centred = centred / np.where(largest > 0, largest, 1.0)
    directions: list[FloatArray] = []
    kept: list[int] = []
    for k in reference_last(X):
        if not _varies(X[:, k]):
            continue
        if len(directions) >= len(X) - 1:  # so few rows cannot tell
            kept.append(k)
            continue
        left = centred[:, k].copy()
        for _ in range(2):  # a second time for what rounding left
            for direction in directions:
                left -= direction * (direction @ left)
        size = float(left @ left)
        if size > INDEPENDENT * float(centred[:, k] @ centred[:, k]):
            directions.append(left / np.sqrt(size))
            kept.append(k)
    return sorted(kept)


def reference_last(X: FloatArray) -> list[int]:
    """All columns: those of many values first, then those of 0 and 1, the most frequent kinds last."""
    is_kind = [_is_indicator(column) for column in X.T]
    numbers = [k for k in range(X.shape[1]) if not is_kind[k]]
    kinds = [k for k in range(X.shape[1]) if is_kind[k]]
    return numbers + sorted(kinds, key=lambda k: float(X[:, k].sum()))


def categories(X: FloatArray) -> list[list[int]]:
    """Columns of 0 and 1 of which stand side by side those that are never 1 together, as a category's; of each such set
    those that `independent_columns` keeps, and no set that is left empty."""
    sets: list[list[int]] = []
    taken = np.zeros(len(X))
    for k, column in enumerate(X.T):
        if not _is_indicator(column):
            continue
        together = bool(sets) and sets[-1][-1] == k - 1 and not (taken * column).any() and not taken.all()
        if together:
            sets[-1].append(k)
            taken = taken + column
        else:
            sets.append([k])
            taken = column.copy()
    kept = set(independent_columns(X))
    return [[k for k in columns if k in kept] for columns in sets if kept & set(columns)]


def reference_of(X: FloatArray, kinds: Sequence[int]) -> int | None:
    """The column of 0 and 1 that is 1 where no other kind is; None where there is none."""
    if not kinds:
        return None
    missing = 1.0 - X[:, list(kinds)].sum(axis=1)
    beside = [k for k in (min(kinds) - 1, max(kinds) + 1, *range(min(kinds), max(kinds))) if 0 <= k < X.shape[1]]
    return next((k for k in beside if k not in kinds and np.array_equal(X[:, k], missing)), None)


def with_reference(chosen: Sequence[int], following: Sequence[int], X: FloatArray) -> list[int]:
    """Columns that say the same as the chosen ones, with those left out that are the reference; `following` are others
    that follow from the chosen ones."""
    if not following:
        return list(chosen)
    together = sorted([*chosen, *following])
    found = [together[k] for k in independent_columns(X[:, together])]
    return found if len(found) == len(chosen) else list(chosen)


def _varies(column: FloatArray) -> bool:
    return bool(np.ptp(column) > 0)


def _is_indicator(column: FloatArray) -> bool:
    return bool(((column == 0.0) | (column == 1.0)).all()) and _varies(column)
