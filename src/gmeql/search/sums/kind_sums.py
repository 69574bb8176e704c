"""Sums of columns over tables with categories: whole categories in or out, with slopes of their own where rows ask for it.

A category of eight kinds is one question to a statistician, not seven: does the target differ between its kinds, and does its
slope over a number? So columns come in blocks here (analysis of covariance): a number, the kinds of a category (without
its reference, `independent.py`), the products of these with a number that is in already, and the products of two
categories: the cells that differ from what both say by themselves. Step by step the block is
taken in, or left out again, that shortens the description most (Schwarz 1978); in the end kinds that the rows do not tell from
the reference become one with it. Stating which of `B` blocks are in takes
`log(B + 1) + log C(B, k)` nats, far less than spelling all terms.

Legend: `N` rows, `V` columns.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.search.sums.independent import categories, independent_columns

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class KindSumsConfig:
    """Numbers of the method."""

    most_blocks: int = 60
    """Blocks beyond which none are looked at: chance would choose among them, and each takes a fit."""
    rows_per_term: int = 4
    """Fewer rows than this for each constant say little about slopes of kinds."""
    rows_per_cell: int = 4
    """Fewer rows than this of two kinds together tell nothing about them."""


KIND_SUMS = KindSumsConfig()


@dataclass(frozen=True)
class _Block:
    """Terms that come together; those of a product need the number they multiply, or both categories."""

    terms: tuple[Node, ...]
    values: FloatArray
    needs: tuple[int, ...] = ()

    @property
    def columns(self) -> list[tuple[Node, FloatArray]]:
        """Each term with its values [N]."""
        return list(zip(self.terms, self.values.T, strict=True))


@dataclass(frozen=True, eq=False)
class KindSum:
    """A sum of blocks of columns, and the nats that stating them takes."""

    root: Node
    nats: float


def sums_of_kinds(
    X: FloatArray, y: FloatArray, weights: FloatArray, *, most_columns: int, products: bool
) -> list[KindSum]:
    """Sums of blocks, each with a shorter description than the one before; none where no column tells kinds apart.

    With `products`, slopes may differ from kind to kind, and what one category is worth by the kinds of another.
    """
    blocks = _blocks(X, products=products)
    if not 0 < len(blocks) <= KIND_SUMS.most_blocks:
        return []
    root = np.sqrt(weights)
    target = y * root
    most = min(most_columns, len(y) // KIND_SUMS.rows_per_term - 1)
    chosen: frozenset[int] = frozenset()
    length = _length(_table(blocks, chosen, root), target)
    sums: list[KindSum] = []
    while True:
        nearby = [chosen ^ {k} for k in range(len(blocks))]
        # two categories may say nothing but together
        nearby += [chosen.union({k}, block.needs) for k, block in enumerate(blocks) if len(block.needs) > 1]
        tables = {each: _table(blocks, each, root) for each in nearby if _is_allowed(blocks, each)}
        tries = {each: _length(table, target) for each, table in tables.items() if table.shape[1] - 1 <= most}
        best = min(tries, key=lambda each: tries[each], default=chosen)
        if not tries.get(best, math.inf) < length:
            return sums + _with_merged_kinds(blocks, chosen, target, root, sums)
        chosen, length = best, tries[best]
        terms = [term for k in sorted(chosen) for term in blocks[k].terms]
        nats = math.log(len(blocks) + 1) + math.log(math.comb(len(blocks), min(len(chosen), len(blocks) // 2)))
        sums.append(KindSum(_sum(_factors(tables[best], target), terms), nats))


def _with_merged_kinds(
    blocks: list[_Block], chosen: frozenset[int], target: FloatArray, root: FloatArray, sums: list[KindSum]
) -> list[KindSum]:
    """The last of some sums without those of its terms of categories that rows do not tell from 0, one after the other: such
    kinds are one with the reference. To say so of each takes `log 2`."""
    parts = [(term, column, len(blocks[k].terms) > 1) for k in sorted(chosen) for term, column in blocks[k].columns]
    found: list[KindSum] = []
    while parts:
        table = np.column_stack([np.ones(len(root)), *(column for _, column, _ in parts)]) * root[:, None]
        places = [place for place, (_, _, of_a_kind) in enumerate(parts) if of_a_kind]
        tries = {place: _length(np.delete(table, place + 1, axis=1), target) for place in places}
        best = min(tries, key=lambda place: tries[place], default=-1)
        if best < 0 or not tries[best] + math.log(2.0) < _length(table, target):
            break
        parts.pop(best)
        factors = _factors(np.delete(table, best + 1, axis=1), target)
        nats = sums[-1].nats + (len(found) + 1) * math.log(2.0)
        found.append(KindSum(_sum(factors, [term for term, _, _ in parts]), nats))
    return found


def _is_allowed(blocks: list[_Block], chosen: frozenset[int]) -> bool:
    return all(chosen.issuperset(blocks[k].needs) for k in chosen)


def _table(blocks: list[_Block], chosen: frozenset[int], root: FloatArray) -> FloatArray:
    """The constant and the columns of some blocks, times the roots of the weights."""
    return np.column_stack([np.ones(len(root)), *(blocks[k].values for k in sorted(chosen))]) * root[:, None]


def _blocks(X: FloatArray, *, products: bool) -> list[_Block]:
    """Numbers, categories, and products of these; none where there is no category."""
    kinds = categories(X)
    in_kinds = {k for columns in kinds for k in columns}
    numbers = [k for k in independent_columns(X) if k not in in_kinds]
    if not kinds:
        return []
    blocks = [_Block((Variable(k),), X[:, [k]]) for k in numbers]
    blocks += [_Block(tuple(Variable(k) for k in columns), X[:, columns]) for columns in kinds]
    for place, number in enumerate(numbers if products else ()):
        for columns in kinds:
            terms = tuple(build("mul", Variable(number), Variable(k)) for k in columns)
            blocks.append(_Block(terms, X[:, columns] * X[:, [number]], needs=(place,)))
    first = len(numbers)
    for a, b in itertools.combinations(range(len(kinds)) if products else (), 2):
        cells = [(k, m) for k in kinds[a] for m in kinds[b] if (X[:, k] * X[:, m]).sum() >= KIND_SUMS.rows_per_cell]
        if cells:
            terms = tuple(build("mul", Variable(k), Variable(m)) for k, m in cells)
            values = np.column_stack([X[:, k] * X[:, m] for k, m in cells])
            blocks.append(_Block(terms, values, needs=(first + a, first + b)))
    return blocks


def _factors(table: FloatArray, target: FloatArray) -> FloatArray:
    sizes = np.sqrt(np.sum(table**2, axis=0))
    sizes = np.where(sizes > 0, sizes, 1.0)
    return np.asarray(np.linalg.lstsq(table / sizes, target, rcond=None)[0] / sizes)


def _length(table: FloatArray, target: FloatArray) -> float:
    """Nats of residuals and constants, up to a constant of the data (Schwarz 1978)."""
    n, k = table.shape
    rest = float(np.mean((target - table @ _factors(table, target)) ** 2))
    if n <= k + 1 or not math.isfinite(rest):
        return math.inf
    nats = 0.5 * n * math.log(max(rest, float(np.finfo(float).tiny))) + 0.5 * k * math.log(n)
    return float(nats)


def _sum(factors: FloatArray, terms: list[Node]) -> Node:
    written = [build("mul", Constant(float(f)), term) for f, term in zip(factors[1:], terms, strict=True)]
    return build("add", *written, Constant(float(factors[0])))
