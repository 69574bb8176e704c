"""Rows that could have been: between the rows of a table, mixed of them, and a little beyond their ends.

Legend: `N` rows, `V` columns, `S` points between the rows.
"""

from __future__ import annotations

import numpy as np

POINTS = 2000
"""Points drawn of each kind, before those that no row is near are dropped."""
DISCRETE = 10
"""A column of at most this many different values takes no values between them."""
NEAR_QUANTILE = 0.95
"""A point is near a row where rows have a neighbour that near in this share of cases."""
MARGIN_ROWS = 3.0
"""Points stand out beyond the ends of a column by up to as much as this many rows take up of its range on average."""
NEARER_ZERO = 0.005
"""A column of one sign that runs down to zero is met as near to it as this share of its least value, at all magnitudes
between alike."""
LONELY_GAP = 0.3
"""Share of a column's range to the next row from which on a row has the end of the column to itself."""


def points_between(X: np.ndarray, rng: np.random.Generator, n: int = POINTS) -> np.ndarray:
    """Rows that could have been, [S, V]: near a row of `X`, but with values mixed or in between."""
    from scipy.spatial import cKDTree

    N, V = X.shape
    if N < 3:
        return X.copy()
    one, other = X[rng.integers(0, N, n)], X[rng.integers(0, N, n)]
    mixed = np.where(rng.random((n, V)) < 0.5, one, other)
    share = rng.random((n, 1))
    between = one + share * (other - one)
    for column in range(V):
        if len(np.unique(X[:, column])) <= DISCRETE:
            between[:, column] = np.where(share[:, 0] < 0.5, one[:, column], other[:, column])
    spread = X.std(axis=0)
    spread[spread == 0] = 1.0
    tree = cKDTree(X / spread)
    neighbour, _ = tree.query(X / spread, k=2)
    points = np.vstack([mixed, between])
    distance, _ = tree.query(points / spread, k=1)
    near = points[distance <= np.quantile(neighbour[:, 1], NEAR_QUANTILE)]
    return np.vstack([near, _beyond_the_ends(X, rng, n // 10)])


def _beyond_the_ends(X: np.ndarray, rng: np.random.Generator, n: int) -> np.ndarray:
    """Rows moved a little beyond one end of one continuous column, where the next row may well lie; at most n of them.

    A column that never changes sign (a length, a time, a count) keeps it: there a root or a logarithm is defined on every
    row that can come. It comes no nearer to zero than half of its least value; where its values run down to zero, far
    nearer, as the next row of 0.02, 0.06, 0.1 may. Beyond an end that one row has to itself, far from all others, only that
    row is moved: how the other columns might stand there is not known of any other.
    """
    continuous = [column for column in range(X.shape[1]) if len(np.unique(X[:, column])) > DISCRETE]
    if not continuous:
        return np.empty((0, X.shape[1]))
    points = X[rng.integers(0, len(X), n)]
    columns, up = rng.choice(continuous, n), rng.random(n) < 0.5
    for column, is_up, row in _lonely_ends(X):
        points[(columns == column) & (up == is_up)] = X[row]
    low, high = X.min(axis=0)[columns], X.max(axis=0)[columns]
    step = rng.random(n) * _margins(X)[columns]
    below, above = low - step, high + step
    nearer = np.where(run_to_zero(X)[columns], NEARER_ZERO ** rng.random(n), 0.5)
    below = np.where(low >= 0, np.maximum(below, low * nearer), below)
    above = np.where(high <= 0, np.minimum(above, high * nearer), above)
    points[np.arange(n), columns] = np.where(up, above, below)
    return points


def run_to_zero(values: np.ndarray) -> np.ndarray:
    """Of which columns [V], or of which formula's values [N, V], the next row may come far nearer to zero than all: where
    the least size is less than half of the third, or zero no further beyond it than the next row may lie (`_margins`)."""
    if len(values) < 3:
        return np.zeros(values.shape[1], dtype=bool)
    least = np.sort(np.partition(np.abs(values), 2, axis=0)[:3], axis=0)
    one_sign = (values > 0).all(axis=0) | (values < 0).all(axis=0)
    return np.asarray(one_sign & ((2.0 * least[0] < least[2]) | (least[0] < _margins(values))))


def _margins(values: np.ndarray) -> np.ndarray:
    """How far beyond the ends of each column [V] the next row may lie: if its rows were alike over a range that reached
    further than that, one in twenty tables would have none there."""
    return np.asarray(np.ptp(values, axis=0) * min(MARGIN_ROWS / len(values), 0.5))


def _lonely_ends(X: np.ndarray) -> list[tuple[int, bool, int]]:
    """Ends of columns with one row far from all others: column, whether it is the upper end, and the row."""
    ordered = np.sort(X, axis=0)
    gap = LONELY_GAP * (ordered[-1] - ordered[0])
    lower = [(int(c), False, int(X[:, c].argmin())) for c in np.flatnonzero(ordered[1] - ordered[0] > gap)]
    return lower + [(int(c), True, int(X[:, c].argmax())) for c in np.flatnonzero(ordered[-1] - ordered[-2] > gap)]
