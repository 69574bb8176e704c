"""Angles with factors of any value, as in cos(0.22*x + sin(x)), sin(2.4*x*z - 3.1*log(z)) and cos(3.8 - 11.74*x/z).

e^{i(f u + g v)} = e^{ifu} e^{igv}, so that of all multiples of a term u with all that may stand beside it one product of two
matrices tells how much of a target their wave has. Beside it may stand nothing, a whole multiple of another term, any multiple
of a column, or of a function of one: this has few turns, and a coarse grid of factors will do. A fraction is large on a few
rows, where no grid is fine enough; so of each term only the rows near its middle are looked at, and the factors of what is found
are refined on ever more rows.

Legend: `N` rows, `M` terms, `L` angles that stand beside a term, `F` factors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.search.direct.waves.angles import Sum
from gmeql.search.direct.waves.waves import refined

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex64]


@dataclass(frozen=True)
class AnyFactorsConfig:
    """Numbers of the scan."""

    rows: int = 96  # that sums are looked for on,
    of_rows: float = 0.6  # the share nearest to a term's middle of those looked at
    of_rows_beside: float = 0.95  # and for a term beside it
    step: float = 0.5  # turns over these rows between two factors: between them 0.8 of a wave's squares is seen
    turns: float = 256.0  # of a term at most,
    turns_of_column: float = 64.0  # of a column,
    turns_of_function: float = 2.5  # and of a function of a column beside a term
    whole: tuple[int, ...] = (1, 2)  # factors of other terms beside one
    seen: float = (
        0.4  # share of a target's squares from which a wave is refined: the best of 1e8 sums has 0.38 of noise
    )
    of_each: int = 30  # sums with a term that are looked at,
    refined: int = 8  # and of other terms each that are refined, of each kind
    shares: tuple[float, ...] = (0.6, 0.9, 0.98, 1.0)  # of the rows that factors are refined on, one after the other
    flops: float = 1e11  # of one core, in single precision (measured, with some to spare)


ANY_FACTORS = AnyFactorsConfig()


@dataclass(frozen=True, eq=False)
class AngleTerms:
    """Values [M, N] of terms that angles may be sums of: first so many columns, then other terms, last functions of columns."""

    values: FloatArray
    n_columns: int
    n_functions: int

    @property
    def functions(self) -> range:
        return range(len(self.values) - self.n_functions, len(self.values))


def sums_of(
    terms: AngleTerms, target: FloatArray, seconds: float, has_ended: Callable[[], bool], *, are_rarer: bool = False
) -> Iterator[Sum]:
    """Sums whose wave has much of a target's squares [N], the strongest of each kind first; plainer kinds come first.

    They are of a term, or of one and a function of a column or a whole multiple of another; the rarer ones of a term and any
    multiple of a column, or of a term, a multiple of a function of a column and a column.
    """
    n = min(len(target), round(ANY_FACTORS.rows / ANY_FACTORS.of_rows))
    values, target = terms.values[:, :n], target[:n] / (np.abs(target[:n]).max() or 1.0)
    scan = _Scan(values, target, ANY_FACTORS.of_rows)
    if not are_rarer:
        wide = _Scan(values, target, ANY_FACTORS.of_rows_beside)
        yield from wide.strongest([(m, ANY_FACTORS.turns) for m in range(len(values))], wide.nothing(), has_ended)
    for right, left in _rarer(scan, terms) if are_rarer else _plainer(scan, terms):
        cost = scan.cost(right, left)
        if cost > seconds or has_ended():
            return
        seconds -= cost
        yield from scan.strongest(right, left, has_ended)


@dataclass(frozen=True, eq=False)
class _Beside:
    """Angles beside a term: numbers and factors of their terms [L, k], and e to the power of i times them [L, N]."""

    numbers: NDArray[np.int64]
    factors: FloatArray
    turns: ComplexArray

    def __len__(self) -> int:
        return len(self.numbers)

    def and_(self, other: _Beside) -> _Beside:
        numbers, factors = np.concatenate([self.numbers, other.numbers]), np.concatenate([self.factors, other.factors])
        return _Beside(numbers, factors, np.concatenate([self.turns, other.turns]))

    def plus(self, other: _Beside) -> _Beside:
        """Sums of each of these and each of the others, of different terms."""
        i, j = (index.ravel() for index in np.meshgrid(np.arange(len(self)), np.arange(len(other)), indexing="ij"))
        apart = (self.numbers[i] != other.numbers[j]).all(axis=1)
        i, j = i[apart], j[apart]
        numbers = np.hstack([self.numbers[i], other.numbers[j]])
        return _Beside(numbers, np.hstack([self.factors[i], other.factors[j]]), self.turns[i] * other.turns[j])


class _Scan:
    """A target [N] asked for waves of sums of terms [M, N]."""

    def __init__(self, values: FloatArray, target: FloatArray, share: float) -> None:
        self.values, self.target = values, target
        order = np.argsort(np.abs(values - np.median(values, axis=1, keepdims=True)), axis=1)
        self.near = order[:, : max(2, round(share * len(target)))]
        self.units = self._units(self.near)
        self.wide_units = self._units(order[:, : round(ANY_FACTORS.of_rows_beside * len(target))])

    def _units(self, rows: NDArray[np.int64]) -> FloatArray:
        """Steps between two factors of each term, for rows [M, n] of its own."""
        spans = np.ptp(np.take_along_axis(self.values, rows, axis=1), axis=1)
        return np.asarray(2 * np.pi * ANY_FACTORS.step / np.where(spans > 0, spans, np.inf))

    def nothing(self) -> _Beside:
        return _Beside(np.full((1, 1), -1), np.zeros((1, 1)), np.ones((1, len(self.target)), np.complex64))

    def whole(self, numbers: Sequence[int], factors: Sequence[int] = ANY_FACTORS.whole) -> _Beside:
        """Whole multiples of terms, added and taken off."""
        every = [sign * float(c) for c in factors for sign in (1, -1)]
        return self._multiples([(m, np.array(every)) for m in numbers])

    def any_of(self, numbers: Sequence[int], most_turns: float) -> _Beside:
        """Multiples of terms on a grid."""
        counts = np.arange(1, round(most_turns / ANY_FACTORS.step) + 1)
        return self._multiples([(m, self.wide_units[m] * np.concatenate([counts, -counts])) for m in numbers])

    def _multiples(self, of: Sequence[tuple[int, FloatArray]]) -> _Beside:
        if not of:
            nothing = self.nothing()
            return _Beside(nothing.numbers[:0], nothing.factors[:0], nothing.turns[:0])
        numbers = np.concatenate([np.full(len(factors), m) for m, factors in of])[:, None]
        turns = [np.exp(1j * np.outer(factors, self.values[m])).astype(np.complex64) for m, factors in of]
        return _Beside(numbers, np.concatenate([factors for _, factors in of])[:, None], np.concatenate(turns))

    def cost(self, right: Sequence[tuple[int, float]], left: _Beside) -> float:
        """Seconds of one core for terms, each with its most turns, beside angles."""
        n_factors = sum(turns / ANY_FACTORS.step for _, turns in right)
        return float(8.0 * n_factors * len(left) * self.near.shape[1] / ANY_FACTORS.flops)

    def strongest(self, right: Sequence[tuple[int, float]], left: _Beside, has_ended: Callable[[], bool]) -> list[Sum]:
        """The sums that have most of the target's squares, one of the same terms."""
        found: dict[frozenset[int], Sum] = {}
        for m, turns in right:
            if has_ended() or not len(left):
                break
            near = self.near[m]
            target = self.target[near]
            whole = float(target @ target) * len(near) / 2
            if not (whole > 0 and np.isfinite(self.units[m]) and self.units[m] > 0):
                continue
            multiples = _powers(np.exp(1j * self.units[m] * self.values[m, near]), round(turns / ANY_FACTORS.step))
            power = _power(multiples, left.turns[:, near] * target.astype(np.float32))
            power[:, (left.numbers == m).any(axis=1)] = 0.0
            shares = power.max(axis=0) / whole
            for other in np.argsort(-shares, kind="stable")[: ANY_FACTORS.of_each]:
                if not shares[other] > ANY_FACTORS.seen:
                    break
                beside_it = zip(left.numbers[other].tolist(), left.factors[other].tolist(), strict=True)
                parts = {
                    m: float(self.units[m]) * (int(np.argmax(power[:, other])) + 1),
                    **{k: c for k, c in beside_it if k >= 0},
                }
                known = found.get(frozenset(parts))
                if known is None or shares[other] > known.share:
                    found[frozenset(parts)] = Sum(tuple(parts), tuple(parts.values()), float(shares[other]))
        return sorted(found.values(), key=lambda one: -one.share)[: ANY_FACTORS.refined]


