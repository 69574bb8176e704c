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

from collections.abc import Callable, Collection, Sequence
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
MOST_RISE = 2.0
"""Times that squares, weighted as at the start, may rise on the way to the least effective variance. On a line they at most
double where the column's errors are no larger than its own spread; beyond that the variance was inflated by a steep wrong
formula, whose every residual looks small."""
DIFFERENCE = float(np.finfo(np.float64).eps) ** (1 / 3)
"""Relative step of central differences: it balances truncation against rounding."""


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


def least_effective(
    root: Node, X: FloatArray, y: FloatArray, weights: FloatArray, errors: InputErrors, held: Collection[int] = ()
) -> Node:
    """The formula with the constants at which Σ w r² s²/v is least, near those it has; `held` are numbers of some that
    stay."""
    expression = Expression(root, tuple(f"x{i + 1}" for i in range(X.shape[1])))
    try:
        program = from_expression(root, X.shape[1], held)
    except ProgramTooLong:
        return root
    free = np.array(program.leaves[: program.n_free], dtype=np.intp)
    constants = np.array(expression.constants)

    def moved(values: FloatArray) -> Node:
        full = constants.copy()
        full[free] = values
        return expression.with_constants(full).root

    return moved(least_effective_values(moved, constants[free], X, y, weights, errors))


def least_effective_values(
    formula: Callable[[FloatArray], Node],
    start: FloatArray,
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray,
    errors: InputErrors,
    bounds: tuple[FloatArray, FloatArray] | None = None,
) -> FloatArray:
    """Values [K], within `bounds` [K] each, of which `formula` makes that of the least Σ w r² s²/v near `start`."""
    from scipy.optimize import least_squares

    if not 0 < len(start) < len(y):
        return start
    names = tuple(f"x{i + 1}" for i in range(X.shape[1]))
    units = np.where(start != 0, np.abs(start), 1.0)
    root_weights = np.sqrt(weights)

    def residual(scaled: FloatArray) -> FloatArray:
        values = root_weights * scaled_residual(Expression(formula(scaled * units), names), X, y, errors)
        return np.where(np.isfinite(values), values, 1e30)

    options: dict[str, Any] = {"method": "lm"}
    if bounds is not None:
        options = {"method": "trf", "bounds": tuple(bound / units for bound in bounds)}
    calls = CALLS_PER_CONSTANT * (len(start) + 1)
    found = least_squares(residual, start / units, max_nfev=calls, **options)
    before = float(np.sum(residual(start / units) ** 2))
    return np.asarray(found.x * units if 2 * found.cost < before else start)


def scaled_slopes(
    root: Node, X: FloatArray, y: FloatArray, errors: InputErrors, columns: Sequence[int] = ()
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`scaled_residual` [N], and its slopes by each constant of the formula [N, K] and by `columns` [N, C].

    Central differences, since the effective variance holds slopes already; each column is moved in all rows at once.
    """
    expression = Expression(root, tuple(f"x{i + 1}" for i in range(X.shape[1])))
    constants = np.array(expression.constants)

    def by_constant(k: int) -> FloatArray:
        ends = []
        for step in (DIFFERENCE, -DIFFERENCE):
            moved = constants.copy()
            moved[k] += step * (abs(constants[k]) or 1.0)
            ends.append((moved[k], scaled_residual(expression.with_constants(moved), X, y, errors)))
        return np.asarray((ends[0][1] - ends[1][1]) / (ends[0][0] - ends[1][0]))

    def by_column(j: int) -> FloatArray:
        ends = []
        for step in (DIFFERENCE, -DIFFERENCE):
            moved = X.copy()
            moved[:, j] += step * np.where(X[:, j] != 0, np.abs(X[:, j]), 1.0)
            ends.append((moved[:, j], scaled_residual(expression, moved, y, errors)))
        return np.asarray((ends[0][1] - ends[1][1]) / (ends[0][0] - ends[1][0]))

    empty = np.empty((len(X), 0))
    return (
        scaled_residual(expression, X, y, errors),
        np.column_stack([empty, *(by_constant(k) for k in range(len(constants)))]),
        np.column_stack([empty, *(by_column(j) for j in columns)]),
    )
