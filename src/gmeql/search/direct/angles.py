"""Waves of sums: which sum of products of columns is the angle of a wave, as in cos(x**2 - x + 2*z) or z*sin(x*y - z).

A wave of a sum shows only when the whole sum is right, but its scan factors: e^{i(a + b)} = e^{ia} e^{ib}. All sums of
three or four products with small whole factors are one product of two matrices, and where one factor may be any number,
one Fourier transform for each choice of the others. The wave may have a factor B of its own: r = B sin(...) is large
where B is, so that the likely B are read off the squares of r.

Legend: `N` rows, `M` products, `U` angles of one or two products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    block: int = 512  # angles at a time
    flops: float = 1e10  # of one core, in single precision (measured, with some to spare)
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
    products, residual, amplitude = products[:, :n], residual[:n], amplitude[:n]
    weighted = (residual * amplitude).astype(np.complex64)
    whole = float(residual @ residual) * float(amplitude @ amplitude) / 2
    best, tried, used = None, 0.0, 0.0
    for seconds_needed, n_tried, found in _looks(products, weighted):
        if used + seconds_needed > seconds or out_of_time() or not whole > 0:
            continue
        used += seconds_needed
        tried += n_tried
        for power, numbers, factors in found:
            share = power / whole
            if best is None or share > best.share:
                best = Sum(numbers, factors, share)
    return best, tried, used


_Found = Iterator[tuple[float, tuple[int, ...], tuple[float, ...]]]
_Terms = tuple[tuple[int, int], ...]
"""Products with their whole factors."""
_Angle = tuple[_Terms, ComplexArray]
"""A sum of products, and e to the power of i times it."""


def _looks(products: FloatArray, weighted: ComplexArray) -> Iterator[tuple[float, float, _Found]]:
    """Kinds of sums: seconds that they take, how many they are, and the strongest of them with their power."""
    m, n = products.shape
    turns = np.exp(1j * products).astype(np.complex64)
    factors = [sign * c for c in ANGLES.factors for sign in (1, -1)]
    singles: list[_Angle] = [(((j, 1),), turns[j]) for j in range(m)]
    factored: list[_Angle] = [(((j, c),), _power(turns[j], c)) for j in range(m) for c in factors]
    pairs: list[_Angle] = [
        (((i, 1), (j, sign)), turns[i] * _power(turns[j], sign))
        for i, j in combinations(range(m), 2)
        for sign in (1, -1)
    ]
    with_any = ANGLES.seconds_per_transform * m
    per_sum = 8.0 * n / ANGLES.flops
    yield with_any * m, m * m * ANGLES.grid / 2, _any_factor(products, weighted, singles)
    yield len(pairs) * len(factored) * per_sum, len(pairs) * len(factored), _whole_factors(weighted, pairs, factored)
    yield with_any * len(pairs), len(pairs) * m * ANGLES.grid / 2, _any_factor(products, weighted, pairs)
    if len(pairs) <= ANGLES.most_pairs:
        longer: list[_Angle] = [
            (((i, sign), *term), _power(turns[i], sign) * values)
            for i in range(m)
            for sign in (1, -1)
            for term, values in factored
            if term[0][0] != i
        ]
        yield len(pairs) * len(longer) * per_sum, len(pairs) * len(longer), _whole_factors(weighted, pairs, longer)


def _power(turns: ComplexArray, factor: int) -> ComplexArray:
    return np.asarray(turns ** abs(factor) if factor > 0 else (turns ** abs(factor)).conj(), np.complex64)


def _whole_factors(weighted: ComplexArray, left: list[_Angle], right: list[_Angle]) -> _Found:
    """The strongest sum of an angle on the left and one on the right."""
    columns = np.stack([values for _, values in right], axis=1)
    for start in range(0, len(left), ANGLES.block):
        block = left[start : start + ANGLES.block]
        power = np.abs(np.stack([values for _, values in block]) * weighted @ columns)
        place, other = np.unravel_index(int(np.argmax(power)), power.shape)
        terms = _collected((*block[int(place)][0], *right[int(other)][0]))
        if terms:
            yield float(power[place, other]) ** 2, tuple(terms), tuple(float(c) for c in terms.values())


def _collected(terms: _Terms) -> dict[int, int]:
    """Factors by product; those that cancel are left out."""
    found: dict[int, int] = {}
    for number, factor in terms:
        found[number] = found.get(number, 0) + factor
    return {number: factor for number, factor in found.items() if factor}


def _any_factor(products: FloatArray, weighted: ComplexArray, left: list[_Angle]) -> _Found:
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
        for start in range(0, len(left), block):
            some = [one for one in left[start : start + block] if all(number != j for number, _ in one[0])]
            if not some:
                continue
            points = np.zeros((len(some), grid), np.complex64)
            for row, (_, turns) in zip(points, some, strict=True):
                np.add.at(row, places, weighted * turns)
            power = np.abs(np.fft.ifft(points, axis=1) * grid)
            power[:, limit : grid - limit] = 0.0
            power[:, 0] = 0.0
            place, at = (int(k) for k in np.unravel_index(int(np.argmax(power)), power.shape))
            terms = some[place][0]
            factor = unit * (at if at < grid // 2 else at - grid)
            yield float(power[place, at]) ** 2, (*(k for k, _ in terms), j), (*(float(c) for _, c in terms), factor)
