"""Tables of a law with noise, for direct methods."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gmeql.search.direct.table import DirectTable


def table(f: Callable[..., np.ndarray], low: float, high: float, *, noise: float = 0.0, rows: int = 500) -> DirectTable:
    """Columns between `low` and `high`, one for each argument of `f`; noise relative to the size of the target."""
    rng = np.random.default_rng(3)
    X = rng.uniform(low, high, (rows, f.__code__.co_argcount))
    y = f(*X.T)
    return DirectTable(X, y + noise * np.sqrt(np.mean(y**2)) * rng.standard_normal(rows), np.ones(rows))
