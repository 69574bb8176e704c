"""Formulas as the rows see them: parts that the rows cannot tell from a constant or from the plain column.

A column of zeros and ones is its own square, and a hyperbolic tangent whose argument is huge on every row is one.
"""

from __future__ import annotations

import math

import numpy as np

from gmeql.formula.nodes import Call, Constant, Node, Variable, build, fold, row_values, tree_complexity, used_columns
from gmeql.search.polish.config import POLISH

SATURATING = frozenset({"exp", "tanh", "atan"})
"""Functions that a steep argument turns into a constant or a step."""
PAIRS = ((0.0, 1.0), (-1.0, 1.0))
"""Values of columns that only answer yes or no."""


def two_valued(X: np.ndarray) -> dict[int, tuple[float, float]]:
    """The columns of `X` [N, V] that hold no values but those of one of `PAIRS`, and which."""
    found = {}
    for column, values in enumerate(X.T):
        for low, high in PAIRS:
            if ((values == low) | (values == high)).all():
                found[column] = (low, high)
                break
    return found


def observed(root: Node, X: np.ndarray, pairs: dict[int, tuple[float, float]]) -> Node:
    """The formula with such parts replaced, where that is shorter; `pairs` are the columns of two values."""
    names = tuple(map(str, range(X.shape[1])))

    def call(node: Call, args: list[Node]) -> Node:
        if node.protected:
            return Call(node.operator, tuple(args), protected=True)
        same = node if tuple(args) == node.args else build(node.operator, *args)
        columns = used_columns(same)
        if len(columns) == 1 and columns[0] in pairs:
            return _line(same, columns[0], pairs[columns[0]])
        if columns and node.operator in SATURATING:
            values = row_values(same, names, X)
            if np.ptp(values) <= POLISH.frozen * np.abs(values).max():
                return Constant(float(values[0]))
        return same

    seen: Node = fold(root, lambda leaf: leaf, call)
    return seen


def _line(part: Node, column: int, pair: tuple[float, float]) -> Node:
    """A function of a column of two values as the line through both, where that is shorter."""
    low, high = pair
    X = np.zeros((2, column + 1))
    X[:, column] = pair
    first, second = (float(value) for value in row_values(part, tuple(map(str, range(column + 1))), X))
    slope = (second - first) / (high - low)
    offset = first - slope * low
    if not (math.isfinite(slope) and math.isfinite(offset)):
        return part
    size = max(abs(first), abs(second))
    slope, offset = (0.0 if abs(value) <= POLISH.frozen * size else value for value in (slope, offset))
    line = build("add", build("mul", Constant(slope), Variable(column)), Constant(offset))
    return line if tree_complexity(line) < tree_complexity(part) else part
