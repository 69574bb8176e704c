"""Products and quotients of two columns: rates, areas, densities, shares, one quantity in proportion to another.

Like the curves of `textbook.py` they are what a person tries first, and there are few of them: at most `V²` with `V` columns,
with a level or without. So stating which of these and of those curves it is takes the logarithm of their number, not a price
for every symbol. Otherwise a curve of one column that fits worse would come before `0.00085*violent*poverty`.

Legend: `N` rows, `V` columns, `P` pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.network.families import FunctionSet
from gmeql.search.sums.curves import SHAPES
from gmeql.search.sums.textbook import TEXTBOOK, FloatArray, TextbookCurve, few_rows, fitted_tables, with_many_values


@dataclass(frozen=True)
class ProductsConfig:
    """Numbers of the method."""

    kept: int = 4
    """Products and quotients that are judged, the briefest."""
    least_divisor: float = 0.02
    """A column divides where it has one sign and its least size is this share of its largest: else a pole is near."""


PRODUCTS = ProductsConfig()


def plain_products(X: FloatArray, y: FloatArray, weights: FloatArray, functions: FunctionSet) -> list[TextbookCurve]:
    """The briefest few of all products and quotients of two columns that take many values."""
    few = few_rows(len(y))
    columns = with_many_values(X[few])
    if not 2 <= len(columns) <= TEXTBOOK.most_columns:
        return []
    pairs = _pairs(X, columns, functions)
    if not pairs:
        return []
    with np.errstate(all="ignore"):  # what is beyond the numbers is no product
        values = np.stack([X[few, i] / X[few, j] if divided else X[few, i] * X[few, j] for i, j, divided in pairs])
    levels = (False, True) if functions.allows({"add"}) else (False,)
    nats = math.log(len(levels) * len(pairs) + len(SHAPES) * len(columns) + 1)
    found: list[tuple[float, Node]] = []
    for level in levels:
        parts = [values, np.ones_like(values)] if level else [values]
        factors, lengths = fitted_tables(np.stack(parts, axis=2), y[few], weights[few], len(parts))
        for place in np.flatnonzero(np.isfinite(lengths)):
            found.append((float(lengths[place]), _tree(*pairs[place], factors[place])))
    return [TextbookCurve(root, nats) for _, root in sorted(found, key=lambda each: each[0])[: PRODUCTS.kept]]


def _pairs(X: FloatArray, columns: list[int], functions: FunctionSet) -> list[tuple[int, int, bool]]:
    """Two columns, and whether the second divides the first."""
    pairs = [(i, j, False) for i in columns for j in columns if i < j] if functions.allows({"mul"}) else []
    divisors = [k for k in columns if functions.allows({"div"}) and _may_divide(X[:, k])]
    return pairs + [(i, j, True) for i in columns for j in divisors if i != j]


def _may_divide(values: FloatArray) -> bool:
    sizes = np.abs(values)
    return bool((values > 0).all() or (values < 0).all()) and sizes.min() >= PRODUCTS.least_divisor * sizes.max()


def _tree(i: int, j: int, divided: bool, factors: FloatArray) -> Node:
    scale = Constant(float(factors[0]))
    if divided:
        term = build("div", build("mul", scale, Variable(i)), Variable(j))
    else:
        term = build("mul", scale, Variable(i), Variable(j))
    return build("add", term, Constant(float(factors[1]))) if len(factors) > 1 else term
