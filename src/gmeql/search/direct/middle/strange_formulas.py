"""Small formulas that a strange function among plain terms may be (`strange.py`): of one column, of all, of pairs of them.

Legend: `N` rows, `H` small formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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


def of_pairs(X: FloatArray, functions: FunctionSet, most: int, *, inner: Sequence[str] | None = None) -> Formulas:
    """f(g(x) ∘ h(z)) for all pairs of columns, such as cos(sqrt(x) - sqrt(z)) and log(sin(x) - z), at most so many.

    g and h are of the functions named, or of all.
    """
    n_columns = X.shape[1]
    inner = ["", *(name for name in (_INNER if inner is None else inner) if functions.allows({name}))]
    outer = [one for one in _OUTER if functions.allows({one[0]})]
    nodes = [build(name, Variable(j)) if name else Variable(j) for name in inner for j in range(n_columns)]
    values = np.stack([row_values(node, [str(j) for j in range(n_columns)], X) for node in nodes])
    pairs = [(a, b) for a, b in combinations(range(len(nodes)), 2) if (a - b) % n_columns]
    pairs = sorted(pairs, key=lambda pair: pair[0] // n_columns + pair[1] // n_columns)  # plain ones first
    room = max(1, most // max(1, len(outer) * len(_JOINED)))
    left, right = np.array(pairs[:room], dtype=np.int64).reshape(-1, 2).T
    found, kept = [], []
    for operator, turned in _JOINED:
        a, b = (right, left) if turned else (left, right)
        for one in outer:
            with np.errstate(all="ignore"):
                joined = get_operator(operator).natural(np, values[a], values[b])
                each = get_operator(one[0]).natural(np, one[1] * joined)
            usable = np.flatnonzero(np.isfinite(each).all(axis=1))
            found.append(each[usable])
            kept += [(one, operator, int(a[m]), int(b[m])) for m in usable]

    def node(m: int) -> Node:
        one, operator, a, b = kept[m]
        return _around(one, build(operator, nodes[a], nodes[b]))

    return Formulas(np.concatenate(found) if found else np.empty((0, len(X))), node)


_INNER = ("sqrt", "square", "log", "exp", "sin", "cos")
_OUTER = (("sin", 1.0), ("cos", 1.0), ("exp", 1.0), ("exp", -1.0), ("log", 1.0), ("sqrt", 1.0), ("inv", 1.0))
"""What stands around a sum, product or fraction, and the sign before that."""
_JOINED = (("add", False), ("sub", False), ("sub", True), ("mul", False), ("div", False), ("div", True))
"""What joins two functions, and whether the second comes first."""


def of_products(X: FloatArray, functions: FunctionSet, most: int) -> Formulas:
    """Products of powers and exponentials of three or four columns, and functions of them, such as cos(x*z*exp(-u)), at most
    so many, the plainest first."""
    outer = [one for one in _AROUND if one[0] == "id" or functions.allows({one[0]})]
    factors = [
        (cost, j, node, values)
        for cost, of, needs in _FACTORS
        for j in range(X.shape[1])
        if functions.allows({needs})
        for node, values in valued([of(Variable(j))], X)
    ]
    parts = _products_of([(cost, j) for cost, j, *_ in factors], max(1, most // len(outer)))
    found, kept = [], []
    with np.errstate(all="ignore"):
        values = np.array([np.prod([factors[k][3] for k in one], axis=0) for one in parts]).reshape(-1, len(X))
        for one in outer:
            each = get_operator(one[0]).natural(np, one[1] * values)
            usable = np.flatnonzero(np.isfinite(each).all(axis=1))
            found.append(each[usable])
            kept += [(one, int(m)) for m in usable]

    def node(m: int) -> Node:
        one, place = kept[m]
        return _around(one, build("mul", *(factors[k][2] for k in parts[place])))

    return Formulas(np.concatenate(found), node)


def _around(outer: tuple[str, float], inner: Node) -> Node:
    """A function of a formula, or of its negative."""
    name, sign = outer
    signed = inner if sign > 0 else build("neg", inner)
    return signed if name == "id" else build(name, signed)


def _products_of(factors: Sequence[tuple[int, int]], most: int) -> list[tuple[int, ...]]:
    """Three or four factors of different columns, given as cost and column each, at most so many, the cheapest first."""
    ordered = sorted(range(len(factors)), key=lambda k: factors[k])
    found: list[tuple[int, ...]] = []
    for total in range(min(_MANY), max(_MANY) + _LARGEST_COST + 1):
        for size in _MANY:
            if len(found) < most:
                found += _of_cost(factors, ordered, size, total - size)
    return found[:most]


def _of_cost(
    factors: Sequence[tuple[int, int]],
    ordered: Sequence[int],
    size: int,
    cost: int,
    columns: frozenset[int] = frozenset(),
) -> Iterator[tuple[int, ...]]:
    """So many of some factors, of columns not among those given, that cost so much together."""
    if size == 0 and cost == 0:
        yield ()
    for place, k in enumerate(ordered if size else ()):
        if factors[k][0] > cost:
            return
        if factors[k][1] not in columns:
            rest = _of_cost(factors, ordered[place + 1 :], size - 1, cost - factors[k][0], columns | {factors[k][1]})
            yield from ((k, *others) for others in rest)


_MANY = (3, 4)
_AROUND = (("id", 1.0), ("cos", 1.0), ("sin", 1.0), ("exp", 1.0), ("exp", -1.0), ("sqrt", 1.0))
_FACTORS: tuple[tuple[int, Callable[[Node], Node], str], ...] = (
    (0, lambda x: x, "mul"),
    (1, lambda x: build("inv", x), "div"),
    (2, lambda x: build("square", x), "square"),
    (2, lambda x: build("inv", build("square", x)), "div"),
    (2, lambda x: build("sqrt", x), "sqrt"),
    (2, lambda x: build("exp", build("neg", x)), "exp"),
    (2, lambda x: build("exp", x), "exp"),
)
"""What a product of several columns has of each, with what it costs and the function that it needs."""
_LARGEST_COST = 4


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
