"""Sums of several terms, chosen from a library one after the other and fitted together.

All factors of the terms enter linearly; tuned terms have constants inside besides. Starting from the mean, terms are
added that lower the squared error most once every constant may follow: orthogonal least squares (Chen, Billings and Luo
1989) against the slopes of the sum by all its constants, the linearised form of variable projection (Golub and Pereyra
1973). Many sums of each length go on. Tuned terms fit anything a little, so that sums of none, one and two of them
compete among their like. Two things lead out of dead ends: terms that show only once everything a single column could
do is taken away are seeds, and each term of the best sums is exchanged for the best in its place.

Legend: `N` rows, `M` terms of the library, `S` sums, `K` constants of a sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gmeql.fitters import fit
from gmeql.fitters.programs import ProgramTooLong, from_expression, replace_constants
from gmeql.formula.calculus import constant_slopes
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, leaves
from gmeql.search.direct.library import Library
from gmeql.search.polish.scoring import JudgedRows

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class TermsConfig:
    """Numbers of the choice of terms."""

    max_terms: int = 6
    tried: int = 30  # extensions of a sum that are looked at, of plain terms and of tuned ones
    per_kind: int = 2  # of which so many may differ in inner constants only
    fits: int = 4  # tuned sums that are fitted for each that goes on
    steps: int = 8  # of such a fit
    final_steps: int = 40  # of the fit of those that go on
    tolerance: float = 1e-6
    seeds: int = 4  # terms taken as seeds for each column taken away, of plain terms and of tuned ones
    exchanged: int = 2  # sums of each length and kind whose terms are exchanged
    independent: float = 1e-10  # share of a term's square that must be left beside the terms chosen
    spanned: float = 1e-9  # singular values below this share of the largest span nothing
    same: float = 1e-6  # relative difference of losses below which two sums are one
    least_gain: float = 0.9  # loss, relative to that of one term less, from which a term is worth its place


TERMS = TermsConfig()


@dataclass(frozen=True)
class Term:
    """A summand without its factor: the formula, its number in the library, whether constants inside are fitted."""

    node: Node
    number: int
    tuned: bool


@dataclass(frozen=True)
class TermSum:
    """A sum of terms with their factors, the offset last, and its loss (weighted mean squared error)."""

    terms: tuple[Term, ...]
    factors: tuple[float, ...]
    loss: float

    @property
    def n_tuned(self) -> int:
        """Terms with inner constants to fit."""
        return sum(term.tuned for term in self.terms)

    @property
    def root(self) -> Node:
        """The formula; every factor stands as a constant of its own."""
        offset = Constant(self.factors[-1])
        if not self.terms:
            return offset
        parts = [Call("mul", (Constant(c), t.node)) for c, t in zip(self.factors[:-1], self.terms, strict=True)]
        return Call("add", (*parts, offset))

    def fixed(self) -> set[int]:
        """Numbers of the constants that are no more than part of a plain term."""
        found, place = set(), 0
        for term in self.terms:
            inner = sum(isinstance(leaf, Constant) for leaf in leaves(term.node))
            if not term.tuned:
                found |= set(range(place + 1, place + 1 + inner))
            place += 1 + inner
        return found

    def without(self, i: int) -> TermSum:
        """The sum with one term less."""
        terms, factors = self.terms[:i] + self.terms[i + 1 :], self.factors[:i] + self.factors[i + 1 :]
        return TermSum(terms, factors, math.inf)


class TermChoice:
    """Sums over some terms of a library, and `beams`: how many of each length go on, by the number of tuned terms."""

    def __init__(
        self,
        terms: Library,
        used: NDArray[np.bool_],
        rows: JudgedRows,
        *,
        beams: Sequence[int],
        numbers: TermsConfig = TERMS,
    ) -> None:
        self.terms, self.rows, self.beams, self.numbers = terms, rows, beams, numbers
        self.used = np.flatnonzero(used)
        self.tuned = terms.tuned[self.used]
        self.roots = np.sqrt(rows.weights)
        columns = terms.values[self.used] * self.roots
        self.columns = columns / np.sqrt(np.einsum("mn,mn->m", columns, columns))[:, None]

    def run(self, out_of_time: Callable[[], bool]) -> Iterator[TermSum]:
        """The best sums of each length and number of tuned terms, from short to long, up to an exact one."""
        rows, numbers = self.rows, self.numbers
        mean = float(np.average(rows.target, weights=rows.weights))
        loss = float(np.average((rows.target - mean) ** 2, weights=rows.weights))
        beam = [TermSum((), (mean,), loss)]
        best: dict[int, float] = {}
        for length in range(1, numbers.max_terms + 1):
            longer = self._fitted_best(self._extensions(beam), out_of_time)
            if length > 1:
                exchanged = [s.without(i) for like in longer for s in like[: numbers.exchanged] for i in range(length)]
                again = self._fitted_best(self._extensions([s for s in map(self._solved, exchanged) if s]), out_of_time)
                longer = [
                    self._different([*like, *more])[:width]
                    for like, more, width in zip(longer, again, self.beams, strict=True)
                ]
            beam = []
            for n_tuned, like in enumerate(longer):
                if like and like[0].loss < numbers.least_gain * best.get(n_tuned, math.inf):
                    best[n_tuned] = like[0].loss
                    beam += like
                    yield like[0]
                    if rows.is_exact(like[0].loss):
                        return
            if not beam or out_of_time():
                return
            if length == 1:
                beam += self._seeds()

    # --- which term next -----------------------------------------------------------------------------------------------

    def _extensions(self, sums: Sequence[TermSum]) -> list[list[TermSum]]:
        """Sums with one term more by their number of tuned terms, the most promising of each first."""
        if not sums:
            return [[] for _ in self.beams]
        bases, residuals = [], []
        for each in sums:
            values, slopes = constant_slopes(each.root, self.rows.X)
            free = [k for k in range(slopes.shape[1]) if k not in each.fixed()]
            basis = _orthonormal(self.roots[:, None] * slopes[:, free], self.numbers.spanned)
            residual = self.roots * (self.rows.target - values)
            bases.append(basis)
            residuals.append(residual - basis @ (basis.T @ residual))
        gains = self._gains(bases, residuals)
        found: list[dict[frozenset[int], tuple[float, TermSum, int]]] = [{} for _ in self.beams]
        for each, residual, gain in zip(sums, residuals, gains, strict=True):
            whole = float(residual @ residual)
            for m in self._leading(gain, self.numbers.tried, tuned=each.n_tuned + 1 < len(self.beams)):
                like = found[each.n_tuned + bool(self.tuned[m])]
                key = frozenset((*(term.number for term in each.terms), int(self.used[m])))
                loss = max(whole - float(gain[m]), 0.0) / float(np.sum(self.rows.weights))
                if key not in like or loss < like[key][0]:
                    like[key] = loss, each, m
        result = []
        for n_tuned, (width, like) in enumerate(zip(self.beams, found, strict=True)):
            ranked = sorted(like.values(), key=lambda one: one[0])[: width * (self.numbers.fits if n_tuned else 1)]
            result.append([self._extended(each, m, loss) for loss, each, m in ranked])
        return result

    def _gains(self, bases: Sequence[FloatArray], residuals: Sequence[FloatArray]) -> FloatArray:
        """By how much each term would lower the sum of squares beside each basis, [S, M]."""
        shadows = np.concatenate([basis.T for basis in bases]) @ self.columns.T
        starts = np.cumsum([0, *(basis.shape[1] for basis in bases[:-1])])
        left = 1.0 - np.add.reduceat(shadows**2, starts, axis=0)
        along = np.stack(residuals) @ self.columns.T
        with np.errstate(all="ignore"):
            return np.where(left > self.numbers.independent, along**2 / left, 0.0)

    def _leading(self, gain: FloatArray, n: int, *, tuned: bool) -> list[int]:
        """The terms of largest gain, `n` plain ones and as many tuned ones, few of a kind."""
        chosen = []
        for group in (~self.tuned, self.tuned)[: 1 + tuned]:
            own = np.where(group, gain, 0.0)
            few = np.argpartition(-own, min(4 * n, len(own) - 1))[: 4 * n]
            seen: dict[int, int] = {}
            for m in few[np.argsort(-own[few], kind="stable")]:
                kind = int(self.terms.kinds[self.used[m]])
                seen[kind] = seen.get(kind, 0) + 1
                if own[m] > 0 and seen[kind] <= self.numbers.per_kind and sum(seen.values()) <= n:
                    chosen.append(int(m))
        return chosen

    def _extended(self, each: TermSum, m: int, loss: float) -> TermSum:
        number = int(self.used[m])
        term = Term(self.terms.node(number), number, bool(self.tuned[m]))
        return TermSum((*each.terms, term), (*each.factors[:-1], 1.0, each.factors[-1]), loss)

    def _seeds(self) -> list[TermSum]:
        """Single terms that show when all that functions of one column could do is taken away."""
        ones = np.ones((len(self.roots), 1))
        bases = [
            _orthonormal(self.roots[:, None] * np.hstack([ones, columns]), self.numbers.spanned)
            for columns in self.terms.of_columns()
        ]
        target = self.roots * self.rows.target
        residuals = [target - basis @ (basis.T @ target) for basis in bases]
        numbers = {
            m
            for gain in self._gains(bases, residuals)
            for m in self._leading(gain, self.numbers.seeds, tuned=len(self.beams) > 1)
        }
        empty = TermSum((), (0.0,), math.inf)
        solved = [self._solved(self._extended(empty, m, math.inf)) for m in sorted(numbers)]
        return [each for each in solved if each is not None]

    # --- fits ------------------------------------------------------------------------------------------------------------

    def _fitted_best(self, found: list[list[TermSum]], out_of_time: Callable[[], bool]) -> list[list[TermSum]]:
        """The sums fitted, so many of each number of tuned terms as go on, the best first."""
        result = []
        for n_tuned, (width, like) in enumerate(zip(self.beams, found, strict=True)):
            if n_tuned and not out_of_time():
                like = self._different(self._fitted(like, self.numbers.steps))
            result.append(self._different(self._fitted(like[:width], self.numbers.final_steps)))
        return result

    def _fitted(self, sums: Sequence[TermSum], steps: int) -> list[TermSum]:
        """The sums with factors solved for, and the inner constants of tuned terms fitted with them."""
        rows, result, written = self.rows, [], []
        for each in map(self._solved, sums):
            if each is None:
                continue
            if not each.n_tuned:
                result.append(each)
                continue
            try:
                written.append((each, from_expression(each.root, rows.n_variables, each.fixed())))
            except ProgramTooLong:
                continue
        if written:
            programs = [program for _, program in written]
            fits = fit(
                programs, None, rows.inputs, rows.target, rows.weights, max_steps=steps,
                tolerance=self.numbers.tolerance, n_threads=rows.n_threads,
            )  # fmt: skip
            for (each, program), constants, loss in zip(written, fits.constants, fits.losses, strict=True):
                if math.isfinite(loss) and np.isfinite(constants[: len(program.start)]).all():
                    root = replace_constants(Expression(each.root, rows.names), program, constants).root
                    result.append(_read(each, root, float(loss)))
        return result

    def _solved(self, each: TermSum) -> TermSum | None:
        """A sum with the factors of least squares; None where a term is not finite."""
        rows = self.rows
        with np.errstate(all="ignore"):
            columns = [Expression(term.node, rows.names)(rows.X) for term in each.terms]
            table = np.stack([*columns, np.ones(len(rows.target))], axis=1)
            sizes = np.sqrt(np.mean(table**2, axis=0))
        if not np.isfinite(sizes).all() or not (sizes > 0).all():
            return None
        scaled = np.linalg.lstsq(self.roots[:, None] * table / sizes, self.roots * rows.target, rcond=1e-14)[0]
        factors = scaled / sizes
        loss = float(np.average((rows.target - table @ factors) ** 2, weights=rows.weights))
        return replace(each, factors=tuple(factors.tolist()), loss=loss) if math.isfinite(loss) else None

    def _different(self, sums: Sequence[TermSum]) -> list[TermSum]:
        """The sums by loss, less those that come to the same: a tuned term comes from several places of its grid."""
        kept: list[TermSum] = []
        for each in sorted(sums, key=lambda one: one.loss):
            if not kept or not math.isclose(each.loss, kept[-1].loss, rel_tol=self.numbers.same):
                kept.append(each)
        return kept


def _read(each: TermSum, root: Node, loss: float) -> TermSum:
    """A sum with the constants that its refitted formula has."""
    assert isinstance(root, Call)  # as `TermSum.root` wrote it
    factors, terms = [], []
    for part, term in zip(root.args[:-1], each.terms, strict=True):
        assert isinstance(part, Call) and isinstance(part.args[0], Constant)
        factors.append(part.args[0].value)
        terms.append(replace(term, node=part.args[1]))
    offset = root.args[-1]
    assert isinstance(offset, Constant)
    return TermSum(tuple(terms), (*factors, offset.value), loss)


def _orthonormal(columns: FloatArray, spanned: float) -> FloatArray:
    """A basis [N, K'] of the space that columns [N, K] span."""
    peaks = np.abs(columns).max(axis=0)
    used = np.isfinite(peaks) & (peaks > 0)
    left, singular, _ = np.linalg.svd(columns[:, used] / peaks[used], full_matrices=False)
    return np.asarray(left[:, singular > spanned * singular[0]])
