"""Meetings on an accelerator made small enough for one that is played by the processor."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gmeql.network.families import DEFAULT_FUNCTIONS, FunctionSet
from gmeql.search.deep.formulas import DeepFormulas, Extent
from gmeql.search.deep.meeting import Reach
from gmeql.search.direct.table import DirectTable
from host_cuda import HostDriver

ALL = FunctionSet(DEFAULT_FUNCTIONS)
EXTENT = Extent(kept=1000, tried=50_000, forms=50_000, bits=18)
REACH = Reach(EXTENT, looks=1e5, three_steps=1e5, is_behind_columns=True)


def table(f: Callable[..., np.ndarray], n_columns: int, low: float = 0.5, high: float = 2.5) -> DirectTable:
    """A law over columns drawn evenly."""
    X = np.random.default_rng(0).uniform(low, high, (60, n_columns))
    return DirectTable(X, f(*X.T), np.ones(60))


def values_of_kept(small: DeepFormulas) -> np.ndarray:
    """Values [K, 8], as they lie there."""
    return small.driver.get(small._there["values"]).view(float).reshape(-1, 8)[: len(small)]


def grown(X: np.ndarray, extent: Extent = EXTENT, functions: FunctionSet = ALL) -> DeepFormulas:
    """All formulas over eight rows."""
    small = DeepFormulas(HostDriver(), X, functions, extent)
    small.grow()
    return small
