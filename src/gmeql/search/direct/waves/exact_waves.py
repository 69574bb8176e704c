"""Waves of sums that are a target on all rows, where it is known to be a wave: sin(x*y - z), cos(0.22*x + sin(x)), cos(sin(u)).

The angle is looked for among sums of two of the plainest terms, or three, with factors of any value (`any_factors.py`), and of
products and fractions of columns and of few out of very many terms with whole factors (`angles.py`). Where a wave has most of the
target, but not all, it may be a sine or a cosine of one (`inner_waves.py`).

Legend: `N` rows, `M` terms, `K` of a sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, combinations_with_replacement, islice, permutations

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build, row_values
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums.pursuit import PURSUIT, Terms, functions_of, powers_of
from gmeql.search.direct.waves.angles import products_of, strongest_of_many, strongest_sum
from gmeql.search.direct.waves.any_factors import AngleTerms, refined_on_more, sums_of
from gmeql.search.direct.waves.inner_waves import OUTER, inner_waves

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ExactWavesConfig:
    """Numbers of the looks."""

    functions: tuple[str, ...] = ("sin", "cos", "log", "sqrt", "exp")  # of columns in an angle
    largest: float = 1e8  # radians of a product: beyond, rounding is seen
    least: float = 0.5  # ... and on half of the rows at least, beside the plainest
    half: float = 0.3  # mean of a wave, relative to its size, from which only some rows of it are there
    told_apart: int = 8  # rows that tell products apart
    rarer: int = 1500  # products of powers among those
    plainest: int = 120  # terms that may have factors of any value: of very many columns some fractions are left out
    seconds: float = 1.5  # of one core, for each of these looks
    # products in sums, and seconds for them: the more there are, the fewer kinds of sums; of all some kinds without a bound
    looks: tuple[tuple[int | None, float], ...] = ((120, 0.5), (None, 0.0), (20, 2.0))
    near: float = 0.85  # share of a target's spread that a wave leaves of a function of one, at most
    exact: float = 1e-7  # error relative to the target's spread
    turned: float = 1.5  # radians that an angle must run over: a slower wave is near to any straight line
    digits: int = 12  # behind the point of a phase: what is left is rounding


EXACT_WAVES = ExactWavesConfig()


def _products(n_columns: int, functions: FunctionSet) -> list[Node]:
    """Products of columns, and fractions of two."""
    pairs = permutations(range(n_columns), 2) if functions.allows({"div"}) else ()
    return [*products_of(n_columns), *(build("div", Variable(i), Variable(j)) for i, j in pairs)]


KINDS_OF_SUMS = 4
"""Looks for a wave, one after the other: of two terms with any factors, of products with whole ones, of rarer such terms or
three, and of more products."""
PLAIN_KINDS = 2
"""The first of them, which are cheap."""


class ExactWaves:
    """Waves of sums over columns X [N, V]: of the plainest terms, with any factors; of products of columns, and of very many
    products of powers and functions."""

    def __init__(self, X: FloatArray, functions: FunctionSet) -> None:
        self.X, self.functions = X, functions
        self.outer = [name for name in OUTER if functions.allows({name})]
        self.n_plain = 0

    @cached_property
    def _plainest(self) -> tuple[AngleTerms, list[Node]]:
        return _angle_terms(self.X, self.functions)

    @cached_property
    def _many(self) -> tuple[FloatArray, list[Node]]:
        """Values [M, N] of products, and the products; `n_plain` of them are of columns alone."""
        X, functions = self.X, self.functions
        plain, names = _products(X.shape[1], functions), [f"x{j}" for j in range(X.shape[1])]
        powers = powers_of(X, functions)
        terms = Terms(X, powers, functions_of(X, functions), min(len(X), PURSUIT.rows), EXACT_WAVES.rarer)
        numbers = range(1, len(terms))
        values = np.array([row_values(node, names, X) for node in plain])
        values = np.concatenate([values, terms.exact(numbers, len(X))])
        sizes = np.abs(values)
        is_angle = (sizes.max(axis=1) < EXACT_WAVES.largest) & (np.ptp(values, axis=1) > 0)
        # the difference of two that are alike, or small on most rows, is no angle
        is_angle[len(plain) :] &= np.median(sizes[len(plain) :], axis=1) > EXACT_WAVES.least
        usable = np.flatnonzero(is_angle)
        with np.errstate(all="ignore"):
            told = np.round(values[usable] / sizes[usable].max(axis=1, keepdims=True), EXACT_WAVES.digits)
        kept = usable[np.sort(np.unique(told[:, : EXACT_WAVES.told_apart], axis=0, return_index=True)[1])]
        self.n_plain = int(np.sum(kept < len(plain)))
        return values[kept], [plain[m] if m < len(plain) else terms.node(int(m) - len(plain) + 1) for m in kept]

    def of(self, kind: int, target: FloatArray, level: FloatArray, has_ended: Callable[[], bool]) -> Iterator[Node]:
        """Waves that are a target [N], or functions of one, of one of the kinds of sums; angles are looked for on the target less
        a number beside the wave."""
        if kind in (0, 2):
            yield from self._with_any_factors(target, level, has_ended, are_rarer=kind == 2)
        else:
            yield from self._of_many(target, level, has_ended, first=kind == 1)

    def _of_many(
        self, target: FloatArray, level: FloatArray, has_ended: Callable[[], bool], *, first: bool
    ) -> Iterator[Node]:
        """Waves of any sums of a few products, and of sums of two of very many or three; then of longer sums of the plainest."""
        if has_ended():
            return
        (many, nodes), ones = self._many, np.ones_like(target)
        size = math.sqrt(float(np.mean(level**2)))
        # of what lies above 0, under a root: the mean is no wave
        is_half = abs(float(level.mean())) > EXACT_WAVES.half * size
        looks = (*(((self.n_plain, EXACT_WAVES.looks[0][1]),) if is_half else ()), *EXACT_WAVES.looks)
        for most, seconds in looks[:-1] if first else looks[-1:]:
            values = many[:most]
            if has_ended() or not len(values):
                return
            if most is None:
                found = strongest_of_many(values, level)
            else:
                found = strongest_sum(values, level, ones, seconds, has_ended)[0]
            if found is not None:
                some = [nodes[m] for m in found.products]
                yield from self._written(found.factors, values[list(found.products)].T, some, target)

    def _with_any_factors(
        self, target: FloatArray, level: FloatArray, has_ended: Callable[[], bool], *, are_rarer: bool
    ) -> Iterator[Node]:
        """Waves of sums of two of the plainest terms, or three, with factors of any value."""
        terms, nodes = self._plainest
        for found in sums_of(terms, level, EXACT_WAVES.seconds, has_ended, are_rarer=are_rarer):
            if has_ended():
                return
            columns = terms.values[list(found.products), : len(target)].T
            yield from self._written(found.factors, columns, [nodes[m] for m in found.products], target)

    def _written(
        self, factors: Sequence[float], columns: FloatArray, nodes: Sequence[Node], target: FloatArray
    ) -> Iterator[Node]:
        """The wave of a sum of columns [N, K] that is the target [N], or a function of one: with whole factors, or the best."""
        fitted, spread = refined_on_more(columns, target, factors), float(np.std(target))
        for some in (np.rint(factors), fitted):
            angle = columns @ some
            waves = np.column_stack([np.cos(angle), np.sin(angle), np.ones(len(angle))])
            solved = np.linalg.lstsq(waves, target, rcond=None)[0]
            cosine, sine, level = (float(c) for c in solved)
            size = math.hypot(cosine, sine)
            rest = float(np.sqrt(np.mean((target - waves @ solved) ** 2)))
            if rest < EXACT_WAVES.exact * spread and float(np.ptp(angle)) > EXACT_WAVES.turned:
                yield _sum_with(size, build("sin", _angle(nodes, some, math.atan2(cosine, sine))), level, size)
                return
        if rest > EXACT_WAVES.near * spread or float(np.ptp(columns @ fitted)) < EXACT_WAVES.turned:
            return
        inner = inner_waves(columns, target, fitted.tolist(), self.outer)
        if inner is not None and inner.error < EXACT_WAVES.exact:
            wave = build("sin", _angle(nodes, inner.factors, inner.phase))
            inside = build("mul", Constant(float(f"{inner.inner:.12g}")), wave)
            yield _sum_with(inner.scale, build(inner.outer, inside), inner.level, abs(inner.scale))


def _angle_terms(X: FloatArray, functions: FunctionSet) -> tuple[AngleTerms, list[Node]]:
    """Columns, products of two, fractions and functions of columns, as terms of angles with any factors."""
    columns: list[Node] = [Variable(j) for j in range(X.shape[1])]
    others = [build("mul", a, b) for a, b in combinations(columns, 2)] + [build("square", a) for a in columns]
    if functions.allows({"div"}):
        others += [*(build("inv", a) for a in columns), *(build("div", a, b) for a, b in permutations(columns, 2))]
        over = ((a, b, c) for a, b in combinations_with_replacement(columns, 2) for c in columns if c not in (a, b))
        few = islice(over, max(EXACT_WAVES.plainest - len(others), 0))
        others += [build("div", build("mul", a, b), c) for a, b, c in few]
    outer = [name for name in EXACT_WAVES.functions if functions.allows({name})]
    of_columns = [build(name, a) for name in outer for a in columns]
    kinds = []
    for nodes in (columns, others, of_columns):
        with np.errstate(all="ignore"):
            values = ((node, row_values(node, [f"x{j}" for j in range(X.shape[1])], X)) for node in nodes)
        kinds.append([(node, u) for node, u in values if _is_angle(u)])
    usable = [part for kind in kinds for part in kind]
    return AngleTerms(np.array([u for _, u in usable]), len(kinds[0]), len(kinds[2])), [node for node, _ in usable]


def _is_angle(values: FloatArray) -> bool:
    """Whether values [N] are finite, differ, and are no more radians than rounding leaves."""
    return bool(np.isfinite(values).all() and np.ptp(values) > 0 and np.abs(values).max() < EXACT_WAVES.largest)


def _angle(nodes: Sequence[Node], factors: Iterable[float], phase: float) -> Node:
    """A sum of multiples of terms and a phase."""
    parts = [build("mul", Constant(float(f"{c:.13g}")), node) for c, node in zip(factors, nodes, strict=True)]
    return build("add", *parts, Constant(round(phase, EXACT_WAVES.digits)))


def _sum_with(factor: float, node: Node, level: float, size: float) -> Node:
    """A multiple of something and a number beside it, where that is more than rounding."""
    multiple = build("mul", Constant(float(f"{factor:.13g}")), node)
    return (
        multiple if abs(level) < EXACT_WAVES.exact * size else build("add", multiple, Constant(float(f"{level:.13g}")))
    )
