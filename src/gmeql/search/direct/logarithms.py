"""The factor before a logarithm: c with y = c log(Q), where Q is in the span of some terms and c any number.

e^(y/c) is in the span for the right c alone. What is left of it beside the span falls to nothing there and smoothly, so a
few dozen c tell where to look, and Newton's steps on what is left (one unknown, nothing left at the end) take it to rounding.

Legend: `N` rows, `T` factors tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class LogarithmsConfig:
    """Numbers of the scan."""

    spanned: tuple[int, ...] = (40, 120)  # terms of smaller spans that are asked first
    largest: float = 12.0  # range of y/c: a sum within a factor of e**12 of another
    smallest: float = 0.5  # ... below which e^(y/c) is hardly more than a parabola of y
    tried: int = 32  # factors of each sign between these
    starts: int = 3  # of those that leave less than their neighbours
    steps: int = 12
    gained: float = 0.5  # share of what was left that a step must come below, to go on
    vanished: float = 1e-10  # share of e^(y/c) that may be left


LOGARITHMS = LogarithmsConfig()


def factors_of_logarithm(y: FloatArray, left: Callable[[FloatArray], FloatArray]) -> Iterator[float]:
    """Factors c for which `left` leaves nothing of e^(y/c), the largest first: the square of a sum may be a sum as well.

    `left` says what is left of columns [N, T] beside a span that holds 1.
    """
    y, reach = y - y.mean(), float(np.ptp(y))
    if not (math.isfinite(reach) and reach > 0):
        return
    sizes = np.geomspace(LOGARITHMS.smallest, LOGARITHMS.largest, LOGARITHMS.tried) / reach
    for rates in (sizes, -sizes):
        columns = np.exp(np.outer(y, rates))
        shares = np.linalg.norm(left(columns), axis=0) / np.linalg.norm(columns - columns.mean(axis=0), axis=0)
        around = np.concatenate([[math.inf], shares, [math.inf]])
        lowest = np.flatnonzero((shares <= around[:-2]) & (shares <= around[2:]))[: LOGARITHMS.starts]
        for rate in rates[lowest]:
            found = _converged(y, float(rate), left, reach)
            if found is not None:
                yield 1.0 / found


def _converged(y: FloatArray, rate: float, left: Callable[[FloatArray], FloatArray], reach: float) -> float | None:
    """The rate near to one where nothing is left of e^(rate y); None where something is."""
    before = math.inf
    for _ in range(LOGARITHMS.steps):
        values = np.exp(rate * y)
        rest, slope = left(np.column_stack([values, y * values])).T
        share = float(np.linalg.norm(rest) / np.linalg.norm(values - values.mean()))
        if share < LOGARITHMS.vanished and not share < LOGARITHMS.gained * before:
            return rate
        square = float(slope @ slope)
        if not square > 0 or (not share < LOGARITHMS.gained * before and before < math.inf):
            return None
        before = share
        rate -= float(slope @ rest) / square
        if not LOGARITHMS.smallest / 2 < abs(rate) * reach < 2 * LOGARITHMS.largest:
            return None
    return None
