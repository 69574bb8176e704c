"""Waves of sums: which sum of products of columns is the angle of a wave, as in cos(x**2 - x + 2*z) or z*sin(x*y - z).

A wave of a sum shows only when the whole sum is right, but its scan factors: e^{i(a + b)} = e^{ia} e^{ib}. All sums of
three or four products with small whole factors are one product of two matrices, and where one factor may be any number,
one Fourier transform for each choice of the others. The wave may have a factor B of its own: r = B sin(...) is large
where B is, so that the likely B are read off the squares of r.

Legend: `N` rows, `M` products, `U` angles of one or two products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex64]


@dataclass(frozen=True)
class AnglesConfig:
    """Numbers of the scan."""

    rows: int = 96  # that sums are looked for on: noise has 1/6 of the power at the best of 1e9 sums
    factors: tuple[int, ...] = (1, 2, 3, 4)  # whole factors of one product of a sum; the others have 1
    most_products: int = 80
    amplitudes: int = 2  # likely factors of the wave that are tried
    softened: float = 0.01  # share of its mean square below which a factor's square is no smaller
    most_pairs: int = 500  # of products up to which sums of four are looked for
    grid: int = 1 << 12  # points of a transform,
    highest: int = 4  # which has frequencies up to their number over this
    in_pairs: int = 400  # of very many products, those of sums of two,
    in_triples: int = 40  # and those two of which make sums of three with one of these
    block: int = 512  # angles at a time
    clear: float = 0.8  # share of the squares from which no other kind of sum is looked for
    flops: float = 4e10  # of one core, in single precision (measured, with some to spare)
    seconds_per_transform: float = 1.5e-4  # (measured)


ANGLES = AnglesConfig()


@dataclass(frozen=True)
class Sum:
    """A sum of products as an angle: which products, their factors, and the share of the squares that its wave has."""

    products: tuple[int, ...]
    factors: tuple[float, ...]
    share: float


def products_of(n_columns: int) -> list[Node]:
    """Columns, squares, products of two and of three columns, the plainest first."""
    columns: list[Node] = [Variable(j) for j in range(n_columns)]
    found = chain(
        columns, (build("mul", a, b) for a, b in combinations(columns, 2)),
        (build("square", a) for a in columns), (build("mul", a, b, c) for a, b, c in combinations(columns, 3)),
        (build("cube", a) for a in columns),
    )  # fmt: skip
    return [node for node, _ in zip(found, range(ANGLES.most_products), strict=False)]


def amplitudes_of(n_columns: int) -> list[Node]:
    """What may stand before a wave: nothing, a column, its square, a product of two."""
    columns: list[Node] = [Variable(j) for j in range(n_columns)]
    return [Constant(1.0), *columns, *(build("mul", a, b) for a, b in combinations_with_replacement(columns, 2))]


def likely_amplitudes(residual: FloatArray, amplitudes: FloatArray) -> list[int]:
    """Numbers of the amplitudes B [A, N] under which r/B is most alike in size, the likeliest first.

    That is by the likelihood of r as normal with variance proportional to B**2; near the zeros of B the square is softened.
    """
    squares = amplitudes**2
    squares = squares + ANGLES.softened * squares.mean(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):  # what is 0 on every row has no length and is sorted last
        length = np.mean(np.log(squares), axis=1) + np.log(np.mean(residual**2 / squares, axis=1))
    return [int(i) for i in np.argsort(length, kind="stable")[: ANGLES.amplitudes]]


def strongest_sum(
    products: FloatArray, residual: FloatArray, amplitude: FloatArray, seconds: float, out_of_time: Callable[[], bool]
) -> tuple[Sum | None, float, float]:
    """The sum of products [M, N] whose wave times B [N] has most of the residual's squares [N].

    With it go how many sums were tried, and how much of the seconds that took by count.
    """
    n = min(len(residual), ANGLES.rows)
    # by their largest, so that squares stay within single precision
    residual, amplitude = (part[:n] / (np.abs(part[:n]).max() or 1.0) for part in (residual, amplitude))
    products = products[:, :n]
    weighted = (residual * amplitude).astype(np.complex64)
    whole = float(residual @ residual) * float(amplitude @ amplitude) / 2
    best, tried, used = None, 0.0, 0.0
    for seconds_needed, n_tried, look in _looks(products, weighted):
        if used + seconds_needed > seconds or out_of_time() or not whole > 0:
            continue
        used += seconds_needed
        tried += n_tried
        for power, numbers, factors in look():
            share = power / whole
            if best is None or share > best.share:
                best = Sum(numbers, factors, share)
        if best is not None and best.share > ANGLES.clear:
            break
    return best, tried, used


def strongest_of_many(products: FloatArray, residual: FloatArray) -> Sum | None:
    """The same of very many products [M, N], the plainest first: each alone with a whole factor, two of the plainer ones, and
    one of these with two of the plainest."""
    n = min(len(residual), ANGLES.rows)
    weighted = (residual[:n] / (np.abs(residual[:n]).max() or 1.0)).astype(np.complex64)
    whole = float(np.sum(np.abs(weighted) ** 2)) * n / 2
    turns = np.exp(1j * products[:, :n]).astype(np.complex64)
    singles = _Angles.of(turns[: ANGLES.in_pairs], with_factors=False)
    i, j = np.triu_indices(min(ANGLES.in_triples, len(turns)), 1)
    pairs = singles.plus(singles, i, j, 1).and_(singles.plus(singles, i, j, -1))
    nothing = _Angles(np.full((1, 1), -1), np.zeros((1, 1), np.int64), np.ones((1, n), np.complex64))
    best: Sum | None = None
    for left, right in (
        (nothing, _Angles.of(turns, with_factors=True)),
        (singles, _Angles.of(singles.turns, with_factors=True)),
        (pairs, _Angles.of(singles.turns, with_factors=True)),
    ):
        for power, numbers, factors in _whole_factors(weighted, left, right):
            if whole > 0 and (best is None or power / whole > best.share):
                best = Sum(numbers, factors, power / whole)
        if best is not None and best.share > ANGLES.clear:
            break
    return best


_Found = Iterator[tuple[float, tuple[int, ...], tuple[float, ...]]]


@dataclass(frozen=True)
class _Angles:
    """Sums of `k` products with whole factors: `numbers` and `factors` [U, k], and e to the power of i times them [U, N]."""

    numbers: NDArray[np.int64]
    factors: NDArray[np.int64]
    turns: ComplexArray

    @classmethod
    def of(cls, turns: ComplexArray, *, with_factors: bool) -> _Angles:
        """Single products, of which `turns` [M, N] is e to the power of i times each."""
        factors = [sign * c for c in (ANGLES.factors if with_factors else (1,)) for sign in (1, -1)[: 1 + with_factors]]
        numbers = np.arange(len(turns))
        powers = [turns ** abs(c) if c > 0 else (turns ** abs(c)).conj() for c in factors]
        every = np.repeat(factors, len(turns))[:, None]
        return cls(np.tile(numbers, len(factors))[:, None], every, np.concatenate(powers).astype(np.complex64))

    def __len__(self) -> int:
        return len(self.numbers)

    def plus(self, other: _Angles, i: NDArray[np.int64], j: NDArray[np.int64], sign: int) -> _Angles:
        """Sums of some of these and some of the others, or (`sign` -1) their differences."""
        turns = self.turns[i] * (other.turns[j] if sign > 0 else other.turns[j].conj())
        numbers = np.hstack([self.numbers[i], other.numbers[j]])
        return _Angles(numbers, np.hstack([self.factors[i], sign * other.factors[j]]), turns)

    def and_(self, other: _Angles) -> _Angles:
        """These and the others."""
        numbers = np.concatenate([self.numbers, other.numbers])
        factors = np.concatenate([self.factors, other.factors])
        return _Angles(numbers, factors, np.concatenate([self.turns, other.turns]))


def _looks(products: FloatArray, weighted: ComplexArray) -> list[tuple[float, float, Callable[[], _Found]]]:
    """Kinds of sums, the cheapest first: seconds that they take, how many they are, and the strongest with their power."""
    m, n = products.shape
    singles = _Angles.of(np.exp(1j * products).astype(np.complex64), with_factors=False)
    n_pairs, n_factored = m * (m - 1), 2 * len(ANGLES.factors) * m
    with_any, per_sum = ANGLES.seconds_per_transform * m, 8.0 * n / ANGLES.flops

    def pairs() -> _Angles:
        i, j = np.triu_indices(m, 1)
        return singles.plus(singles, i, j, 1).and_(singles.plus(singles, i, j, -1))

    def factored() -> _Angles:
        return _Angles.of(singles.turns, with_factors=True)

    def longer() -> _Angles:
        others = factored()
        j, i = (index.ravel() for index in np.meshgrid(np.arange(len(others)), np.arange(m)))
        apart = others.numbers[j, 0] != i
        return others.plus(singles, j[apart], i[apart], 1).and_(others.plus(singles, j[apart], i[apart], -1))

    looks: list[tuple[float, float, Callable[[], _Found]]] = [
        (n_pairs * n_factored * per_sum, n_pairs * n_factored, lambda: _whole_factors(weighted, pairs(), factored())),
        (with_any * m, m * m * ANGLES.grid / 2, lambda: _any_factor(products, weighted, singles)),
        (with_any * n_pairs, n_pairs * m * ANGLES.grid / 2, lambda: _any_factor(products, weighted, pairs())),
    ]
    if n_pairs <= ANGLES.most_pairs:
        n_longer = 2 * (m - 1) * n_factored
        looks.append(
            (n_pairs * n_longer * per_sum, n_pairs * n_longer, lambda: _whole_factors(weighted, pairs(), longer()))
        )
    return sorted(looks, key=lambda look: look[0])


def _whole_factors(weighted: ComplexArray, left: _Angles, right: _Angles) -> _Found:
    """The strongest sum of an angle on the left and one on the right."""
    columns = np.ascontiguousarray(right.turns.T)
    for start in range(0, len(left), ANGLES.block):
        sums = (left.turns[start : start + ANGLES.block] * weighted) @ columns
        power = sums.real**2 + sums.imag**2
        if left.numbers.shape[1] == 1:  # two of one product may cancel: that is no wave, but the mean
            power[left.numbers[start : start + ANGLES.block] == right.numbers[:, 0]] = 0.0
        place, other = (int(k) for k in np.unravel_index(int(np.argmax(power)), power.shape))
        numbers = [*left.numbers[start + place], *right.numbers[other]]
        terms = _collected(numbers, [*left.factors[start + place], *right.factors[other]])
        if terms:
            yield float(power[place, other]), tuple(terms), tuple(float(c) for c in terms.values())


def _collected(numbers: Sequence[int], factors: Sequence[int]) -> dict[int, int]:
    """Factors by product; those that cancel are left out."""
    found: dict[int, int] = {}
    for number, factor in zip(numbers, factors, strict=True):
        found[int(number)] = found.get(int(number), 0) + int(factor)
    return {number: factor for number, factor in found.items() if factor}


def _any_factor(products: FloatArray, weighted: ComplexArray, left: _Angles) -> _Found:
    """The strongest sum of an angle on the left and any multiple of a product."""
    grid = ANGLES.grid
    limit = grid // ANGLES.highest
    block = max(1, (1 << 18) // grid)
    for j, values in enumerate(products):
        span = float(np.ptp(values))
        if not span > 0:
            continue
        places = np.rint((values - values.min()) / span * (grid // 2 - 1)).astype(np.int64)
        unit = 2 * np.pi * (grid // 2 - 1) / (grid * span)
        others = np.flatnonzero((left.numbers != j).all(axis=1))
        for start in range(0, len(others), block):
            some = others[start : start + block]
            points = np.zeros((len(some), grid), np.complex64)
            np.add.at(points.T, places, (weighted * left.turns[some]).T)
            sums = np.fft.ifft(points, axis=1)
            power = sums.real**2 + sums.imag**2
            power[:, limit : grid - limit] = 0.0
            power[:, 0] = 0.0
            place, at = (int(k) for k in np.unravel_index(int(np.argmax(power)), power.shape))
            one = some[place]
            factor = unit * (at if at < grid // 2 else at - grid)
            numbers, factors = left.numbers[one].tolist(), left.factors[one].tolist()
            yield float(power[place, at]) * grid**2, (*numbers, j), (*map(float, factors), factor)
