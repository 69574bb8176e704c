"""Robust losses as weights: rows far from the formula count less, or nothing.

A loss that grows more slowly than the square is minimised by least squares with weights that follow from the residuals,
taken anew as the formula gets better (iteratively reweighted least squares; Holland and Welsch, 1977).

Legend: `N` rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

DEVIATION = 1.4826
"""Standard deviation of normal residuals in units of their median size."""
LEAST_SCALE = 1e-9
"""Share of the target's own spread below which the residuals' scale is rounding: most rows are met exactly."""
HUBER_CUT = 1.345
"""Standard deviations beyond which a residual counts in proportion (Huber 1964: 95 % efficiency under normal noise)."""
BISQUARE_CUT = 4.685
"""Standard deviations beyond which a residual counts nothing (Beaton and Tukey 1974: the same efficiency)."""

SLOPE_STEP = 1e-3
"""Step of differences, in standard deviations."""

LINE_EXPLAINS = 0.5
"""Share of the target's own scale that a line must leave less than, for rows far from it to be left out."""
LINE_ROWS = 4
"""Rows that each of its constants needs."""
LINE_STEPS = 100
LINE_SETTLED = 1e-6
"""Share of the scale of what is left by which the values move when the line is found."""
LINE_LEAST = 1e-3
"""Share of that scale below which residuals count as this: 1/|r| would let single rows decide."""


def scale_of(residual: FloatArray, y: FloatArray) -> float:
    """Standard deviation of the residuals, read off their median: half the rows may be anything."""
    spread = DEVIATION * middle_of(np.abs(y - middle_of(y)))
    sizes = np.where(np.isfinite(residual), np.abs(residual), np.inf)
    return max(DEVIATION * middle_of(sizes), LEAST_SCALE * spread)


def middle_of(values: FloatArray) -> float:
    """The median, to the last digit that of `np.median`, which takes five times as long for as few rows as these are."""
    n = len(values)
    if n == 0:
        return float("nan")
    ordered = np.partition(values, (n - 1, n // 2, (n - 1) // 2))
    if np.isnan(ordered[-1]):  # they come last
        return float("nan")
    upper = ordered[n // 2]
    return float(upper if n % 2 else (ordered[n // 2 - 1] + upper) / 2.0)


def least_absolute_line(X: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray | None:
    """The constant and the factors [1 + V] of the sum of columns with the least sum of absolute residuals.

    By weights 1/|r| taken in turns with the fit (Schlossmacher 1973). It goes through the middle of the rows at each
    place, so that nearly half of them may be anything. None where the rows are too few for the columns.
    """
    if len(y) < LINE_ROWS * (X.shape[1] + 1):
        return None
    sizes = np.abs(X).max(axis=0)
    used = np.ptp(X, axis=0) > 0
    table = np.column_stack([np.ones(len(y)), X[:, used] / sizes[used]])
    values, factor = np.full(len(y), middle_of(y)), np.zeros(table.shape[1])
    for _ in range(LINE_STEPS):
        scale = scale_of(y - values, y)
        if not (np.isfinite(scale) and scale > 0):
            break
        root = np.sqrt(weights / np.maximum(np.abs(y - values), LINE_LEAST * scale))
        factor = np.linalg.lstsq(table * root[:, None], y * root, rcond=None)[0]
        moved = float(np.abs(table @ factor - values).max())
        values = table @ factor
        if moved < LINE_SETTLED * scale:
            break
    line = np.zeros(1 + X.shape[1])
    line[0] = factor[0]
    line[1:][used] = factor[1:] / sizes[used]
    return line if np.isfinite(line).all() else None


def huber(relative: FloatArray) -> FloatArray:
    """Weights of residuals in standard deviations: 1 near zero, then in proportion to 1/|r|."""
    return np.minimum(1.0, HUBER_CUT / np.maximum(np.abs(relative), HUBER_CUT))


def bisquare(relative: FloatArray) -> FloatArray:
    """Tukey's weights of residuals in standard deviations: 1 at zero, falling to 0, and 0 from there on."""
    return np.maximum(0.0, 1.0 - (relative / BISQUARE_CUT) ** 2) ** 2


WEIGHTS: dict[str, Callable[[FloatArray], FloatArray]] = {"huber": huber, "robust": bisquare}
"""The losses of `config.LOSSES` that are minimised by weights, and the weights."""


def robust_weights(loss: Any, residual: FloatArray, y: FloatArray, *, explained: bool) -> FloatArray:
    """Weights [N] that follow from the residuals of a formula; ones under a loss that counts all rows alike.

    As long as nothing is `explained`, what lies far off may be what is to be found: then Huber's weights, which forget
    no row, stand in.
    """
    if loss not in WEIGHTS:
        return np.ones(len(y))
    scale = scale_of(residual, y)
    if not (np.isfinite(scale) and scale > 0):
        return np.ones(len(y))
    relative = np.where(np.isfinite(residual), residual, np.inf) / scale
    return (WEIGHTS[loss] if explained else huber)(relative)


def influence_slopes(loss: Any, residual: FloatArray, y: FloatArray, *, explained: bool) -> FloatArray:
    """How a row's influence `w(r) r` on the fit grows with its residual [N]: one for the square, below zero where a
    bisquare forgets. What intervals need of a loss (Huber, Robust Statistics, 1981, section 7.6).
    """
    if loss not in WEIGHTS:
        return np.ones(len(y))
    scale = scale_of(residual, y)
    if not (np.isfinite(scale) and scale > 0):
        return np.ones(len(y))
    weigh = WEIGHTS[loss] if explained else huber
    relative = np.where(np.isfinite(residual), residual, np.inf) / scale
    low, high = relative - SLOPE_STEP, relative + SLOPE_STEP
    with np.errstate(invalid="ignore"):
        slopes = (high * weigh(high) - low * weigh(low)) / (2 * SLOPE_STEP)
    return np.where(np.isfinite(slopes), slopes, 0.0)
