"""Meet in the middle on an accelerator: `middle/meeting.py` with a thousand times as many formulas, and look-ups.

First with few formulas, which takes a moment, then with many; sums of two of them come with each (`sums.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmeql.fitters.cuda.driver import Driver
from gmeql.formula.nodes import Node
from gmeql.network.families import FunctionSet
from gmeql.search.deep.formulas import DeepFormulas, Extent
from gmeql.search.deep.hits import Hits
from gmeql.search.deep.source import COST_AT, LOOK
from gmeql.search.deep.sums import paired, summed
from gmeql.search.direct.middle.kernels import MINUS, OVER, PLUS, STAY, TIMES, UNDER
from gmeql.search.direct.middle.meeting import (
    TWO_STEPS,
    are_worth_a_look,
    behind,
    few_rows,
    steps_allowed,
    targets_of,
    verified,
)
from gmeql.search.direct.middle.two_terms import passes_of_columns, passes_of_target
from gmeql.search.direct.table import DirectTable, Effort, FloatArray


@dataclass(frozen=True)
class Reach:
    """How far a meeting goes."""

    extent: Extent
    looks: float
    """Look-ups behind two steps; behind one step there are few."""
    three_steps: float
    """Look-ups behind three: by a formula of `LEAST_COSTS`, by a column, by any."""
    is_behind_columns: bool
    """Whether sums are also looked for in what columns leave of the target."""


@dataclass(frozen=True)
class DeepConfig:
    """Numbers of the method. A reach is a look of its own: the first takes a moment, the second half a second."""

    reaches: tuple[Reach, ...] = (
        Reach(
            Extent(kept=1 << 17, tried=10_000_000, forms=30_000_000, bits=25),
            looks=2.5e8,
            three_steps=2e8,
            is_behind_columns=True,
        ),
        Reach(
            Extent(kept=1 << 19, tried=60_000_000, forms=100_000_000, bits=27),
            looks=1e9,
            three_steps=8e8,
            is_behind_columns=False,
        ),
    )
    plain_share: float = 0.6
    """Share of the look-ups for the target as it is, without a reading ..."""
    few: tuple[int, ...] = (25, 500)
    """... with so many formulas of one step and many of the other, as well as by as many of both."""
    met: int = 2000
    """Pairs that may be a sum, for each target."""
    most_hits: int = 512
    """For each pair of steps and each shape."""
    at_a_time: float = 5e8
    """Look-ups between two moments at which it is asked whether anybody still waits."""


DEEP = DeepConfig()
_PLUS_STEPS = ((PLUS, TIMES), (PLUS, OVER), (PLUS, UNDER), (TIMES, PLUS), (OVER, PLUS), (UNDER, PLUS))
_LONG_STEPS = ((TIMES, TIMES), (OVER, OVER), (TIMES, OVER))
"""Products of two are one step, but of a formula that may be too long to be kept."""
LEAST_COSTS = 2
"""Costs of the formulas that the target is multiplied with, or divided by, before a column is added to it or taken off."""
BOTH_STEPS = (*map(tuple, TWO_STEPS.tolist()), *_PLUS_STEPS, *_LONG_STEPS)


class Shape(NamedTuple):
    """Two steps by the first formulas that are kept, from some of the targets."""

    first: int
    second: int
    n_first: int
    n_second: int
    from_target: int
    n_targets: int

    @property
    def n(self) -> int:
        """Look-ups."""
        return self.n_targets * self.n_first * self.n_second


class Seen:
    """Formulas by number: the kept ones, and behind them those that were hit."""

    def __init__(self, small: DeepFormulas, codes: NDArray[np.uint64]) -> None:
        self._small, self._codes = small, codes

    def tree(self, number: int) -> Node:
        """One of them over the table's columns."""
        n = len(self._small)
        return self._small.tree(number) if number < n else self._small.tree_of_code(int(self._codes[number - n]))


def propose(
    driver: Driver,
    table: DirectTable,
    functions: FunctionSet,
    reach: Reach,
    *,
    goes_on: Callable[[], bool] = lambda: True,
    numbers: DeepConfig = DEEP,
) -> Iterator[Node]:
    """Formulas of two or three small ones that are exact on all rows, the simplest of each kind first, as long as `goes_on`
    says so."""
    if not are_worth_a_look(table):
        return
    rows, targets = few_rows(table.y), targets_of(table.y, functions)
    small = DeepFormulas(driver, table.X[rows], functions, reach.extent)
    small.grow(goes_on)
    plain = small.starts[min(LEAST_COSTS + 1, len(small.starts) - 1)]
    lefts = [behind(table, targets[0], small.tree(number)) for number in range(plain)]
    every = [*targets, *(left for each in lefts for left in each)]
    on_few_rows = np.array([target.values[rows] for target in every])
    for shapes in (
        _one_step(small, len(targets), functions),
        _two_steps(small, len(targets), reach.looks, numbers),
        _three_steps(small, len(targets), len(every), reach.three_steps),
    ):
        if not goes_on():
            return
        seen, hits = looked_up(small, on_few_rows, shapes, goes_on, numbers)
        yield from verified(hits, seen, table, every, Effort(1.0, lambda: not goes_on()))
    if not functions.allows({"add"}):
        return
    passes = passes_of_target(table, functions)
    passes += passes_of_columns(table, functions) if reach.is_behind_columns else []
    if functions.allows({"div"}):  # what is kept is little beside the others
        passes = [one._replace(with_fractions=not one.of_logarithms) for one in passes]
    yield from summed(small, *paired(small, passes, table, numbers.met, goes_on), table, passes, goes_on)


