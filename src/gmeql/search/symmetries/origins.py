"""Columns far from zero, seen from an origin among their rows.

A year, a Julian date or a temperature in kelvin varies by a small share of its size. Its powers, its root and its logarithm are
then all straight lines, and a decay or a wave needs a factor of e^1000 or a phase of a thousand turns. Counted from a round
number near its first row, the same column is an ordinary one. Such a table is looked at in addition to the plain one, since a
law may need the true zero of a column all the same.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.search.symmetries.config import SYMMETRIES
from gmeql.search.symmetries.views import View


def view_from_origins(X: NDArray[np.float64]) -> View | None:
    """The columns of X [N, V], those far from zero counted from their origins; None where there are none such."""
    origins = [origin(X[:, i]) for i in range(X.shape[1])]
    if not any(origins):
        return None
    columns: list[Node] = [
        build("sub", Variable(i), Constant(start)) if start else Variable(i) for i, start in enumerate(origins)
    ]
    return View(tuple(columns))


def origin(column: NDArray[np.float64]) -> float:
    """A round number just below a column's least value; 0 where the column is not far from zero.

    >>> origin(np.array([1994.0, 1999.5, 2021.0])), origin(np.array([1.0, 5.0]))
    (1990.0, 0.0)
    """
    low, high = float(column.min()), float(column.max())
    span = high - low
    if not 0 < SYMMETRIES.far * span / 2 < abs(low + high) / 2 < math.inf:
        return 0.0
    step = 10.0 ** math.floor(math.log10(span))
    return math.floor(low / step) * step
