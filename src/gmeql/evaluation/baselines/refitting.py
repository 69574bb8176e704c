"""Final expressions of every method: their error, and their constants in double precision."""

from __future__ import annotations

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import evaluate


def mean_absolute_error(expression: Expression, X: np.ndarray, y: np.ndarray) -> float:
    """MAE of an expression; inf where it is not finite on some row."""
    with np.errstate(all="ignore"):
        error = float(np.mean(np.abs(expression(np.asarray(X, float)) - y)))
    return error if np.isfinite(error) else float("inf")


def refit(expression: Expression, X: np.ndarray, y: np.ndarray, max_evaluations: int = 200) -> Expression:
    """The same expression with its constants refitted in double precision; kept only where that helps.

    Networks trained in single precision end a few digits short. Every method's final expression passes through this
    before it is judged, so that `solved` asks about the formula, not about the last digits of an optimiser. Whole
    exponents of `pow` stay what they are.
    """
    from scipy.optimize import least_squares

    start = np.asarray(expression.constants, float)
    if start.size == 0 or start.size > len(y):
        return expression
    X, y = np.asarray(X, float), np.asarray(y, float)
    worst = 1e3 * (float(np.std(y)) or 1.0)

    def residuals(constants: np.ndarray) -> np.ndarray:
        """Errors [..., N] of the formula with constants [..., K]; what is not finite counts as very wrong."""
        supply = iter(np.moveaxis(constants, -1, 0)[..., None])  # evaluation meets them from left to right
        with np.errstate(all="ignore"):
            values = evaluate(expression.root, lambda index: X[:, index], lambda _: next(supply), np)
            error = np.broadcast_to(values, (*constants.shape[:-1], len(y))) - y
        return np.clip(np.nan_to_num(error, nan=worst, posinf=worst, neginf=-worst), -worst, worst)

    def slopes(constants: np.ndarray) -> np.ndarray:
        """Forward differences [N, K] with SciPy's steps, all columns in one evaluation."""
        steps = np.sqrt(np.finfo(float).eps) * np.where(constants < 0, -1.0, 1.0) * np.maximum(1.0, np.abs(constants))
        moved = constants + np.diag(steps)
        found = residuals(np.vstack([constants, moved]))
        return (found[1:] - found[0]).T / (np.diagonal(moved) - constants)

    before = residuals(start)
    # MINPACK's method: SciPy's own stops half way where constants stand for each other, as in c + c + x
    with np.errstate(all="ignore"):
        solution = least_squares(
            residuals,
            start,
            slopes,
            method="lm",
            x_scale="jac",
            xtol=1e-15,
            ftol=1e-15,
            gtol=1e-15,
            max_nfev=max_evaluations,
        )
    if 2 * solution.cost >= float(before @ before):
        return expression
    return expression.with_constants(tuple(float(c) for c in solution.x))
