"""Sums of several terms, chosen from a library one after the other and fitted together.

All factors of the terms enter linearly; tuned terms have constants inside besides. Starting from the mean, terms are
added that lower the squared error most once every constant may follow: orthogonal least squares (Chen, Billings and Luo
1989) against the slopes of the sum by all its constants, the linearised form of variable projection (Golub and Pereyra
1973). Many sums of each length go on. Tuned terms fit anything a little, so that sums of none, one and two of them
compete among their like. Three things lead out of dead ends: the best sums are extended by all pairs of terms at once,
terms that show only once everything a single column could do is taken away are seeds, and each term of the best sums is
exchanged for the best in its place.

Legend: `N` rows, `M` terms of the library, `S` sums, `K` constants of a sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Node
from gmeql.search.direct.table import DirectTable
from gmeql.search.direct.terms.library import Library
from gmeql.search.direct.terms.term_sums import SumFits, Term, TermSum, orthonormal
from gmeql.search.polish.scoring import JudgedRows, description_length

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class TermsConfig:
    """Numbers of the choice of terms."""

    max_terms: int = 6
    tried: int = 30  # extensions of a sum that are looked at, of plain terms and of tuned ones
    per_kind: int = 2  # of which so many may differ in inner constants only
    leading: int = 1  # sums of a length and kind that are extended by pairs
    pairs: int = 60  # pairs of terms looked at that extend a sum together
    partners: int = 400  # terms that may be one of a pair, those that gain most alone,
    paired: int = 600  # and tuned ones that may be the other
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
    shown: int = 1  # sums of each length and kind that are reported
    together: int = 16  # sums that are extended or fitted between two looks at the clock
    proposed: int = 2  # sums proposed where none is exact
    gain: float = 0.9  # share of the error of the best formula so far that such a sum must reach


TERMS = TermsConfig()

_Ranked = dict[frozenset[int], tuple[float, "TermSum", tuple[int, ...]]]
"""By the numbers of their terms, sums to be fitted: the loss they promise, the sum they extend, what it gets."""


class TermChoice:
    """Sums over some terms of a library, and `beams`: how many of each length go on, by the number of tuned terms.

    `by_pairs` says whether the best are extended by two terms at once, too.
    """

    def __init__(
        self,
        terms: Library,
        used: NDArray[np.bool_],
        rows: JudgedRows,
        *,
        beams: Sequence[int],
        by_pairs: bool = True,
        numbers: TermsConfig = TERMS,
    ) -> None:
        self.terms, self.rows, self.beams, self.by_pairs, self.numbers = terms, rows, beams, by_pairs, numbers
        self.fits = SumFits(terms, rows, tolerance=numbers.tolerance, spanned=numbers.spanned)
        self.used = np.flatnonzero(used)
        self.tuned = terms.tuned[self.used]
        self.roots, self.weight = self.fits.roots, self.fits.weight
        columns = terms.values[self.used] * self.roots
        sizes = np.sqrt(np.einsum("mn,mn->m", columns, columns))
        self.columns = columns / np.where(sizes > 0, sizes, 1.0)[:, None]
        self.turning = terms.slopes(self.used[self.tuned]) * self.roots
        sizes = np.sqrt(np.einsum("mn,mn->m", self.turning, self.turning))
        self.turning /= np.where(sizes > 0, sizes, 1.0)[:, None]
        self.along = np.einsum("mn,mn->m", self.turning, self.columns[self.tuned])

    def run(self, out_of_time: Callable[[], bool]) -> Iterator[TermSum]:
        """The best sums of each length and number of tuned terms, from short to long, up to an exact one."""
        rows, numbers = self.rows, self.numbers
        if not self.weight > 0:
            return  # of a target over hundreds of magnitudes these rows may have no weight at all
        mean = float(np.average(rows.target, weights=rows.weights))
        beam = [TermSum((), (mean,), float(np.average((rows.target - mean) ** 2, weights=rows.weights)))]
        best: dict[int, float] = {}
        by_pairs = {2: self._fitted_best(self._pairs(beam, out_of_time), out_of_time)}
        for length in range(1, numbers.max_terms + 1):
            longer = self._fitted_best(self._extensions(beam, out_of_time), out_of_time)
            if length > 1:
                exchanged = [s.without(i) for like in longer for s in like[: numbers.exchanged] for i in range(length)]
                again = self._fitted_best(
                    self._extensions([s for s in map(self.fits.solved, exchanged) if s], out_of_time), out_of_time
                )
                longer = self._together(longer, again, by_pairs.pop(length))
            leading = [each for like in longer for each in like[: numbers.leading]]
            beam = []
            for n_tuned, like in enumerate(longer):
                if like and like[0].loss < numbers.least_gain * best.get(n_tuned, math.inf):
                    best[n_tuned] = like[0].loss
                    beam += like
                    yield from like[: numbers.shown]
                    if rows.is_exact(like[0].loss):
                        return
            if beam and length == 1:
                beam += self._seeds()
            by_pairs[length + 2] = self._fitted_best(self._pairs(leading if beam else [], out_of_time), out_of_time)
            if out_of_time():  # what was found for the next lengths still counts
                found = [like[0] for _, sums in sorted(by_pairs.items()) for like in sums if like]
                yield from [each for each in found if rows.is_exact(each.loss)][:1]
                return
            if not beam:
                return

    def _together(self, *found: list[list[TermSum]]) -> list[list[TermSum]]:
        """Sums from several places by their number of tuned terms, as many as go on."""
        merged = ([each for like in of_kind for each in like] for of_kind in zip(*found, strict=True))
        return [self._different(like)[:width] for like, width in zip(merged, self.beams, strict=True)]

    # --- which term next -----------------------------------------------------------------------------------------------

    def _extensions(self, sums: Sequence[TermSum], out_of_time: Callable[[], bool]) -> list[list[TermSum]]:
        """Sums with one term more by their number of tuned terms, the most promising of each first."""
        found: list[_Ranked] = [{} for _ in self.beams]
        for some in _parts(sums, self.numbers.together):
            if out_of_time():
                break
            bases, residuals = zip(*map(self.fits.beside, some), strict=True)
            for each, residual, gain in zip(some, residuals, self._gains(bases, residuals), strict=True):
                whole = float(residual @ residual)
                for m in self._leading(gain, self.numbers.tried, tuned=each.n_tuned + 1 < len(self.beams)):
                    self._enter(found, each, (m,), whole - float(gain[m]))
        return self._promising(found)

    def _pairs(self, sums: Sequence[TermSum], out_of_time: Callable[[], bool]) -> list[list[TermSum]]:
        """Sums with two terms more: of two that are much alike neither gains much alone. One of them is not tuned."""
        found: list[_Ranked] = [{} for _ in self.beams]
        if self.tuned.all() or not self.by_pairs:
            return [[] for _ in self.beams]
        for each in sums:
            if out_of_time():
                break
            basis, residual = self.fits.beside(each)
            gain = self._gains([basis], [residual])[0]
            plain = _largest(gain, ~self.tuned, self.numbers.partners)
            any_term = plain
            if each.n_tuned + 1 < len(self.beams):
                any_term = np.concatenate([plain, _largest(gain, self.tuned, self.numbers.paired)])
            gains = self._pair_gains(any_term, len(plain), basis, residual)
            whole = float(residual @ residual)
            n = min(self.numbers.pairs, gains.size)
            for place in np.argpartition(-gains, n - 1, axis=None)[:n]:
                a, b = (int(k) for k in np.unravel_index(int(place), gains.shape))
                if gains[a, b] > 0:
                    self._enter(found, each, (int(any_term[a]), int(plain[b])), whole - float(gains[a, b]))
        return self._promising(found)

    def _pair_gains(
        self, terms: NDArray[np.int64], n_plain: int, basis: FloatArray, residual: FloatArray
    ) -> FloatArray:
        """By how much any of some terms lowers the sum of squares together with one of the first, plain ones, [M', P].

        As alone, a tuned term may move its inner constant on the way.
        """
        least = self.numbers.independent
        left = _left(self.columns[terms], basis, least)
        turning = np.zeros_like(left)
        place = np.cumsum(self.tuned) - 1
        tuned = self.tuned[terms]
        turning[tuned] = _left(self.turning[place[terms[tuned]]], basis, least)
        turning -= np.einsum("mn,mn->m", turning, left)[:, None] * left
        turning = _left(turning, np.zeros((len(residual), 0)), least)
        shared, turned = left @ left[:n_plain].T, turning @ left[:n_plain].T
        first, by_turn = left @ residual, turning @ residual
        alone = first**2 + by_turn**2
        second = first[:n_plain] - first[:, None] * shared - by_turn[:, None] * turned
        apart = 1.0 - shared**2 - turned**2
        with np.errstate(all="ignore"):
            return np.where(apart > least, alone[:, None] + second**2 / apart, 0.0)

    def _enter(self, found: list[_Ranked], each: TermSum, added: tuple[int, ...], squares: float) -> None:
        """Note a sum with terms more and the squares it would leave, unless it is known with fewer."""
        like = found[each.n_tuned + sum(bool(self.tuned[m]) for m in added)]
        key = frozenset((*(term.number for term in each.terms), *(int(self.used[m]) for m in added)))
        loss = max(squares, 0.0) / self.weight
        if key not in like or loss < like[key][0]:
            like[key] = loss, each, added

    def _promising(self, found: list[_Ranked]) -> list[list[TermSum]]:
        """The sums of least loss of each number of tuned terms, more than go on where a fit will choose."""
        result = []
        for n_tuned, (width, like) in enumerate(zip(self.beams, found, strict=True)):
            ranked = sorted(like.values(), key=lambda one: one[0])[: width * (self.numbers.fits if n_tuned else 1)]
            result.append([self._extended(each, added, loss) for loss, each, added in ranked])
        return result

    def _gains(self, bases: Sequence[FloatArray], residuals: Sequence[FloatArray]) -> FloatArray:
        """By how much each term would lower the sum of squares beside each basis, [S, M].

        A tuned term may move its inner constant on the way: what it gains is taken with its slope by that.
        """
        joined, left_over = np.concatenate([basis.T for basis in bases]), np.stack(residuals)
        starts = np.cumsum([0, *(basis.shape[1] for basis in bases[:-1])])
        shadows = joined @ self.columns.T
        left = 1.0 - np.add.reduceat(shadows**2, starts, axis=0)
        along = left_over @ self.columns.T
        usable = left > self.numbers.independent
        with np.errstate(all="ignore"):
            gains = np.where(usable, along**2 / left, 0.0)
        if not len(self.turning):
            return np.asarray(gains)
        turned = joined @ self.turning.T
        both = self.along - np.add.reduceat(shadows[:, self.tuned] * turned, starts, axis=0)
        free = 1.0 - np.add.reduceat(turned**2, starts, axis=0)
        by_turn = left_over @ self.turning.T
        first, size = along[:, self.tuned], left[:, self.tuned]
        with np.errstate(all="ignore"):
            apart = free - both**2 / size
            more = (by_turn - first * both / size) ** 2 / apart
        gains[:, self.tuned] += np.where(usable[:, self.tuned] & (apart > self.numbers.independent), more, 0.0)
        return np.asarray(gains)

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

    def _extended(self, each: TermSum, added: tuple[int, ...], loss: float) -> TermSum:
        numbers = [int(self.used[m]) for m in added]
        terms = [Term(self.terms.node(k), k, bool(self.tuned[m])) for k, m in zip(numbers, added, strict=True)]
        factors = (*each.factors[:-1], *(1.0 for _ in added), each.factors[-1])
        return TermSum((*each.terms, *terms), factors, loss)

    def _seeds(self) -> list[TermSum]:
        """Single terms that show when all that functions of one column could do is taken away."""
        ones = np.ones((len(self.roots), 1))
        bases = [
            orthonormal(self.roots[:, None] * np.hstack([ones, columns]), self.numbers.spanned)
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
        solved = [self.fits.solved(self._extended(empty, (m,), math.inf)) for m in sorted(numbers)]
        return [each for each in solved if each is not None]

    # --- fits ------------------------------------------------------------------------------------------------------------

    def _fitted_best(self, found: list[list[TermSum]], out_of_time: Callable[[], bool]) -> list[list[TermSum]]:
        """The sums fitted, so many of each number of tuned terms as go on, the best first."""
        result = []
        for n_tuned, (width, like) in enumerate(zip(self.beams, found, strict=True)):
            if n_tuned:
                like = self._different(self._fitted(like, self.numbers.steps, out_of_time))
            result.append(self._different(self._fitted(like[:width], self.numbers.final_steps, out_of_time)))
        return result

    def _fitted(self, sums: Sequence[TermSum], steps: int, out_of_time: Callable[[], bool]) -> list[TermSum]:
        """The sums fitted, up to where the time ends."""
        done: list[TermSum] = []
        for some in _parts(sums, self.numbers.together):
            if out_of_time():
                break
            done += self.fits.fitted(some, steps)
        return done

    def _different(self, sums: Sequence[TermSum]) -> list[TermSum]:
        """The sums by loss, less those that come to the same: a tuned term comes from several places of its grid."""
        kept: list[TermSum] = []
        for each in sorted(sums, key=lambda one: one.loss):
            if not kept or not math.isclose(each.loss, kept[-1].loss, rel_tol=self.numbers.same):
                kept.append(each)
        return kept


def best_inexact(found: Sequence[TermSum], table: DirectTable, rows: JudgedRows, n_terms: int) -> list[Node]:
    """The sums of least description length that beat the best formula so far on all rows, not only on those chosen by."""
    roots = [one.root for one in _by_length(found, rows, n_terms)]
    return [root for root in roots if table.error(root) < TERMS.gain * table.unexplained][: TERMS.proposed]


def best_of(found: Sequence[TermSum], rows: JudgedRows, n_terms: int) -> TermSum | None:
    """The sum of least description length; None where the mean has less."""
    return next(iter(_by_length(found, rows, n_terms)), None)


def _by_length(found: Sequence[TermSum], rows: JudgedRows, n_terms: int) -> list[TermSum]:
    """Sums of less description length than the mean, the least first.

    Naming one of `n_terms` terms takes the logarithm of that number: the luckiest of thousands goes through noise.
    """

    def length(one: TermSum) -> float:
        return description_length(one.root, one.loss, rows) + len(one.terms) * math.log(n_terms)

    longest = length(TermSum((), (0.0,), rows.spread**2))
    return sorted((one for one in found if length(one) < longest), key=length)


def _parts(sums: Sequence[TermSum], n: int) -> Iterator[Sequence[TermSum]]:
    return (sums[i : i + n] for i in range(0, len(sums), n))


def _left(columns: FloatArray, basis: FloatArray, least: float) -> FloatArray:
    """What is left of columns [M, N] beside a basis [N, K], of length 1; zero where that is nothing."""
    columns = columns - (columns @ basis) @ basis.T
    squares = np.einsum("mn,mn->m", columns, columns)
    usable = squares > least
    return np.asarray(columns * np.where(usable, 1 / np.sqrt(np.where(usable, squares, 1.0)), 0.0)[:, None])


def _largest(gain: FloatArray, among: NDArray[np.bool_], n: int) -> NDArray[np.int64]:
    """Numbers of the terms of largest gain [M] among some."""
    numbers = np.flatnonzero(among)
    return np.asarray(numbers[np.argsort(-gain[numbers], kind="stable")[:n]])
