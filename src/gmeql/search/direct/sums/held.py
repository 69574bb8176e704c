"""Plain terms held together, and up to four beside them that have constants inside: y = S + s f(a x) + t g(b z) + ...

Growth laws are such sums: r P**(1/3) + P (P/c - 1) (1 - P/K) + r P exp(-a P). Which powers stand in S need not be chosen: all
plain ones are taken away from everything, and what is left of the target is looked for among what is left of terms with a
constant inside, each with its slope by that constant, so that a coarse grid of constants misses none. The best are taken to
rounding by variable projection (`curves.py`) before the next is looked for: what a constant that is not quite right leaves
is larger than many a term. A sum that leaves nothing is then written with as few of the plain terms as it needs.

Legend: `N` rows, `M` terms with a constant inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.calculus import constant_slopes
from gmeql.formula.nodes import Constant, Node, Variable, build, calls
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums.settling import settled, straightened
from gmeql.search.direct.sums.vocabulary import VOCABULARY, Span, sum_of
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.terms.column_functions import LIBRARY
from gmeql.search.direct.terms.library import Library, library
from gmeql.search.direct.terms.term_sums import beside, orthonormal

FloatArray = NDArray[np.float64]
SingleArray = NDArray[np.float32]


@dataclass(frozen=True)
class HeldConfig:
    """Numbers of the method."""

    max_columns: int = 3
    rows: int = 240
    few_rows: int = 100
    powers: tuple[float, ...] = (1, 2, 3, 1 / 2, 1 / 3)  # of columns that are held
    spanned: float = 1e-13  # singular values below this share of the largest span nothing
    independent: float = 1e-10  # share of a term's square, and of its slope's, that must be left beside what is held
    turning: float = 1e-4  # share of a slope's square beside its term
    tried: tuple[int, ...] = (
        6,
        5,
        5,
        5,
    )  # terms of different kinds that are tried beside each sum of none, one and so on,
    kept: int = 3  # sums of each length that go on
    trail: float = 0.1  # error, relative to what plain terms leave, from which more work is worth it,
    long_after: int = 3  # terms, after which this must be
    long_trail: float = 0.003  # for another to be looked for
    together: int = 500  # terms that are reckoned with at once
    straight: float = 1e-6  # share of the target's spread left, from which functions that are straight lines are told
    exact: float = 1e-10  # share of the target's spread that may be left on the rows
    seconds_to_begin: tuple[float, ...] = (0.02, 0.06, 0.15)  # of one core (measured) for so many columns,
    seconds_per_fit: float = 0.005  # and for each sum that is taken to rounding


HELD = HeldConfig()
TUNED_TERMS = replace(LIBRARY, mixed=(1, 2, 1 / 2), exponents=(0.2, 0.8, 1.4, 2.6, -0.4, -1.4, -2.6, -4.5), turns=0,
                      slow=(0.1, 0.25, *(0.5 * turns for turns in range(1, 11))), bumps=6, steps=6,
                      most_terms=12_000)  # fmt: skip


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """A sum of plain terms and a few with constants inside that is the target. Draws nothing at random."""
    n = min(len(table.y), HELD.rows)
    if not 1 <= table.n_columns <= HELD.max_columns or n < HELD.few_rows or not functions.allows({"add", "mul"}):
        return
    if not table.varies:
        return
    most = int((effort.seconds - HELD.seconds_to_begin[table.n_columns - 1]) / HELD.seconds_per_fit)
    if most < HELD.tried[0] or effort.out_of_time():
        return
    X, y = table.X[:n], table.y[:n]
    held = _plain(X, functions)
    few = DirectTable(X, y, table.weights[:n])
    values = np.array([few.values(node) for node in held])
    basis = orthonormal((values / np.sqrt(np.mean(values**2, axis=1, keepdims=True))).T, HELD.spanned)
    rest = beside(basis, y)
    if np.linalg.norm(rest) < VOCABULARY.exact * np.linalg.norm(y):
        return  # a plain sum
    terms = _Terms(library(X, functions.allows, numbers=TUNED_TERMS), basis)
    sums: list[tuple[Node, ...]] = [()]
    whole, has_trail = float(np.linalg.norm(rest)) / np.sqrt(n), False
    for width in HELD.tried:
        longer: list[tuple[float, list[Node]]] = []
        for nodes in sums:
            for more in terms.nearest(rest, _slopes(nodes, X), width):
                most -= 1
                if most < 0 or effort.out_of_time():
                    return
                found, _, error = settled([*nodes, more], X, y, basis)
                if error < HELD.straight * few.spread:
                    found, error = _straight(found, error, few, basis)
                longer.append((error, found))
                root = _written(found, held, few) if error < HELD.exact * few.spread else None
                if root is not None and table.error(root) < VOCABULARY.verified:
                    yield root
                    return
        if not longer:
            return
        longer.sort(key=lambda one: one[0])
        sums = [tuple(found) for _, found in longer[: HELD.kept]]
        least = longer[0][0] / whole
        if len(sums[0]) == HELD.long_after and least > HELD.long_trail:
            return
        if not has_trail and least < HELD.trail:
            effort, has_trail = effort.on_trail(), True
            most = max(most, int(effort.seconds / HELD.seconds_per_fit))


class _Terms:
    """Terms of a library that are no powers, with their slopes by the constants inside, beside what is held."""

    def __init__(self, terms: Library, basis: FloatArray) -> None:
        self.terms, self.basis = terms, basis
        self.numbers = np.flatnonzero(terms.tuned | terms.plain)
        self.values, self.slopes = np.empty((2, len(self.numbers), terms.values.shape[1]), np.float32)
        for some in self._parts():
            numbers = self.numbers[some]
            self.values[some], self.slopes[some] = self._left(terms.values[numbers]), self._left(terms.slopes(numbers))

    def _parts(self) -> Iterator[slice]:
        """Terms one part after the other: to bring all their values there and back takes longer than to reckon with them."""
        yield from (slice(first, first + HELD.together) for first in range(0, len(self.numbers), HELD.together))

    def _left(self, rows: FloatArray) -> SingleArray:
        """What the basis leaves of rows [M, N] of size 1; nothing where that is rounding, or where a size is no number."""
        with np.errstate(all="ignore"):
            squares = np.einsum("mn,mn->m", rows, rows)
            scale = np.where(np.isfinite(squares) & (squares > 0), 1.0 / np.sqrt(squares), 0.0)
        sized = rows * scale[:, None]
        return _unit((sized - (sized @ self.basis) @ self.basis.T).astype(np.float32))

    def nearest(self, rest: FloatArray, taken: FloatArray, n: int) -> list[Node]:
        """The terms, one of a kind, that with their slopes explain most of what is left [N] beside columns [N, K]."""
        sizes = np.linalg.norm(taken, axis=0)
        span = orthonormal(beside(self.basis, taken / np.where(sizes > 0, sizes, 1.0)), HELD.spanned)
        left = beside(span, rest)
        target = (left / (np.abs(left).max() or 1.0)).astype(np.float32)
        gains = np.concatenate([self._gains(some, span.astype(np.float32), target) for some in self._parts()])
        found: dict[int, int] = {}
        for m in self.numbers[np.argsort(-gains, kind="stable")]:
            found.setdefault(int(self.terms.kinds[m]), int(m))
            if len(found) >= n:
                break
        return [self.terms.node(m) for m in found.values()]

    def _gains(self, some: slice, span: SingleArray, target: SingleArray) -> SingleArray:
        """The squares that some terms with their slopes explain of what a span [N, K] leaves of the target [N]."""
        values, slopes = self.values[some], self.slopes[some]
        if span.shape[1]:
            values, slopes = (_unit(v - (v @ span) @ span.T) for v in (values, slopes))
        along = np.einsum("mn,mn->m", values, slopes)
        on_values, on_slopes = values @ target, slopes @ target
        free = 1.0 - along**2
        more = np.where(free > HELD.turning, (on_slopes - along * on_values) ** 2 / np.maximum(free, HELD.turning), 0.0)
        return np.asarray(on_values**2 + more)


def _straight(nodes: list[Node], error: float, table: DirectTable, basis: FloatArray) -> tuple[list[Node], float]:
    """Terms with what stands in them in place of functions that are straight lines, less those that are held then, and the
    error, where that is no larger or next to nothing."""
    plain = [straightened(node, table.X) for node in nodes]
    if plain == nodes:
        return nodes, error
    values = np.stack([table.values(node) for node in plain], axis=1)
    left = np.linalg.norm(beside(basis, values), axis=0) > HELD.independent * np.linalg.norm(values, axis=0)
    kept = [node for node, is_left in zip(plain, left, strict=True) if is_left]
    if not kept:
        return nodes, error
    kept, _, other = settled(kept, table.X, table.y, basis)
    return (kept, other) if other < max(error, HELD.exact * table.spread) else (nodes, error)


def _slopes(nodes: Sequence[Node], X: FloatArray) -> FloatArray:
    """Values of terms and their slopes by all constants inside, [N, K]."""
    parts = [constant_slopes(node, X) for node in nodes]
    return np.column_stack([np.zeros((len(X), 0)), *(part for values, slopes in parts for part in (values, slopes))])


def _plain(X: FloatArray, functions: FunctionSet) -> list[Node]:
    """1, powers of columns and products of two."""
    found: list[Node] = [Constant(1.0)]
    for j, x in enumerate(X.T):
        size = Variable(j) if (x > 0).all() else build("abs", Variable(j))
        found += [build("pow", Variable(j) if p % 1 == 0 else size, Constant(float(p))) for p in HELD.powers]
    for i, j in combinations(range(X.shape[1]), 2):
        a, b = Variable(i), Variable(j)
        found += [build("mul", a, b), build("mul", build("square", a), b), build("mul", a, build("square", b))]
    return [node for node in found if functions.allows({call.operator for call in calls(node)})]


def _unit(rows: SingleArray) -> SingleArray:
    """Rows [M, N] of size 1; those that are next to nothing are nothing."""
    squares = np.einsum("mn,mn->m", rows, rows)
    scale = np.where(squares > HELD.independent, 1.0 / np.sqrt(np.maximum(squares, HELD.independent)), 0.0)
    return np.asarray(rows * scale[:, None], dtype=np.float32)


def _written(nodes: Sequence[Node], held: Sequence[Node], table: DirectTable) -> Node | None:
    """The sum of some terms and of as few of those that are held as it takes to be the target; None where it is not."""
    every = [*held, *nodes]
    terms = Span(np.array([table.values(node) for node in every]), lambda k: every[k]).sparse(table.y)
    return None if terms is None else sum_of(terms)
