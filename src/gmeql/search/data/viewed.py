"""A view of the columns with the target's readings, as islands of the fitted search see them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.fitters.programs import input_slots
from gmeql.formula.nodes import Constant, Node, Variable, build, row_values, transform
from gmeql.search.data.readings import PLAIN, READINGS, read_target
from gmeql.search.symmetries import View

FloatArray = NDArray[np.float64]

LARGE = 20.0
"""Columns that a view made are scaled when their size, or its inverse, is beyond this."""
BINS = 12
"""Bins of a column whose means tell how relevant it is,"""
RELEVANCE_ROWS = 20_000
"""and rows, evenly spread, that this is judged on."""
_UNSCALED = ("sin", "cos")
"""Readings that take the target in its own units: asin and acos are not free of scale."""


@dataclass(frozen=True)
class ViewedTable:
    """One view of the data as islands read it: input slots, and per reading of the target its values and weights.

    `units` turns an island's loss into a mean squared error of the target itself. Columns that a view made are
    divided by `sizes` where they are large or small, so that constants near 1 are good starts.
    """

    view: View
    inputs: FloatArray
    sizes: FloatArray
    readings: dict[str, tuple[FloatArray, FloatArray]]
    units: dict[str, float]
    scale: float
    sign: float

    @classmethod
    def of(cls, view: View, X: FloatArray, y: FloatArray, weights: FloatArray, *, all_readings: bool) -> ViewedTable:
        """The view's table of some raw rows; without `all_readings` the target is read as it is only.

        A row whose factor is zero says nothing about the rest and has no weight; a usual value stands there.
        """
        factors = view.factors(X)
        says = factors != 0
        target = np.divide(y, factors, out=np.zeros_like(y), where=says)
        target[~says] = np.median(target[says]) if says.any() else 0.0
        weights = weights * factors**2
        scale = math.sqrt(float(np.mean(target**2))) or 1.0
        scaled = [name for name in READINGS if name not in _UNSCALED] if all_readings else [PLAIN]
        found = read_target(target / scale, weights, scaled)
        if all_readings:
            with np.errstate(over="ignore"):  # weights beyond a float are left out
                own = weights / scale**2
            found |= read_target(target, own, _UNSCALED)
        units = {name: scale**2 * float(own.mean()) for name, (_, own) in found.items()}
        table = view.table(X)
        sizes = np.ones(table.shape[1]) if view.is_raw_of(X.shape[1]) else _far_sizes(table)
        sign = 1.0 if target.mean() >= 0 else -1.0
        return cls(view, input_slots(table / sizes)[0], sizes, found, units, scale, sign)

    def inputs_of(self, columns: NDArray[np.int64]) -> FloatArray:
        """The input slots of some of the view's columns. Islands that take all of them share one array."""
        n = len(self.view.columns)
        if len(columns) == n and (columns[:-1] < columns[1:]).all():
            return self.inputs
        slots = np.concatenate([columns, [n], n + 1 + columns])
        return np.ascontiguousarray(self.inputs[slots])

    def formula(self, root: Node, columns: NDArray[np.int64], reading: str) -> Node:
        """What an island found over some of this view's columns, as a formula of the raw ones for the target."""

        def column(leaf: Node) -> Node:
            if not isinstance(leaf, Variable):
                return leaf
            index = int(columns[leaf.index])
            return build("mul", Constant(1 / self.sizes[index]), Variable(index))

        root = READINGS[reading].invert(transform(root, column), self.sign)
        if reading not in _UNSCALED:
            root = build("mul", Constant(self.scale), root)
        return self.view.restore(root)

    def predicted(self, output: FloatArray, reading: str, X: FloatArray) -> FloatArray:
        """The target that an island's output [N] stands for on the raw rows X [N, V]: `formula` in numbers, not in trees."""
        inverse = READINGS[reading].invert(Variable(0), self.sign)
        values = row_values(inverse, ("output",), output[:, None])
        return np.asarray(self.view.factors(X) * values * (1.0 if reading in _UNSCALED else self.scale))


def _far_sizes(table: FloatArray) -> FloatArray:
    """Root mean square of columns that are far from 1, else 1: frequencies of combined columns are often 1."""
    with np.errstate(all="ignore"):
        sizes = np.sqrt(np.mean(table**2, axis=0))
    far = np.isfinite(sizes) & (sizes > 0) & ((sizes > LARGE) | (sizes < 1 / LARGE))
    return np.where(far, sizes, 1.0)


def relevance(X: FloatArray, y: FloatArray, weights: FloatArray, bins: int = BINS) -> FloatArray:
    """How much of the target's variance the bins of each column explain, corrected for chance; between 0 and 1."""
    n_rows = min(len(y), RELEVANCE_ROWS)
    rows = np.linspace(0, len(y) - 1, n_rows).astype(int) if n_rows < len(y) else np.arange(n_rows)
    target, mass = y[rows], weights[rows]
    centred = target - np.average(target, weights=mass)
    total = float(np.sum(mass * centred**2))
    result = np.zeros(X.shape[1])
    if not total > 0 or not math.isfinite(total):
        return result
    for j in range(X.shape[1]):
        column = X[rows, j]
        edges = np.unique(np.quantile(column, np.linspace(0, 1, bins + 1)[1:-1]))
        group = np.searchsorted(edges, column)
        sums = np.bincount(group, mass * centred, bins + 1)
        masses = np.bincount(group, mass, bins + 1)
        between = float(np.sum(np.divide(sums**2, masses, out=np.zeros_like(sums), where=masses > 0)))
        chance = len(edges) / max(len(rows) - 1, 1)
        result[j] = max(0.0, (between / total - chance) / max(1 - chance, 1e-9))
    return result
