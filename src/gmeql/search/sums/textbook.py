"""Text-book curves of one column (`curves.py`), fitted: the few that the rows speak for.

On few or noisy rows many odd forms fit a little better than the curve a person would try first. The luckiest of them says
`tanh(0.285*dose)**6` where a logistic curve predicts as well. There are few such curves, so stating which one it is, over which
column, takes `log(curves * V)` nats instead of a price for every symbol. That is what is known beforehand of how quantities
depend on each other; `front/plain_sums.py` lets the front judge them.

For every value of what stands inside, on a grid, scale and level follow by least squares, all at once. The best few are then
fitted.

Legend: `N` rows, `V` columns, `G` values of what stands inside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node, Variable
from gmeql.network.families import FunctionSet
from gmeql.search.losses.converging import SQUARES, converged
from gmeql.search.sums.curves import SHAPES, Shape, with_positive_widths

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class TextbookConfig:
    """Numbers of the method."""

    fitted: int = 8
    """Curves that are fitted, the best of the grid, ..."""
    kept: int = 4
    """... and how many of these are judged."""
    least_values: int = 6
    """Different values of a column below which a curve over it is a guess."""
    most_columns: int = 30
    rows_per_constant: int = 4
    looked_at: int = 300
    """Rows by which the grid is looked at."""


TEXTBOOK = TextbookConfig()


@dataclass(frozen=True)
class TextbookCurve:
    """A fitted curve, and the nats that stating it takes."""

    root: Node
    nats: float


def textbook_curves(X: FloatArray, y: FloatArray, weights: FloatArray, functions: FunctionSet) -> list[TextbookCurve]:
    """The best few of all curves over all columns."""
    few = few_rows(len(y))
    columns = with_many_values(X[few])
    shapes = [shape for shape in SHAPES if functions.allows(set(shape.operators))]
    if not columns or len(columns) > TEXTBOOK.most_columns or not shapes:
        return []
    found: list[tuple[float, Node]] = []
    for k in columns:
        for shape in shapes:
            with np.errstate(all="ignore"):  # what is beyond the numbers is no curve
                best = _best_of_grid(shape, X[few, k], y[few], weights[few])
            if best is not None:
                found.append((best[0], shape.tree(Variable(k), *best[1:])))
    nats = math.log(len(shapes) * len(columns) + 1)
    answers: list[tuple[float, Node]] = []
    for _, root in sorted(found, key=lambda each: each[0])[: TEXTBOOK.fitted]:
        fitted, length = fitted_curve(root, X, y, weights)
        answers.append((length, fitted))
    kept = sorted(answers, key=lambda each: each[0])[: TEXTBOOK.kept]
    return [TextbookCurve(root, nats) for length, root in kept if math.isfinite(length)]


def fitted_curve(root: Node, X: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[Node, float]:
    """A curve with its constants fitted but for those that are 1, and its nats."""
    constants = Expression(root).constants
    ones = frozenset(i for i, value in enumerate(constants) if value == 1.0)
    fitted, loss = converged(root, X, y, weights, SQUARES, ones)
    return with_positive_widths(fitted), float(nats_of(loss, len(constants) - len(ones), len(y)))


def few_rows(n_rows: int, most: int = TEXTBOOK.looked_at) -> NDArray[np.intp]:
    """The rows that a grid is looked at by: from all over the table, which may be sorted or repeat itself."""
    if n_rows <= most:
        return np.arange(n_rows)
    turns = np.arange(most) * (math.sqrt(5.0) - 1.0) / 2.0  # the golden section: even in every stretch
    return np.unique((turns % 1.0 * n_rows).astype(np.intp))


def with_many_values(X: FloatArray) -> list[int]:
    """Columns of X [N, V] over which a curve is more than a guess."""
    return [k for k in range(X.shape[1]) if len(np.unique(X[:, k])) >= TEXTBOOK.least_values]


def nats_of(left: Any, constants: int, n_rows: int) -> Any:
    """Nats of mean squares `left`, one or several, and of so many constants."""
    return 0.5 * n_rows * np.log(np.maximum(left, 1e-300)) + 0.5 * constants * math.log(n_rows)


def _best_of_grid(
    shape: Shape, x: FloatArray, y: FloatArray, weights: FloatArray
) -> tuple[float, list[float], tuple[float, ...]] | None:
    """Nats of what is left and of the constants, the factors of the parts, and what stands inside."""
    inside = shape.inside(x)
    parts = shape.parts(x, tuple(values[:, None] for values in inside.T))
    tables = np.stack([np.broadcast_to(part, (len(inside), len(x))) for part in parts], axis=2)
    factors, lengths = fitted_tables(tables, y, weights, tables.shape[2] + inside.shape[1])
    best = int(np.argmin(lengths)) if len(lengths) else -1
    if best < 0 or not math.isfinite(lengths[best]):
        return None
    return float(lengths[best]), [float(f) for f in factors[best]], tuple(float(value) for value in inside[best])


def fitted_tables(
    tables: FloatArray, y: FloatArray, weights: FloatArray, constants: int
) -> tuple[FloatArray, FloatArray]:
    """Least squares over many small tables [G, N, parts] at once: factors [G, parts], and nats [G] of what is left and of
    so many `constants`; infinite where the rows are too few for these, or values none."""
    root = np.sqrt(weights)
    factors, lengths = np.zeros((len(tables), tables.shape[2])), np.full(len(tables), math.inf)
    with np.errstate(all="ignore"):
        tables = tables * root[:, None]
        sizes = np.abs(tables).max(axis=1, initial=0.0)
    usable = np.flatnonzero(np.isfinite(sizes).all(axis=1) & (sizes > 0).all(axis=1))
    if len(y) < TEXTBOOK.rows_per_constant * constants or not len(usable):
        return factors, lengths
    with np.errstate(all="ignore"):
        scaled = tables[usable] / sizes[usable, None, :]
        turned = np.ascontiguousarray(scaled.transpose(0, 2, 1))
        found = np.linalg.pinv(turned @ scaled, hermitian=True) @ (turned @ (y * root))[:, :, None]
        left = np.mean((y * root - (scaled @ found)[:, :, 0]) ** 2, axis=1)
        nats = nats_of(left, constants, len(y))
        factors[usable] = found[:, :, 0] / sizes[usable]
    known = np.isfinite(nats) & np.isfinite(factors[usable]).all(axis=1)
    lengths[usable] = np.where(known, nats, math.inf)
    return factors, lengths
