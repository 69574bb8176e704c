"""Meet in the middle: y = g⁻¹(a ∘ (c0 + c1 b)) for a reading g and two small formulas a and b, by look-up.

For every reading g of the target and every small a, the values g(y) - a, g(y)·a, g(y)/a and a/g(y) without scale and
offset are looked up among those of all small b. A second step, such as (g(y) - a1)/a2, reaches further for the simplest
a1 and a2. A hit on a few rows is then fitted and verified on all of them. A table of a million b and ten thousand a so
holds as many formulas as nobody could sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, build, tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.direct.middle.kernels import LOGGED, MINUS, OVER, PLUS, RAISED, SQUARED, STAY, TIMES, UNDER, meet
from gmeql.search.direct.middle.small_formulas import SmallFormulas
from gmeql.search.direct.readings import DIRECT_READINGS, direct_readings
from gmeql.search.direct.table import DirectTable, Effort, FloatArray


@dataclass(frozen=True)
class MeetingConfig:
    """Numbers of the method; speeds are those of one core, with some to spare (measured)."""

    rows: int = 8
    """Rows that formulas are told apart on: two are taken by scale and offset, six tell 2**120 forms apart."""
    rows_chosen_from: int = 100
    inner: float = 0.8
    """... evenly by the target's size, among the inner share of this many rows: extremes make forms of one row."""
    max_columns: int = 10
    formulas_per_second: float = 500_000.0
    max_formulas: int = 1_000_000
    kept_share: float = 0.15
    """Formulas to build on, of all: the last costs are looked up only."""
    looks_per_second: float = 5_000_000.0
    enumerating: float = 0.3
    """Share of the effort for the table; a third of the rest is for one step to the middle, the rest for two."""
    one_step: float = 0.35
    max_hits: int = 4096
    verified: int = 100
    """Hits that are fitted on all rows, the simplest first."""
    verified_late: int = 20
    """... of which so many whatever the time: what was looked up is not thrown away."""
    proposed: int = 3
    exact: float = 1e-9
    """Error of a hit on all rows, relative to the spread of the reading, that is taken for exact ..."""
    rounding: float = 1e-12
    """... and from which there may be a closer one: a small term is not seen beside the target."""


MEETING = MeetingConfig()


class Target(NamedTuple):
    """Values [N] that are looked for, and what makes the target's formula of theirs."""

    values: FloatArray
    restore: Callable[[Node], Node]


class Numbered(Protocol):
    """Small formulas by number."""

    def tree(self, number: int) -> Node: ...


ONE_STEP = np.array(
    [(STAY, STAY), (MINUS, STAY), (TIMES, STAY), (OVER, STAY), (UNDER, STAY),
     *((first, then) for first in (MINUS, TIMES, OVER) for then in (SQUARED, LOGGED, RAISED))], np.int64
)  # fmt: skip
"""One step by a formula; what is left may stand under a root, in an exponential or in a logarithm."""
TWO_STEPS = np.array(
    [(MINUS, TIMES), (MINUS, OVER), (MINUS, UNDER), (TIMES, MINUS), (OVER, MINUS), (UNDER, MINUS), (UNDER, OVER)],
    np.int64,
)
"""Steps that follow each other; two of a kind are one step by a longer formula."""


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """Formulas of two or three small ones that are exact on all rows, the simplest first. Draws nothing at random."""
    if not are_worth_a_look(table):
        return
    rows = few_rows(table.y)
    small = small_formulas(table, functions, effort)
    if small is None:
        return
    targets = targets_of(table.y, functions)
    on_few_rows = np.array([target.values[rows] for target in targets])
    seconds = effort.seconds * (1 - MEETING.enumerating)
    for place, (steps, n_first, n_second) in enumerate(_rounds(small, len(targets), seconds, functions)):
        # a machine slower than counted on has made its table by now, and looks it up at least once
        if place and effort.out_of_time():
            return
        hits = _hits(small, on_few_rows, steps, n_first, n_second)
        yield from verified(hits, small, table, targets, effort)


def targets_of(y: FloatArray, functions: FunctionSet) -> list[Target]:
    """The readings of a target, the target as it is first."""
    sign = 1.0 if y.mean() >= 0 else -1.0
    return [Target(values, partial(inverted, name, sign)) for name, values in direct_readings(y, functions).items()]


