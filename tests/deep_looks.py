"""Meetings on an accelerator made small enough for one that is played by the processor."""

from __future__ import annotations

from functools import partial

import numpy as np
from drawn_tables import even_table

from gmeql.network.families import DEFAULT_FUNCTIONS, FunctionSet
from gmeql.search.deep.formulas import DeepFormulas, Extent
from gmeql.search.deep.meeting import Reach
from host_cuda import HostDriver

ALL = FunctionSet(DEFAULT_FUNCTIONS)
EXTENT = Extent(kept=1000, tried=50_000, forms=50_000, bits=18)
REACH = Reach(EXTENT, looks=1e5, three_steps=1e5, is_behind_columns=True)


table = partial(even_table, rows=60)


def values_of_kept(small: DeepFormulas) -> np.ndarray:
    """Values [K, 8], as they lie there."""
    return small.driver.get(small._there["values"]).view(float).reshape(-1, 8)[: len(small)]


def grown(X: np.ndarray, extent: Extent = EXTENT, functions: FunctionSet = ALL) -> DeepFormulas:
    """All formulas over eight rows."""
    small = DeepFormulas(HostDriver(), X, functions, extent)
    small.grow()
    return small
