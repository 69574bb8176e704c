"""Laws of fields in integral form: multiplied by bumps in space and time and summed over the grid.

    -∫ φ_t u = ∫ φ F,    and where F = g(x) D^α h(u):    ∫ φ g D^α h = (-1)^|α| ∫ D^α(φ g) h

No derivative of noisy values is taken where a term has that form. (Messenger and Bortz 2021.)

Legend: `R` rows (bumps), `K` terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from itertools import product

import numpy as np
from numpy.polynomial import Polynomial
from scipy.ndimage import correlate1d

from gmeql.differential.fields.config import FIELDS
from gmeql.differential.fields.derivatives import Orders
from gmeql.differential.fields.grid import FloatArray, Grid, correlation_points


def bump(half_width: int, step: float, order: int) -> FloatArray:
    """Values of a derivative of (1 - s**2)**power, s from -1 to 1 over the half width, times the step."""
    shape = Polynomial([1.0, 0.0, -1.0]) ** FIELDS.bump_power
    s = np.linspace(-1.0, 1.0, 2 * half_width + 1)
    derivative = shape.deriv(order) if order else shape
    return np.asarray(derivative(s) / (half_width * step) ** order * step)


class Bumps:
    """Test functions all over a grid."""

    def __init__(self, grid: Grid, smooth: FloatArray, order: int) -> None:
        self.grid = grid
        self.least = FIELDS.least_bump + FIELDS.bump_points_per_order * order
        self.half_widths = tuple(self._half_width(smooth, axis) for axis in range(grid.dimensions + 1))
        self._stride = tuple(max(1, m // FIELDS.rows_per_bump) for m in self.half_widths)
        self._weights: dict[tuple[int, int], FloatArray] = {}

    def _half_width(self, smooth: FloatArray, axis: int) -> int:
        size = smooth.shape[axis + 1]
        lengths = [correlation_points(field, axis) for field in smooth]
        most = max(self.least, int(FIELDS.largest_bump * size))
        wanted = round(FIELDS.bump_lengths * float(np.median(lengths)))
        return int(min(max(wanted, self.least), most, (size - 1) // 2 - 1))

    @cached_property
    def places(self) -> tuple[FloatArray, ...]:
        """Points of the grid where bumps stand, along each axis: whole ones only."""
        found = []
        for m, stride, size, periodic in zip(
            self.half_widths, self._stride, self.grid.values.shape[1:], self.grid.periodic, strict=True
        ):
            found.append(np.arange(0, size, stride) if periodic else np.arange(m, size - m, stride))
        while math.prod(map(len, found)) > FIELDS.most_rows:
            longest = int(np.argmax([len(f) for f in found]))
            found[longest] = found[longest][::2]
        return tuple(found)

    @cached_property
    def independent(self) -> float:
        """How many bumps have room beside each other, half over half: rows that are no repetition of others."""
        sizes = [n / m for n, m in zip(self.grid.values.shape[1:], self.half_widths, strict=True)]
        return float(max(4.0, math.prod(max(1.0, s) for s in sizes)))

    def rows(self, values: FloatArray, orders: Orders) -> FloatArray:
        """∫ D^orders φ · values for every bump [R]; the last of the orders is that of time."""
        for axis, order in enumerate(orders):
            key = (axis, order)
            if key not in self._weights:
                self._weights[key] = bump(self.half_widths[axis], self.grid.steps[axis], order)
            mode = "wrap" if self.grid.periodic[axis] else "constant"
            values = correlate1d(values, self._weights[key], axis=axis, mode=mode)
            values = np.take(values, self.places[axis], axis=axis)
        return values.reshape(-1)

    def length(self, orders: Orders) -> float:
        """Root of the sum of squares of a bump's derivative: what it makes of noise of size 1."""
        parts = [bump(m, h, k) for m, h, k in zip(self.half_widths, self.grid.steps, orders, strict=True)]
        return float(math.prod(np.linalg.norm(part) for part in parts))

    def left(self, field: FloatArray) -> FloatArray:
        """-∫ φ_t u for every bump."""
        return -self.rows(field, (*(0,) * self.grid.dimensions, 1))

    def plain(self, values: FloatArray) -> FloatArray:
        """∫ φ F for values of F on the grid."""
        return self.rows(values, (0,) * (self.grid.dimensions + 1))

    def by_parts(self, factor: Callable[[Orders], FloatArray | float], orders: Orders, inner: FloatArray) -> FloatArray:
        """∫ φ g D^α h by parts: `factor(orders)` is a derivative of g, `inner` are values of h."""
        total: FloatArray = np.zeros(1)
        for moved in product(*(range(k + 1) for k in orders)):  # D^α(φ g) by Leibniz' rule
            rest = tuple(k - m for k, m in zip(orders, moved, strict=True))
            g = factor(rest)
            if np.ndim(g) == 0 and float(np.asarray(g)) == 0.0:
                continue
            count = math.prod(math.comb(k, m) for k, m in zip(orders, moved, strict=True))
            total = total + count * self.rows(g * inner, (*moved, 0))
        return np.asarray((-1) ** sum(orders) * total)

    @cached_property
    def fold(self) -> FloatArray:
        """Which part of the grid each row belongs to, for judging on rows that were not fitted: slabs of time."""
        times = np.broadcast_to(np.arange(len(self.places[-1])), [len(p) for p in self.places]).reshape(-1)
        return np.asarray(times * FIELDS.folds // max(1, len(self.places[-1])))
