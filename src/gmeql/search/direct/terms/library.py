"""A library of small terms over a table: products of powers with functions of single columns.

A factor is a function of one column. *Plain* ones stand as people write them, without constants to fit: x**2, sqrt(x),
exp(-abs(x)), cos(log(x + 1)). *Tuned* ones have an inner constant, taken from a coarse grid: exp(-0.3 x), x**0.7. What is
chosen gets its constants fitted later (`choice.py`, `held.py`), so a grid need only be fine enough for that fit to converge.

Legend: `N` rows, `F` factors, `M` terms.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.calculus import constant_slopes
from gmeql.formula.nodes import Constant, Node, build, row_values
from gmeql.search.direct.terms.column_functions import (
    BRIEF_TERMS,
    LIBRARY,
    PLAIN_TERMS,
    LibraryConfig,
    functions_of_column,
)

FloatArray = NDArray[np.float64]
Allows = Callable[[set[str]], bool]


TUNED = ("exponent", "tuned", "wave")
"""Groups of factors with constants to fit."""
TOGETHER = 500
"""Terms whose values are made at once: more take longer to bring to memory and back than to make."""


class Factor(NamedTuple):
    """A function of one column: its formula, the column, its kind, its group, its values [N].

    `slope` [N] is that by an inner constant to fit, zero where there is none.
    """

    node: Node
    column: int
    kind: str
    group: str
    values: FloatArray
    slope: FloatArray

    @classmethod
    def of(cls, node: Node, column: int, kind: str, group: str, X: FloatArray) -> Factor:
        if group not in TUNED:
            values = row_values(node, [str(i) for i in range(X.shape[1])], X)
            return cls(node, column, kind, group, values, np.zeros(len(X)))
        values, slopes = constant_slopes(node, X)
        if not slopes.shape[1]:  # a rate of exactly 1 is no constant of the formula
            return cls(node, column, kind, group, np.asarray(values), np.zeros(len(X)))
        # of a bump the place, of a wave the frequency
        return cls(node, column, kind, group, np.asarray(values), slopes[:, -1 if kind.endswith("bump") else 0])


class Library:
    """Terms as products of up to three factors, `parts` [M, 3]: `values` [M, N], `tuned` [M], `kinds` [M] of like terms.

    Terms of one value are left out, 1 too unless `constant` keeps it.
    """

    def __init__(self, factors: Sequence[Factor], parts: NDArray[np.int64], *, constant: bool = False) -> None:
        table = np.stack([factor.values for factor in factors])
        values = np.empty((len(parts), table.shape[1]))
        with np.errstate(all="ignore"):
            for first in range(0, len(parts), TOGETHER):
                a, b, c = parts[first : first + TOGETHER].T
                values[first : first + TOGETHER] = table[a] * table[b] * table[c]
            differs = (np.ptp(values, axis=1) > 0) | (constant & (parts == 0).all(axis=1))
            kept = np.isfinite(np.sum(values**2, axis=1)) & differs
        self._table, self._constant, self._asked = table, constant, parts
        self.factors, self.parts, self.values = factors, parts[kept], values[kept]
        self._nodes: dict[int, Node] = {}

    @cached_property
    def tuned(self) -> NDArray[np.bool_]:
        """Which terms have a constant to fit."""
        return np.asarray(np.array([factor.group in TUNED for factor in self.factors])[self.parts].any(axis=1))

    @cached_property
    def plain(self) -> NDArray[np.bool_]:
        """Which have a plain function."""
        return np.asarray(np.array([factor.group == "plain" for factor in self.factors])[self.parts].any(axis=1))

    @cached_property
    def kinds(self) -> NDArray[np.int64]:
        """Which terms are like each other, by number; most libraries are not asked."""
        numbers = {kind: i for i, kind in enumerate(dict.fromkeys(factor.kind for factor in self.factors))}
        of_factors = np.sort(np.array([numbers[factor.kind] for factor in self.factors])[self.parts], axis=1)
        as_one = of_factors @ len(numbers) ** np.arange(of_factors.shape[1])[::-1]
        return np.asarray(np.unique(as_one, return_inverse=True)[1].reshape(-1))

    def __len__(self) -> int:
        return len(self.parts)

    def first(self, most: int) -> Library:
        """The library of the first so many products."""
        return Library(self.factors, self._asked[:most], constant=self._constant)

    def of_values(self, values: FloatArray) -> Library:
        """The same terms with other values [M, N]."""
        other = copy.copy(self)
        other.values = values
        return other

    def slopes(self, numbers: NDArray[np.int64]) -> FloatArray:
        """Slopes [M', N] of some terms by the inner constant of their first tuned factor; zero where there is none."""
        is_tuned = np.array([factor.group in TUNED for factor in self.factors])
        slopes = np.stack([factor.slope for factor in self.factors])
        parts = self.parts[numbers]
        first = np.argmax(is_tuned[parts], axis=1)
        at = np.arange(len(parts))
        others = [parts[at, (first + k) % 3] for k in (1, 2)]
        with np.errstate(all="ignore"):
            result = slopes[parts[at, first]] * self._table[others[0]] * self._table[others[1]]
        return np.where(np.isfinite(result), result, 0.0)

    def of_columns(self) -> list[FloatArray]:
        """Powers and plain functions of each column by itself, [N, F] for each."""
        columns = dict.fromkeys(factor.column for factor in self.factors if factor.column >= 0)
        return [
            np.stack([f.values for f in self.factors if f.column == column and f.group not in TUNED], axis=1)
            for column in columns
        ]

    def node(self, m: int) -> Node:
        """Term `m` as a formula, the same object whenever it is asked for."""
        if m not in self._nodes:
            self._nodes[m] = build("mul", *(self.factors[i].node for i in self.parts[m]))
        return self._nodes[m]


def library(
    X: FloatArray,
    allows: Allows,
    *,
    numbers: LibraryConfig = LIBRARY,
    waves: Sequence[Node] = (),
    are_held: bool = False,
) -> Library:
    """The terms that a table and the allowed operators make; `allows` says whether a set of operators may be used.

    `waves` are functions to tune besides, of any columns, or to take as they are (`are_held`).
    """
    factors, columns = _of_columns(X, allows, numbers)
    group = "power" if are_held else "wave"
    given = [Factor.of(node, -1, f"wave {i}", group, X) for i, node in enumerate(waves)]
    numbered = list(range(len(factors), len(factors) + len(given)))
    factors += given
    return _first(factors, chain(_given_products(columns, numbered), _products(columns)), numbers.most_terms)


def vocabulary(X: FloatArray, allows: Allows, *, numbers: LibraryConfig = PLAIN_TERMS) -> Library:
    """1 and the terms without constants to fit that people write, the plainest first."""
    factors, columns = _of_columns(X, allows, numbers)
    return _first(factors, chain([(0, 0, 0)], _plain_products(columns)), numbers.most_terms, constant=True)


def brief_vocabulary(X: FloatArray, allows: Allows, *, most_terms: int) -> Library:
    """1 and the plainest terms, products of columns before functions of several."""
    factors, columns = _of_columns(X, allows, BRIEF_TERMS)
    return _first(factors, chain([(0, 0, 0)], _brief_products(columns)), most_terms, constant=True)


def function_vocabulary(X: FloatArray, allows: Allows, *, most_terms: int) -> Library:
    """1, powers, products of two columns, and functions of a column times products of others, as in p*q*cos(t)."""
    kinds = ("sin x", "cos x", "exp -x", "exp x", "log")  # of many columns the first few: products of three are many
    factors, columns = _of_columns(X, allows, replace(BRIEF_TERMS, kinds=kinds[: max(2, min(5, 9 - X.shape[1]))]))
    return _first(factors, chain([(0, 0, 0)], _function_products(columns)), most_terms, constant=True)


def _first(
    factors: Sequence[Factor], products: Iterator[tuple[int, int, int]], most: int, *, constant: bool = False
) -> Library:
    """A library of the first so many products of factors."""
    parts = np.array([part for _, part in zip(range(most), products, strict=False)], np.int64)
    return Library(factors, parts.reshape(-1, 3), constant=constant)


def _of_columns(X: FloatArray, allows: Allows, numbers: LibraryConfig) -> tuple[list[Factor], list[_Column]]:
    """Factor 1 and all functions of single columns, and which of them play which part."""
    factors = [Factor.of(Constant(1.0), -1, "1", "power", X)]
    columns: list[_Column] = []
    for column in range(X.shape[1]):
        groups: dict[str, list[int]] = {"power": [], "mixed": [], "plain": [], "exponent": [], "tuned": [], "wave": []}
        for group, kind, node, operators in functions_of_column(column, X[:, column], numbers):
            if not allows(operators):
                continue
            factor = Factor.of(node, column, f"{column} {kind}", group, X)
            if not np.isfinite(factor.values).all():
                continue
            factors.append(factor)
            groups["power" if group == "mixed" else group].append(len(factors) - 1)
            if group == "mixed":
                groups["mixed"].append(len(factors) - 1)
        columns.append(_Column(**groups))
    return factors, columns


class _Column(NamedTuple):
    """Factors of one column by the part they play: powers, those of them that products are made of, functions."""

    power: list[int]
    mixed: list[int]
    plain: list[int]
    exponent: list[int]
    tuned: list[int]
    wave: list[int]


def _products(columns: Sequence[_Column]) -> Iterator[tuple[int, int, int]]:
    """Which factors are multiplied, the plainest first: a large table fills the library before the end."""
    every = range(len(columns))
    for c in columns:
        yield from ((f, 0, 0) for f in (*c.power, *c.plain))
    for a, b in combinations(columns, 2):
        yield from ((p, q, 0) for p in a.mixed for q in b.mixed)
    for i in every:
        for j in every:
            yield from ((f, p, 0) for f in columns[i].plain for p in columns[j].mixed)
    for a, b, c in combinations(columns, 3):
        yield from ((p, q, r) for p in a.mixed[:5] for q in b.mixed[:5] for r in c.mixed[:5])
    for c in columns:
        yield from ((f, 0, 0) for f in (*c.exponent, *c.tuned, *c.wave))
    for i in every:
        for j in every:
            tuned = (*columns[i].exponent, *columns[i].tuned, *columns[i].wave)
            yield from ((f, p, 0) for f in tuned for p in columns[j].mixed if f not in columns[i].exponent or i != j)
    for i in every:
        for a, b in combinations([c for j, c in enumerate(columns) if j != i], 2):
            functions = (*columns[i].plain, *columns[i].tuned, *columns[i].wave)
            yield from ((f, p, q) for f in functions for p in a.mixed[:1] for q in b.mixed[:1])
    for i in every:
        for j in every:
            if i != j:
                yield from ((f, g, 0) for f in columns[i].exponent for g in columns[j].tuned)
    for a, b in combinations(columns, 2):
        yield from ((f, g, 0) for f in a.plain for g in b.plain)


def _plain_products(columns: Sequence[_Column]) -> Iterator[tuple[int, int, int]]:
    """The same for a vocabulary: few powers in products, functions times columns before powers of two columns."""
    every = range(len(columns))
    first = [c.mixed[0] for c in columns if c.mixed]  # the columns themselves
    for c in columns:
        yield from ((f, 0, 0) for f in (*c.power, *c.plain))
    for a, b in combinations(columns, 2):
        yield from ((p, q, 0) for p in a.mixed[:3] for q in b.mixed[:3])
    yield from combinations(first, 3)
    yield from ((f, x, 0) for c in columns for x in first for f in c.plain)
    for i in every:
        yield from ((f, x, 0) for j in every if j != i for x in columns[j].mixed[:1] for f in columns[i].mixed[3:])
    for i in every:
        for j in every:
            yield from ((f, p, 0) for f in columns[i].plain for p in columns[j].mixed[1:])
    for a, b in combinations(columns, 2):
        yield from ((f, g, 0) for f in a.plain for g in b.plain)
    for i in every:
        for j in every:
            own = columns[i].mixed[:1] if i != j else []
            yield from ((f, x, p) for x in own for p in columns[j].mixed for f in columns[i].plain)


def _brief_products(columns: Sequence[_Column]) -> Iterator[tuple[int, int, int]]:
    """The same for a brief vocabulary, in which every function meets every power of a column."""
    first = [c.mixed[0] for c in columns if c.mixed]
    pairs = [(a, b) for i, a in enumerate(columns) for j, b in enumerate(columns) if i != j]
    for c in columns:
        yield from ((f, 0, 0) for f in (*c.power, *c.plain))
    yield from ((x, z, 0) for x, z in combinations(first, 2))
    yield from ((x, p, 0) for a, b in pairs for x in a.mixed[:1] for p in b.mixed[1:])
    yield from combinations(first, 3)
    yield from ((f, x, 0) for c in columns for x in first for f in c.plain)
    yield from ((f, p, 0) for a in columns for b in columns for p in b.mixed[1:] for f in a.plain)
    yield from ((f, x, p) for a, b in pairs for x in a.mixed[:1] for p in b.mixed for f in a.plain)
    for a, b in combinations(columns, 2):
        yield from ((f, g, 0) for f in a.plain for g in b.plain)


def _function_products(columns: Sequence[_Column]) -> Iterator[tuple[int, int, int]]:
    """The same for functions of one column before products of two others."""
    first = [c.mixed[0] for c in columns if c.mixed]
    others = [[x.mixed for x in columns if x is not c and x.mixed] for c in columns]
    for c in columns:
        yield from ((f, 0, 0) for f in (*c.power, *c.plain))
    yield from ((x, z, 0) for x, z in combinations(first, 2))
    for c, rest in zip(columns, others, strict=True):
        yield from ((f, x[0], 0) for f in c.plain for x in rest)
    for c, rest in zip(columns, others, strict=True):
        yield from ((f, x[0], z[0]) for f in c.plain for x, z in combinations(rest, 2))
    yield from combinations(first, 3)


def _given_products(columns: Sequence[_Column], given: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Given waves alone, times powers, and times each other."""
    for w in given:
        yield w, 0, 0
        yield from ((w, p, 0) for c in columns for p in c.mixed)
        yield from ((w, p, q) for a, b in combinations(columns, 2) for p in a.mixed for q in b.mixed)
    yield from ((a, b, 0) for a, b in combinations(given, 2))
