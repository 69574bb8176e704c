"""Formulas behind several steps: terms taken off, factors divided out, readings undone, until a sum of plain terms is left.

x - y**2 + sqrt((u + v - w)/(w*x**3*z)) is no sum, but it is one after three steps: take x - y**2 off, square, multiply by
x**3*z. Each step is read off the values by a robust regression, to which what is still hidden is noise with heavy tails:
terms whose factor comes out as ±1/2, ±1 or ±2 are taken for exact and taken off, and so are those that stand hundreds of standard
errors from nothing, with factors as people write them (`robust.py`); powers, exponentials and waves of columns that log|y| rises
with by a whole or half number are divided out. After every step the span of a whole vocabulary (`vocabulary.py`) tells whether
a sum, a fraction or a root of sums is left, so that a wrong step costs no more than that; behind terms taken off, a pursuit tells
whether a sum of few out of very many terms is (`chased.py`).

Legend: `N` rows, `M` terms, `V` columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build, row_values
from gmeql.network.families import FunctionSet
from gmeql.search.data.readings import PLAIN
from gmeql.search.direct.readings import DIRECT_READINGS, OUTER_READINGS, direct_readings, outer_readings
from gmeql.search.direct.steps.chased import Chased
from gmeql.search.direct.steps.fewer import Left, behind_one
from gmeql.search.direct.steps.robust import ROBUST, Shown, Weighted, nearest, robust_choice
from gmeql.search.direct.sums.pursuit import PURSUIT, Terms, powers_of
from gmeql.search.direct.sums.scaled import SCALED, sums_behind
from gmeql.search.direct.sums.signs import SIGNS, Signs
from gmeql.search.direct.sums.vocabulary import VOCABULARY, Span, formulas_in, sum_of
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.terms.denominators import Below
from gmeql.search.direct.terms.library import brief_vocabulary

FloatArray = NDArray[np.float64]
Undo = Callable[[Node], Node]
"""The way back: from a formula of what a step leaves to one of what it began with."""
_Factor = Callable[[float], Node | None]
"""A power of a column, its exponential or its wave by the exponent; None where it has no value."""


@dataclass(frozen=True)
class NestedConfig:
    """Numbers of the method; "tried" on sums of plain terms with a root, a fraction or an exponential beside them."""

    max_columns: int = 10
    few_rows: int = 60
    spanned: int = 350  # terms of the vocabulary that must hold what is left,
    taken: int = 1300  # and of which some may be taken off
    halves: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0)  # exponents that are,
    near_exponent: tuple[float, ...] = (0.02, 0.12)  # in absolute terms
    rare_cost: int = 2  # of a product of powers from which it may be one that the vocabulary lacks
    told_surely: int = 2  # parts that each term counts for that shows clearly
    signs: int = 2  # steps by a factor that has the target's sign,
    told_by_sign: int = 4  # parts that each counts for: every row speaks for it
    depth: int = 4  # steps behind each other
    stages: int = 24  # targets that are looked at
    clear: int = 2  # terms or factors seen so near in the first step that there is a formula to look for
    seconds_to_begin: float = 0.05  # of one core (measured), for the first step,
    seconds_to_span: float = 0.05  # for what terms span,
    seconds_per_stage: float = 0.02  # and for each target


NESTED = NestedConfig()


@dataclass(frozen=True, eq=False)
class Stage:
    """What is left of the target [N] after some steps, and the way back to a formula of the target itself."""

    target: FloatArray
    undo: Undo = lambda root: root
    steps: tuple[str, ...] = ()
    cost: float = 0.0
    """Of its steps: the more is seen in one, the less it costs."""
    is_clear: bool = False
    """Whether its last step was seen so clearly that there is a formula to look for."""
    beside: tuple[tuple[Node, FloatArray], ...] = ()
    """Terms with values [N] that show in the target, too, beside something else."""

    @property
    def sign(self) -> float:
        """That of most of the target."""
        return 1.0 if self.target.mean() >= 0 else -1.0

    def after(
        self,
        step: str,
        target: FloatArray,
        back: Undo,
        parts: int = 1,
        *,
        is_near: bool = False,
        beside: Iterable[tuple[Node, FloatArray]] = (),
    ) -> Stage:
        """What one step more leaves, in which so many terms or factors (`parts`) were seen. The step `is_near` if it met each of
        them closely; it may be clear only then."""
        cost, is_clear = self.cost + 1.0 / parts, is_near and parts >= NESTED.clear
        return Stage(target, lambda root: self.undo(back(root)), (*self.steps, step), cost, is_clear, tuple(beside))


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """A formula behind several steps that is the target on all rows. Draws nothing at random."""
    n = len(table.y)
    if not 1 <= table.n_columns <= NESTED.max_columns or n < NESTED.few_rows or not functions.allows({"add", "mul"}):
        return
    if not table.has_values:
        return
    if effort.seconds < NESTED.seconds_to_begin or effort.out_of_time():
        return
    size = min(NESTED.spanned, int((n - VOCABULARY.spare_rows) / VOCABULARY.rows_per_term))
    n = min(n, int(VOCABULARY.most_rows_per_term * size) + VOCABULARY.spare_rows)
    X = table.X[:n]
    steps, below = Steps(X, functions), Below(X)
    first = steps.first(table.y[:n])
    if any(stage.is_clear for stage in first):
        effort = effort.on_trail()
    most = int((effort.seconds - NESTED.seconds_to_begin - NESTED.seconds_to_span) / NESTED.seconds_per_stage)
    if most < 1 or effort.out_of_time():
        return
    terms = steps.terms.first(size)
    span = Span(terms.values, terms.node)
    fewer = [Span(terms.values[:m], terms.node) for m in SCALED.sizes if m < size]
    chase = Chased(X, functions, steps.products, effort.out_of_time)

    def formulas(stage: Stage) -> Iterator[Node]:
        readings, has_ended = direct_readings(stage.target, functions), effort.out_of_time
        yield from formulas_in(span, below, readings, functions, stage.sign, has_ended=has_ended)
        if has_ended():
            return
        for name, target in outer_readings(stage.target, functions).items():
            found = span.sparse(target)
            if found is not None:
                yield OUTER_READINGS[name].invert(sum_of(found), stage.sign)
        if stage.beside and functions.allows({"sqrt"}):
            others = [one for one in stage.beside if not isinstance(one[0], Variable)]
            yield from chase.beside_root(stage.target, [*below.few, *others])
        if stage.steps[:1] in (("term",), ("clear",)):
            yield from chase.formulas(stage.target, stage.sign)
        if has_ended():
            return
        yield from sums_behind(
            fewer if stage.steps else [*fewer, span], stage.target, functions, is_read=stage.steps[-1:] == ("reading",)
        )

    most, has_ended = min(most, NESTED.stages), effort.out_of_time
    found = next(behind_steps(table, steps, first, formulas, most=most, depth=NESTED.depth, has_ended=has_ended), None)
    if found is None and not has_ended():
        lefts = [
            Left(stage.target, stage.undo, stage.is_clear, stage.steps[-1] in ("term", "clear")) for stage in first
        ]
        found = behind_one(table, X, lefts, functions=functions, effort=effort, rng=rng)
    if found is not None:
        yield found


def behind_steps(
    table: DirectTable,
    steps: Steps,
    first: Sequence[Stage],
    formulas: Callable[[Stage], Iterable[Node]],
    *,
    most: int,
    depth: int,
    has_ended: Callable[[], bool],
) -> Iterator[Node]:
    """The first of the `formulas` of what steps leave that is, with these undone, the target on all rows of a table; `first`
    is what one step leaves.

    At most so many stages are looked at, those whose steps cost least first, none behind more than `depth` of them.
    """
    waiting = [Stage(table.y[: len(steps.X)])]
    for _ in range(most):
        if not waiting or has_ended():
            return
        stage = waiting.pop(min(range(len(waiting)), key=lambda place: waiting[place].cost))
        for root in formulas(stage):
            whole = stage.undo(root)
            if table.error(whole) < VOCABULARY.verified:
                yield whole
                return
        if len(stage.steps) < depth and not has_ended():
            waiting += steps.behind(stage) if stage.steps else first


def _factors_over(
    X: FloatArray, functions: FunctionSet
) -> Iterator[tuple[_Factor, FloatArray, tuple[Node, FloatArray] | None]]:
    """What may stand as a factor before the rest of a target: each with the values [N] that log|target| then rises with, and with
    the base whose power it is; None for exponentials and waves, which have no half powers."""
    n_columns, names = X.shape[1], [f"x{j}" for j in range(X.shape[1])]
    for j, x in enumerate(X.T):
        if (x != 0).all():
            yield _power_of(Variable(j), x), np.log(np.abs(x)), (Variable(j), x)
    for power in (1.0, 2.0) if functions.allows({"exp", "square"}) else ():
        for j, x in enumerate(X.T):
            yield _exponential_of(j, power), x**power, None
    for name, wave in (("sin", np.sin), ("cos", np.cos)):
        for j, x in enumerate(X.T) if functions.allows({name}) else ():
            if ((values := wave(x)) != 0).all():
                yield _wave_of(name, j), np.log(np.abs(values)), None
    pairs = combinations(range(n_columns), 2)
    sums = [build(name, Variable(i), Variable(j)) for i, j in pairs for name in ("add", "sub")]
    logarithms = [build("log", Variable(j)) for j in range(n_columns)] if functions.allows({"log"}) else []
    for node in (*sums, *logarithms):
        inner = row_values(node, names, X)
        if np.isfinite(inner).all() and (inner != 0).all():
            yield _power_of(node, inner), np.log(np.abs(inner)), (node, inner)


class Steps:
    """Steps that the values of a target suggest, over columns X [N, V]; so many targets are asked for factors by their sign."""

    def __init__(self, X: FloatArray, functions: FunctionSet, *, asked_by_sign: int = SIGNS.asked) -> None:
        self.X, self.functions, self._asked_by_sign = X, functions, asked_by_sign
        self.terms = brief_vocabulary(X, functions.allows, most_terms=NESTED.taken)
        self._known: dict[bool, tuple[FloatArray, Shown]] = {}
        found = list(_factors_over(X, functions))
        self.factors = [factor for factor, _, _ in found]
        self.logarithms = np.array([values for _, values, _ in found]).reshape(-1, len(X))
        self.bases = [base for _, _, base in found]

    @cached_property
    def products(self) -> Terms:
        """Very many products of powers."""
        powers = powers_of(self.X, self.functions)
        return Terms(self.X, powers, [], min(len(self.X), PURSUIT.rows), PURSUIT.few_powers)

    @cached_property
    def _rarer(self) -> FloatArray:
        """Values of `products` on the rows by which it is seen which terms show in a target."""
        return self.products.exact(range(len(self.products)), min(len(self.X), ROBUST.rows))

    @cached_property
    def signs(self) -> Signs:
        """Sums that may have the target's sign."""
        return Signs(self.X, self.functions, most_asked=self._asked_by_sign)

    def first(self, target: FloatArray) -> list[Stage]:
        """What one step leaves of a target [N]."""
        return self.behind(Stage(target))

    def behind(self, stage: Stage) -> list[Stage]:
        """What is left after one step more, where that has values and varies."""
        with np.errstate(all="ignore"):
            return [s for s in self._of(stage) if np.isfinite(s.target).all() and np.ptp(s.target) > 0]

    def _of(self, stage: Stage) -> Iterator[Stage]:
        """What is left after one step more; no kind of step follows itself, but behind clear terms others may show."""
        last = stage.steps[-1] if stage.steps else ""
        if last != "term":
            yield from self.without_terms(stage)
        if last != "factor" and self.functions.allows({"div"}):
            yield from self.without_factors(stage)
        if last not in ("factor", "sign") and self.functions.allows({"div"}):
            for node, values in self.signs.factors_of(stage.target)[: NESTED.signs]:
                back, parts = _behind(node, 1.0, stage.sign), NESTED.told_by_sign
                yield stage.after("sign", stage.target / values, back, parts, is_near=True)
        if last != "reading":
            for name, values in direct_readings(stage.target, self.functions).items():
                if name in ("square", "exp", "log", "inv"):
                    yield stage.after("reading", values, _reading(name, stage.sign))

    def without_terms(self, stage: Stage) -> Iterator[Stage]:
        """The target less the terms whose factors are ±1/2, ±1 or ±2."""
        before: list[Weighted] = [[]]
        shown = self._shown(stage.target)
        clear = list(shown.clear())
        for place, kept in enumerate([*clear, *shown.near_whole()]):
            if kept not in before:
                yield self._less(stage, kept, shown, is_surely=place < len(clear))
            before.append(kept)
        if stage.steps in ((), ("amplitude",)):
            yield from self._without_rarer_terms(stage)

    def _shown(self, target: FloatArray, *, are_rare: bool = False) -> Shown:
        """Terms that show in a target [N]; those of the first one asked for are kept."""
        known = self._known.get(are_rare)
        if known is not None and known[0] is target:
            return known[1]
        shown = robust_choice(self._rarer if are_rare else self.terms.values, target)
        self._known.setdefault(are_rare, (target, shown))
        return shown

    def rest(self, target: FloatArray) -> FloatArray:
        """A target [N] less the terms that may show in it: those of the vocabulary, or the rarer products of powers, whichever
        leave less."""
        rows, left = len(target), []
        for are_rare, of in ((False, lambda some: self.terms.values[some]),
                             (True, lambda some: self.products.exact(some, rows))):  # fmt: skip
            numbers, factors, _ = self._shown(target, are_rare=are_rare)
            left.append(target - factors[-1] - np.array(factors[:-1]) @ of(numbers) if numbers else target)
        return min(left, key=lambda values: float(np.median(np.abs(values))))

    def _without_rarer_terms(self, stage: Stage) -> Iterator[Stage]:
        """The target less those of very many products of powers that show clearly, where the vocabulary lacks one of them."""
        shown, before = self._shown(stage.target, are_rare=True), list[Weighted]([[]])
        for kept in shown.clear():
            if kept not in before and any(self.products.costs[m] > NESTED.rare_cost for _, m in kept):
                yield self._less(stage, kept, shown, is_surely=True, are_rare=True)
            before.append(kept)

    def _less(self, stage: Stage, kept: Weighted, shown: Shown, *, is_surely: bool, are_rare: bool = False) -> Stage:
        """The target less some terms, with what else may show in it beside what is left."""
        source = self.products if are_rare else self.terms

        def values(m: int) -> FloatArray:
            return np.asarray(self.products.exact([m], len(stage.target))[0] if are_rare else self.terms.values[m])

        rest = stage.target - sum(c * values(m) for c, m in kept)
        back = _beside(sum_of([(c, source.node(m)) for c, m in kept]))
        if not is_surely:
            return stage.after("term", rest, back, len(kept), is_near=True)
        beside = [(source.node(m), values(m)) for m in shown.others(kept)]
        parts, is_near = NESTED.told_surely * len(kept), shown.are_written(kept)
        return stage.after("clear", rest, back, parts, is_near=is_near, beside=beside)

    def without_factors(self, stage: Stage) -> Iterator[Stage]:
        """The target, and its square where it may be a root, over what stands before the rest."""
        if not (stage.target != 0).all():
            return
        numbers, slopes, _ = robust_choice(self.logarithms, np.log(np.abs(stage.target)))
        slopes.pop()  # a constant factor is no step
        is_root = abs(np.sign(stage.target).sum()) == len(stage.target) and self.functions.allows({"sqrt"})
        seen: set[Node] = {Constant(1.0)}
        for near, power in product(NESTED.near_exponent, (1.0, 2.0) if is_root else (1.0,)):
            exponents = [nearest(power * c, NESTED.halves, power * near) for c in slopes]
            chosen = [(m, e) for m, e in zip(numbers, exponents, strict=True) if e]
            parts = [part for m, e in chosen if (part := self.factors[m](e))]
            for root in (None, *self._roots([(m, e) for m, e in chosen if self.factors[m](e) is None])):
                ahead = build("mul", *parts, *(() if root is None else (root,)))
                if ahead in seen:
                    continue
                seen.add(ahead)
                values = row_values(ahead, [f"x{j}" for j in range(self.X.shape[1])], self.X)
                n_parts, is_near = len(parts) + (root is not None), near == NESTED.near_exponent[0]
                back = _behind(ahead, power, stage.sign)
                yield stage.after("factor", stage.target**power / values, back, n_parts, is_near=is_near)

    def _roots(self, halves: Sequence[tuple[int, float]]) -> Iterator[Node]:
        """Half powers of factors of both signs, where these have one together: the root of their product, with what is
        left of each before it."""
        bases = [(base[0], base[1], e) for m, e in halves if (base := self.bases[m]) is not None and not e.is_integer()]
        if len(bases) < 2 or not self.functions.allows({"sqrt"}):
            return
        signs = np.prod([np.sign(values) for _, values, _ in bases], axis=0)
        if not signs.all() or np.ptp(signs) != 0:
            return
        for inner in ([math.copysign(1.0, e) for *_, e in bases], [1.0] * len(bases)):
            under = build("mul", *(build("pow", node, Constant(c)) for c, (node, *_) in zip(inner, bases, strict=True)))
            rest = [build("pow", node, Constant(e - c / 2)) for c, (node, _, e) in zip(inner, bases, strict=True)]
            yield build("mul", *rest, build("sqrt", under if signs[0] > 0 else build("neg", under)))


def _power_of(node: Node, values: FloatArray) -> _Factor:
    """Powers of a column, of its logarithm or of a sum of two, halves where that is positive."""

    def power(exponent: float) -> Node | None:
        allowed = exponent.is_integer() or bool((values > 0).all())
        return build("pow", node, Constant(exponent)) if allowed else None

    return power


def _exponential_of(column: int, power: float) -> _Factor:
    inner = build("pow", Variable(column), Constant(power))
    return lambda rate: build("exp", build("mul", Constant(rate), inner))


def _wave_of(name: str, column: int) -> _Factor:
    wave = build(name, Variable(column))
    return lambda exponent: build("pow", wave, Constant(exponent)) if exponent.is_integer() else None


def _reading(name: str, sign: float) -> Undo:
    return lambda root: DIRECT_READINGS[name].invert(root, sign)


def _beside(ahead: Node) -> Undo:
    return lambda root: build("add", ahead, root)


def _behind(factor: Node, power: float, sign: float) -> Undo:
    """Something times a factor, and the root of that where the power was 2."""
    outer = _reading("square" if power == 2.0 else PLAIN, sign)
    return lambda root: outer(build("mul", factor, root))
