"""How well the data determine the constants of a formula: confidence intervals, linearised or by bootstrap.

Legend: `N` rows, `K` free constants of one expression.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gmeql.formula.calculus import differentiate
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, Variable, transform
from gmeql.model.front import free_constants

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
    level: float = 0.95,
    method: str = "jacobian",
    resamples: int = 200,
    seed: int = 0,
    exponents: bool = False,
) -> tuple[ConstantInterval, ...]:
    """Confidence intervals of the constants of `expression`, which must have been fitted to `X`, `y`.

    `method="jacobian"` linearises the formula at its constants: covariance `s² (JᵀWJ)⁻¹` with `s²` the residual sum of
    squares over `N - K` and Student's t with `N - K` degrees of freedom (Seber and Wild, Nonlinear Regression, 2003,
    section 5.1). `method="bootstrap"` refits the constants on `resamples` draws of the rows and takes percentiles:
    slower, right also where the formula is far from linear in its constants. Plain exponents (2, 0.5, ...) and factors
    of ±1 count as structure unless `exponents` is True.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level!r} must lie between 0 and 1, for example 0.95")
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    keep = weight > 0
    X, y, weight = X[keep], y[keep], weight[keep] / weight[keep].mean()
    values = np.asarray(expression.constants, dtype=float)
    free = np.flatnonzero(np.ones(len(values), bool) if exponents else free_constants(expression))
    if len(free) == 0:
        return ()
    if len(y) <= len(free):
        raise ValueError(f"intervals of {len(free)} constants need more rows than that; got {len(y)} with weight")

    def model(theta: FloatArray) -> FloatArray:
        full = values.copy()
        full[free] = theta
        return np.asarray(expression.with_constants(tuple(full))(X), dtype=float)

    if method == "jacobian":
        slopes = _jacobian(expression, free, X, model)
        errors, low, high = _linear_intervals(slopes, model(values[free]), values[free], y, weight, level)
    elif method == "bootstrap":
        errors, low, high = _bootstrap_intervals(model, values[free], y, weight, level, resamples, seed)
    else:
        raise ValueError(f'method={method!r} is unknown; use "jacobian" or "bootstrap"')
    return tuple(
        ConstantInterval(int(p), float(values[p]), float(e), float(a), float(b), level)
        for p, e, a, b in zip(free, errors, low, high, strict=True)
    )


Model = Callable[[FloatArray], FloatArray]
Bounds = tuple[FloatArray, FloatArray, FloatArray]


def _jacobian(expression: Expression, free: NDArray[np.intp], X: FloatArray, model: Model) -> FloatArray:
    """Derivative of the formula by its free constants, [N, K].

    The constants become columns of their own, and the formula is differentiated by those. Where that has no value (an
    operator without a derivative, a protected form outside its domain), central differences stand in.
    """
    values = np.asarray(expression.constants, dtype=float)
    width, numbers = X.shape[1], iter(range(len(values)))
    column = {int(k): width + i for i, k in enumerate(free)}

    def leaf(node: Node) -> Node:
        if not isinstance(node, Constant):
            return node
        number = next(numbers)
        return Variable(column[number]) if number in column else node

    root = transform(expression.root, leaf)
    names = (*expression.names, *(f"constant {k}" for k in free))
    table = np.hstack([X, np.broadcast_to(values[free], (len(X), len(free)))])
    columns = []
    for i in range(len(free)):
        try:
            slope = Expression(differentiate(root, width + i), names)(table)
        except ValueError:
            slope = np.full(len(X), np.nan)
        columns.append(slope if np.isfinite(slope).all() else _difference(model, values[free], i))
    return np.stack(columns, axis=1)


def _difference(model: Model, theta: FloatArray, k: int) -> FloatArray:
    """Central difference by constant `k`; the step eps^(1/3) balances truncation against rounding."""
    step = _EPS ** (1 / 3) * (abs(theta[k]) if theta[k] != 0 else 1.0)
    up, down = theta.copy(), theta.copy()
    up[k] += step
    down[k] -= step
    with np.errstate(all="ignore"):
        return np.asarray((model(up) - model(down)) / (up[k] - down[k]))


def _linear_intervals(
    slopes: FloatArray, predicted: FloatArray, theta: FloatArray, y: FloatArray, weight: FloatArray, level: float
) -> Bounds:
    from scipy.special import stdtrit  # Student's t; scipy.stats takes most of a second to import

    root = np.sqrt(weight)
    jacobian = slopes * root[:, None]
    residual = (predicted - y) * root
    if not (np.isfinite(jacobian).all() and np.isfinite(residual).all()):
        raise ValueError("the expression is not finite on these rows; give rows of the domain it was fitted on")
    freedom = len(y) - len(theta)
    # Columns and residuals are scaled before anything is squared, so that units of 1e±100 neither overflow nor vanish.
    largest = max(float(np.abs(residual).max()), np.finfo(float).tiny)
    spread = largest * math.sqrt(float(np.sum((residual / largest) ** 2)) / freedom)
    peaks = np.abs(jacobian).max(axis=0)
    peaks[peaks == 0] = 1.0
    scaled = jacobian / peaks
    norms = np.sqrt(np.sum(scaled**2, axis=0))
    norms[norms == 0] = 1.0
    _, singular, directions = np.linalg.svd(scaled / norms, full_matrices=False)
    # Slopes by differences carry a relative error of about eps^(2/3); the data determine no direction below it.
    determined = (singular > _EPS ** (2 / 3) * len(theta) * singular[0]) & (singular > 0)
    variance = np.sum((directions[determined] / singular[determined, None]) ** 2, axis=0)
    errors = spread * np.sqrt(variance) / norms / peaks
    undetermined = np.any(np.abs(directions[~determined]) > 1e-3, axis=0)
    errors = np.where(undetermined, np.inf, errors)
    half = stdtrit(freedom, 0.5 + level / 2) * errors
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
