"""Small formulas that a strange function among plain terms may be (`strange.py`): of one column, of all, of pairs of them.

Legend: `N` rows, `H` small formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Node, Variable, build, row_values, transform
from gmeql.formula.operators import get_operator
from gmeql.network.families import FunctionSet
from gmeql.search.direct.middle.small_formulas import SmallFormulas

FloatArray = NDArray[np.float64]
USUAL = ("add", "sub", "mul", "div", "sqrt", "square", "sin", "cos", "exp", "log")
"""What small formulas are made of here: with rarer functions they would reach less far."""


@dataclass(frozen=True, eq=False)
class Formulas:
    """Small formulas with values [H, N]."""

    values: FloatArray
    node: Callable[[int], Node]

    @classmethod
    def of(cls, X: FloatArray, functions: FunctionSet, most: int, column: int | None = None) -> Formulas:
        """The first so many of a table, or of one of its columns."""
        own = X if column is None else X[:, [column]]
        found = SmallFormulas.of(own, functions, max_kept=most, max_formulas=most)
        if column is None:
            return cls(found.values, found.tree)
        renamed = Variable(column)
        return cls(
            found.values, lambda m: transform(found.tree(m), lambda v: renamed if isinstance(v, Variable) else v)
        )

    def only(self, numbers: NDArray[np.int64]) -> Formulas:
        """Some of them."""
        numbers = numbers[numbers < len(self.values)]
        return Formulas(self.values[numbers], lambda m: self.node(int(numbers[m])))

    @classmethod
    def together(cls, several: Sequence[Formulas]) -> Formulas:
        ends = np.cumsum([len(some.values) for some in several])

        def node(m: int) -> Node:
            which = int(np.searchsorted(ends, m, side="right"))
            return several[which].node(m - int(ends[which] - len(several[which].values)))

        return cls(np.concatenate([some.values for some in several]), node)


def of_pairs(X: FloatArray, functions: FunctionSet, most: int) -> Formulas:
    """f(g(x) ∘ h(z)) for all pairs of columns, such as cos(sqrt(x) - sqrt(z)) and log(sin(x) - z), at most so many."""
    n_columns = X.shape[1]
    inner = ["", *(name for name in _INNER if functions.allows({name}))]
    outer = [name for name in _OUTER if functions.allows({name})]
    nodes = [build(name, Variable(j)) if name else Variable(j) for name in inner for j in range(n_columns)]
    values = np.stack([row_values(node, [str(j) for j in range(n_columns)], X) for node in nodes])
    pairs = [(a, b) for a, b in combinations(range(len(nodes)), 2) if (a - b) % n_columns]
    pairs = sorted(pairs, key=lambda pair: pair[0] // n_columns + pair[1] // n_columns)  # plain ones first
    room = max(1, most // max(1, len(outer) * len(_JOINED)))
    left, right = np.array(pairs[:room], dtype=np.int64).reshape(-1, 2).T
    found, kept = [], []
    for operator, turned in _JOINED:
        a, b = (right, left) if turned else (left, right)
        for name in outer:
            with np.errstate(all="ignore"):
                joined = get_operator(operator).natural(np, values[a], values[b])
                each = get_operator(name).natural(np, joined)
            usable = np.flatnonzero(np.isfinite(each).all(axis=1))
            found.append(each[usable])
            kept += [(name, operator, int(a[m]), int(b[m])) for m in usable]

    def node(m: int) -> Node:
        name, operator, a, b = kept[m]
        return build(name, build(operator, nodes[a], nodes[b]))

    return Formulas(np.concatenate(found) if found else np.empty((0, len(X))), node)


_INNER = ("sqrt", "square", "log", "exp", "sin", "cos")
_OUTER = ("sin", "cos", "exp", "log", "sqrt", "inv")
_JOINED = (("add", False), ("sub", False), ("sub", True), ("mul", False), ("div", False), ("div", True))
"""What joins two functions, and whether the second comes first."""


def plain_functions(X: FloatArray, functions: FunctionSet) -> Formulas:
    """Plain functions of columns, which what they are multiplied by may make strange."""
    columns = [Variable(j) for j in range(X.shape[1])]
    nodes = [
        build(name, x) for name in ("exp", "log", "cos", "sin", "sqrt") if functions.allows({name}) for x in columns
    ]
    nodes += [build("exp", build("neg", x)) for x in columns if functions.allows({"exp"})]
    found = valued([*nodes, *columns], X)
    return Formulas(np.stack([values for _, values in found]), lambda m: found[m][0])


def inverse_sums(X: FloatArray, functions: FunctionSet) -> Formulas:
    """1/(x + z) and 1/(x - z) for all pairs of columns."""
    pairs = combinations(range(X.shape[1]), 2) if functions.allows({"add", "sub", "div"}) else ()
    sums = [build(name, Variable(i), Variable(j)) for i, j in pairs for name in ("add", "sub")]
    found = valued([build("inv", node) for node in sums], X)
    return Formulas(np.array([x for _, x in found]).reshape(-1, len(X)), lambda m: found[m][0])


def valued(nodes: Sequence[Node], X: FloatArray) -> list[tuple[Node, FloatArray]]:
    """Those of some formulas that have values [N] on all rows, with these."""
    names = [str(j) for j in range(X.shape[1])]
    found = [(node, row_values(node, names, X)) for node in nodes]
    return [(node, values) for node, values in found if np.isfinite(values).all()]
