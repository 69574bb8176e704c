"""Targets that run over many magnitudes: squared errors would see only their largest rows.

So rows count by their relative error: their weights are divided by the square of the target. A law must then hold on every row
in that row's own size, and a formula that is exact on the largest rows alone is not taken for exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

MANY = 1e6
"""Ratio of the 95 % to the 5 % quantile of the target's size from which its relative error counts. Additive noise, even of
a thousandth of the target's size, keeps small rows away from zero and the ratio far below."""
QUANTILES = (0.05, 0.95)
UNSEEN = 1e-8
"""Size of the median row, relative to the largest, from which it counts too: below, the squares of half of the rows are
rounding beside that of the largest."""
WIDEST = 1e125
"""Sizes further below the largest than this count as this: weights are their squares, and those of mean 1 times targets that
are searched as they are, down to 1e-20, must have squares that a number holds,"""
HUGEST = 1e150
"""and where most rows are alike than this: their weights would not be finite."""


def magnitudes(y: FloatArray, *, many: float = MANY) -> FloatArray | None:
    """The size of each row of a target that runs over `many` magnitudes, relative to the largest; None for any other.

    >>> magnitudes(np.linspace(1, 1000, 20)) is None
    True
    >>> magnitudes(np.logspace(-9, 0, 4)).round(12).tolist()
    [1e-09, 1e-06, 0.001, 1.0]

    Where a few rows are huge and all others alike, only what is larger than the middle row counts by its own size: else the
    rows where the target passes through zero would outweigh all others.

    >>> (magnitudes(np.array([*[0.001, 2.0, 3.0] * 20, 1e20])) * 1e20).round(6)[:3].tolist()
    [2.0, 2.0, 3.0]
    """
    size = np.abs(y)
    if _are_alike(size, many) or (not _is_wide(size, many) and not _has_huge_rows(size)):
        return None
    if _is_wide(size, many):
        return np.asarray(np.maximum(size / size.max(), 1 / WIDEST))
    return np.asarray(np.maximum(np.maximum(size, np.median(size)) / size.max(), 1 / HUGEST))


def weights_by_size(y: FloatArray, weight: FloatArray) -> FloatArray | None:
    """Weights [N] of mean 1 by which rows of a target over many magnitudes count by their own size; None for any other."""
    sizes = magnitudes(y)
    if sizes is None:
        return None
    weight = weight / sizes**2
    return np.asarray(weight / weight.mean())


def ordinary_size(y: FloatArray) -> float:
    """The size that most rows have: that of the largest, or where a few are huge and all others alike of the middle one.

    >>> ordinary_size(np.array([1.0, -3.0])), ordinary_size(np.array([*[0.001, 2.0, 3.0] * 20, 1e140]))
    (3.0, 2.0)
    """
    size = np.abs(y)
    if _are_alike(size) or _is_wide(size) or not _has_huge_rows(size):
        return float(size.max())
    return max(float(np.median(size)), float(size.max()) / HUGEST)


def _are_alike(size: FloatArray, many: float = MANY) -> bool:
    """Whether not even the smallest row is so much smaller than the largest, which spares sorting them."""
    low, high = size.min(initial=np.inf), size.max(initial=0.0)
    return bool(high / min(many, 0.5 / UNSEEN) <= low > 0)


def _is_wide(size: FloatArray, many: float = MANY) -> bool:
    """Whether most rows run over many magnitudes."""
    low, high = np.quantile(size, QUANTILES)
    return bool(0 < low < high / many)


def _has_huge_rows(size: FloatArray) -> bool:
    """Whether the middle row is rounding beside the largest."""
    half = size / 2  # two of the largest floats have no mean
    return bool(0 < np.median(half) < UNSEEN * half.max())
