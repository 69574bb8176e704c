"""One or two functions of a column with constants inside, beside a number or plain powers: y = P(x) + a f(x) + b g(x).

Of exp(-0.03 x) + log(x + 1.6) or exp(-0.07 x) + 1/(1 + exp(-0.2 (x - 4))) either function explains nearly all by itself, with
a constant that is far from right, and a second chosen beside it leads nowhere. So both are chosen at once: of all pairs of
functions on a fine grid what they explain together with their slopes follows from their products. The best of each two kinds is
the start of a damped fit.

Legend: `N` rows, `M` functions, `K` kinds of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build, calls, row_values
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums.settling import settled
from gmeql.search.direct.terms.column_functions import LIBRARY, LibraryConfig
from gmeql.search.direct.terms.library import library
from gmeql.search.direct.terms.term_sums import beside, orthonormal

FloatArray = NDArray[np.float64]
OutOfTime = Callable[[], bool]


@dataclass(frozen=True)
class CurvePairsConfig:
    """Numbers of the method."""

    singles: int = 24  # functions that are fitted by themselves, those that leave least,
    pairs: int = 44  # and pairs of kinds,
    apart: int = 3  # steps of the grid from each other
    exact: float = 1e-8  # share of the spread that may be left, however little the values are known,
    of_rest: float = 1e-6  # and of what plain terms leave
    straight: float = 1e-3  # share of a function beside a straight line from which it may be told from that
    turning: float = 1e-3  # share of a slope that must be left beside its function
    least: float = 1e-7  # share of a function that must be left beside plain terms, and
    independent: float = 1e-9  # share of the squares of one that must be left beside another
    spanned: float = 1e-13  # singular values below this share of the largest span nothing


CURVE_PAIRS = CurvePairsConfig()
ALONE = replace(
    LIBRARY,
    powers=(),
    roots=(),
    mixed=(),
    exponents=(-0.4, -0.8, -1.4, -1.8, -2.2, -2.6, -3.2, -3.8, -4.5),
    rates=tuple(0.1 * 1.4**k for k in range(14)),
    offsets=tuple(0.01 * 1.55**k for k in range(14)),
    turns=0,
    slow=(*(0.1 * 1.35**k for k in range(9)), *(1.0 + 0.25 * k for k in range(1, 21))),
    bumps=0,
    steps=9,
    kinds=("log",),
)
"""Functions with constants on a fine grid, which stand beside a number."""
TIMES = replace(ALONE, powers=(1, 2), mixed=(1, 2), exponents=(), slow=(), steps=0)
"""Those that stand before x and x**2, too, one of them beside plain powers."""
PLAIN_POWERS = (1.0, 2.0, 3.0, 1 / 2, 1 / 3)
WHOLE_POWERS = PLAIN_POWERS[:3]


class CurvePairs:
    """Sums for values [N] of a column x [N], known within an error; `roots` [N] are those of weights of mean 1."""

    def __init__(
        self,
        x: FloatArray,
        values: FloatArray,
        roots: FloatArray,
        functions: FunctionSet,
        *,
        allowed: float,
        numbers: LibraryConfig = ALONE,
        plain: Sequence[Node] = (Constant(1.0),),
    ) -> None:
        self.X, self.target, self.roots, self.plain = x[:, None], values, roots, plain
        self.basis = orthonormal(self._columns(plain), CURVE_PAIRS.spanned)
        self.rest = beside(self.basis, roots * values)
        rest, spread = (
            float(np.linalg.norm(v)) / math.sqrt(len(x)) for v in (self.rest, roots * (values - values.mean()))
        )
        self.allowed = min(allowed, CURVE_PAIRS.exact * spread, CURVE_PAIRS.of_rest * rest)
        self.terms = library(self.X, functions.allows, numbers=numbers)
        self.by_slopes = not numbers.steps  # which have two constants: of their slopes one says little
        self._choose()

    def _columns(self, nodes: Sequence[Node]) -> FloatArray:
        """Weighted values of functions, [N, M]."""
        return np.stack([self.roots * row_values(node, ("x0",), self.X) for node in nodes], axis=1)

    def _choose(self) -> None:
        """What the functions explain of what is left beside plain terms."""
        numbers = np.flatnonzero(self.terms.tuned)
        columns = self.roots[:, None] * self.terms.values[numbers].T
        sizes = np.linalg.norm(columns, axis=0)
        left = beside(self.basis, columns / np.where(sizes > 0, sizes, 1.0))
        sizes = np.linalg.norm(left, axis=0)
        usable = np.flatnonzero(sizes > CURVE_PAIRS.least)
        usable = usable[np.argsort(self.terms.kinds[numbers[usable]], kind="stable")]
        left = left[:, usable] / sizes[usable]
        self.numbers, kinds = numbers[usable], self.terms.kinds[numbers[usable]]
        firsts = np.flatnonzero(np.diff(kinds, prepend=-1)).tolist()
        self.kinds = [slice(a, b) for a, b in zip(firsts, [*firsts, len(kinds)][1:], strict=True)]
        slopes = beside(self.basis, self.roots[:, None] * self.terms.slopes(self.numbers).T)
        sizes = np.linalg.norm(slopes, axis=0)
        slopes -= left * np.sum(left * slopes, axis=0)
        own = np.linalg.norm(slopes, axis=0)
        turns = own > CURVE_PAIRS.turning * sizes
        turning = np.where(turns, slopes / np.where(turns, own, 1.0), 0.0)
        self.blocks = np.stack([left.T, turning.T], axis=1)
        self.along = np.asarray(self.blocks @ self.rest)

    def one(self, out_of_time: OutOfTime) -> list[Node] | None:
        """The one function, with the plain terms that are needed, from the starts that explain most; None where there is none."""
        chosen: list[int] = []
        for place in map(int, np.argsort(-np.sum(self.along**2, axis=1), kind="stable")):
            if out_of_time() or len(chosen) == CURVE_PAIRS.singles:
                return None
            if all(abs(place - other) >= CURVE_PAIRS.apart for other in chosen):
                chosen.append(place)
                found = self._fitted([place])
                if found is not None:
                    return found
        return None

    def two(self, out_of_time: OutOfTime) -> list[Node] | None:
        """The same of two functions, from one start for each two kinds."""
        for places in self._starts():
            if out_of_time():
                return None
            found = self._fitted(places)
            if found is not None:
                return found
        return None

    def _fitted(self, places: Sequence[int]) -> list[Node] | None:
        """Some functions with constants that leave least, and the plain terms they need, where that is next to nothing."""
        nodes = [self.terms.node(int(self.numbers[i])) for i in places]
        nodes, _, error = settled(nodes, self.X, self.target, self.basis, roots=self.roots, is_damped=True)
        if not error < self.allowed or not all(is_seen(node, self.X) for node in nodes):
            return None
        kept = list(self.plain)
        for node in self.plain:
            fewer = [other for other in kept if other != node]
            if self._error([*nodes, *fewer]) < self.allowed:
                kept = fewer
        return [*nodes, *kept]

    def _error(self, nodes: Sequence[Node]) -> float:
        """Error of the best sum of some functions as they are."""
        columns, target = self._columns(nodes), self.roots * self.target
        sizes = np.linalg.norm(columns, axis=0)
        factors = np.linalg.lstsq(columns / sizes, target, rcond=CURVE_PAIRS.spanned)[0] / sizes
        return float(np.linalg.norm(target - columns @ factors)) / math.sqrt(len(target))

    @cached_property
    def _explained(self) -> FloatArray:
        """What every two functions explain together, with their slopes where these say much, [M, M]: with blocks P and Q of two
        columns, and C = P'Q, what is along P and what (1 - C'C) makes of that along Q less C' times that along P."""
        told = np.array([1.0, float(self.by_slopes)])
        flat = (self.blocks * told[:, None]).reshape(-1, len(self.rest))
        across, along = flat @ flat.T, self.along * told
        parts = [[across[k::2, m::2] for m in (0, 1)] for k in (0, 1)]
        first, second = (along[:, m] - along[:, :1] * parts[0][m] - along[:, 1:] * parts[1][m] for m in (0, 1))
        a, b = (1.0 - parts[0][m] ** 2 - parts[1][m] ** 2 for m in (0, 1))
        c = -(parts[0][0] * parts[0][1] + parts[1][0] * parts[1][1])
        free = np.maximum(a * b - c**2, CURVE_PAIRS.independent)
        more = (b * first**2 - 2 * c * first * second + a * second**2) / free
        alone, whole = np.sum(along**2, axis=1)[:, None], float(self.rest @ self.rest)
        return np.asarray(
            np.minimum(alone + np.where(free > CURVE_PAIRS.independent, np.maximum(more, 0.0), 0.0), whole)
        )

    def _starts(self) -> Iterator[tuple[int, int]]:
        """Of the pairs of kinds that explain most, the two functions that do."""
        if not self.kinds:
            return
        firsts = [kind.start for kind in self.kinds]
        most = np.maximum.reduceat(np.maximum.reduceat(self._explained, firsts, axis=0), firsts, axis=1)
        above = np.triu_indices(len(most))
        for k in np.argsort(-most[above], kind="stable")[: CURVE_PAIRS.pairs]:
            a, b = self.kinds[above[0][k]], self.kinds[above[1][k]]
            some = self._explained[a, b]
            i, j = (int(place) for place in np.unravel_index(int(np.argmax(some)), some.shape))
            yield a.start + i, b.start + j


def is_seen(node: Node, X: FloatArray) -> bool:
    """Whether a function of a column [N, 1] is more than a straight line, and a step among the rows: the foot of one is an
    exponential."""
    values = row_values(node, ("x0",), X)
    line = orthonormal(np.hstack([np.ones_like(X), X]), CURVE_PAIRS.spanned)
    if not np.linalg.norm(beside(line, values)) > CURVE_PAIRS.straight * np.linalg.norm(values - values.mean()):
        return False
    steps = [call.args[0] for call in calls(node) if call.operator == "tanh"]
    shifted = [base for base in steps if any(call.operator == "add" for call in calls(base))]
    return all(bool(v.min() < 0 < v.max()) for v in (row_values(base, ("x0",), X) for base in shifted))


def plain_powers(x: FloatArray, functions: FunctionSet, powers: Sequence[float] = PLAIN_POWERS) -> list[Node]:
    """1 and plain powers of a column [N]."""
    base = Variable(0) if (x > 0).all() else build("abs", Variable(0))
    nodes = [build("pow", Variable(0) if p % 1 == 0 else base, Constant(p)) for p in powers]
    return [Constant(1.0), *(node for node in nodes if functions.allows({call.operator for call in calls(node)}))]
