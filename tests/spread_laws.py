"""Laws over columns that are uniform in their logarithms, and whether a formula holds on fresh rows of one."""

from collections.abc import Callable

import numpy as np

from gmeql.formula.expression import Expression

Law = tuple[Callable[..., np.ndarray], *tuple[tuple[float, float], ...]]
"""The law, and low and high of each of its columns."""


def spread(rng: np.random.Generator, low: float, high: float, rows: int = 600) -> np.ndarray:
    return np.exp(rng.uniform(np.log(low), np.log(high), rows))


def rows_of(rng: np.random.Generator, law: Law) -> tuple[np.ndarray, np.ndarray]:
    """Columns and target of a law."""
    f, *ranges = law
    X = np.column_stack([spread(rng, *limits) for limits in ranges])
    return X, f(*X.T)


def largest_error(found: Expression, rng: np.random.Generator, law: Law) -> float:
    """Largest relative error of a formula on fresh rows of a law."""
    X, y = rows_of(rng, law)
    return float(np.abs(found(X) / y - 1).max())
