"""How well the data determine the constants of a formula and the next measurement: intervals of both.

Legend: `N` rows, `K` free constants of one expression, `D` directions of the constants that the data determine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gmeql.formula.calculus import constant_slopes
from gmeql.formula.expression import Expression
from gmeql.model.front import free_constants
from gmeql.search.robust import influence_slopes, robust_weights

FloatArray = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class ConstantInterval:
    """What the data say about one constant of a formula."""

    position: int
    """Index into `expression.constants`."""
    value: float
    standard_error: float
    """`inf` when the data do not determine the constant."""
    low: float
    high: float
    level: float


def constant_intervals(
    expression: Expression,
    X: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    loss: Any = "squared",
    level: float = 0.95,
    method: str = "jacobian",
    resamples: int = 200,
    seed: int = 0,
    exponents: bool = False,
) -> tuple[ConstantInterval, ...]:
    """Confidence intervals of the constants of `expression`, which must have been fitted to `X`, `y`.

    `method="jacobian"` linearises the formula at its constants: covariance `s² (JᵀWJ)⁻¹` with `s²` the residual sum of
    squares over `N - K` and Student's t with `N - K` degrees of freedom (Seber and Wild, Nonlinear Regression, 2003,
    section 5.1). The intervals lie around the least squares estimate: a constant that was rounded to a number that
    people write is not in the middle of its interval, and one step of Gauss and Newton leads there.

    Under a `loss` that weighs rows, they count as they do in it, and `s` is what Huber's asymptotic variance asks for:
    `s² = Σψ²/(N - K) / mean(ψ')²` with the influence `ψ` of each row (Robust Statistics, 1981, section 7.6).

    `method="bootstrap"` refits the constants on `resamples` draws of the rows and takes percentiles: slower, right also
    where the formula is far from linear in its constants. Plain exponents (2, 0.5, ...) and factors of ±1 count as
    structure unless `exponents` is True.
    """
    _check_level(level)
    rows = _Counted.of(expression, X, y, sample_weight, loss)
    X, y, weight = rows.X, rows.y, rows.weight
    values = np.asarray(expression.constants, dtype=float)
    free = np.flatnonzero(np.ones(len(values), bool) if exponents else free_constants(expression))
    if len(free) == 0:
        return ()
    _check_rows(len(y), len(free))
    model = _by_constants(expression, free, X)
    if method == "jacobian":
        fitted = _linearised(expression, free, rows)
        with np.errstate(all="ignore"):
            before, after = (_sum_of_squares(model(values[free] + s) - y, weight) for s in (0.0, fitted.step))
        # where the formula is so far from linear that the step leads astray, the constants stay the middle
        centre = values[free] + fitted.step if after <= before else values[free]
        errors, low, high = _linear_intervals(fitted, centre, level)
    elif method == "bootstrap":
        errors, low, high = _bootstrap_intervals(model, values[free], y, weight, level, resamples, seed)
    else:
        raise ValueError(f'method={method!r} is unknown; use "jacobian" or "bootstrap"')
    return tuple(
        ConstantInterval(int(p), float(values[p]), float(e), float(a), float(b), level)
        for p, e, a, b in zip(free, errors, low, high, strict=True)
    )


def prediction_interval(
    expression: Expression,
    X: ArrayLike,
    y: ArrayLike,
    X_new: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    loss: Any = "squared",
    level: float = 0.95,
) -> tuple[FloatArray, FloatArray]:
    """Between which values the target of each row of `X_new` lies with probability `level`: low [N] and high [N].

    `expression` must have been fitted to `X`, `y`; see `PredictionBasis.interval`.
    """
    return PredictionBasis.of(expression, X, y, sample_weight=sample_weight, loss=loss).interval(X_new, level=level)


@dataclass(frozen=True)
class PredictionBasis:
    """What prediction intervals of a fitted formula need of the rows it was fitted to."""

    expression: Expression
    free: tuple[int, ...]
    """Indices into `expression.constants` of the constants that were fitted."""
    spread: float
    """Standard deviation of the errors: root of their sum of squares over the degrees of freedom. Under a loss that
    weighs rows that of the rows that count: `Σψr/Σψ'` is the variance of normal errors whatever the loss."""
    freedom: int
    """Degrees of freedom, `N - K`."""
    root: FloatArray
    """[D, K], with `(JᵀWJ)⁻¹ = rootᵀ root`; directions that the data do not determine are left out."""

    @classmethod
    def of(
        cls,
        expression: Expression,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        loss: Any = "squared",
    ) -> PredictionBasis:
        """The basis of `expression`, which must have been fitted to `X`, `y` by `loss`."""
        rows = _Counted.of(expression, X, y, sample_weight, loss)
        free = np.flatnonzero(free_constants(expression))
        _check_rows(len(rows.y), len(free))
        fitted = _linearised(expression, free, rows)
        # in units of the errors' own spread, as the covariance of the constants is not
        root = fitted.root * (fitted.spread / fitted.error_spread) if fitted.error_spread > 0 else fitted.root
        return cls(expression, tuple(map(int, free)), fitted.error_spread, fitted.freedom, root)

    @classmethod
    def or_reason(
        cls, expression: Expression, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, loss: Any
    ) -> PredictionBasis | str:
        """The same, or the reason why there is none."""
        try:
            return cls.of(expression, X, y, sample_weight=sample_weight, loss=loss)
        except ValueError as error:
            return str(error)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready description without the formula, which stands on its front."""
        return {"free": list(self.free), "spread": self.spread, "freedom": self.freedom, "root": self.root.tolist()}

    @classmethod
    def from_dict(cls, data: Any, expression: Expression) -> PredictionBasis:
        """Read `to_dict`'s output, trusting nothing: `ValueError` for the first field that is wrong."""
        if not isinstance(data, dict) or set(data) != {"free", "spread", "freedom", "root"}:
            raise ValueError("bases: each must be an object with the fields free, spread, freedom and root")
        free, root, constants = data["free"], data["root"], len(expression.constants)
        if not isinstance(free, list) or not all(type(k) is int and 0 <= k < constants for k in free):
            raise ValueError(f"bases: free must be a list of indices from 0 to {constants - 1}")
        if type(data["freedom"]) is not int or data["freedom"] < 1:
            raise ValueError("bases: freedom must be a whole number of at least 1")
        if not isinstance(root, list) or len(root) > len(free) or not all(_is_row(row, len(free)) for row in root):
            raise ValueError(f"bases: root must be a list of lists of {len(free)} finite numbers")
        if not _is_row([data["spread"]], 1) or data["spread"] < 0:
            raise ValueError("bases: spread must be a finite number of at least 0")
        numbers = np.array(root, dtype=float).reshape(len(root), len(free))
        return cls(expression, tuple(free), float(data["spread"]), data["freedom"], numbers)

    def interval(self, X: ArrayLike, *, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Low [N] and high [N] for the target of each row of `X`.

        `ŷ ± t s sqrt(1 + xᵀ (JᵀWJ)⁻¹ x)` with `x` the slopes of the formula by its constants at the row and `t` of
        Student's distribution (Seber and Wild, Nonlinear Regression, 2003, section 5.1). That is right for errors that
        are normal and everywhere of one size, where the formula has the right structure: that it may have another is
        not part of it.
        """
        from scipy.special import stdtrit  # Student's t; scipy.stats takes most of a second to import

        _check_level(level)
        X = np.asarray(X, dtype=float)
        free = np.array(self.free, dtype=np.intp)
        values, slopes = _slopes(self.expression, free, X)
        with np.errstate(all="ignore"):
            variance = 1.0 + np.sum((slopes @ self.root.T) ** 2, axis=1)
            half = stdtrit(self.freedom, 0.5 + level / 2) * self.spread * np.sqrt(variance)
        return values - half, values + half


def _is_row(row: Any, length: int) -> bool:
    """Whether this is a list of so many finite numbers."""
    numbers = isinstance(row, list) and len(row) == length and all(type(x) in (int, float) for x in row)
    return numbers and all(map(math.isfinite, row))


Model = Callable[[FloatArray], FloatArray]
Bounds = tuple[FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True)
class _Linearised:
    """A fit, linear in its constants around them: spread of the errors, degrees of freedom, root of the covariance."""

    spread: float
    """By which the covariance of the constants is scaled, ..."""
    error_spread: float
    """... and that of the errors themselves: the same under the squared loss."""
    freedom: int
    root: FloatArray
    undetermined: NDArray[np.bool_]
    """[K], the constants that the data do not determine."""
    step: FloatArray
    """[K], from the constants to the least squares estimate."""


def _check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level!r} must lie between 0 and 1, for example 0.95")


def _check_rows(rows: int, constants: int) -> None:
    if rows <= constants:
        raise ValueError(f"intervals of {constants} constants need more rows than that; got {rows} with weight")


@dataclass(frozen=True, eq=False)
class _Counted:
    """The rows that count under a loss."""

    X: FloatArray
    y: FloatArray
    weight: FloatArray
    """[N], given weights times those of the loss, of mean one."""
    factor: FloatArray
    """[N], the weights of the loss alone: `w` of the influence `ψ = w r`."""
    slope: FloatArray
    """[N], `ψ'`; as large as `factor` under the squared loss."""

    @classmethod
    def of(
        cls, expression: Expression, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, loss: Any
    ) -> _Counted:
        X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        given = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        with np.errstate(all="ignore"):
            residual = np.asarray(expression(X), dtype=float) - y
        explained = bool(expression.variables)
        factor = robust_weights(loss, residual, y, explained=explained)
        slope = influence_slopes(loss, residual, y, explained=explained)
        keep = given * factor > 0
        weight = (given * factor)[keep]
        return cls(X[keep], y[keep], weight / weight.mean() if keep.any() else weight, factor[keep], slope[keep])

    def spreads(self, squares: float, influence: float) -> tuple[float, float]:
        """By what the constants' covariance scales, and the errors' spread, from mean squares of `r` and of `ψ/√w`."""
        steepness = float(np.average(self.slope / self.factor, weights=self.weight))
        if np.array_equal(self.slope, self.factor) or not steepness > 0:
            return math.sqrt(squares), math.sqrt(squares)
        usual = float(np.average(self.factor, weights=self.weight / self.factor))
        return math.sqrt(influence / usual) / steepness, math.sqrt(squares / steepness)


def _by_constants(expression: Expression, free: NDArray[np.intp], X: FloatArray) -> Model:
    """The formula's values on `X` as a function of its free constants [K]."""
    values = np.asarray(expression.constants, dtype=float)

    def model(theta: FloatArray) -> FloatArray:
        full = values.copy()
        full[free] = theta
        return np.asarray(expression.with_constants(tuple(full))(X), dtype=float)

    return model


def _slopes(expression: Expression, free: NDArray[np.intp], X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Values [N] of the formula, and its derivative by its free constants [N, K].

    Where a derivative has no value (an operator without one, a protected form outside its domain), central differences
    stand in.
    """
    model = _by_constants(expression, free, X)
    theta = np.asarray(expression.constants, dtype=float)[free]
    values = model(theta)
    try:
        slopes = constant_slopes(expression.root, X)[1][:, free]
    except ValueError:
        slopes = np.full((len(X), len(free)), np.nan)
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


def _linearised(expression: Expression, free: NDArray[np.intp], rows: _Counted) -> _Linearised:
    predicted, slopes = _slopes(expression, free, rows.X)
    row_scale = np.sqrt(rows.weight)
    jacobian = slopes * row_scale[:, None]
    residual = (predicted - rows.y) * row_scale
    if not (np.isfinite(jacobian).all() and np.isfinite(residual).all()):
        raise ValueError("the expression is not finite on these rows; give rows of the domain it was fitted on")
    freedom = len(rows.y) - len(free)
    # Columns and residuals are scaled before anything is squared, so that units of 1e±100 neither overflow nor vanish.
    largest = max(float(np.abs(residual).max()), np.finfo(float).tiny)
    squares, influence = (float(np.sum(f * (residual / largest) ** 2)) / freedom for f in (1.0, rows.factor))
    spread, error_spread = (largest * relative for relative in rows.spreads(squares, influence))
    if len(free) == 0:
        return _Linearised(spread, error_spread, freedom, np.empty((0, 0)), np.empty(0, bool), np.empty(0))
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
    return _Linearised(spread, error_spread, freedom, root, undetermined, -(left[:, determined].T @ residual) @ root)


def _sum_of_squares(residual: FloatArray, weight: FloatArray) -> float:
    """Weighted, infinite where the formula has no value."""
    found = float(np.sum(weight * residual**2))
    return found if math.isfinite(found) else math.inf


def _linear_intervals(fitted: _Linearised, theta: FloatArray, level: float) -> Bounds:
    from scipy.special import stdtrit

    # Each column by its largest entry, for units of 1e±100 as above.
    peaks = np.abs(fitted.root).max(axis=0, initial=0.0)
    peaks[peaks == 0] = 1.0
    errors = fitted.spread * peaks * np.sqrt(np.sum((fitted.root / peaks) ** 2, axis=0))
    errors = np.where(fitted.undetermined, np.inf, errors)
    half = stdtrit(fitted.freedom, 0.5 + level / 2) * errors
    return errors, theta - half, theta + half


def _bootstrap_intervals(
    model: Model, theta: FloatArray, y: FloatArray, weight: FloatArray, level: float, resamples: int, seed: int
) -> Bounds:
    from scipy.optimize import least_squares

    if resamples < 2:
        raise ValueError(f"resamples={resamples!r} must be at least 2; 200 gives usable percentiles")
    rng = np.random.default_rng(seed)
    scale = max(float(np.abs(y).max()), np.finfo(float).tiny)
    units = np.where(theta != 0, np.abs(theta), 1.0)
    draws = []
    for _ in range(resamples):
        counts = np.bincount(rng.integers(0, len(y), len(y)), minlength=len(y))
        root = np.sqrt(weight * counts)

        def residual(scaled: FloatArray, root: FloatArray = root) -> FloatArray:
            with np.errstate(all="ignore"):
                values = root * (model(scaled * units) - y) / scale
            return np.where(np.isfinite(values), values, 1e6)

        draws.append(least_squares(residual, theta / units, method="lm", max_nfev=100 * (len(theta) + 1)).x * units)
    sample = np.asarray(draws)
    tail = 50 * (1 - level)
    low, high = np.percentile(sample, [tail, 100 - tail], axis=0)
    return sample.std(axis=0, ddof=1), low, high
