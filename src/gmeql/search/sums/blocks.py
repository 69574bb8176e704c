"""Sums of blocks of terms: each block comes in or goes as a whole, step by step, while the description gets shorter.

A block is a number, the kinds of a category, or products of these with what is already in (`kind_sums.py`) or with a curve
(`curve_sums.py`). Each step takes in, or leaves out, the block that shortens the description most (Schwarz 1978). Stating which
of `B` blocks are in takes `log(B + 1) + log C(B, k)` nats, far less than spelling out all terms.

In the end, kinds that the rows do not tell from the reference are merged with it. If two other kinds are alike, they may
become the reference together.

Legend: `N` rows, `B` blocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, build

FloatArray = NDArray[np.float64]
Term = tuple[Node, FloatArray]
"""A term, and its values [N]."""
SPANNED = 1e-12
"""Share of the largest eigenvalue below which terms are no directions of their own."""


@dataclass(frozen=True, eq=False)
class Block:
    """Terms that come together, those of a product with the numbers of the blocks they need."""

    terms: tuple[Node, ...]
    values: FloatArray
    needs: tuple[int, ...] = ()
    reference: Term | None = None
    """Of kinds: the one left out, where it has a column."""

    @property
    def columns(self) -> list[Term]:
        """Each term with its values [N]."""
        return list(zip(self.terms, self.values.T, strict=True))


def stepwise(
    blocks: Sequence[Block],
    y: FloatArray,
    weights: FloatArray,
    *,
    most: int,
    first: frozenset[int] = frozenset(),
) -> Iterator[frozenset[int]]:
    """Blocks that are in after each step, of at most so many terms; those that were in at `first` stay."""
    root = np.sqrt(weights)
    chosen, length = first, _length(_table(blocks, first, root), y * root)
    while True:
        nearby = [chosen ^ {k} for k in range(len(blocks)) if k not in first]
        # two categories may say nothing but together
        nearby += [chosen.union({k}, block.needs) for k, block in enumerate(blocks) if len(block.needs) > 1]
        tables = {each: _table(blocks, each, root) for each in nearby if _is_allowed(blocks, each)}
        tries = {each: _length(table, y * root) for each, table in tables.items() if table.shape[1] - 1 <= most}
        best = min(tries, key=lambda each: tries[each], default=chosen)
        if not tries.get(best, math.inf) < length:
            return
        chosen, length = best, tries[best]
        yield chosen


def stated(n_blocks: int, n_chosen: int) -> float:
    """Nats that say which blocks are in."""
    return math.log(n_blocks + 1) + math.log(math.comb(n_blocks, min(n_chosen, n_blocks // 2)))


def terms_of(blocks: Sequence[Block], chosen: frozenset[int]) -> list[Term]:
    """All terms of the chosen blocks."""
    return [term for k in sorted(chosen) for term in blocks[k].columns]


def fitted_sum(terms: Sequence[Term], y: FloatArray, weights: FloatArray) -> Node:
    """The sum of a constant and terms with the factors that leave the least squares."""
    root = np.sqrt(weights)
    factors = factors_of(np.column_stack([np.ones(len(y)), *(values for _, values in terms)]) * root[:, None], y * root)
    written = [build("mul", Constant(float(f)), term) for f, (term, _) in zip(factors[1:], terms, strict=True)]
    return build("add", *written, Constant(float(factors[0])))


def factors_of(table: FloatArray, target: FloatArray) -> FloatArray:
    """Least squares over a table [N, K] whose columns may be of any size."""
    sizes = np.sqrt(np.sum(table**2, axis=0))
    sizes = np.where(sizes > 0, sizes, 1.0)
    return np.asarray(np.linalg.lstsq(table / sizes, target, rcond=None)[0] / sizes)


@dataclass(frozen=True)
class MergedKinds:
    """Terms that are left where kinds became one, and the nats that say which did."""

    terms: list[Term]
    nats: float
    length: float
    """Nats of the residuals and the constants."""

    @property
    def whole(self) -> float:
        """The length of the whole description."""
        return self.length + self.nats


def merged_kinds(
    blocks: Sequence[Block], chosen: frozenset[int], y: FloatArray, weights: FloatArray
) -> list[MergedKinds]:
    """The terms of some blocks without those of categories that rows do not tell from 0, one after the other: such kinds are
    one with the reference. At last the same with another reference, where that is the shorter description.

    Stating it takes `log 2` for each kind that goes, and the logarithm of their number for another reference.
    """
    placed = [(k, term) for k in sorted(chosen) for term in blocks[k].columns]
    of_a_kind = [len(blocks[k].terms) > 1 for k, _ in placed]
    terms = [term for _, term in placed]
    found = _without_kinds(terms, of_a_kind, y, weights, 0.0)
    best: MergedKinds | None = None
    for place, (k, _) in enumerate(placed):
        reference = blocks[k].reference
        if reference is not None and of_a_kind[place]:
            others = [*terms[:place], reference, *terms[place + 1 :]]
            ends = _without_kinds(others, of_a_kind, y, weights, math.log(len(blocks[k].terms) + 1))
            best = min([*ends[-1:], *([] if best is None else [best])], key=lambda each: each.whole, default=None)
    is_shorter = best is not None and (not found or best.whole < found[-1].whole)
    return [*found, best] if best is not None and is_shorter else found


def _without_kinds(
    terms: list[Term], of_a_kind: list[bool], y: FloatArray, weights: FloatArray, spent: float
) -> list[MergedKinds]:
    """What is left after each kind that goes; nothing where none does."""
    lengths = _Lengths.of([values for _, values in terms], y, weights)
    left = list(range(len(terms)))
    found: list[MergedKinds] = []
    while True:
        tries = {
            place: lengths.of_terms([each for each in left if each != place]) for place in left if of_a_kind[place]
        }
        best = min(tries, key=lambda place: tries[place], default=-1)
        if best < 0 or not tries[best] + math.log(2.0) < lengths.of_terms(left):
            return found
        left.remove(best)
        nats = spent + (len(found) + 1) * math.log(2.0)
        found.append(MergedKinds([terms[place] for place in left], nats, tries[best]))


@dataclass(frozen=True, eq=False)
class _Lengths:
    """Products of terms with each other and with the target, all without their means: what many small sums need."""

    products: FloatArray
    along: FloatArray
    square: float
    n_rows: int

    @classmethod
    def of(cls, columns: Sequence[FloatArray], y: FloatArray, weights: FloatArray) -> _Lengths:
        table = np.column_stack([*columns, y])
        table = (table - np.average(table, axis=0, weights=weights)) * np.sqrt(weights)[:, None]
        sizes = np.sqrt(np.sum(table**2, axis=0))
        sizes = np.where(sizes > 0, sizes, 1.0)
        sizes[-1] = 1.0
        products = (table / sizes).T @ (table / sizes)
        return cls(products[:-1, :-1], products[:-1, -1], float(products[-1, -1]), len(y))

    def of_terms(self, left: list[int]) -> float:
        """Nats of the sum of the terms that are left."""
        own, along = self.products[np.ix_(left, left)], self.along[left]
        rest = self.square - float(along @ np.linalg.pinv(own, rcond=SPANNED, hermitian=True) @ along)
        return _nats(rest / self.n_rows, self.n_rows, len(left) + 1)


def _is_allowed(blocks: Sequence[Block], chosen: frozenset[int]) -> bool:
    return all(chosen.issuperset(blocks[k].needs) for k in chosen)


def _table(blocks: Sequence[Block], chosen: frozenset[int], root: FloatArray) -> FloatArray:
    """The constant and the columns of some blocks, times the roots of the weights."""
    return np.column_stack([np.ones(len(root)), *(blocks[k].values for k in sorted(chosen))]) * root[:, None]


def _length(table: FloatArray, target: FloatArray) -> float:
    """Nats of residuals and constants, up to a constant of the data (Schwarz 1978)."""
    n, k = table.shape
    rest = float(np.mean((target - table @ factors_of(table, target)) ** 2))
    return _nats(rest, n, k)


def _nats(rest: float, n: int, k: int) -> float:
    if n <= k + 1 or not math.isfinite(rest):
        return math.inf
    return float(0.5 * n * math.log(max(rest, float(np.finfo(float).tiny))) + 0.5 * k * math.log(n))