def behind(table: DirectTable, target: Target, formula: Node) -> list[Target]:
    """The target times a formula, and over it, where either is finite and tells something."""
    found = []
    sign = 1.0 if target.values.mean() >= 0 else -1.0
    with np.errstate(all="ignore"):
        values = table.values(formula)
        for step in (TIMES, OVER) if np.ptp(values) > 0 else ():
            left = stepped(step, target.values, values)
            if np.isfinite(left).all() and np.ptp(left) > 0:
                found.append(Target(left, partial(_behind, step, formula, sign, target)))
    return found


def _behind(step: int, formula: Node, sign: float, target: Target, root: Node) -> Node:
    return target.restore(undone(step, root, formula, sign))


def steps_allowed(functions: FunctionSet) -> NDArray[np.int64]:
    """`ONE_STEP` where what takes it back is allowed."""
    return np.array([pair for pair in ONE_STEP.tolist() if functions.allows(_UNDONE_BY.get(pair[1], set()))])


def are_worth_a_look(table: DirectTable) -> bool:
    """Whether a table has few enough columns, enough rows, and a target that varies."""
    is_small = 1 <= table.n_columns <= MEETING.max_columns
    return is_small and len(table.y) >= 2 * MEETING.rows and bool(np.ptp(table.y) > 0)


def small_formulas(
    table: DirectTable, functions: FunctionSet, effort: Effort, share: float = MEETING.enumerating
) -> SmallFormulas | None:
    """As many small formulas over a table as a share of the effort allows, by their values on a few rows; None where that is
    none."""
    n_formulas = int(effort.seconds * share * MEETING.formulas_per_second)
    n_formulas = min(n_formulas, MEETING.max_formulas)
    n_kept = int(MEETING.kept_share * n_formulas)
    if n_kept <= table.n_columns or effort.out_of_time():
        return None
    return SmallFormulas.of(table.X[few_rows(table.y)], functions, max_kept=n_kept, max_formulas=n_formulas)


def met_in_one_step(
    table: DirectTable, targets: Sequence[Target], small: SmallFormulas, *, functions: FunctionSet, effort: Effort
) -> Iterator[Node]:
    """Formulas of two small ones that are one of many targets on all rows, the simplest first."""
    rows = few_rows(table.y)
    steps, n_first, _ = next(_rounds(small, len(targets), effort.seconds * (1 - MEETING.enumerating), functions))
    hits = _hits(small, np.array([target.values[rows] for target in targets]), steps, n_first, 1)
    yield from verified(hits, small, table, targets, effort)


def inverted(reading: str, sign: float, root: Node) -> Node:
    """A formula of a reading of the target as one of the target, which has this sign."""
    return DIRECT_READINGS[reading].invert(root, sign)


def compile_look_up() -> None:
    """Call the compiled parts once."""
    X = np.arange(1.0, 2.0 * MEETING.rows + 1)[:, None]
    table = DirectTable(X, np.sin(X[:, 0]), np.ones(len(X)))
    for _ in propose(table, functions=FunctionSet(["add"]), effort=Effort(1e-3), rng=np.random.default_rng(0)):
        pass


def compile_meeting() -> None:
    """Call the look-up itself, with nothing in the table."""
    rows, places = np.ones(MEETING.rows), np.zeros(2, np.int32)
    none = SmallFormulas(
        1, np.empty((0, 3), np.int32), np.empty(0, np.int8), rows[None], np.zeros(2, np.uint64), places, rows
    )
    _hits(none, rows[None], ONE_STEP[:0], 0, 0)


def few_rows(y: FloatArray) -> NDArray[np.int64]:
    """Rows of different targets: by size of the target, evenly, without the smallest and the largest."""
    first = np.arange(min(len(y), MEETING.rows_chosen_from))
    order = first[np.argsort(y[first], kind="stable")]
    margin = (1 - MEETING.inner) / 2 * (len(order) - 1)
    places = np.linspace(margin, len(order) - 1 - margin, MEETING.rows).round().astype(int)
    return np.asarray(order[places])


def _rounds(
    small: SmallFormulas, n_readings: int, seconds: float, functions: FunctionSet
) -> Iterator[tuple[NDArray[np.int64], int, int]]:
    """What to look up within the effort: one step by many formulas, then two steps by few."""
    looks = seconds * MEETING.looks_per_second / n_readings
    one_step = steps_allowed(functions)
    n_first = min(len(small.values), int(MEETING.one_step * looks / len(one_step)))
    yield one_step, n_first, 1
    n_both = min(len(small.values), int(math.sqrt((1 - MEETING.one_step) * looks / len(TWO_STEPS))))
    yield TWO_STEPS, n_both, n_both


