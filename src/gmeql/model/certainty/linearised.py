"""A fitted formula, made linear in its constants around their values: what intervals are computed from.

Legend: `N` rows, `K` free constants of one expression, `D` directions of the constants that the data determine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gmeql.formula.calculus import constant_slopes
from gmeql.formula.expression import Expression
from gmeql.search.losses.effective import InputErrors, scaled_residual
from gmeql.search.losses.losses import Loss, find_loss
from gmeql.search.losses.magnitudes import weights_by_size
from gmeql.search.losses.robust import WEIGHTS, influence_slopes, robust_weights, scale_of

FloatArray = NDArray[np.float64]
Model = Callable[[FloatArray], FloatArray]
WINDOW = 1.5
"""Standard deviations of the errors, at one row, over which the kink of a loss is looked at (Koenker 2005, section 3.4)."""
MOST_LEVERAGE = 0.9
"""Share of its own value that a row is taken to decide at most: beyond it nothing is known of its error."""
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Linearised:
    """A fit, linear in its constants around them: spread of the errors, degrees of freedom, root of the covariance."""

    spread: float
    """By which the covariance of the constants is scaled, ..."""
    error_spread: float
    """... and that of the errors themselves: the same under the squared loss."""
    freedom: int
    """Degrees of freedom of both: rows that count less the constants, at least one."""
    root: FloatArray
    undetermined: NDArray[np.bool_]
    """[K], the constants that the data do not determine."""
    step: FloatArray
    """[K], from the constants to the least squares estimate."""


@dataclass(frozen=True, eq=False)
class FittedRows:
    """The rows that count under a loss."""

    X: FloatArray
    y: FloatArray
    weight: FloatArray
    """[N], given weights times those of the loss, of mean one."""
    factor: FloatArray
    """[N], the weights of the loss alone: `w` of the influence `ψ = w r`."""
    slope: FloatArray
    """[N], `ψ'`; as large as `factor` under the squared loss."""
    errors: InputErrors | None = None
    """Of the inputs, where they have some."""
    counting: float = math.inf
    """How many of the rows with weight count, `Σψ'`; no more than all under the squared loss, ..."""
    unevenness: float = 0.0
    """... and how unlike they count: the variance of `ψ'` over its squared mean, for each of them."""

    @classmethod
    def of(
        cls,
        expression: Expression,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        loss: Any,
        errors: InputErrors | None = None,
    ) -> FittedRows:
        X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        given = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        if errors is None and find_loss(loss).value is None and (given > 0).any():
            by_size = weights_by_size(y, given)
            given = given if by_size is None else by_size
        with np.errstate(all="ignore"):
            residual = np.asarray(expression(X), dtype=float) - y
        explained = bool(expression.variables)
        factor = robust_weights(loss, residual, y, explained=explained)
        slope = influence_slopes(loss, residual, y, explained=explained)
        keep = given * factor > 0
        weight = (given * factor)[keep]
        weight = weight / weight.mean() if keep.any() else weight
        errors = None if errors is None else errors.take(np.flatnonzero(keep))
        found = cls(X[keep], y[keep], weight, factor[keep], slope[keep], errors)
        counting = slope[given > 0]
        if loss not in WEIGHTS or not (keep.any() and counting.mean() > 0):
            return found
        unevenness = float(counting.var() / counting.mean() ** 2) / len(counting)
        return replace(found, counting=float(counting.sum()), unevenness=unevenness)

    def freedom(self, constants: int) -> int:
        """Degrees of freedom that so many fitted constants leave."""
        rows = len(self.y) if self.counting > len(self.y) else round(self.counting)
        return max(rows - constants, 1)

    def spreads(self, squares: float, influence: float, constants: int) -> tuple[float, float]:
        """By what the constants' covariance scales, and the errors' spread, from mean squares of `r` and of `ψ/√w`.

        Both are larger by `1 + K var(ψ')/(N mean(ψ')²)`, what few rows lack (Huber 1981, section 7.6).
        """
        few = 1.0 + constants * self.unevenness
        steepness = float(np.average(self.slope / self.factor, weights=self.weight))
        if np.array_equal(self.slope, self.factor) or not steepness > 0:
            return math.sqrt(squares), math.sqrt(squares)
        usual = float(np.average(self.factor, weights=self.weight / self.factor))
        return few * math.sqrt(influence / usual) / steepness, few * math.sqrt(squares / steepness)


def by_constants(
    expression: Expression, free: NDArray[np.intp], X: FloatArray, rows: FittedRows | None = None
) -> Model:
    """The formula's values on `X` as a function of its free constants [K].

    Where the inputs of `rows` have errors, values that lie as far from the target as the residuals over the root of the
    effective variance.
    """
    values = np.asarray(expression.constants, dtype=float)

    def model(theta: FloatArray) -> FloatArray:
        full = values.copy()
        full[free] = theta
        changed = expression.with_constants(tuple(full))
        if rows is not None and rows.errors is not None:
            return rows.y + scaled_residual(changed, X, rows.y, rows.errors)
        return np.asarray(changed(X), dtype=float)

    return model


def slopes_at(
    expression: Expression, free: NDArray[np.intp], X: FloatArray, rows: FittedRows | None = None
) -> tuple[FloatArray, FloatArray]:
    """Values [N] of the formula, and its derivative by its free constants [N, K].

    Where a derivative has no value (an operator without one, a protected form outside its domain) and where inputs have
    errors, central differences stand in.
    """
    model = by_constants(expression, free, X, rows)
    theta = np.asarray(expression.constants, dtype=float)[free]
    values = model(theta)
    slopes = np.full((len(X), len(free)), np.nan)
    if rows is None or rows.errors is None:
        with suppress(ValueError):
            slopes = constant_slopes(expression.root, X)[1][:, free]
    for i in np.flatnonzero(~np.isfinite(slopes).all(axis=0)):
        slopes[:, i] = _difference(model, theta, int(i))
    return values, slopes


def _difference(model: Model, theta: FloatArray, k: int) -> FloatArray:
    """Central difference by constant `k`; the step eps^(1/3) balances truncation against rounding."""
    step = _EPS ** (1 / 3) * (abs(theta[k]) if theta[k] != 0 else 1.0)
    up, down = theta.copy(), theta.copy()
    up[k] += step
    down[k] -= step
    with np.errstate(all="ignore"):
        return np.asarray((model(up) - model(down)) / (up[k] - down[k]))


def linearised(expression: Expression, free: NDArray[np.intp], rows: FittedRows) -> Linearised:
    predicted, slopes = slopes_at(expression, free, rows.X, rows)
    row_scale = np.sqrt(rows.weight)
    jacobian = slopes * row_scale[:, None]
    residual = (predicted - rows.y) * row_scale
    if not (np.isfinite(jacobian).all() and np.isfinite(residual).all()):
        raise ValueError("the expression is not finite on these rows; give rows of the domain it was fitted on")
    freedom = len(rows.y) - len(free)
    # Columns and residuals are scaled before anything is squared, so that units of 1e±100 neither overflow nor vanish.
    largest = max(float(np.abs(residual).max()), np.finfo(float).tiny)
    squares, influence = (float(np.sum(f * (residual / largest) ** 2)) / freedom for f in (1.0, rows.factor))
    spread, error_spread = (largest * relative for relative in rows.spreads(squares, influence, len(free)))
    if rows.errors is not None:  # the next measurement has errors of its inputs too
        error_spread = math.sqrt(sum_of_squares(expression(rows.X) - rows.y, rows.weight) / freedom)
    if len(free) == 0:
        return Linearised(spread, error_spread, rows.freedom(0), np.empty((0, 0)), np.empty(0, bool), np.empty(0))
    peaks = np.abs(jacobian).max(axis=0)
    peaks[peaks == 0] = 1.0
    scaled = jacobian / peaks
    norms = np.sqrt(np.sum(scaled**2, axis=0))
    norms[norms == 0] = 1.0
    left, singular, directions = np.linalg.svd(scaled / norms, full_matrices=False)
    # Slopes by differences carry a relative error of about eps^(2/3); the data determine no direction below it.
    determined = (singular > _EPS ** (2 / 3) * len(free) * singular[0]) & (singular > 0)
    root = directions[determined] / singular[determined, None] / norms / peaks
    undetermined = np.any(np.abs(directions[~determined]) > 1e-3, axis=0)
    unit = 2.0 ** math.floor(math.log2(largest))  # a power of two: no digit is lost
    step = -(left[:, determined].T @ (residual / unit)) @ root * unit
    return Linearised(spread, error_spread, rows.freedom(len(free)), root, undetermined, step)


def linearised_by_loss(
    expression: Expression, free: NDArray[np.intp], X: FloatArray, y: FloatArray, weight: FloatArray, loss: Loss
) -> Linearised:
    """The same under a loss that is not the squared error: the covariance of an M-estimate, A⁻¹BA⁻¹.

    With the loss's slope `g` and second derivative `h` by the formula's value, `A = Σ w h x xᵀ` and
    `B = Σ w² g² x xᵀ / (1 - l)²` over the slopes `x` of the formula by its constants (Huber 1967, White 1982): right
    whatever the errors' distribution is. A row with leverage `l = w h xᵀA⁻¹x` pulls the formula towards itself, so that few
    rows show less than their errors (MacKinnon and White 1985). Where a loss has a kink, `h` is the share of rows near
    it, over a window that narrows as N^(-1/3) (Powell 1991), which says nothing of single rows: there all count
    `N/(N - K)`. Such a formula goes through K rows, whose residuals of zero tell nothing of the errors' scale.
    """
    assert loss.slope is not None
    values, slopes = slopes_at(expression, free, X)
    freedom = len(y) - len(free)
    scale = scale_of(np.sort(np.abs(values - y))[len(free) :], y)
    with np.errstate(all="ignore"):
        first = weight * loss.slope(values, y)
        if loss.second is not None:
            second = weight * loss.second(values, y)
        else:
            window = WINDOW * max(scale, _EPS * float(np.abs(y).max())) * len(y) ** (-1 / 3)
            second = weight * (loss.slope(values + window, y) - loss.slope(values - window, y)) / (2 * window)
    if not (np.isfinite(slopes).all() and np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("the expression is not finite on these rows; give rows of the domain it was fitted on")
    if len(free) == 0:
        return Linearised(1.0, scale, freedom, np.empty((0, 0)), np.empty(0, bool), np.empty(0))
    peaks = np.abs(slopes).max(axis=0)
    peaks[peaks == 0] = 1.0
    scaled = slopes / peaks
    curvature = (scaled * second[:, None]).T @ scaled
    sizes, directions = np.linalg.eigh(curvature)
    determined = sizes > _EPS ** (2 / 3) * len(free) * max(float(sizes[-1]), 0.0)
    inverse = (directions[:, determined] / sizes[determined]) @ directions[:, determined].T
    if loss.second is not None:
        first = first / (1.0 - np.clip(second * np.sum(scaled @ inverse * scaled, axis=1), 0.0, MOST_LEVERAGE))
    else:
        first = first * math.sqrt(len(y) / freedom)
    influence = np.linalg.qr(scaled * first[:, None], mode="r")
    undetermined = np.any(np.abs(directions[:, ~determined]) > 1e-3, axis=1)
    return Linearised(1.0, scale, freedom, influence @ inverse / peaks, undetermined, np.zeros(len(free)))


def sum_of_squares(residual: FloatArray, weight: FloatArray) -> float:
    """Weighted, infinite where the formula has no value."""
    found = float(np.sum(weight * residual**2))
    return found if math.isfinite(found) else math.inf
