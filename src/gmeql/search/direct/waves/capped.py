"""Waves behind a step: what is never beyond a bound and often next to it, as sin(u) is, in 1/(x**2*sqrt(sin(y*z + y))).

A wave under a root, a logarithm or a fraction bar, with powers before it or terms beside it, shows in no periodogram of the
target. But of the values of a wave one in eleven lies within a hundredth of its height, and of hardly anything else one in
twenty. So the target and what the steps of `nested.py` leave of it, each as it is, squared, inverted or as an exponential, are
asked for that, with a number beside it too; it takes little. Where none is, the target is asked over what may stand before one:
that by which the size of what no term explains varies least. Only where it holds is the angle looked for, among sums of products
and fractions of columns and of few out of very many terms (`angles.py`). The wave is all there is then, so that it must be exact.

Legend: `N` rows, `M` products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, permutations

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build, row_values
from gmeql.network.families import FunctionSet
from gmeql.search.data.readings import PLAIN
from gmeql.search.direct.readings import EVERY_READING, INVERTED_BY
from gmeql.search.direct.steps.nested import Stage, Steps
from gmeql.search.direct.sums.pursuit import PURSUIT, Terms, functions_of, powers_of
from gmeql.search.direct.sums.vocabulary import VOCABULARY
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.waves.angles import Sum, products_of, strongest_of_many, strongest_sum
from gmeql.search.direct.waves.waves import refined

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class CappedConfig:
    """Numbers of the method."""

    max_columns: int = 8
    few_rows: int = 100
    rows: int = 1000  # that are looked at
    near: float = 0.99  # of the largest size, beyond which
    often: float = 0.05  # so many of the rows must be: 0.09 of a wave's are
    often_each: float = 0.02  # and of each bound where a number stands beside a wave
    differing: float = (
        0.5  # share of the rows whose values differ: ratings and clipped scales are at their bounds as well
    )
    narrow: float = 1e-3  # range, relative to the size, of what is hardly more than a constant
    readings: tuple[str, ...] = (PLAIN, "inv_square", "inv", "square", "exp", "fourth power")
    largest: float = 1e8  # radians of a product: beyond, rounding is seen
    least: float = 0.5  # ... and on half of the rows at least, beside the plainest
    half: float = 0.3  # mean of a wave, relative to its size, from which only some rows of it are there
    told_apart: int = 8  # rows that tell products apart
    rarer: int = 1500  # products of powers among those
    divided: int = 3  # targets without clear terms that are asked for factors
    tried: int = 4  # waves that are looked for,
    # products in sums, and seconds for them: the more there are, the fewer kinds of sums; of all some kinds without a bound
    looks: tuple[tuple[int | None, float], ...] = ((120, 0.5), (None, 0.0), (20, 2.0))
    seconds_each: float = 0.5  # of one core, each (measured)
    seconds: float = 0.04  # to ask all that steps leave (measured)
    exact: float = 1e-7  # error relative to the size of the wave
    digits: int = 12  # behind the point of a phase: what is left is rounding


CAPPED = CappedConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """A wave behind steps that is the target on all rows. Draws nothing at random."""
    n = min(len(table.y), CAPPED.rows)
    if not 1 <= table.n_columns <= CAPPED.max_columns or n < CAPPED.few_rows or effort.seconds < CAPPED.seconds:
        return
    if not table.varies:
        return
    if not functions.allows({"sin", "add", "mul", "square", "cube"}) or effort.out_of_time():
        return
    steps, first = Steps(table.X[:n], functions), Stage(table.y[:n])
    stages = [first, *steps.without_terms(first)]
    stages += [behind for stage in stages[1 : 1 + CAPPED.divided] for behind in steps.without_terms(stage)]
    if functions.allows({"div"}):
        few = stages[: 1 + CAPPED.divided]
        stages += [behind for stage in few for behind in steps.without_factors(stage)]
    hits = [(stage, name, values) for stage in stages for name, values in _capped(stage.target, functions)]
    if not hits and functions.allows({"div"}) and not effort.out_of_time():
        before = _over_amplitude(first, steps.rest(first.target), table.X[:n])
        over = [] if before is None else list(steps.without_terms(before))
        over += [behind for stage in over[: CAPPED.divided] for behind in steps.without_terms(stage)]
        hits = [(stage, name, values) for stage in over for name, values in _capped(stage.target, functions)]
    if not hits:
        return
    effort = effort.on_trail()
    angles = _Angles(table.X[:n], functions)
    for stage, name, target in hits[: min(CAPPED.tried, int(effort.seconds / CAPPED.seconds_each))]:
        if effort.out_of_time():
            return
        for wave in angles.waves(target, effort.out_of_time):
            root = stage.undo(EVERY_READING[name].invert(wave, stage.sign))
            if table.error(root) < VOCABULARY.verified:
                yield root
                return


def _over_amplitude(first: Stage, rest: FloatArray, X: FloatArray) -> Stage | None:
    """A target over what may stand before a wave in it: that by which the size of what terms leave [N] varies least."""
    columns: list[Node] = [Variable(j) for j in range(X.shape[1])]
    ways = [*columns, *(build("mul", a, b) for a, b in combinations_with_replacement(columns, 2))]
    ways += [build("inv", node) for node in ways]
    ways += [build("div", a, b) for a, b in permutations(columns, 2)]
    names = [f"x{j}" for j in range(X.shape[1])]
    values = np.array([row_values(node, names, X) for node in ways])
    usable = np.flatnonzero(np.isfinite(values).all(axis=1) & (values != 0).all(axis=1))
    if not len(usable) or (rest == 0).any():
        return None
    spread = np.std(np.log(np.abs(rest / values[usable])), axis=1)
    best = int(usable[np.argmin(spread)])
    return first.after("amplitude", first.target / values[best], lambda root: build("mul", ways[best], root))


def is_capped(values: FloatArray) -> bool:
    """Whether values [N] are often next to their largest size, as those of a wave are."""
    sizes = np.abs(values)
    largest = float(sizes.max())
    if not (math.isfinite(largest) and float(np.ptp(values)) > CAPPED.narrow * largest):
        return False
    near = values[sizes > CAPPED.near * largest]
    return len(near) > CAPPED.often * len(values) and len(np.unique(near)) > CAPPED.differing * len(near)


def _capped(target: FloatArray, functions: FunctionSet) -> Iterator[tuple[str, FloatArray]]:
    """Readings of a target [N] that are capped, by name."""
    if not np.isfinite(target).all():
        return
    for name in (name for name in CAPPED.readings if functions.allows(INVERTED_BY[name])):
        reading = EVERY_READING[name]
        if reading.applies(target):
            values = np.asarray(reading.forward(target))
            if np.isfinite(values).all() and (is_capped(values) or (name == PLAIN and is_capped(_levelled(values)))):
                yield name, values


def _is_between(values: FloatArray) -> bool:
    """The same of values with a number beside them: they are next to both their bounds."""
    level = _levelled(values)
    at_bounds = min(float(np.mean(side > CAPPED.near * np.abs(level).max())) for side in (level, -level))
    return is_capped(level) and at_bounds > CAPPED.often_each


def _levelled(values: FloatArray) -> FloatArray:
    """Values [N] less the middle between their bounds: a number beside a wave."""
    return np.asarray(values - (values.max() + values.min()) / 2)


def _products(n_columns: int, functions: FunctionSet) -> list[Node]:
    """Products of columns, and fractions of two."""
    pairs = permutations(range(n_columns), 2) if functions.allows({"div"}) else ()
    return [*products_of(n_columns), *(build("div", Variable(i), Variable(j)) for i, j in pairs)]


class _Angles:
    """What waves may be waves of: products of columns, the plainest first, and very many products of powers and functions
    over columns X [N, V]."""

    def __init__(self, X: FloatArray, functions: FunctionSet) -> None:
        plain, names = _products(X.shape[1], functions), [f"x{j}" for j in range(X.shape[1])]
        powers = powers_of(X, functions)
        terms = Terms(X, powers, functions_of(X, functions), min(len(X), PURSUIT.rows), CAPPED.rarer)
        numbers = range(1, len(terms))
        values = np.array([row_values(node, names, X) for node in plain])
        values = np.concatenate([values, terms.exact(numbers, len(X))])
        sizes = np.abs(values)
        is_angle = (sizes.max(axis=1) < CAPPED.largest) & (np.ptp(values, axis=1) > 0)
        # the difference of two that are alike, or small on most rows, is no angle
        is_angle[len(plain) :] &= np.median(sizes[len(plain) :], axis=1) > CAPPED.least
        usable = np.flatnonzero(is_angle)
        with np.errstate(all="ignore"):
            told = np.round(values[usable] / sizes[usable].max(axis=1, keepdims=True), CAPPED.digits)
        kept = usable[np.sort(np.unique(told[:, : CAPPED.told_apart], axis=0, return_index=True)[1])]
        self.n_plain, self.values = int(np.sum(kept < len(plain))), values[kept]
        self.nodes = [plain[m] if m < len(plain) else terms.node(int(m) - len(plain) + 1) for m in kept]

    def waves(self, target: FloatArray, has_ended: Callable[[], bool]) -> Iterator[Node]:
        """Waves of sums of a few of these that are the target [N]: of any sums of few, and of sums of two of them or three."""
        level, ones = target if is_capped(target) else _levelled(target), np.ones_like(target)
        size = math.sqrt(float(np.mean(level**2)))
        is_half = abs(float(level.mean())) > CAPPED.half * size  # what lies above 0, under a root: the mean is no wave
        for most, seconds in (*(((self.n_plain, CAPPED.looks[0][1]),) if is_half else ()), *CAPPED.looks):
            values = self.values[:most]
            if has_ended() or not len(values):
                return
            if most is None:
                found = strongest_of_many(values, level)
            else:
                found = strongest_sum(values, level, ones, seconds, has_ended)[0]
            if found is not None:
                nodes = [self.nodes[m] for m in found.products]
                yield from _written(found, values[list(found.products)].T, nodes, target)


def _written(found: Sum, columns: FloatArray, nodes: Sequence[Node], target: FloatArray) -> Iterator[Node]:
    """Waves of a sum of columns [N, K] that are the target [N]: with whole factors, and with those that fit best."""
    fitted = refined(columns, target, np.array(found.factors))[0]
    for factors in (np.rint(found.factors), np.array(fitted)):
        angle = columns @ factors
        waves = np.column_stack([np.cos(angle), np.sin(angle), np.ones(len(angle))])
        solved = np.linalg.lstsq(waves, target, rcond=None)[0]
        cosine, sine, level = (float(c) for c in solved)
        size = math.hypot(cosine, sine)
        if np.sqrt(np.mean((target - waves @ solved) ** 2)) < CAPPED.exact * size:
            parts = [build("mul", Constant(float(f"{c:.13g}")), node) for c, node in zip(factors, nodes, strict=True)]
            phase = Constant(round(math.atan2(cosine, sine), CAPPED.digits))
            wave = build("mul", Constant(float(f"{size:.13g}")), build("sin", build("add", *parts, phase)))
            is_level = abs(level) < CAPPED.exact * size
            yield wave if is_level else build("add", wave, Constant(float(f"{level:.13g}")))
