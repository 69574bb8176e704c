"""Waves behind a step: what is never beyond a bound and often next to it, as sin(u) is, in 1/(x**2*sqrt(sin(y*z + y))).

A wave under a root, a logarithm or a fraction bar, with powers before it or terms beside it, shows in no periodogram of the
target. But of the values of a wave one in eleven lies within a hundredth of its height, and of hardly anything else one in
twenty. So the target and what the steps of `nested.py` leave of it, each as it is, squared, inverted, as an exponential or a
logarithm, are asked for that, with a number beside it too, and so is the target over what may stand before a wave; it takes
little. How their sizes are spread out tells the likeliest. Where none is, the target is asked over that by which the size of
what no term explains varies least, and that less terms. Only where it holds is the angle looked for (`exact_waves.py`). The
wave is all there is then, so that it must be exact.

Legend: `N` rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement, permutations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Node, Variable, build, row_values
from gmeql.network.families import FunctionSet
from gmeql.search.data.readings import PLAIN
from gmeql.search.direct.readings import EVERY_READING, INVERTED_BY
from gmeql.search.direct.steps.nested import Stage, Steps
from gmeql.search.direct.sums.vocabulary import VOCABULARY
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.waves.exact_waves import KINDS_OF_SUMS, PLAIN_KINDS, ExactWaves

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
    differing: float = 0.5  # and so many of these must differ: ratings and clipped scales are at their bounds, too
    narrow: float = 1e-3  # range, relative to the size, of what is hardly more than a constant
    # largest distance between the distribution of their sizes and that of a wave's. A third of 243 laws for development had
    # something between the two, such as n*log(u/v), whose angle was looked for in vain for 4 s: only ...
    surely: float = 0.1
    surely_read: float = 0.07  # the same of what a reading makes a wave: one of six is soon like one
    unlike: float = 0.25  # ... waves that turn less than once on most rows are so unlike others
    still: float = 0.2  # share of the rows where such a one is next to its height, at least,
    otherwise: float = (
        0.01  # and what others may be too few of, nowhere: of smaller sizes there are fewer than of a wave's
    )
    told_by_reading: float = 0.06  # ... to be added where they are read: a function of a wave is much like one
    readings: tuple[str, ...] = (PLAIN, "inv_square", "inv", "square", "exp", "log", "fourth power")
    divided: int = 3  # targets without clear terms that are asked for factors
    tried: int = 4  # waves that are looked for,
    seconds_each: float = 0.5  # of one core, each (measured)
    seconds: float = 0.04  # to ask all that steps leave (measured)


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
    ahead = _Ahead(table.X[:n], functions)
    stages += ahead.over_capped(first)
    hits = _hits(stages, functions)
    if not hits and functions.allows({"div"}) and not effort.out_of_time():
        before = ahead.over_likeliest(first, steps.rest(first.target))
        over = [] if before is None else list(steps.without_terms(before))
        over += [behind for stage in over[: CAPPED.divided] for behind in steps.without_terms(stage)]
        hits = _hits(over, functions)
    if not hits:
        return
    effort = effort.on_trail()
    waves = ExactWaves(table.X[:n], functions)
    hits = hits[: min(CAPPED.tried, int(effort.seconds / CAPPED.seconds_each))]
    for kind, (place, (stage, name, target, unlike)) in product(range(KINDS_OF_SUMS), enumerate(hits)):
        if effort.out_of_time():
            return
        if kind >= PLAIN_KINDS and (place > 0 or unlike > CAPPED.surely):
            continue
        level = target if is_capped(target) and not _is_between(target) else _levelled(target)
        for wave in waves.of(kind, target, level, effort.out_of_time):
            root = stage.undo(EVERY_READING[name].invert(wave, stage.sign))
            if table.error(root) < VOCABULARY.verified:
                yield root
                return


class _Ahead:
    """What may stand before a wave, over columns X [N, V]: columns, their products and fractions, one over these, and sums."""

    def __init__(self, X: FloatArray, functions: FunctionSet) -> None:
        columns: list[Node] = [Variable(j) for j in range(X.shape[1])]
        ways = [*columns, *(build("mul", a, b) for a, b in combinations_with_replacement(columns, 2))]
        if functions.allows({"div"}):
            ways += [build("inv", node) for node in ways]
            ways += [build("div", a, b) for a, b in permutations(columns, 2)]
        self.n_products = len(ways)
        ways += [build(name, a, b) for a, b in combinations(columns, 2) for name in ("add", "sub")]
        names = [f"x{j}" for j in range(X.shape[1])]
        values = np.array([row_values(node, names, X) for node in ways])
        usable = np.flatnonzero(np.isfinite(values).all(axis=1) & (values != 0).all(axis=1))
        self.n_products = int(np.sum(usable < self.n_products))
        self.nodes, self.values = [ways[m] for m in usable], values[usable]

    def over_capped(self, first: Stage) -> Iterator[Stage]:
        """A target over each of these where that, or a reading of it, seems to be a wave."""
        if not len(self.nodes) or (first.target == 0).any():
            return
        sizes = np.log(np.abs(first.target / self.values))
        low, high = sizes.min(axis=1, keepdims=True), sizes.max(axis=1, keepdims=True)
        near, within = -math.log(CAPPED.near), (1.0 - CAPPED.near) / 2 * (high - low)
        often = np.mean(sizes > high - near, axis=1) > CAPPED.often
        often |= np.mean(sizes < low + near, axis=1) > CAPPED.often
        often |= (
            np.minimum(np.mean(sizes > high - within, axis=1), np.mean(sizes < low + within, axis=1))
            > CAPPED.often_each
        )
        for m in np.flatnonzero(often):
            yield self._over(first, int(m))

    def over_likeliest(self, first: Stage, rest: FloatArray) -> Stage | None:
        """A target over that by which the size of what terms leave [N] varies least."""
        if not self.n_products or (rest == 0).any():
            return None
        spread = np.std(np.log(np.abs(rest / self.values[: self.n_products])), axis=1)
        return self._over(first, int(np.argmin(spread)))

    def _over(self, first: Stage, m: int) -> Stage:
        node = self.nodes[m]
        return first.after("amplitude", first.target / self.values[m], lambda root: build("mul", node, root))


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


class _Hit(NamedTuple):
    """What steps leave of the target, and a reading of it with values [N] that may be a wave; how unlike one these are."""

    stage: Stage
    name: str
    target: FloatArray
    unlike: float


def _hits(stages: Iterable[Stage], functions: FunctionSet) -> list[_Hit]:
    """Readings of what steps leave that may be waves, the likeliest first."""
    found: list[_Hit] = []
    for stage in stages:
        for name, values in _capped(stage.target, functions):
            unlike, turns_slowly = _unlike_wave(values)
            is_known = any(name == hit.name and math.isclose(unlike, hit.unlike, rel_tol=1e-9) for hit in found)
            most = CAPPED.surely if name == PLAIN else CAPPED.surely_read
            if unlike < (CAPPED.unlike if turns_slowly else most) and not is_known:
                found.append(_Hit(stage, name, values, unlike))
    return sorted(found, key=lambda hit: hit.unlike + CAPPED.told_by_reading * (hit.name != PLAIN))


def _unlike_wave(values: FloatArray) -> tuple[float, bool]:
    """How far the sizes of values [N], relative to the largest, are from being spread out as those of a wave are, and whether
    they are as those of one that turns less than once on most rows."""
    apart: list[tuple[float, bool]] = []
    for some in (values, _levelled(values)):
        sizes = np.sort(np.abs(some)) / float(np.abs(some).max())
        places = (np.arange(len(sizes)) + 0.5) / len(sizes)
        beyond = np.arcsin(np.minimum(sizes, 1.0)) * 2 / np.pi - places
        is_still = float(np.mean(sizes > CAPPED.near)) > CAPPED.still
        apart.append((float(np.abs(beyond).max()), is_still and float(beyond.min()) > -CAPPED.otherwise))
    return min(apart)


def _is_between(values: FloatArray) -> bool:
    """The same of values with a number beside them: they are next to both their bounds."""
    level = _levelled(values)
    at_bounds = min(float(np.mean(side > CAPPED.near * np.abs(level).max())) for side in (level, -level))
    return is_capped(level) and at_bounds > CAPPED.often_each


def _levelled(values: FloatArray) -> FloatArray:
    """Values [N] less the middle between their bounds: a number beside a wave."""
    return np.asarray(values - (values.max() + values.min()) / 2)
