"""Equations judged in integral form: no derivative of measured values is taken.

An equation x' = f is multiplied by a bump φ that vanishes with its slope at both ends, and integrated by parts:

    -∫ φ'(t) x(t) dt = ∫ φ(t) f(x(t), u(t), t) dt

Bumps of several widths stand along every trajectory; each gives one row. (Messenger and Bortz 2021.)

Legend: `R` rows, `G` points of all curves, `V` columns (states, inputs, time), `E` equations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.sides import is_linear
from gmeql.differential.motion.smoothing import Curve
from gmeql.differential.motion.trajectories import Trajectories
from gmeql.formula.calculus import constant_slopes
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node
from gmeql.formula.constants import free_constants

FloatArray = NDArray[np.float64]
NO_VALUE = 1e100
"""Stands for a residual that is no number, as least squares want one,"""
LARGEST = 1e90
"""and what is as large as this has none."""


@dataclass(frozen=True)
class WeakRows:
    """The integral form of all equations on all curves."""

    X: FloatArray
    """[G, V], the columns along the curves."""
    bumps: FloatArray
    """[R, G]: times f, the right side."""
    left: FloatArray
    """[R, E], the left side."""
    error: FloatArray
    """[R, E], what noise makes of the left side, in its units."""
    names: tuple[str, ...]
    points: int
    """Measured points behind the rows."""

    def floor(self, j: int) -> float:
        """Mean squared residual, in units of the noise, that counts as none."""
        scaled = self.left[:, j] / self.error[:, j]
        return float((MOTION.weak.floor**2) * np.mean(scaled**2)) or np.finfo(float).tiny

    def right(self, j: int, values: FloatArray) -> FloatArray:
        """The right side of equation `j` for values of f [G] or of several [G, K], in units of the noise."""
        error = self.error[:, j] if values.ndim == 1 else self.error[:, j, None]
        with np.errstate(all="ignore"):  # a formula may have no value somewhere: its sides are nan then
            sides: FloatArray = self.bumps @ values / error
        return sides

    def fit(self, root: Node, j: int, steps: int = MOTION.weak.steps) -> tuple[Node, float]:
        """The formula with its constants fitted to equation `j`, and its mean squared residual; `inf` where it has none."""
        expression = Expression(root, self.names)
        free = np.flatnonzero(free_constants(expression))
        start = np.asarray(expression.constants, dtype=float)
        target = self.left[:, j] / self.error[:, j]
        if len(free) >= len(target):
            return root, math.inf

        def formula(values: FloatArray) -> Expression:
            constants = start.copy()
            constants[free] = values
            return expression.with_constants(constants)

        def residual(values: FloatArray) -> FloatArray:
            if not np.isfinite(values).all():
                return np.full(len(target), NO_VALUE)
            found = self.right(j, formula(values)(self.X)) - target
            return np.nan_to_num(found, nan=NO_VALUE, posinf=NO_VALUE, neginf=-NO_VALUE)

        def jacobian(values: FloatArray) -> FloatArray:
            _, slopes = constant_slopes(formula(values).root, self.X)
            return np.nan_to_num(self.right(j, slopes[:, free]), nan=0.0, posinf=0.0, neginf=0.0)

        first = residual(start[free])
        if np.abs(first).max() >= LARGEST:
            return root, math.inf
        if len(free) == 0:
            return root, float(np.mean(first**2))
        if is_linear(root):
            better = start[free] - np.linalg.lstsq(jacobian(start[free]), first, rcond=None)[0]
            return formula(better).root, float(np.mean(residual(better) ** 2))
        tolerance = MOTION.weak.tolerance
        solved = least_squares(
            residual,
            start[free],
            jac=jacobian,
            method="lm",
            x_scale="jac",
            max_nfev=steps,
            xtol=tolerance,
            ftol=tolerance,
        )
        loss = float(np.mean(solved.fun**2))
        if not (math.isfinite(loss) and loss < LARGEST and np.isfinite(solved.x).all()):
            return root, math.inf
        return formula(solved.x).root, loss


def weak_rows(
    trajectories: Trajectories,
    curves: Sequence[Curve],
    columns: Sequence[FloatArray],
    moving: Sequence[FloatArray],
    noise: Sequence[FloatArray],
    names: Sequence[str],
) -> WeakRows:
    """Rows for the equations of the quantities `moving` [G, E] of each curve, over its `columns` [G, V].

    `noise` [N, E] is the standard deviation of the measurements behind them.
    """
    order = 1 if moving[0] is curves[0].X else 2
    parts = [
        _bumps(piece.t, curve.t, x, sigma, curve.slope_errors if order == 1 else np.zeros_like(x))
        for piece, curve, x, sigma in zip(trajectories, curves, moving, noise, strict=True)
    ]
    total = sum(len(curve.t) for curve in curves)
    bumps = np.zeros((sum(len(part[0]) for part in parts), total))
    row = point = 0
    for right, _, _ in parts:
        bumps[row : row + right.shape[0], point : point + right.shape[1]] = right
        row, point = row + right.shape[0], point + right.shape[1]
    left, error = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    return WeakRows(np.concatenate(list(columns)), bumps, left, error, tuple(names), trajectories.points)


def _bumps(
    times: FloatArray, grid: FloatArray, moving: FloatArray, noise: FloatArray, unsure: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Right sides' weights [R, G], left sides [R, E] and their errors [R, E] of one curve.

    The error is what noise of the measurements makes of the left side, or, where points are far apart, what the curve does
    not know: the error of its slope `unsure` [G, E], as one between two measured points and another one between the next.
    """
    numbers = MOTION.weak
    duration, p = float(grid[-1] - grid[0]), numbers.exponent
    least = numbers.least_points * duration / (len(times) - 1)
    widths = sorted({min(max(share * duration, least), duration) for share in numbers.widths})
    centres, halves = [], []
    for width in widths:
        count = max(round((duration - width) / (numbers.shift * width)), 0) + 1
        centres += np.linspace(grid[0] + width / 2, grid[-1] - width / 2, count).tolist()
        halves += [width / 2] * count
    centre, half = np.array(centres)[:, None], np.array(halves)[:, None]

    def bump(t: FloatArray, order: int) -> FloatArray:
        s = np.clip((t[None, :] - centre) / half, -1.0, 1.0)
        value: FloatArray = (1 - s**2) ** p if order == 0 else -2.0 * p * s * (1 - s**2) ** (p - 1) / half
        return value

    weight = np.full(len(grid), grid[1] - grid[0])
    weight[[0, -1]] *= 0.5  # the trapezoidal rule: of high order for what vanishes at the ends with its slopes
    left = -(bump(grid, 1) * weight) @ moving
    step = np.gradient(times)
    right = bump(grid, 0) * weight
    between = np.searchsorted(times, grid[:-1], side="right")
    starts = np.flatnonzero(np.diff(between, prepend=-1))
    gaps = np.add.reduceat(right[:, :-1, None] * unsure[None, :-1], starts, axis=1)
    error = np.sqrt(np.maximum((bump(times, 1) * step) ** 2 @ noise**2, (gaps**2).sum(axis=1)))
    return right, left, np.maximum(error, error.max(axis=0) * MOTION.weak.least_error)
