"""Errors of the inputs: rows weigh by their effective variance, and constants are led to the least of it.

A column that was measured with an error of its own moves the formula by its slope times that error. With standard
deviations s_j of column j and s of the target, the residual of a row has the variance

    v = s² + Σ_j (∂f/∂x_j)² s_j²

(effective variance: Clutton-Brock 1967, Orear 1982). While the search goes on rows weigh by 1/v at the best formula so far.
In the end each formula's constants minimise Σ r²/v itself, v moving with them: with v held, a noisy input would pull
slopes towards zero (for a straight line this is Deming's regression).

Legend: `N` rows, `V` columns, `K` fitted constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.fitters.programs import ProgramTooLong, from_expression
from gmeql.formula.calculus import row_slopes
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node

FloatArray = NDArray[np.float64]

CALLS_PER_CONSTANT = 60
"""Evaluations for each constant that the last fit may take: each step takes one for every constant."""


@dataclass(frozen=True, eq=False)
class InputErrors:
    """Standard deviations of the errors of the columns, x [N, V], and of the target, y [N]."""

    x: FloatArray
    y: FloatArray

    def take(self, rows: NDArray[Any]) -> InputErrors:
        """Those of some rows."""
        return InputErrors(self.x[rows], self.y[rows])

    def variances(self, root: Node, X: FloatArray) -> FloatArray:
        """Effective variance of every row [N]; where a formula has no slope, that of the target alone."""
        columns = [int(j) for j in np.flatnonzero((self.x != 0).any(axis=0))]
        with np.errstate(all="ignore"):
            slopes = row_slopes(root, X, columns)[2]
            moved = np.sum((slopes * self.x[:, columns]) ** 2, axis=1)
        return np.asarray(self.y**2 + np.where(np.isfinite(moved), moved, 0.0))

    def shares(self, root: Node, X: FloatArray) -> FloatArray:
        """What is left of a row's weight 1/s² where its inputs have errors too: s²/v [N], at most 1."""
        return np.asarray(self.y**2 / self.variances(root, X))


def scaled_residual(expression: Expression, X: FloatArray, y: FloatArray, errors: InputErrors) -> FloatArray:
    """Residuals [N] over the root of v/s²: their weighted squares are what constants minimise."""
    with np.errstate(all="ignore"):
        return np.asarray((expression(X) - y) * np.sqrt(errors.shares(expression.root, X)))


def least_effective(root: Node, X: FloatArray, y: FloatArray, weights: FloatArray, errors: InputErrors) -> Node:
    """The formula with the constants at which Σ w r² s²/v is least, near those it has."""
    from scipy.optimize import least_squares

    expression = Expression(root, tuple(f"x{i + 1}" for i in range(X.shape[1])))
    try:
        program = from_expression(root, X.shape[1])
    except ProgramTooLong:
        return root
    free = np.array(program.leaves[: program.n_free], dtype=np.intp)
    constants = np.array(expression.constants)
    if not 0 < len(free) < len(y):
        return root
    units = np.where(constants[free] != 0, np.abs(constants[free]), 1.0)
    root_weights = np.sqrt(weights)

    def moved(scaled: FloatArray) -> Expression:
        full = constants.copy()
        full[free] = scaled * units
        return expression.with_constants(full)

    def residual(scaled: FloatArray) -> FloatArray:
        values = root_weights * scaled_residual(moved(scaled), X, y, errors)
        return np.where(np.isfinite(values), values, 1e30)

    start = constants[free] / units
    found = least_squares(residual, start, method="lm", max_nfev=CALLS_PER_CONSTANT * (len(free) + 1))
    before = float(np.sum(residual(start) ** 2))
    return moved(found.x).root if 2 * found.cost < before else root
