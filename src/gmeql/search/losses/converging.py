"""Constants taken to the minimum of the loss itself, where that is not the squared error.

The search fits to the squares that stand for a loss around its best formula (`losses.py`); each formula of the front is
then led to its own minimum by damped Newton steps with the curvatures of the loss's table, which never increase it.

Legend: `N` rows, `K` fitted constants.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gmeql.fitters.method import DAMPING_DOWN, DAMPING_UP, FIRST_DAMPING, LEAST_DAMPING, MAX_REJECTED, TINY
from gmeql.fitters.programs import ProgramTooLong, from_expression
from gmeql.formula.calculus import Slopes
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node
from gmeql.search.losses.losses import Loss

FloatArray = NDArray[np.float64]

SQUARES = Loss(
    "squared errors, with a value of their own",
    value=lambda f, y: (f - y) ** 2,
    slope=lambda f, y: 2.0 * (f - y),
    curvature=lambda f, y: np.full(len(y), 2.0),
)
"""Least squares of one formula without the compiled fit."""
STEPS = 60
TOLERANCE = 1e-9
"""Relative gain of a step below which the loss is least."""


def mean_loss(values: FloatArray, y: FloatArray, weights: FloatArray, loss: Loss) -> float:
    """Weighted mean of a loss over the rows; `inf` where it has no value."""
    assert loss.value is not None
    with np.errstate(all="ignore"):
        mean = float(np.average(loss.value(values, y), weights=weights))
    return mean if math.isfinite(mean) else math.inf


def converged(
    root: Node, X: FloatArray, y: FloatArray, weights: FloatArray, loss: Loss, held: frozenset[int] = frozenset()
) -> tuple[Node, float]:
    """The formula with the constants at which its mean loss is least, near those it has, and that loss.

    Constants whose numbers are `held` stay as they are.
    """
    assert loss.slope is not None and loss.curvature is not None
    expression = Expression(root, tuple(f"x{i + 1}" for i in range(X.shape[1])))
    constants = np.array(expression.constants)
    try:
        program = from_expression(root, X.shape[1], held)
    except ProgramTooLong:
        return root, mean_loss(expression(X), y, weights, loss)
    free = np.array(program.leaves[: program.n_free], dtype=np.intp)
    on_rows = Slopes(root, X, by=program.leaves[: program.n_free])
    values, slopes, _ = on_rows()
    best = mean_loss(values, y, weights, loss)
    damping, rejected = FIRST_DAMPING, 0
    for _ in range(STEPS if len(free) and math.isfinite(best) else 0):
        if rejected == 0:  # else the constants are still those of the last step
            with np.errstate(all="ignore"):
                active = np.asfortranarray(slopes)  # read column by column
                gradient = active.T @ (weights * loss.slope(values, y))
                hessian = (active * (weights * loss.curvature(values, y))[:, None]).T @ active
            if not (np.isfinite(gradient).all() and np.isfinite(hessian).all()):
                break
        damped = hessian + np.diag(damping * np.diag(hessian) + TINY)
        step = np.linalg.lstsq(damped, gradient, rcond=None)[0]
        trial = constants.copy()
        trial[free] -= step
        lower = math.inf
        if np.isfinite(trial).all():
            new_values, new_slopes, _ = on_rows(trial)
            lower = mean_loss(new_values, y, weights, loss)
        if lower < best:
            gain = (best - lower) / max(abs(best), TINY)
            constants, values, slopes, best = trial, new_values, new_slopes, lower
            damping, rejected = max(DAMPING_DOWN * damping, LEAST_DAMPING), 0
            if gain < TOLERANCE:
                break
        else:
            damping, rejected = DAMPING_UP * damping, rejected + 1
            if rejected > MAX_REJECTED:
                break
    return expression.with_constants(constants).root, best


def mean_loss_of_constant(y: FloatArray, weights: FloatArray, loss: Loss) -> float:
    """The mean loss of the best constant: what a formula must beat."""
    root = Constant(float(np.median(y)) if loss.link is None and not loss.mean_is_nats else float(np.mean(y)))
    return converged(root, np.empty((len(y), 1)), y, weights, loss)[1]