def looked_up(
    small: DeepFormulas,
    targets: FloatArray,
    shapes: Sequence[Shape],
    goes_on: Callable[[], bool] = lambda: True,
    numbers: DeepConfig = DEEP,
) -> tuple[Seen, NDArray[np.int64]]:
    """Rows (target, step, a, second step, second a, b) of what was hit, the simplest first, and what their numbers mean.

    `targets` [T, R] are readings on the few rows.
    """
    driver, most = small.driver, numbers.most_hits
    sent = driver.put(targets)
    records = np.zeros(len(shapes), LOOK)
    for number, (record, shape) in enumerate(zip(records, shapes, strict=True)):
        record["n"], record["number"], record["most"] = shape.n, number, most
        record["targets"] = driver.pointer(sent) + shape.from_target * targets[0].nbytes
        for name in ("first", "second", "n_first", "n_second"):
            record[name] = getattr(shape, name)
    hits = Hits(driver, len(shapes), most)
    ends = np.cumsum(records["n"])
    for part in np.split(records, np.searchsorted(ends, np.arange(numbers.at_a_time, ends[-1], numbers.at_a_time))):
        if len(part):
            small.launch_parts("look", part, hits.there)
            hits.wait()
        if not goes_on():
            break
    return _sorted(small, shapes, hits.found())


def _sorted(small: DeepFormulas, shapes: Sequence[Shape], hits: NDArray[np.void]) -> tuple[Seen, NDArray[np.int64]]:
    """Hits as whole numbers, by the cost of all that is in them."""
    codes, places = np.unique(hits["code"], return_inverse=True)
    first, second, *_, from_target, _ = np.array(shapes, np.int64)[hits["look"]].T
    kept = small.costs()
    costs = (hits["code"] >> np.uint64(COST_AT)).astype(np.int64)
    for steps, by in ((first, hits["i"]), (second, hits["j"])):
        costs += np.where(steps != STAY, kept[by], 0)
    rows = [from_target + hits["target"], first, hits["i"], second, hits["j"], len(small) + places.reshape(-1)]
    order = np.lexsort([*reversed(rows), costs])
    return Seen(small, codes), np.array(rows, np.int64).T[order]


def _one_step(small: DeepFormulas, n_targets: int, functions: FunctionSet) -> list[Shape]:
    """By every formula."""
    every = [*steps_allowed(functions).tolist(), (PLUS, STAY)]
    return [Shape(first, second, len(small) if first != STAY else 1, 1, 0, n_targets) for first, second in every]


def _two_steps(small: DeepFormulas, n_targets: int, looks: float, numbers: DeepConfig) -> list[Shape]:
    """By as many formulas both, for every reading; of the target as it is also by few and many."""
    most, each = len(small), looks / len(BOTH_STEPS)
    plain = numbers.plain_share * each / (1 + len(numbers.few))

    def shapes(n_first: int, n_second: int, from_target: int, n_targets: int) -> list[Shape]:
        sizes = min(n_first, most), min(n_second, most)
        return [Shape(first, second, *sizes, from_target, n_targets) for first, second in BOTH_STEPS]

    found = []
    for few in numbers.few:
        many = int(plain / 2 / few)
        found += shapes(few, many, 0, 1) + shapes(many, few, 0, 1)
    both = math.isqrt(int(plain))
    found += shapes(both, both, 0, 1)
    if n_targets > 1:
        both = math.isqrt(int((1 - numbers.plain_share) * each / (n_targets - 1)))
        found += shapes(both, both, 1, n_targets - 1)
    return found


def _three_steps(small: DeepFormulas, first: int, last: int, looks: float) -> list[Shape]:
    """From what the plainest formulas leave of the target, by a column or a constant, then by many formulas."""
    steps, n_leaves = [pair for pair in BOTH_STEPS if pair[0] in (MINUS, PLUS)], small.starts[2]
    many = min(int(looks / max(last - first, 1) / n_leaves / len(steps)), len(small))
    return [Shape(one, two, n_leaves, many, first, last - first) for one, two in steps] if last > first else []
