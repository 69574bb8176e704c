"""Factors by their sign: where the rest of a product keeps its sign, the target's sign on every row is that of one sum.

(x - 0.98)*(y + x*z)**(1/4) is a plain sum after two steps, but no regression shows the first: what is hidden runs over many
magnitudes. The sign does. Of sums U of up to three small terms and a T more, sign(U + a T) is that of the target for a within
an interval, which every row narrows: it is empty for all sums but one, and so narrow for that one that a number people write
is known by it. Rows near zero, where the sign turns, are asked first. Sines and cosines of such sums are asked as well: in
x*exp(-a*t)*cos(w*t + p) the wave alone has a sign, whatever it fades by.

Legend: `N` rows, `U` sums, `M` small terms.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, islice, permutations, product

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build, row_values
from gmeql.network.families import FunctionSet
from gmeql.search.data.readings import PLAIN
from gmeql.search.direct.readings import EVERY_READING, INVERTED_BY
from gmeql.search.direct.sums.pursuit import PURSUIT, Factor, Terms, functions_of, powers_of
from gmeql.search.direct.sums.vocabulary import VOCABULARY
from gmeql.search.direct.table import DirectTable, Effort

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class SignsConfig:
    """Numbers of the method."""

    few: int = 30  # rows of the rarer sign from which the sign tells anything
    rows: int = 12  # of each sign, those nearest to zero, that every sum is asked on,
    one_in: int = 3  # and of so many one that every wave is asked on before,
    waves_first: int = 3  # on so many of these at first
    all_over: int = 60  # rows from end to end that sums are asked on together before each is on all
    terms: int = 60  # small terms,
    in_pairs: int = 36  # those of sums of two
    in_triples: int = 14  # and of three,
    angles_in_triples: int = 20  # of which as many where these are angles of waves,
    beside: int = 26  # and those that any multiple of may stand beside
    multiples: tuple[float, ...] = (1.0, 0.5, 2.0, math.pi, 2 * math.pi)  # of sums that waves are asked of
    digits: int = 2  # behind the point of such a number,
    numbers: int = 16  # of which so many are tried
    kept: int = 30  # factors in all
    asked: int = 2  # targets that are asked
    max_columns: int = 8
    seconds: float = 0.04  # of one core (measured), to ask a target,
    seconds_to_chase: float = 0.02  # and for each sum that is looked for behind a factor,
    most_seconds: float = 1.5  # all of them together
    readings: tuple[str, ...] = (PLAIN, "inv", "square", "fourth power", "log", "inv_square", "sqrt")  # of the rest


SIGNS = SignsConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """A factor that has the target's sign, a sum or a wave of one, times a sum of few terms or a root or an exponential of
    such, where that is the target. Draws nothing at random.
    """
    n = min(len(table.y), PURSUIT.rows)
    if not 1 <= table.n_columns <= SIGNS.max_columns or n < PURSUIT.few_rows or effort.seconds < SIGNS.seconds:
        return
    if not np.isfinite(table.X).all() or not (np.ptp(table.X, axis=0) > 0).all():
        return
    if not functions.allows({"add", "mul", "div"}) or effort.out_of_time():
        return
    factors = Signs(table.X, functions).factors_of(table.y)
    if not factors:
        return
    effort, powers = effort.on_trail(), powers_of(table.X, functions)
    left = min(effort.seconds, SIGNS.most_seconds)
    readings = [name for name in SIGNS.readings if functions.allows(INVERTED_BY[name])]
    in_logarithms = Terms(table.X, [*powers, *_logarithms(table.X, functions)], [], n, PURSUIT.few_powers)
    for others in ([], functions_of(table.X, functions)):
        plain = Terms(table.X, powers, others, n, PURSUIT.few_powers)
        for (factor, values), name in product(factors, readings):
            terms = in_logarithms if name == "log" and not others else plain
            left -= SIGNS.seconds_to_chase
            if left < 0 or effort.out_of_time():
                return
            rest = table.y / values
            found = terms.sum_for(EVERY_READING[name].forward(rest))
            root = None if found is None else EVERY_READING[name].invert(found, float(np.sign(rest[0])))
            if root is not None and table.error(build("mul", factor, root)) < VOCABULARY.verified:
                yield build("mul", factor, root)
                return


def _logarithms(X: FloatArray, functions: FunctionSet) -> list[Factor]:
    """Logarithms of positive columns, as plain as these: they are powers before what an exponential is made of."""
    columns = [j for j in range(X.shape[1]) if (X[:, j] > 0).all() and functions.allows({"log"})]
    return [Factor(build("log", Variable(j)), X.shape[1] + j, 1, np.log(X[:, j])) for j in columns]


class Signs:
    """Sums of small terms over columns X [N, V], and waves of such sums, asked whether their sign is a target's."""

    def __init__(self, X: FloatArray, functions: FunctionSet, *, most_asked: int = SIGNS.asked) -> None:
        n_columns, self.most_asked = X.shape[1], most_asked
        self.sums = _Sums(X, _small(n_columns, functions), SIGNS.terms, SIGNS.in_pairs, SIGNS.in_triples)
        self.waves = [name for name in ("sin", "cos") if functions.allows({name})]
        angles = _angles(n_columns, functions) if self.waves else iter(())
        self.angles = _Sums(X, angles, SIGNS.terms, SIGNS.terms, SIGNS.angles_in_triples)
        self.asked = 0
        self._last: tuple[FloatArray, list[tuple[Node, FloatArray]]] | None = None

    def factors_of(self, target: FloatArray) -> list[tuple[Node, FloatArray]]:
        """Sums with their values [N] that have the sign of a target [N], or its opposite, on every row; the plainest first.

        Only the first `most_asked` targets are; the last of them may be twice.
        """
        if self._last is None or self._last[0] is not target:
            self._last = target, self._factors_of(target)
        return self._last[1]

    def _factors_of(self, target: FloatArray) -> list[tuple[Node, FloatArray]]:
        signs, self.asked = np.sign(target), self.asked + 1
        n_rarer = min(int((signs > 0).sum()), int((signs < 0).sum()))
        if self.asked > self.most_asked or n_rarer < SIGNS.few or not signs.all() or not len(self.sums.nodes):
            return []
        order = np.argsort(np.abs(target), kind="stable")
        near = np.concatenate([order[signs[order] == side][: SIGNS.rows] for side in (1.0, -1.0)])
        found = _Plainest(SIGNS.kept)
        self._find(found, signs, near)
        self._find_waves(found, signs, near)
        return found.all()

    def _find(self, found: _Plainest, signs: FloatArray, near: NDArray[np.int64]) -> None:
        """Such sums, asked on some rows first."""
        some, sums = self.sums, self.sums.on(near)
        more = np.concatenate([near, np.arange(0, len(signs), max(1, len(signs) // SIGNS.all_over))])
        sides = np.sign(sums) * signs[near]
        for u in map(int, np.flatnonzero(np.abs(sides.sum(axis=1)) == len(near))):
            values = some.values(u)
            if found.has_room(some.n_terms[u]) and abs((np.sign(values) * signs).sum()) == len(signs):
                found.take(some.n_terms[u], some.node(u), values)
        for k in range(-1, min(SIGNS.beside, len(some.nodes))):
            beside = some.terms[k] if k >= 0 else np.ones(len(signs))
            left = np.flatnonzero(_has_interval(sums, beside[near], signs[near]))
            for u in map(int, left[_has_interval(some.on(more, left), beside[more], signs[more])]):
                n_terms = some.n_terms[u] + 1
                if k in some.numbers[u] or not found.has_room(n_terms):
                    continue
                interval = _interval(some.values(u), beside, signs)
                for a in () if interval is None else numbers_between(*interval):
                    if found.has_room(n_terms):
                        term = build("mul", Constant(a), some.nodes[k] if k >= 0 else Constant(1.0))
                        found.take(n_terms, build("add", some.node(u), term), some.values(u) + a * beside)

    def _find_waves(self, found: _Plainest, signs: FloatArray, near: NDArray[np.int64]) -> None:
        """The same of waves: one of a multiple of a sum counts as a term more."""
        some, few = self.angles, near[:: SIGNS.one_in]
        sums = some.on(few) if some.nodes else np.zeros((0, len(few)))
        for name, multiple in product(self.waves, SIGNS.multiples):
            wave = np.sin if name == "sin" else np.cos

            def agrees(sums: FloatArray, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
                sides = np.sign(wave(multiple * sums)) * signs[rows]  # noqa: B023
                return np.asarray(np.abs(sides.sum(axis=1)) == len(rows))

            left = np.flatnonzero(agrees(sums[:, : SIGNS.waves_first], few[: SIGNS.waves_first]))
            left = left[agrees(sums[left], few)]
            for u in map(int, left[agrees(some.on(near, left), near)] if len(left) else left):
                if not found.has_room(some.n_terms[u] + 1):
                    continue
                values = wave(multiple * some.values(u))
                if abs((np.sign(values) * signs).sum()) == len(signs):
                    node = build(name, build("mul", Constant(multiple), some.node(u)))
                    found.take(some.n_terms[u] + 1, node, values)


class _Plainest:
    """The plainest few of what is found, by the number of their terms; of those of as many the first.

    A target that changes its sign where a column is nearly constant agrees with tens of thousands of sums.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: list[tuple[int, Node, FloatArray]] = []
        self._lengths: list[int] = []
        """Numbers of terms of all that is kept, in order."""

    def has_room(self, n_terms: int) -> bool:
        """Whether something of so many terms would be among them, as far as is known now."""
        return len(self._lengths) < self._most or n_terms < self._lengths[self._most - 1]

    def take(self, n_terms: int, node: Node, values: FloatArray) -> None:
        self._found.append((n_terms, node, values))
        insort(self._lengths, n_terms)

    def all(self) -> list[tuple[Node, FloatArray]]:
        """With their values [N], the plainest first."""
        found = sorted(self._found, key=lambda one: one[0])[: self._most]
        return [(node, values) for _, node, values in found]


class _Sums:
    """Sums of up to three of some terms, `terms` [M, N], with factors ±1: which terms and which factors, [U, 3] each."""

    def __init__(self, X: FloatArray, nodes: Iterator[Node], most: int, in_pairs: int, in_triples: int) -> None:
        names = [f"x{j}" for j in range(X.shape[1])]
        every = ((node, row_values(node, names, X)) for node in nodes)
        usable = list(islice(((node, x) for node, x in every if np.isfinite(x).all() and np.ptp(x) > 0), most))
        self.nodes, self.terms = [node for node, _ in usable], np.array([x for _, x in usable])
        self.numbers, self.factors = _sums(len(usable), in_pairs, in_triples)
        self.n_terms: list[int] = np.count_nonzero(self.factors, axis=1).tolist() if len(usable) else []

    def on(self, rows: NDArray[np.int64], some: NDArray[np.int64] | slice = slice(None)) -> FloatArray:
        """All sums, or some of them, on some rows, [U, R]."""
        return np.asarray(np.einsum("uk,ukn->un", self.factors[some], self.terms[:, rows][self.numbers[some]]))

    def values(self, u: int, rows: NDArray[np.int64] | slice = slice(None)) -> FloatArray:
        return np.asarray(self.factors[u] @ self.terms[self.numbers[u]][:, rows])

    def node(self, u: int) -> Node:
        some = [(float(c), self.nodes[m]) for c, m in zip(self.factors[u], self.numbers[u], strict=True) if c]
        return build("add", *(build("mul", Constant(c), node) for c, node in some))


def _small(n_columns: int, functions: FunctionSet) -> Iterator[Node]:
    """Columns, their squares, products of two, cubes and functions of each, the plainest first."""
    columns: list[Node] = [Variable(j) for j in range(n_columns)]
    names = [name for name in ("log", "sqrt", "exp", "sin", "cos") if functions.allows({name})]
    return chain(
        columns,
        (build("square", a) for a in columns),
        (build("mul", a, b) for a, b in combinations(columns, 2)),
        (build("cube", a) for a in columns),
        (build(name, a) for name in names for a in columns),
    )


def _angles(n_columns: int, functions: FunctionSet) -> Iterator[Node]:
    """What waves are waves of: columns, products and fractions of two, squares."""
    columns: list[Node] = [Variable(j) for j in range(n_columns)]
    return chain(
        columns,
        (build("mul", a, b) for a, b in combinations(columns, 2)),
        (build("div", a, b) for a, b in permutations(columns, 2) if functions.allows({"div"})),
        (build("square", a) for a in columns),
    )


@lru_cache(maxsize=32)
def _sums(n_terms: int, in_pairs: int, in_triples: int) -> tuple[NDArray[np.int64], FloatArray]:
    """Numbers and factors [U, 3] of sums of one, two and three terms with factors ±1, the first of which is 1."""
    numbers: list[tuple[int, int, int]] = [(i, i, i) for i in range(n_terms)]
    factors: list[tuple[float, float, float]] = [(1.0, 0.0, 0.0)] * n_terms
    for (i, j), sign in product(combinations(range(min(n_terms, in_pairs)), 2), (1.0, -1.0)):
        numbers.append((i, j, j))
        factors.append((1.0, sign, 0.0))
    for three, signs in product(combinations(range(min(n_terms, in_triples)), 3), product((1.0, -1.0), repeat=2)):
        numbers.append(three)
        factors.append((1.0, signs[0], signs[1]))
    return np.array(numbers), np.array(factors)


def _has_interval(sums: FloatArray, beside: FloatArray, signs: FloatArray) -> NDArray[np.bool_]:
    """Whether for some a the sums [U, R] + a T, with T [R] beside them, have some signs [R] or their opposites."""
    bounds, is_above = -sums / np.where(beside == 0, np.nan, beside), beside * signs > 0
    if np.isnan(bounds).any() or is_above.all() or not is_above.any():
        return np.zeros(len(sums), dtype=bool)
    above, below = bounds[:, is_above], bounds[:, ~is_above]
    return np.asarray((above.max(axis=1) < below.min(axis=1)) | (below.max(axis=1) < above.min(axis=1)))


def _interval(sums: FloatArray, beside: FloatArray, signs: FloatArray) -> tuple[float, float] | None:
    """Between which a that is for one sum [N]; None where there is none."""
    if not (beside != 0).all():
        return None
    bounds, is_above = -sums / beside, beside * signs > 0
    above, below = bounds[is_above], bounds[~is_above]
    for low, high in ((above, below), (below, above)):
        if len(low) and len(high) and low.max() < high.min():
            return float(low.max()), float(high.min())
    return None


def numbers_between(low: float, high: float) -> list[float]:
    """Numbers of few digits behind the point within an interval, those of fewer first; none where 0 is in it, for then
    nothing need stand there.

    >>> numbers_between(-2.004, -1.981)
    [-2.0, -1.99]
    """
    if low < 0 < high or not (math.isfinite(low) and math.isfinite(high)):
        return []
    found: list[float] = []
    for digits in range(SIGNS.digits + 1):
        first = math.floor(low * 10**digits) + 1
        last = min(math.ceil(high * 10**digits) - 1, first + SIGNS.numbers)
        found += [k / 10**digits for k in range(first, last + 1)]
    return list(dict.fromkeys(found))[: SIGNS.numbers]
