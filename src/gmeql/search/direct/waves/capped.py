"""Waves behind a step: what is never beyond a bound and often next to it, as sin(u) is, in 1/(x**2*sqrt(sin(y*z + y))).

A wave under a root, a logarithm or a fraction bar, with powers before it or terms beside it, shows in no periodogram of the
target. But of the values of a wave one in eleven lies within a hundredth of its height, and of hardly anything else one in
twenty. So the target and what the steps of `nested.py` leave of it, each as it is, squared, inverted or as an exponential, are
asked for that; it takes next to nothing. Only where it holds is the angle looked for, among sums of products and fractions of
columns (`angles.py`). The wave is all there is then, so that it must be exact.

Legend: `N` rows, `M` products.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build, row_values
from gmeql.network.families import FunctionSet
from gmeql.search.data.readings import PLAIN
from gmeql.search.direct.readings import EVERY_READING, INVERTED_BY
from gmeql.search.direct.steps.nested import Stage, Steps
from gmeql.search.direct.sums.vocabulary import VOCABULARY
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.waves.angles import products_of, strongest_sum
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
    narrow: float = 1e-3  # range, relative to the size, of what is hardly more than a constant
    readings: tuple[str, ...] = (PLAIN, "inv_square", "inv", "square", "exp", "fourth power")
    largest: float = 1e6  # radians of a product: beyond, rounding is seen
    tried: int = 4  # waves that are looked for,
    seconds_each: float = 0.25  # of one core, each
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
    stages = [first, *steps.without_terms(first), *(steps.without_factors(first) if functions.allows({"div"}) else ())]
    hits = [(stage, name, values) for stage in stages for name, values in _capped(stage.target, functions)]
    if not hits:
        return
    effort = effort.on_trail()
    nodes = _products(table.n_columns, functions)
    names = [f"x{j}" for j in range(table.n_columns)]
    values = np.array([row_values(node, names, table.X[:n]) for node in nodes])
    usable = np.flatnonzero((np.abs(values) < CAPPED.largest).all(axis=1) & (np.ptp(values, axis=1) > 0))
    products, nodes = values[usable], [nodes[m] for m in usable]
    for stage, name, target in hits[: min(CAPPED.tried, int(effort.seconds / CAPPED.seconds_each))]:
        if effort.out_of_time():
            return
        for wave in _waves(products, nodes, target, effort):
            root = stage.undo(EVERY_READING[name].invert(wave, stage.sign))
            if table.error(root) < VOCABULARY.verified:
                yield root
                return


def is_capped(values: FloatArray) -> bool:
    """Whether values [N] are often next to their largest size, as those of a wave are."""
    sizes = np.abs(values)
    largest = float(sizes.max())
    if not (math.isfinite(largest) and float(np.ptp(values)) > CAPPED.narrow * largest):
        return False
    return float(np.mean(sizes > CAPPED.near * largest)) > CAPPED.often


def _capped(target: FloatArray, functions: FunctionSet) -> Iterator[tuple[str, FloatArray]]:
    """Readings of a target [N] that are capped, by name."""
    if not np.isfinite(target).all():
        return
    for name in (name for name in CAPPED.readings if functions.allows(INVERTED_BY[name])):
        reading = EVERY_READING[name]
        if reading.applies(target):
            values = np.asarray(reading.forward(target))
            if np.isfinite(values).all() and is_capped(values):
                yield name, values


def _products(n_columns: int, functions: FunctionSet) -> list[Node]:
    """Products of columns, and fractions of two."""
    pairs = permutations(range(n_columns), 2) if functions.allows({"div"}) else ()
    return [*products_of(n_columns), *(build("div", Variable(i), Variable(j)) for i, j in pairs)]


def _waves(products: FloatArray, nodes: Sequence[Node], target: FloatArray, effort: Effort) -> Iterator[Node]:
    """Waves of sums of products [M, N] that are the target [N]: with whole factors, and with those that fit best."""
    found = strongest_sum(products, target, np.ones_like(target), CAPPED.seconds_each, effort.out_of_time)[0]
    if found is None:
        return
    columns = products[list(found.products)].T
    fitted = refined(columns, target, np.array(found.factors))[0]
    for factors in (np.rint(found.factors), np.array(fitted)):
        angle = columns @ factors
        waves = np.column_stack([np.cos(angle), np.sin(angle)])
        cosine, sine = np.linalg.lstsq(waves, target, rcond=None)[0]
        rest = target - waves @ [cosine, sine]
        if np.sqrt(np.mean(rest**2)) < CAPPED.exact * math.hypot(cosine, sine):
            parts = [
                build("mul", Constant(float(f"{c:.13g}")), nodes[m])
                for c, m in zip(factors, found.products, strict=True)
            ]
            phase = Constant(round(math.atan2(cosine, sine), CAPPED.digits))
            yield build(
                "mul", Constant(float(f"{math.hypot(cosine, sine):.13g}")), build("sin", build("add", *parts, phase))
            )