def _hits(
    small: SmallFormulas, targets: FloatArray, steps: NDArray[np.int64], n_first: int, n_second: int
) -> NDArray[np.int64]:
    """Rows (target, step, a, second step, second a, b), the simplest first."""
    hits = np.empty((MEETING.max_hits, 6), np.int64)
    n = meet(targets, small.values, n_first, n_second, steps, small.forms, small.places, small.signs, hits)
    hits = hits[:n]
    costs = small.costs.astype(np.int64)
    taken = [
        np.where(hits[:, s] != STAY, costs[hits[:, s + 1]], 0) for s in (1, 3)
    ]  # no formula costs 1, as a function
    return hits[np.argsort(sum(taken) + costs[hits[:, 5]], kind="stable")]


def verified(
    hits: NDArray[np.int64],
    small: Numbered,
    table: DirectTable,
    targets: Sequence[Target],
    effort: Effort,
) -> Iterator[Node]:
    """Formulas that hold on all rows, with both constants fitted; the simplest of them, those that hold to rounding first."""

    def fitted() -> Iterator[tuple[Target, Node, float]]:
        for place, (number, *steps, b) in enumerate(hits[: MEETING.verified].tolist()):
            if place >= MEETING.verified_late and effort.out_of_time():
                return
            yield targets[number], *_fitted(steps, small.tree(b), small, table, targets[number].values)

    yield from simplest(fitted())


def simplest(fitted: Iterable[tuple[Target, Node, float]]) -> Iterator[Node]:
    """Of formulas of targets, with their errors, those that hold: to rounding first, then the least complex."""
    found = []
    for place, (target, root, error) in enumerate(fitted):
        if error < MEETING.exact:
            root = target.restore(root)
            found.append((error > MEETING.rounding, tree_complexity(root), place, root))
    yield from (root for *_, root in sorted(found)[: MEETING.proposed])


def _fitted(steps: list[int], b: Node, small: Numbered, table: DirectTable, target: FloatArray) -> tuple[Node, float]:
    """The formula of g(y) that a hit stands for, and its error on all rows, relative to the spread; inf where it is none."""
    taken = [(step, small.tree(a)) for step, a in (steps[:2], steps[2:]) if step != STAY]
    with np.errstate(all="ignore"):
        seen = target
        signs = []
        for step, a in taken:
            signs.append(1.0 if seen.mean() >= 0 else -1.0)
            seen = stepped(step, seen, table.values(a))
        values = table.values(b)
        if not (np.isfinite(seen).all() and np.isfinite(values).all() and np.ptp(values) > 0):
            return b, math.inf
        deviations = values - values.mean()
        slope = float(deviations @ seen / (deviations @ deviations))
        offset = float(seen.mean() - slope * values.mean())
        if not (math.isfinite(slope) and math.isfinite(offset)):
            return b, math.inf
        offset = 0.0 if abs(offset) < MEETING.exact * float(np.abs(seen).max()) else offset
        root = build("add", build("mul", Constant(slope), b), Constant(offset))
        for (step, a), sign in zip(reversed(taken), reversed(signs), strict=True):
            root = undone(step, root, a, sign)
        error = np.sqrt(np.mean((table.values(root) - target) ** 2)) / np.std(target)
    return root, float(error)


_UNDONE_BY: dict[int, set[str]] = {SQUARED: {"sqrt"}, LOGGED: {"exp"}, RAISED: {"log"}}
"""Functions that take a step back, besides + - * /."""


def stepped(step: int, r: FloatArray, a: FloatArray) -> FloatArray:
    """One step towards the middle on all rows."""
    if step in (SQUARED, LOGGED, RAISED):
        return np.asarray(r**2 if step == SQUARED else np.log(np.abs(r)) if step == LOGGED else np.exp(r))
    return np.asarray((r - a, r + a, r * a, r / a, a / r)[step])


def undone(step: int, root: Node, a: Node, sign: float) -> Node:
    """A formula of what a step led to, as one of what it started from, which has this sign."""
    if step == MINUS:
        return build("add", a, root)
    if step == PLUS:
        return build("sub", root, a)
    if step == TIMES:
        return build("div", root, a)
    if step == OVER:
        return build("mul", a, root)
    if step == UNDER:
        return build("div", a, root)
    (function,) = _UNDONE_BY[step]
    inner = build(function, root)
    return inner if sign > 0 or step == RAISED else build("neg", inner)
