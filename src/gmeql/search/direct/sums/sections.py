"""One column at a time: y = f(x) + e(z) + h1(z) g1(x) + ..., with h from a small library and the others anything smooth.

A sum over two columns has too many possible terms to choose from. But which h there are shows whatever the others are
(`blocks.py`). Once the h are known, f, e and every g is known on every row, and each is a sum of few terms of one column.

Legend: `N` rows, `K` functions of x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, build
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums.blocks import BLOCKS, Blocks, OuterSearch, span_of
from gmeql.search.direct.sums.curves import first_within, over, terms_of_curve
from gmeql.search.direct.sums.numerators import over_one_line
from gmeql.search.direct.sums.settling import settled
from gmeql.search.direct.sums.shared import SharedFunctions
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.terms.column_functions import LIBRARY
from gmeql.search.direct.terms.library import Library, library
from gmeql.search.direct.terms.term_sums import beside, orthonormal
from gmeql.search.polish.scoring import JudgedRows

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class SectionsConfig:
    """Numbers of the method."""

    rows: int = 600
    mixed: tuple[float, ...] = (1, 2)  # exponents of what functions are multiplied by
    few_rows: int = 150
    shared: int = 2  # h from which functions are looked for that stand before all of them
    told_rest: float = 30.0  # times what the fit leaves that may be left where less stands in it
    alone: float = 1e-9  # share of the target's spread that may be left without e
    rounding: float = 1e-12
    right: float = 1e-8  # error from which no other is looked for: a + b*sin(1e-4*T + 3) is nearly T and exp(-7/T)
    as_well: float = 10.0  # times the error of a sum that one with fewer terms may leave
    small: float = 1e-4  # share of the target's spread below which a term may be the error of others
    beams: tuple[int, ...] = (12,)  # sums of each length that go on, where plain terms times h are chosen
    plainly: int = 2  # of those with 1, from which they are taken for right; with more they may be a tuned one
    promising: float = (
        0.15  # share of the error that one h leaves, on a coarse grid: sums left 0.07, smooth laws 0.09 and more
    )
    least_seconds: float = 0.1  # of work, to look for one function of a column,
    seconds_for_several: float = 2.0  # ... and for several


SECTIONS = SectionsConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """Sums f(x) + e(z) + h(z) g(x) + ... of a table of two columns, where they are the target. Draws nothing at random."""
    n = min(len(table.y), SECTIONS.rows)
    if table.n_columns != 2 or n < SECTIONS.few_rows or not functions.allows({"add", "mul"}):
        return
    if effort.seconds < SECTIONS.least_seconds or not (np.ptp(table.X[:n], axis=0) > 0).all():
        return
    few = DirectTable(table.X[:n], table.y[:n], table.weights[:n])
    numbers = replace(LIBRARY, mixed=SECTIONS.mixed)
    libraries = [library(few.X[:, [j]], functions.allows, numbers=numbers) for j in range(2)]
    spans = [span_of(few.X[:, j], libraries[j]) for j in range(2)]
    alone = [j for j, span in enumerate(spans) if np.std(beside(span, few.y)) < BLOCKS.held * few.spread]
    if alone:
        root = _of_one_column(few, alone[0], functions, effort.on_trail().out_of_time)
        if root is not None:
            yield root
        return
    searches = {outer: OuterSearch(few, outer, libraries, spans) for outer in (1, 0)}
    searches = dict(sorted(searches.items(), key=lambda one: one[1].promise))
    worth: list[int] = []
    for outer, search in searches.items():
        if search.promise > SECTIONS.promising:
            break
        found = search.single()
        if found is not None:
            effort = effort.on_trail()
            root = _Writing(few, outer, found, libraries, spans, functions, effort.out_of_time).root()
            if root is not None:
                yield root
                if few.error(root) < SECTIONS.right:
                    return
        elif search.is_worth_more:
            worth.append(outer)
    effort = effort.on_trail() if worth else effort
    for outer in worth if effort.seconds >= SECTIONS.seconds_for_several else []:
        found = None if effort.out_of_time() else searches[outer].several(effort.out_of_time)
        if found is None:
            continue
        root = _Writing(few, outer, found, libraries, spans, functions, effort.out_of_time).root()
        if root is not None:
            yield root
            if few.error(root) < SECTIONS.right:
                return


def _of_one_column(
    table: DirectTable, column: int, functions: FunctionSet, out_of_time: Callable[[], bool]
) -> Node | None:
    """The sum of few terms of one column that is the target; None where there is none."""
    errors = np.full(len(table.y), SECTIONS.rounding * table.spread)
    terms = terms_of_curve(table.X[:, column], table.y, errors, functions, out_of_time, column=column)
    return _sum_of(terms, table) if terms else None


class _Writing:
    """The h of an outer column with all that stands before and beside them written as sums of terms."""

    def __init__(
        self,
        table: DirectTable,
        outer: int,
        found: Blocks,
        libraries: Sequence[Library],
        spans: Sequence[FloatArray],
        functions: FunctionSet,
        out_of_time: Callable[[], bool],
    ) -> None:
        self.table, self.outer, self.inner = table, outer, 1 - outer
        self.libraries, self.functions, self.out_of_time = libraries, functions, out_of_time
        self.h = [over(outer, [one.node])[0] for one in found.outers]
        self.values = [table.values(node) for node in self.h]
        self.before = [one.inner for one in found.outers]
        full = [h[:, None] * inner for h, inner in zip(self.values, self.before, strict=True)]
        self.error = max(found.error, SECTIONS.rounding) * table.spread
        # without e(z) nothing of h is hidden by it
        left = _solved(np.hstack([spans[self.inner], *full]), table.y)[1]
        self.is_beside = float(np.sqrt(np.mean(left**2))) > max(
            SECTIONS.told_rest * self.error, SECTIONS.alone * table.spread
        )
        self.beside = [self.inner, *([outer] if self.is_beside else [])]
        self.spans = [spans[column] for column in self.beside]
        self.columns = full
        """What may stand for each h with its g: all that is smooth, or, once known, few terms."""
        self.tried: dict[tuple[int, ...], tuple[list[FloatArray], list[Node] | None]] = {}
        """Plain terms that were looked for before an h, beside these columns of all."""

    def root(self) -> Node | None:
        """The whole sum; None where a part of it is no sum of few terms."""
        table = self.table
        terms = self._one_by_one(is_plainly=True) or self._shared() or self._one_by_one(is_plainly=False)
        if terms is None:
            return None
        for i, (column, span) in enumerate(zip(self.beside, self.spans, strict=True)):
            others = [other for k, other in enumerate(self.spans) if k != i]
            known = self.h if column == self.outer else ()
            part = self._terms_of(column, span, [span, *others, *self.columns], known)
            if part is None:
                return None
            terms += part
        return _sum_of(list(dict.fromkeys(terms)), table)

    def _shared(self) -> list[Node] | None:
        """Functions of the inner column, one or two, that stand alone and before every h, times these; None where there are
        none. What a function of the outer column makes is left out."""
        table = self.table
        if len(self.h) < SECTIONS.shared:
            return None
        known = np.stack([np.ones_like(table.y), *self.values], axis=1)
        basis = orthonormal(np.hstack([known, *self.spans[1:]]), BLOCKS.spanned)
        look = SharedFunctions(table.X[:, self.inner], known, table.y, basis, self.functions,
                               allowed=SECTIONS.told_rest * self.error)  # fmt: skip
        found = look.found(self.out_of_time)
        if found is None:
            return None
        alone: list[Node] = [] if self.is_beside else [Constant(1.0), *self.h]
        terms = alone + [build("mul", h, f) for f in over(self.inner, found) for h in (Constant(1.0), *self.h)]
        self.beside, self.spans = self.beside[1:], self.spans[1:]
        self.columns = [np.stack([table.values(term) for term in terms], axis=1)]
        return terms

    def _one_by_one(self, *, is_plainly: bool) -> list[Node] | None:
        """Every h times what stands before it; None where that is no sum of few terms, or, `is_plainly`, not of plain ones."""
        table, terms, free = self.table, [], list(self.columns)
        for k in range(len(self.h)):
            g = self._before(k, is_plainly=is_plainly)
            if g is None:
                self.columns = free
                return None
            g = [term for term in g if not (self.is_beside and isinstance(term, Constant))]  # that is part of e
            own = [build("mul", self.h[k], term) for term in g]
            terms += own
            self.columns[k] = (
                np.stack([table.values(term) for term in own], axis=1) if own else np.zeros((len(table.y), 0))
            )
        if terms:
            basis = orthonormal(np.hstack(self.spans), BLOCKS.spanned)
            terms = settled(terms, table.X, table.y, basis)[0]
            self.columns = [np.stack([table.values(term) for term in terms], axis=1)]
        return terms

    def _before(self, k: int, *, is_plainly: bool) -> list[Node] | None:
        """Terms of the inner column that stand before an h: the fewer of plain ones and of any."""
        plain = self._beside_others(k)
        if plain is not None and len(plain) <= SECTIONS.plainly:
            return plain
        if is_plainly:
            return None
        terms = self._by_value(k)
        return plain if terms is None or (plain is not None and len(plain) <= len(terms)) else terms

    def _others(self, k: int) -> FloatArray:
        """A basis of all but one h with its g."""
        others = [columns for i, columns in enumerate(self.columns) if i != k]
        return orthonormal(np.hstack([*self.spans, *others, self.values[k][:, None]]), BLOCKS.spanned)

    def _beside_others(self, k: int) -> list[Node] | None:
        """1 and plain terms of the inner column that times h are the target beside all else; None: there are none."""
        key = (k, *map(id, self.columns))
        if key not in self.tried:
            self.tried[key] = list(self.columns), self._plain_terms(k)
        return self.tried[key][1]

    def _plain_terms(self, k: int) -> list[Node] | None:
        table, h, basis = self.table, self.values[k], self._others(k)
        left = beside(basis, table.y)
        allowed = SECTIONS.told_rest * self.error
        if float(np.sqrt(np.mean(left**2))) < allowed:
            return [Constant(1.0)]
        terms = self.libraries[self.inner]
        products = h * terms.values
        terms = terms.of_values(products - (products @ basis) @ basis.T)
        rows = JudgedRows.of(table.X[:, [self.inner]], left, np.ones_like(left), ["x0"])
        tiers = [(~terms.plain & ~terms.tuned, SECTIONS.beams), (~terms.tuned, SECTIONS.beams)]
        best = first_within(terms, rows, allowed, tiers, self.out_of_time)
        if best is None:
            return None
        return over(self.inner, [Constant(1.0), *(node for node in best if not isinstance(node, Constant))])

    def _by_value(self, k: int) -> list[Node] | None:
        """Terms of the inner column that add up to g, which a fit of all tells on every row."""
        others = [columns for i, columns in enumerate(self.columns) if i != k]
        return self._terms_of(self.inner, self.before[k], [self.columns[k], *self.spans, *others])

    def _terms_of(
        self, column: int, basis: FloatArray, columns: list[FloatArray], known: Sequence[Node] = ()
    ) -> list[Node] | None:
        """Terms of a column that add up to what a fit of all columns makes of a basis, which the first of them belong to."""
        table, whole, size = self.table, np.hstack(columns), basis.shape[1]
        solved, rest = _solved(whole, table.y)
        sizes = np.sqrt(np.sum(whole**2, axis=0))
        sizes = np.where(sizes > 0, sizes, 1.0)
        _, singular, axes = np.linalg.svd(np.linalg.qr(whole / sizes, mode="r"))
        kept = singular > BLOCKS.spanned * singular[0]
        unsure = (basis / sizes[:size]) @ (axes[kept, :size] / singular[kept, None]).T  # by what is left
        error = max(float(np.std(rest)), SECTIONS.rounding * table.spread)
        values, errors = basis @ solved[:size], error * np.sqrt(np.sum(unsure**2, axis=1))
        x, ended = table.X[:, column], self.out_of_time
        return terms_of_curve(x, values, errors, self.functions, ended, column=column, known=known)


def _sum_of(terms: Sequence[Node], table: DirectTable) -> Node | None:
    """The sum of terms with all its constants settled together, less the terms that are not needed; None: of none.

    Parts were written one after the other, so that a later one may hold no more than the errors of those before.
    """
    nothing = np.zeros((len(table.y), 0))
    kept, factors, error = settled(terms, table.X, table.y, nothing) if terms else ([], (), math.inf)
    tried: set[Node] = set()
    while len(kept) > 1 and math.isfinite(error):
        sizes = [abs(c) * float(np.abs(table.values(term)).max()) for c, term in zip(factors, kept, strict=True)]
        small = [k for k in np.argsort(sizes, kind="stable") if sizes[k] < SECTIONS.small * table.spread]
        k = next((int(k) for k in small if kept[k] not in tried), None)
        if k is None:
            break
        tried.add(kept[k])
        fewer = settled(kept[:k] + kept[k + 1 :], table.X, table.y, nothing)
        if fewer[2] <= max(error, SECTIONS.rounding * table.spread):
            kept, factors, error = fewer
    if not math.isfinite(error):
        return None
    joined = over_one_line(kept, factors, table)
    if joined != kept:
        fewer = settled(joined, table.X, table.y, nothing)
        if fewer[2] <= max(SECTIONS.as_well * error, SECTIONS.rounding * table.spread):
            kept, factors, error = fewer
    return build("add", *(build("mul", Constant(c), term) for c, term in zip(factors, kept, strict=True)))


def _solved(columns: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Factors of least squares, and what they leave."""
    sizes = np.sqrt(np.mean(columns**2, axis=0))
    sizes = np.where(sizes > 0, sizes, 1.0)
    factors = np.asarray(np.linalg.lstsq(columns / sizes, target, rcond=1e-14)[0] / sizes)
    return factors, np.asarray(target - columns @ factors)
