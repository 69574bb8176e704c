"""Sums of columns: for each number of columns the one that chosen step by step fits best, all columns last.

Islands draw a sum of six weak columns rarely, and each of its terms alone gains too little to be kept. Here every length
is proposed, least squares fixes the factors, and the front judges them by their errors on rows left out like all others.

Columns are chosen by orthogonal least squares (Chen, Billings and Luo 1989): what is left of each column beside the
chosen ones is compared with what is left of the target.

Legend: `N` rows, `V` columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import DirectTable, Effort, FloatArray


@dataclass(frozen=True)
class LinearConfig:
    """Numbers of the method."""

    max_terms: int = 14
    """A longer sum is beyond the complexity that a search allows by default."""
    rows_per_term: int = 2
    """Fewer rows than this for each constant determine none."""
    independent: float = 1e-10
    """Share of a column's square that must be left beside the chosen ones."""


LINEAR = LinearConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """Sums of one column, of two, ...: with a constant, factors by least squares."""
    if not functions.allows({"add"}):
        return
    root = np.sqrt(table.weights)
    most = min(LINEAR.max_terms, len(table.y) // LINEAR.rows_per_term - 1)
    chosen: list[int] = []
    for column in _in_order(table.X, table.y, table.weights, most):
        if effort.out_of_time():
            return
        chosen.append(column)
        matrix = np.column_stack([np.ones(len(table.y)), table.X[:, chosen]]) * root[:, None]
        sizes = np.sqrt(np.sum(matrix**2, axis=0))
        factors = np.linalg.lstsq(matrix / sizes, table.y * root, rcond=None)[0] / sizes
        if np.isfinite(factors).all():
            terms = [build("mul", Constant(float(f)), Variable(c)) for f, c in zip(factors[1:], chosen, strict=True)]
            yield build("add", Constant(float(factors[0])), *terms)


def _in_order(X: FloatArray, y: FloatArray, weights: FloatArray, most: int) -> Iterator[int]:
    """At most so many columns, the one that explains most of what is left first."""
    root = np.sqrt(weights)[:, None]
    columns = (X - np.average(X, axis=0, weights=weights)) * root
    largest = np.abs(columns).max(axis=0)
    columns = columns / np.where(largest > 0, largest, 1.0)
    whole = np.sum(columns**2, axis=0)
    left = (y - np.average(y, weights=weights)) * root[:, 0]
    for _ in range(min(most, X.shape[1])):
        squares = np.sum(columns**2, axis=0)
        usable = squares > LINEAR.independent * whole
        if not usable.any():
            return
        gains = np.where(usable, (columns.T @ left) ** 2 / np.where(usable, squares, 1.0), -1.0)
        best = int(np.argmax(gains))
        yield best
        direction = columns[:, best] / np.sqrt(squares[best])
        left = left - direction * (direction @ left)
        columns = columns - np.outer(direction, direction @ columns)
        whole[best] = np.inf
