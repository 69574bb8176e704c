"""Sums of columns: for each number of columns the one that chosen step by step fits best, all columns last.

Islands draw a sum of six weak columns rarely, and each of its terms alone gains too little to be kept. Here every length
is proposed, least squares fixes the factors, and the front judges them by their errors on rows left out like all others.

Columns are chosen by orthogonal least squares (Chen, Billings and Luo 1989): what is left of each column beside the
chosen ones is compared with what is left of the target.

A column of two values tells two kinds of rows apart, and in ordinary tables what differs from kind to kind is the slope
over another column as often as the level. So the products of such columns with all others are then columns too.

Legend: `N` rows, `V` columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import DirectTable, Effort, FloatArray
from gmeql.search.sums.independent import INDEPENDENT, with_reference
from gmeql.search.judging.structure import linear_columns


@dataclass(frozen=True)
class LinearConfig:
    """Numbers of the method."""

    max_terms: int = 14
    """A longer sum is beyond the complexity that a search allows by default."""
    rows_per_term: int = 2
    """Fewer rows than this for each constant determine none."""
    most_products: int = 200
    """Products of two-valued columns with others beyond which none are looked at: chance would choose among them."""


LINEAR = LinearConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """Sums of one column, of two, ...: with a constant, factors by least squares; then such with slopes that differ."""
    if not functions.allows({"add"}):
        return
    columns: list[Node] = [Variable(k) for k in range(table.n_columns)]
    yield from _sums(columns, table.X, table, effort)
    pairs = _kinds_and_others(table.X) if functions.allows({"mul"}) else []
    if 0 < len(pairs) <= LINEAR.most_products:
        columns += [build("mul", Variable(kind), Variable(other)) for kind, other in pairs]
        products = [table.X[:, kind] * table.X[:, other] for kind, other in pairs]
        for root in _sums(columns, np.column_stack([table.X, *products]), table, effort):
            if linear_columns(root) is None:
                yield root


def _sums(columns: Sequence[Node], values: FloatArray, table: DirectTable, effort: Effort) -> Iterator[Node]:
    """Sums of one of the columns, whose values are [N, len(columns)], of two, ..."""
    root = np.sqrt(table.weights)
    for found, following in _in_order(values, table.y, table.weights, _most_terms(len(table.y))):
        if effort.out_of_time():
            return
        chosen = with_reference(found, following, values)
        matrix = np.column_stack([np.ones(len(table.y)), values[:, chosen]]) * root[:, None]
        sizes = np.sqrt(np.sum(matrix**2, axis=0))
        factors = np.linalg.lstsq(matrix / sizes, table.y * root, rcond=None)[0] / sizes
        if np.isfinite(factors).all():
            terms = [build("mul", Constant(float(f)), columns[c]) for f, c in zip(factors[1:], chosen, strict=True)]
            yield build("add", *terms, Constant(float(factors[0])))


def values_by_length(X: FloatArray, y: FloatArray, weights: FloatArray, others: FloatArray) -> FloatArray:
    """What the sums of one column, of two, ... that rows [N, V] give say of other rows [R, V], as [R, lengths].

    One triangle holds the fits of all lengths.
    """
    orders = [chosen for chosen, _ in _in_order(X, y, weights, _most_terms(len(y)))]
    order, root = orders[-1] if orders else [], np.sqrt(weights)[:, None]
    centre = np.average(X[:, order], axis=0, weights=weights)
    sizes = np.maximum(np.abs(X[:, order] - centre).max(axis=0, initial=0.0), np.finfo(float).tiny)
    tables = [np.column_stack([np.ones(len(each)), (each[:, order] - centre) / sizes]) for each in (X, others)]
    directions, triangle = np.linalg.qr(tables[0] * root)
    along = directions.T @ (y * root[:, 0])
    return np.asarray(np.cumsum(np.linalg.solve(triangle.T, tables[1].T).T * along, axis=1)[:, 1:])


def _most_terms(n_rows: int) -> int:
    return min(LINEAR.max_terms, n_rows // LINEAR.rows_per_term - 1)


def _kinds_and_others(X: FloatArray) -> list[tuple[int, int]]:
    """Pairs of a column of two values and one of more, or of two such columns."""
    values = [len(np.unique(column)) for column in X.T]
    kinds = [k for k, count in enumerate(values) if count == 2]
    return [(k, j) for k in kinds for j, count in enumerate(values) if count > 2 or (count == 2 and j > k)]


def _in_order(X: FloatArray, y: FloatArray, weights: FloatArray, most: int) -> Iterator[tuple[list[int], list[int]]]:
    """One column, two, ..., at most so many, the one that explains most of what is left first; with those that follow from
    them."""
    root = np.sqrt(weights)[:, None]
    columns = (X - np.average(X, axis=0, weights=weights)) * root
    largest = np.abs(columns).max(axis=0)
    columns = columns / np.where(largest > 0, largest, 1.0)
    whole = np.sum(columns**2, axis=0)
    left = (y - np.average(y, weights=weights)) * root[:, 0]
    chosen: list[int] = []
    for _ in range(min(most, X.shape[1])):
        squares = np.sum(columns**2, axis=0)
        usable = squares > INDEPENDENT * whole
        if not usable.any():
            return
        gains = np.where(usable, (columns.T @ left) ** 2 / np.where(usable, squares, 1.0), -1.0)
        best = int(np.argmax(gains))
        chosen.append(best)
        direction = columns[:, best] / np.sqrt(squares[best])
        left = left - direction * (direction @ left)
        columns = columns - np.outer(direction, direction @ columns)
        whole[best] = np.inf
        follows = np.isfinite(whole) & (whole > 0) & (np.sum(columns**2, axis=0) <= INDEPENDENT * whole)
        yield list(chosen), [int(k) for k in np.flatnonzero(follows)]
