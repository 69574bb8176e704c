"""Sums of a few terms out of very many: products of powers and functions of up to five columns, found by pursuit.

x1**2*x3*x4/(x5*x6) + 7*x2**3/(x5*x6) - x2*x5*x4/x1 is a sum of plain terms, but each is one of some thousands, and a vocabulary
that one fit must hold (`vocabulary.py`) has room for hundreds. Without noise they need not be held together: the plainest
are taken away from everything, and of what is left that term is chosen which explains most of the target beside those
chosen before (orthogonal least squares; Chen, Billings and Luo 1989). The correlations of all terms with what is left
follow from those before by one product of a matrix with a vector. Rows count by their own size: where columns stand below
the line, a few rows hold nearly all of the squares. When nothing but rounding is left, the few terms that are needed are
read off those chosen, with all plain ones, as in `vocabulary.py`. Where a step explains no more than the best of as many
chance terms would, nothing is there to see. Functions of one column are much alike, so that the one chosen is often the
neighbour of a right one: all that came near in the first steps are then asked together.

Legend: `N` rows, `M` terms, `F` factors, `K` dimensions of what is chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build, calls, row_values, tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.data.readings import PLAIN
from gmeql.search.direct.middle.strange_formulas import of_pairs
from gmeql.search.direct.readings import DIRECT_READINGS, direct_readings
from gmeql.search.direct.sums.vocabulary import VOCABULARY, Span, fraction_in, sum_of
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.terms.brackets import bracketed
from gmeql.search.direct.terms.denominators import small_terms
from gmeql.search.direct.terms.term_sums import beside

FloatArray = NDArray[np.float64]
SingleArray = NDArray[np.float32]


@dataclass(frozen=True)
class PursuitConfig:
    """Numbers of the method; "tried" on random sums of products of powers over two to seven columns."""

    max_columns: int = 10
    few_rows: int = 100
    rows: int = 320  # that terms are chosen on
    powers: tuple[int, ...] = (1, -1, 2, -2, 3, -3, 4)  # of a column; each costs its size,
    roots: tuple[float, ...] = (0.5, 1.5, -0.5)  # these
    root_cost: int = 2  # so much,
    function_cost: int = 3  # and functions so much
    most_cost: int = 8  # of a term
    most_factors: int = 5
    largest: float = 1e50  # value of a factor: the square of a term is a number still
    most_powers: int = 20_000  # terms of powers alone,
    few_powers: int = 4_000  # of those for fractions and readings, and beside others,
    most_functions: int = 8_000  # terms with another function,
    most_pairs: int = 1_000  # so many of them of two columns
    taken_cost: int = 2  # of terms that are taken away at first
    taken_rows: float = 0.4  # of the rows at most as many
    steps: int = 40  # terms that are chosen at most
    first_steps: int = 5  # after which each must have left no more than
    kept: float = 0.93  # this share of the error: the best of 20,000 chance terms leaves 0.95 of 200 rows
    unexplained: float = 0.5  # share of a target that plain terms must leave, of which the first
    parts: int = 2  # terms leave less than a share of
    part: float = 0.6  # this where a part of the sum is among them
    independent: float = 1e-4  # share of a term's square that must be left beside those chosen
    near: int = 30  # terms that come near to being chosen, in each of the first steps
    renewed: int = 8  # steps after which correlations are taken anew: they round in single precision
    may_be: float = 1e-6  # error, relative to the target's size, from which all that came near are looked at closely
    met: float = 1e-7  # error, relative to the target's size, from which the sum is read off
    seconds_per_term: float = 3.7e-6  # of one core (measured), for each target


PURSUIT = PursuitConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """A sum of a few out of very many plain terms, or a function of it, that is the target; as it is, and with brackets
    where that is shorter. Draws nothing at random."""
    n = min(len(table.y), PURSUIT.rows)
    is_enough = 1 <= table.n_columns <= PURSUIT.max_columns and n >= PURSUIT.few_rows and table.varies
    if not is_enough or not functions.allows({"add", "mul"}):
        return
    powers, left = powers_of(table.X, functions), effort.seconds
    for terms, root in _seen(table, powers, functions, n, int(left / PURSUIT.seconds_per_term)):
        if root is not None and table.error(root) < VOCABULARY.verified:
            yield root
            short = bracketed(root)
            if tree_complexity(short) < tree_complexity(root):
                yield short
            return
        left -= PURSUIT.seconds_per_term * len(terms)
        given = effort.on_trail() if terms.has_seen_part else effort
        left, effort = left if given is effort else given.seconds, given
        if left < 0 or effort.out_of_time():
            return


def _seen(
    table: DirectTable, powers: Sequence[Factor], functions: FunctionSet, n: int, most: int
) -> Iterator[tuple[Terms, Node | None]]:
    """What is seen among which terms, chosen on so many rows, at most so many at first; None where nothing is."""
    sign = 1.0 if table.y.mean() >= 0 else -1.0
    terms = Terms(table.X, powers, [], n, min(PURSUIT.most_powers, most))
    yield terms, terms.sum_for(table.y)
    terms = Terms(table.X, powers, _with_sizes(table.X, functions), n, PURSUIT.few_powers)
    yield terms, terms.sum_for(table.y)
    few = Terms(table.X, powers, [], n, PURSUIT.few_powers)
    if functions.allows({"div"}):
        yield from ((few, fraction) for fraction in few.fractions(table.y))
    for others in (functions_of, _of_pairs):
        terms = Terms(table.X, powers, others(table.X, functions), n, PURSUIT.few_powers)
        yield terms, terms.sum_for(table.y)
    for name, target in direct_readings(table.y, functions).items():
        read = None if name == PLAIN else few.sum_for(target)
        yield few, None if read is None else DIRECT_READINGS[name].invert(read, sign)


class Factor(NamedTuple):
    """A formula of one column or two, its cost, its values [N]; a term has one factor of a slot at most."""

    node: Node
    slot: int
    cost: int
    values: FloatArray


def powers_of(X: FloatArray, functions: FunctionSet) -> list[Factor]:
    """Powers of all columns, and roots where these are positive."""
    nodes: list[tuple[Node, int, int]] = []
    for j in range(X.shape[1]):
        powers = [(float(power), abs(power)) for power in PURSUIT.powers]
        powers += [(power, PURSUIT.root_cost) for power in PURSUIT.roots if functions.allows({"sqrt"})]
        allowed = [(power, cost) for power, cost in powers if power > 0 or functions.allows({"div"})]
        nodes += [(build("pow", Variable(j), Constant(power)), j, cost) for power, cost in allowed]
    return _finite(nodes, X)


def functions_of(X: FloatArray, functions: FunctionSet) -> list[Factor]:
    """Functions of all columns, which powers of the same columns may stand before."""
    nodes: list[tuple[Node, int, int]] = []
    for j in range(X.shape[1]):
        plain = [build(name, Variable(j)) for name in ("log", "sin", "cos", "exp") if functions.allows({name})]
        plain += [build("exp", build("neg", Variable(j)))] if functions.allows({"exp"}) else []
        plain += [build("inv", node) for node in plain[:3]] if functions.allows({"div"}) else []
        nodes += [(node, X.shape[1] + j, PURSUIT.function_cost) for node in plain]
    return _finite(nodes, X)


def _with_sizes(X: FloatArray, functions: FunctionSet) -> list[Factor]:
    """The same with functions of their sizes, which leave room for fewer products."""
    nodes = []
    for j in range(X.shape[1]):
        sized = _of_size(Variable(j), is_positive=bool((X[:, j] > 0).all()))
        allowed = [node for node in sized if functions.allows({call.operator for call in calls(node)})]
        nodes += [(node, X.shape[1] + j, PURSUIT.function_cost) for node in allowed]
    return functions_of(X, functions) + _finite(nodes, X)


def _of_size(v: Node, *, is_positive: bool) -> Iterator[Node]:
    """Functions of the size of a column, and of one more than that."""
    size = v if is_positive else build("abs", v)
    if not is_positive:
        yield from (size, build("sqrt", size), build("exp", build("neg", size)))
    yield build("pow", size, Constant(1 / 3))
    more = build("log", build("add", size, Constant(1.0)))
    yield from (more, build("sin", more), build("cos", more))
    yield build("inv", build("add", build("square", v), Constant(1.0)))


def _of_pairs(X: FloatArray, functions: FunctionSet) -> list[Factor]:
    """Functions of sums, products and fractions of two columns."""
    found = of_pairs(X, functions, PURSUIT.most_pairs, inner=())
    each = [Factor(found.node(h), X.shape[1], PURSUIT.function_cost, x) for h, x in enumerate(found.values)]
    return [factor for factor in each if _is_usable(factor.values)]


def _finite(nodes: Sequence[tuple[Node, int, int]], X: FloatArray) -> list[Factor]:
    """Formulas with their columns and costs as factors, where they have values on all rows."""
    names = [f"x{j}" for j in range(X.shape[1])]
    every = [Factor(node, j, cost, row_values(node, names, X)) for node, j, cost in nodes]
    return [factor for factor in every if _is_usable(factor.values)]


def _is_usable(values: FloatArray) -> bool:
    return bool((np.abs(values) < PURSUIT.largest).all()) and bool(np.ptp(values) > 0)


class Terms:
    """Products of factors of different columns, the plainest first, of values [M, n] in single precision."""

    def __init__(
        self, X: FloatArray, powers: Sequence[Factor], others: Sequence[Factor], n: int, most_powers: int
    ) -> None:
        self.X, self.factors, self.n, self.has_functions = X, [*powers, *others], n, bool(others)
        self.has_seen_part = False  # whether the first that were chosen explained much of what plain terms do not
        self.table = np.stack([np.ones(len(X)), *(factor.values for factor in self.factors)])
        self.prefix, self.last, self.costs = self._enumerated(len(powers), most_powers)
        scaled = self.table[:, :n] / np.sqrt(np.mean(self.table[:, :n] ** 2, axis=1, keepdims=True))
        single = scaled.astype(np.float32)
        self.values: SingleArray = np.ones((len(self.prefix), n), dtype=np.float32)
        for cost in range(1, int(self.costs.max()) + 1):  # what a term extends costs less
            level = np.flatnonzero(self.costs == cost)
            self.values[level] = self.values[self.prefix[level]] * single[self.last[level]]

    def _enumerated(self, n_powers: int, most_powers: int) -> tuple[NDArray[np.int64], ...]:
        """Of every term [M] the one that it extends, by which factor (from 1 on), and its cost.

        Terms of powers alone and terms with another function each have their room, for whole levels of one cost.
        """
        prefix, last, costs = [np.zeros(1, int)], [np.zeros(1, int)], [np.zeros(1, int)]
        slot, count, start = [np.full(1, -1)], [np.zeros(1, int)], [0]
        kinds, room = [range(n_powers), range(n_powers, len(self.factors))], [most_powers, PURSUIT.most_functions]
        for cost in range(1, PURSUIT.most_cost + 1):
            parts: list[tuple[NDArray[np.int64], int]] = []
            for kind, numbers in enumerate(kinds):
                some = [(k, cost - self.factors[k].cost, self.factors[k].slot) for k in numbers]
                can_be = {
                    (before, its): np.flatnonzero((slot[before] < its) & (count[before] < PURSUIT.most_factors))
                    for before, its in {one[1:] for one in some if one[1] >= 0}  # many factors have one cost and slot
                }
                own = [(can_be[one[1:]], one[0]) for one in some if one[1] >= 0]
                room[kind] -= sum(len(places) for places, _ in own)
                parts += own if room[kind] >= 0 else []
            of = [cost - self.factors[number].cost for _, number in parts]
            sizes = [len(places) for places, _ in parts]
            prefix.append(_joined([start[b] + places for b, (places, _) in zip(of, parts, strict=True)]))
            last.append(np.repeat([number + 1 for _, number in parts], sizes).astype(int))
            slot.append(np.repeat([self.factors[number].slot for _, number in parts], sizes).astype(int))
            count.append(_joined([count[b][places] + 1 for b, (places, _) in zip(of, parts, strict=True)]))
            costs.append(np.full(sum(sizes), cost))
            start.append(start[-1] + len(costs[-2]))
        return np.concatenate(prefix), np.concatenate(last), np.concatenate(costs)

    def __len__(self) -> int:
        return len(self.prefix)

    def node(self, m: int) -> Node:
        """Term `m` as a formula."""
        parts = []
        while m:
            parts.append(self.factors[self.last[m] - 1].node)
            m = int(self.prefix[m])
        return build("mul", *reversed(parts)) if parts else Constant(1.0)

    def exact(self, numbers: Sequence[int], rows: int) -> FloatArray:
        """Values [K, rows] of some terms in double precision."""
        found = np.ones((len(numbers), rows))
        for place, m in enumerate(numbers):
            while m:
                found[place] *= self.table[self.last[m], :rows]
                m = int(self.prefix[m])
        return found

    def sum_for(self, target: FloatArray) -> Node | None:
        """The sum of few terms that is the target [N]; None where none is seen."""
        chase = self._chase(target)
        if chase is None:
            return None
        found = chase.after(target)
        self.has_seen_part |= chase.has_seen_part
        if found is None and self.has_functions:
            found = chase.among_near(target)
        terms = None if found is None else chase.span(found).sparse((chase.weights * target)[: chase.rows(found)])
        return None if terms is None else sum_of(terms)

    def fractions(self, y: FloatArray) -> Iterator[Node | None]:
        """S/D with a sum S of few terms and one D of columns: y times a column of D is a sum of terms and of y times the
        others."""
        below, chase = small_terms(self.X)[: 1 + self.X.shape[1]], self._chase(y)
        if chase is None:
            return
        for k in range(len(below)):
            found = chase.after(y * below[k][1], [y * x for j, (_, x) in enumerate(below) if j != k])
            if found is None:
                yield None
                continue
            rows = chase.rows(found)
            yield fraction_in(chase.span(found), (chase.weights * y)[:rows], [(node, x[:rows]) for node, x in below])

    def _chase(self, target: FloatArray) -> Chase | None:
        weights = 1.0 / (np.abs(target) + float(np.median(np.abs(target))))
        return Chase(self, weights) if np.isfinite(weights).all() else None


class Chase:
    """A pursuit on rows with weights [N]: all terms without what the plainest explain of them.

    `near` are the terms that came near to being chosen in the first steps of the last one, none where these explained no
    more than chance terms would.
    """

    def __init__(self, terms: Terms, weights: FloatArray) -> None:
        self.terms, self.weights, self.has_seen_part, n = terms, weights, False, terms.n
        self.near: set[int] = set()
        columns: SingleArray = terms.values * weights[:n].astype(np.float32)
        sizes = np.sqrt(np.einsum("mn,mn->m", columns, columns))
        self.usable = np.isfinite(sizes) & (sizes > 0)  # products of two kinds of one category are 0 on all rows
        taken = np.flatnonzero((terms.costs <= PURSUIT.taken_cost) & self.usable)[: int(PURSUIT.taken_rows * n)]
        self.taken = [int(m) for m in taken]
        columns /= np.where(self.usable, sizes, 1.0)[:, None].astype(np.float32)
        columns[~self.usable] = 0.0
        self.columns = columns
        self.basis = np.linalg.qr(self._weighted(terms.exact(self.taken, n)).T)[0]
        inside = columns @ self.basis.astype(np.float32)
        self.free = np.where(self.usable, 1.0 - np.einsum("mk,mk->m", inside, inside), 0.0)

    def _weighted(self, values: FloatArray) -> FloatArray:
        """Values [K, n] with weights, of size 1."""
        weighted = values * self.weights[: values.shape[-1]]
        return np.asarray(weighted / np.linalg.norm(weighted, axis=-1, keepdims=True))

    def rows(self, numbers: Sequence[int]) -> int:
        """Rows that a sum of so many terms is read off."""
        return min(len(self.weights), int(VOCABULARY.most_rows_per_term * len(numbers)) + VOCABULARY.spare_rows)

    def span(self, numbers: Sequence[int]) -> Span:
        """Some terms on rows with their weights."""
        values = self.terms.exact(numbers, self.rows(numbers))
        return Span(values * self.weights[: values.shape[1]], lambda k: self.terms.node(numbers[k]))

    def after(self, target: FloatArray, others: Sequence[FloatArray] = ()) -> list[int] | None:
        """Terms whose sum, with some of the others' values [N], the target [N] is but for rounding: the plainest, then
        one after the other."""
        n, basis, free = self.terms.n, self.basis, self.free
        if not np.isfinite(target).all():
            return None
        if len(others):
            more = np.linalg.qr(beside(basis, self._weighted(np.stack(others)[:, :n]).T))[0]
            inside = self.columns @ more.astype(np.float32)
            basis, free = np.column_stack([basis, more]), free - np.einsum("mk,mk->m", inside, inside)
        rest = beside(basis, self._weighted(target[:n]))
        begun, along = float(np.linalg.norm(rest)), self._along(rest)
        numbers: list[int] = []
        self.near.clear()
        for step in range(1, PURSUIT.steps + 1):
            if begun < PURSUIT.met:
                return self.taken
            gains = np.where(free > PURSUIT.independent, along**2 / np.maximum(free, PURSUIT.independent), 0.0)
            m = int(np.argmax(gains))
            if not gains[m] > 0:
                return None
            numbers.append(m)
            if step <= PURSUIT.first_steps:
                self.near.update(np.argpartition(-gains, min(PURSUIT.near, len(gains) - 1))[: PURSUIT.near].tolist())
            direction = beside(basis, self._weighted(self.terms.exact([m], n)[0]))
            direction = direction / np.linalg.norm(direction)
            basis = np.column_stack([basis, direction])
            share = float(rest @ direction)
            rest = rest - share * direction
            left = float(np.linalg.norm(rest))
            if step == PURSUIT.parts and begun > PURSUIT.unexplained:
                self.has_seen_part = left < PURSUIT.part * begun
            if left < PURSUIT.met:
                return [*self.taken, *numbers]
            if not left <= PURSUIT.kept**step * begun and step >= PURSUIT.first_steps:
                if step == PURSUIT.first_steps:
                    self.near.clear()  # no more than chance terms explain: nothing came near
                return None
            beside_it = self._along(direction)
            free = free - beside_it**2
            free[m] = 0.0
            along = self._along(rest) if step % PURSUIT.renewed == 0 else along - share * beside_it
        return None

    def among_near(self, target: FloatArray) -> list[int] | None:
        """The plainest terms, functions alone and those that came near to being chosen, where the target [N] is a sum of
        some of them; None where it is not."""
        numbers = sorted({*self.taken, *np.flatnonzero(self.terms.costs <= PURSUIT.function_cost).tolist(), *self.near})
        numbers = [m for m in numbers if self.usable[m]]
        if not self.near or len(self.weights) < VOCABULARY.rows_per_term * len(numbers) + VOCABULARY.spare_rows:
            return None
        values = (self.weights * target)[: self.rows(numbers)]
        if not self._may_be_sum(numbers, values):
            return None
        left = self.span(numbers).left(values)
        return numbers if np.linalg.norm(left) < VOCABULARY.exact * np.linalg.norm(values) else None

    def _may_be_sum(self, numbers: Sequence[int], values: FloatArray) -> bool:
        """Whether values [n] may be a sum of some terms with their weights: the last of the triangle that these and the
        values behind them make is what the terms leave, in a fifth of the time that a basis of them takes."""
        columns = self._weighted(self.terms.exact(numbers, len(values)))
        behind = np.vstack([columns, values / np.linalg.norm(values)]).T
        triangle = np.asarray(np.linalg.qr(behind, mode="r"))
        return bool(abs(triangle[-1, -1]) < PURSUIT.may_be)

    def _along(self, direction: FloatArray) -> FloatArray:
        """What all terms [M] have of a direction [n]."""
        return np.asarray(self.columns @ direction.astype(np.float32), dtype=float)


def _joined(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(0, int), *parts])
