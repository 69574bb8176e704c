"""What the compiled fit reads and writes, as a few named tuples.

Legend: `B` programs, `N` data rows, `S` input slots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class FitArrays(NamedTuple):
    """Programs with their constants, which the fit overwrites, and what becomes of them."""

    programs: np.ndarray
    """[B, 5, MAX_NODES]"""
    lengths: np.ndarray
    n_free: np.ndarray
    constants: np.ndarray
    """[B, MAX_CONSTANTS] start, then fitted."""
    losses: np.ndarray
    codes: np.ndarray
    steps: np.ndarray


class FitData(NamedTuple):
    """What programs are fitted to."""

    inputs: np.ndarray
    """[S, N]"""
    target: np.ndarray
    """[N]"""
    weights: np.ndarray
    """[N]"""


class FitLimits(NamedTuple):
    """How far a fit goes."""

    screen_rows: int
    """Rows on which a candidate must be promising before it sees all N; N: it sees all at once."""
    max_steps: int
    tolerance: float
    """A step that gains less than this share of the loss is the last."""
    hopeless: float
    """The loss that a candidate must come near to be worth more steps."""
    forced: bool = False
    """Take exactly `max_steps` steps (benchmarks)."""