def _power(multiples: ComplexArray, beside: ComplexArray) -> FloatArray:
    """Squares [F, L] of the sums over rows of numbers [F, N] times others [L, N], by real products: these lie side by side."""
    there, back = (np.ascontiguousarray(part.T) for part in (beside.real, beside.imag))
    columns = np.concatenate([there, back])
    power = np.hstack([multiples.real, -multiples.imag]) @ columns
    power *= power
    other = np.hstack([multiples.imag, multiples.real]) @ columns
    other *= other
    power += other
    return np.asarray(power)


def _powers(base: NDArray[np.complex128], n: int) -> ComplexArray:
    """The first n powers of numbers [N], as [n, N]."""
    powers = base.astype(np.complex64)[None]
    while len(powers) < n:
        powers = np.concatenate([powers, powers * (base ** len(powers)).astype(np.complex64)])
    return powers[:n]


_Right = list[tuple[int, float]]


def _with_turns(terms: AngleTerms) -> _Right:
    """All terms with their most turns."""
    columns, numbers = range(terms.n_columns), ANY_FACTORS
    return [(m, numbers.turns_of_column if m in columns else numbers.turns) for m in range(len(terms.values))]


def _plainer(scan: _Scan, terms: AngleTerms) -> Iterator[tuple[_Right, _Beside]]:
    """Terms with their most turns, and what may stand beside one; plainer kinds first."""
    right, numbers = _with_turns(terms), ANY_FACTORS
    yield right, scan.nothing()
    yield right, scan.whole(range(len(right))).and_(scan.any_of(terms.functions, numbers.turns_of_function))


def _rarer(scan: _Scan, terms: AngleTerms) -> Iterator[tuple[_Right, _Beside]]:
    """The same of any multiple of a column, and of a function of a column and a column together."""
    yield _with_turns(terms), scan.any_of(range(terms.n_columns), ANY_FACTORS.turns_of_column)
    plain = [part for part in _with_turns(terms) if part[0] not in terms.functions]
    few = scan.any_of(terms.functions, ANY_FACTORS.turns_of_function).and_(scan.whole(terms.functions))
    yield plain, few.plus(scan.whole(range(terms.n_columns), (1,)))


def refined_on_more(columns: FloatArray, target: FloatArray, factors: Sequence[float]) -> FloatArray:
    """Factors [K] of terms [N, K] where the wave of their sum explains most of a target [N], refined on ever more rows."""
    middle = np.median(columns, axis=0)
    typical = np.median(np.abs(columns - middle), axis=0)
    far = np.max(np.abs(columns - middle) / np.where(typical > 0, typical, 1.0), axis=1)
    order = np.argsort(far, kind="stable")
    found = np.array(factors, float)
    for share in ANY_FACTORS.shares:
        some = order[: round(share * len(order))]
        found = np.array(refined(columns[some], target[some], found)[0])
    return found
