"""Small terms whose sums may stand below the line of a fraction, or before a root.

Legend: `N` rows, `V` columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import combinations, combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.search.direct.terms.term_sums import beside

FloatArray = NDArray[np.float64]
DEPENDENT = 1e-12
"""Share of a small term beside those before it up to which it is a sum of them."""


def small_terms(X: FloatArray) -> list[tuple[Node, FloatArray]]:
    """1, the columns, their squares and products of two, with their values [N], each that is no sum of those before it.

    The square of a column of two values is one: with it many sums vanish, whatever the target is.
    """
    columns: list[tuple[Node, FloatArray]] = [(Variable(j), x) for j, x in enumerate(X.T)]
    products = [
        (build("mul", a, b) if a != b else build("square", a), x * z)
        for (a, x), (b, z) in combinations_with_replacement(columns, 2)
    ]
    return _independent([(Constant(1.0), np.ones(len(X))), *columns, *products])


def _independent(terms: Sequence[tuple[Node, FloatArray]]) -> list[tuple[Node, FloatArray]]:
    """Terms whose values [N] are no sum of those of terms before them."""
    kept, basis = [], np.zeros((len(terms[0][1]), 0))
    for node, values in terms:
        size = float(np.linalg.norm(values))
        left = beside(basis, values / size if 0 < size < math.inf else np.zeros_like(values))
        rest = float(np.linalg.norm(left))
        if rest > DEPENDENT:
            kept.append((node, values))
            basis = np.column_stack([basis, left / rest])
    return kept


class Below:
    """Terms of which sums stand below the line, over columns X [N, V], with their values [N]; made when they are asked for."""

    def __init__(self, X: FloatArray) -> None:
        self.X = X

    @cached_property
    def small(self) -> list[tuple[Node, FloatArray]]:
        """1, the columns, their squares and products of two."""
        return small_terms(self.X)

    @property
    def few(self) -> list[tuple[Node, FloatArray]]:
        """1 and the columns."""
        return self.small[: 1 + self.X.shape[1]]

    @cached_property
    def of_three(self) -> list[tuple[Node, FloatArray]]:
        """Small terms and products of three columns."""
        each = combinations(range(self.X.shape[1]), 3)
        return self.small + [(build("mul", *map(Variable, three)), self.X[:, three].prod(axis=1)) for three in each]

    @cached_property
    def powers(self) -> list[tuple[Node, FloatArray]]:
        """1, the columns, their squares and cubes."""
        found: list[tuple[Node, FloatArray]] = [(Constant(1.0), np.ones(len(self.X)))]
        for power, name in enumerate(("", "square", "cube"), start=1):
            found += [(build(name, Variable(j)) if name else Variable(j), x**power) for j, x in enumerate(self.X.T)]
        return found
