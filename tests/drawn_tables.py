"""Tables that tests of direct methods are asked about: rows drawn from a formula, where it has values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gmeql.search.direct.table import DirectTable

Function = Callable[..., np.ndarray]


def drawn_table(f: Function, rows: int, largest: float, rng: np.random.Generator) -> DirectTable:
    """Columns between `-largest` and `largest`, as many as the function has arguments."""
    X = rng.uniform(-largest, largest, (rows, f.__code__.co_argcount))
    with np.errstate(all="ignore"):
        y = f(*X.T)
    kept = np.isfinite(y)
    return DirectTable(X[kept], y[kept], np.ones(int(kept.sum())))


def even_table(f: Function, n_columns: int, low: float = 0.5, high: float = 2.5, *, rows: int) -> DirectTable:
    """Columns drawn evenly, the same every time."""
    X = np.random.default_rng(0).uniform(low, high, (rows, n_columns))
    return DirectTable(X, f(*X.T), np.ones(rows))
