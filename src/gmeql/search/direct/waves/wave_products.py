"""Products of powers, waves and an exponential of one column, before and beside sums of them.

x**3*exp(-x)*cos(x)*sin(x)*(sin(x)**2*cos(x) - 1) is long, but multiplied out it is a sum of x**k exp(-x) cos(n x) and
x**k exp(-x) sin(n x) with whole n and one k or two, times a column of the rest where there is one. Of all k at once these
are one another's sums, so one or two are asked at a time, a small fit each. What it needs says which polynomials in the
sine and the cosine stand before each power; what these have in common is divided out, and a sum that is a product of two
is written as one.

Legend: `N` rows, `R` columns that may stand before the rest (1 among them), `K` powers of x, `D` powers of a cosine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.polynomial import chebyshev, polynomial
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums.vocabulary import VOCABULARY
from gmeql.search.direct.table import DirectTable, Effort

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class WaveProductsConfig:
    """Numbers of the method."""

    max_columns: int = 3
    highest: int = 5  # power of a column
    turns: tuple[int, int] = (5, 8)  # largest whole number before a column in a wave: sin(x)**3*cos(x)**2 has 5
    rates: tuple[float, ...] = (0.0, -1.0, 1.0)  # of exponentials
    shortest: float = 4.0  # range of a column below which its waves are one another's sums
    rows_per_term: float = 1.5
    spare_rows: int = 20
    few_terms: float = 0.45  # share of the terms that are few: of a power of a sine every other turn is none
    small: float = 1e-7  # share of the target's size below which a term is rounding
    alike: float = 1e-8  # share of the largest number of a polynomial below which one is rounding
    seconds: float = 0.006  # of one core for each column, and each that may stand before it (measured)


WAVE_PRODUCTS = WaveProductsConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """A sum of such products that is the target on all rows, written short. Draws nothing at random."""
    if not 1 <= table.n_columns <= WAVE_PRODUCTS.max_columns or not table.varies:
        return
    if not functions.allows({"add", "mul", "sin", "cos"}):
        return
    left = effort.seconds
    for column in np.flatnonzero(np.ptp(table.X, axis=0) >= WAVE_PRODUCTS.shortest):
        left -= WAVE_PRODUCTS.seconds * table.n_columns
        if left < 0 or effort.out_of_time():
            return
        for root in _products(table, int(column), functions, effort.out_of_time):
            if table.error(root) < VOCABULARY.verified:
                yield root
                return


def _products(
    table: DirectTable, column: int, functions: FunctionSet, out_of_time: Callable[[], bool]
) -> Iterator[Node]:
    """Products of functions of a column, times others, that may be the target: of one power first, then of two."""
    x, others = Variable(column), [j for j in range(table.n_columns) if j != column]
    ahead: list[Node] = [Constant(1.0), *(Variable(j) for j in others)]
    before = np.column_stack([np.ones(len(table.y)), table.X[:, others]])
    each = range(WAVE_PRODUCTS.highest + 1)
    fewer, most = WAVE_PRODUCTS.turns
    for powers in [*((k,) for k in each), *combinations(each, 2)]:
        n = int(WAVE_PRODUCTS.rows_per_term * len(ahead) * len(powers) * (2 * most + 1)) + WAVE_PRODUCTS.spare_rows
        if len(table.y) < n or out_of_time():
            return
        terms = _terms(table.X[:n, column], before[:n], powers, most)
        basis = np.linalg.qr(terms)[0]
        for rate in WAVE_PRODUCTS.rates if functions.allows({"exp"}) else (0.0,):
            target = table.y[:n] * np.exp(-rate * table.X[:n, column])
            if not _is_in(basis, target):
                continue
            factors = _few(_terms(table.X[:n, column], before[:n], powers, fewer), target)
            factors = _few(terms, target) if factors is None else factors
            if factors is not None:
                waves = np.apply_along_axis(_in_cosines, -1, factors.reshape(len(ahead), len(powers), -1))
                ahead_of_all = [
                    build("pow", x, Constant(float(powers[0]))),
                    build("exp", build("mul", Constant(rate), x)),
                ]
                beside = [build("pow", x, Constant(float(k - powers[0]))) for k in powers]
                yield build("mul", *ahead_of_all, _written(waves, [ahead, beside], x))


def _is_in(basis: FloatArray, target: FloatArray) -> bool:
    """Whether a target [N] is in the span of a basis [N, M]."""
    left = target - basis @ (basis.T @ target)
    return bool(np.isfinite(left).all() and np.linalg.norm(left) < VOCABULARY.exact * np.linalg.norm(target))


def _terms(x: FloatArray, before: FloatArray, powers: Sequence[int], turns: int) -> FloatArray:
    """Columns [N, R K (2 turns + 1)] of products of what stands before [N, R], a power of x [N] and a wave of it."""
    angles = np.outer(x, np.arange(1, turns + 1))
    waves = np.column_stack([np.ones(len(x)), np.cos(angles), np.sin(angles)])
    terms = np.einsum("nr,nk,nt->nrkt", before, x[:, None] ** np.array(powers), waves)
    return np.asarray(terms.reshape(len(x), -1))


def _few(terms: FloatArray, target: FloatArray) -> FloatArray | None:
    """Factors of the few columns [N, M] that are a target [N], 0 of all others; None where they are many."""
    sizes, size = np.linalg.norm(terms, axis=0), float(np.linalg.norm(target))
    kept = np.arange(terms.shape[1])
    while len(kept):
        columns = terms[:, kept] / sizes[kept]
        factors = np.linalg.lstsq(columns, target, rcond=VOCABULARY.spanned)[0]
        if not np.linalg.norm(target - columns @ factors) < VOCABULARY.exact * size:
            return None
        seen = np.abs(factors) > WAVE_PRODUCTS.small * size
        if seen.all():
            break
        kept = kept[seen]
    found = np.zeros(terms.shape[1])
    if not 0 < len(kept) <= WAVE_PRODUCTS.few_terms * terms.shape[1]:
        return None
    found[kept] = factors / sizes[kept]
    return found


def _in_cosines(factors: FloatArray) -> FloatArray:
    """A wave with factors of 1, cos(x), cos(2 x), ..., sin(x), ... as A + B sin(x), polynomials [2, D] in the cosine."""
    turns = len(factors) // 2
    found = np.zeros((2, turns + 1))
    cosines = chebyshev.cheb2poly(factors[: turns + 1])
    found[0, : len(cosines)] = cosines
    before, current = np.zeros(turns + 1), np.eye(turns + 1)[0]  # sin(n x)/sin(x) of n = 0 and 1
    for factor in factors[turns + 1 :]:
        found[1] += factor * current
        before, current = current, 2 * np.roll(current, 1) - before
    return found


def _written(waves: FloatArray, nodes: list[list[Node]], x: Node) -> Node:
    """The product of sums that a sum [R, K, 2, D] is of what stands before a power and a wave."""
    waves = np.where(np.abs(waves) > WAVE_PRODUCTS.alike * np.abs(waves).max(), waves, 0.0)
    factors: list[Node] = []
    for axis in range(2):  # what is a sum in one of them times a sum in the rest
        own, rest = _split(waves, axis)
        if rest is not None:
            factors.append(_sum([(float(c), [node]) for c, node in zip(own, nodes[axis], strict=True)]))
            waves, nodes = rest, [*nodes[:axis], [Constant(1.0)], *nodes[axis + 1 :]]
    waves, sines, cosines = _without_common(waves)
    factors += [_wave("sin", x, sines), _wave("cos", x, cosines)]
    scale = float(waves[tuple(np.argwhere(waves)[-1])])
    written = min(
        (waves / scale, ("cos", "sin")),
        (_in_sines(waves / scale), ("sin", "cos")),
        key=lambda one: np.count_nonzero(one[0]),
    )
    terms = []
    for r, k, other, power in np.argwhere(written[0]):
        main, beside = written[1]
        parts = [nodes[0][r], nodes[1][k], _wave(main, x, power), _wave(beside, x, other)]
        terms.append((float(written[0][r, k, other, power]), parts))
    return build("mul", Constant(float(f"{scale:.13g}")), *factors, _sum(terms))


def _split(waves: FloatArray, axis: int) -> tuple[FloatArray, FloatArray | None]:
    """Factors along an axis, and the rest [.., 1, ..] that stands before all of them; None where that differs."""
    rows = np.moveaxis(waves, axis, 0).reshape(waves.shape[axis], -1)
    last = int(np.flatnonzero(np.abs(rows).max(axis=1))[-1])
    largest = int(np.argmax(np.abs(rows[last])))
    own = rows[:, largest] / rows[last, largest]
    is_one = np.abs(rows - np.outer(own, rows[last])).max() <= WAVE_PRODUCTS.alike * np.abs(rows).max()
    return own, np.take(waves, [last], axis) if is_one else None


def _without_common(waves: FloatArray) -> tuple[FloatArray, int, int]:
    """Waves A + B sin(x) [.., 2, D] without the sines and cosines that all have in common, and how many these are."""
    small = WAVE_PRODUCTS.alike * np.abs(waves).max()
    sines = cosines = 0
    while np.abs(waves[..., 0]).max() <= small:
        waves, cosines = _shifted(waves), cosines + 1
    while True:
        a, b = waves[..., 0, :], waves[..., 1, :]
        signs = (-1.0) ** np.arange(a.shape[-1])
        if max(np.abs(a.sum(axis=-1)).max(), np.abs((a * signs).sum(axis=-1)).max()) > small:
            return waves, sines, cosines
        # A = (1 - cos(x)**2) A', and A + B sin(x) = sin(x) (B + A' sin(x))
        rest = np.zeros_like(a)
        for power in range(a.shape[-1]):
            rest[..., power] = a[..., power] + (rest[..., power - 2] if power > 1 else 0.0)
        rest = np.where(np.abs(rest) > small, rest, 0.0)
        waves, sines = np.stack([b, rest], axis=-2), sines + 1


def _shifted(waves: FloatArray) -> FloatArray:
    """Waves over their cosine."""
    return np.concatenate([waves[..., 1:], np.zeros_like(waves[..., :1])], axis=-1)


def _in_sines(waves: FloatArray) -> FloatArray:
    """Waves A + B sin(x) of polynomials in the cosine [.., 2, D] as C + D cos(x) of such in the sine."""
    found = np.zeros((*waves.shape[:-1], waves.shape[-1] + 2))
    for power in range(waves.shape[-1]):
        # cos(x)**(2 m) = (1 - sin(x)**2)**m
        half, odd = divmod(power, 2)
        series = polynomial.polypow([1.0, 0.0, -1.0], half)
        for sine in range(2):
            found[..., odd, sine : sine + len(series)] += waves[..., sine, power, None] * series
    return np.where(np.abs(found) > WAVE_PRODUCTS.alike * np.abs(found).max(), found, 0.0)


def _wave(name: str, x: Node, power: int) -> Node:
    return build("pow", build(name, x), Constant(float(power)))


def _sum(terms: Sequence[tuple[float, Sequence[Node]]]) -> Node:
    """A sum of products with their factors, less those of 0."""
    return build("add", *(build("mul", Constant(float(f"{c:.13g}")), *parts) for c, parts in terms if c))
