"""A strange function among plain terms: y = P(x) + h(x) Q(x), with P and Q plain sums and h any small formula.

(x1 - x2)*log(sin(z)) + 2.3*x1**2 - exp(x2) is short for its functions, but log(sin(z)) stands in no vocabulary of terms, and
islands must have it and all that stands beside it right at once. Whatever P is, it vanishes in directions of the rows that
are orthogonal to all plain terms (`vocabulary.py` has them): a few dozen of those are drawn once, and in them every small
formula h with its multiples by columns is a block of a few short vectors. A target is P + h Q where its own short vector lies
in the span of a block; thousands of h are asked in a millisecond, so that all readings of the target and all that is left
after steps (`nested.py`) are asked too, and whether y D is such a sum for a small denominator D. A second small formula beside
h is looked for among the blocks that explain most. Last, steps by all small formulas are taken at once (`swept.py`).

Legend: `N` rows, `M` terms, `D` directions, `H` small formulas, `B` columns of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.network.families import FunctionSet
from gmeql.search.data.readings import PLAIN
from gmeql.search.direct.middle.strange_formulas import (
    USUAL,
    Formulas,
    inverse_sums,
    of_pairs,
    of_products,
    plain_functions,
    valued,
)
from gmeql.search.direct.readings import EVERY_READING, direct_readings, outer_readings
from gmeql.search.direct.steps.nested import Stage, Steps, behind_steps
from gmeql.search.direct.steps.swept import SWEPT, Sweep
from gmeql.search.direct.sums.vocabulary import VOCABULARY, Span, fraction_in, sum_of
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.terms.denominators import small_terms
from gmeql.search.direct.terms.library import brief_vocabulary
from gmeql.search.direct.terms.term_sums import beside, orthonormal

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class StrangeConfig:
    """Numbers of the method; "tried" on random formulas of two to seven columns."""

    max_columns: int = 10
    few_rows: int = 130
    plain: int = 200  # terms that vanish
    plain_per_column: int = 35  # of few columns many of them come near to anything smooth
    directions: int = 56
    block: int = 28  # columns of a block at most
    rows_per_direction: float = 1.25  # that are left beside the plain terms
    of_one: int = 400  # small formulas of one column, of all columns together,
    looked_at: int = 300  # chosen from so many of each,
    of_all: int = 500  # small formulas of all columns
    beside: float = 2.5e6  # values of small formulas that stand alone, or beside another,
    of_pairs: float = 4.5e6  # of functions of sums, products and fractions of functions of two columns,
    of_products: float = 1.5e6  # and of products of several and functions of them
    cubic: int = 3  # columns up to which a block of formulas of one column holds products of three
    seen: float = 1e-7  # share of a column of a block that must be left by the plain terms
    large: float = 1e6  # solution by which a matrix is suspected to be singular
    vanished: float = 1e-12  # share of a target's square, in these directions, that is rounding
    tried: int = 2  # formulas h that are tried in full, of each target
    tries: int = 16  # and of all of them
    usual: float = 0.8  # quantile of a term's values beyond which they are large
    told_apart: int = 6  # directions by which formulas are told apart
    digits: int = 7  # to which two formulas agree in these directions where they differ by plain terms or a factor
    at_once: int = 200  # blocks that are made together
    leading: int = 4  # blocks beside which a second formula is looked for,
    seconds: int = 3000  # among so many
    stages: int = 16  # targets that are looked at
    depth: int = 2  # steps behind each other
    swept: float = 0.5  # share of the time for steps by any small formula, most of it for the target itself,
    swept_again: tuple[float, ...] = (0.7, 0.15, 0.15)  # the rest for what the clearest first steps leave
    seconds_of_sweep: float = 0.6
    seconds_to_ask: float = 0.05
    seconds_to_begin: float = 0.1  # of one core (measured),
    seconds_per_column: float = 0.07  # for each column,
    seconds_per_stage: float = 0.03  # and for each target


STRANGE = StrangeConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """A plain sum with a small formula times another in it that is the target on all rows. Draws nothing at random."""
    if not 1 <= table.n_columns <= STRANGE.max_columns or len(table.y) < STRANGE.few_rows:
        return
    if not table.varies:
        return
    if not functions.allows({"add", "mul"}) or effort.seconds < STRANGE.seconds_to_ask or effort.out_of_time():
        return
    n, size = _n_rows(table.X)
    steps = Steps(table.X[:n], functions, asked_by_sign=1)
    first = steps.first(table.y[:n])
    if any(stage.is_clear for stage in first):
        effort = effort.on_trail()
    left = effort.seconds - STRANGE.seconds_to_begin - STRANGE.seconds_per_column * table.n_columns
    swept = min(STRANGE.swept * left, STRANGE.seconds_of_sweep)
    most = int((left - swept) / STRANGE.seconds_per_stage)
    if most < 1 or effort.out_of_time():
        return
    seen = _Directions(table.X[:n], table.y[:n], functions, size)
    seen.swept, seen.out_of_time = swept, effort.out_of_time
    yield from behind_steps(
        table,
        steps,
        first,
        seen.formulas,
        most=min(most, STRANGE.stages),
        depth=STRANGE.depth,
        has_ended=lambda: not seen.tries or effort.out_of_time(),
    )


def _n_rows(X: FloatArray) -> tuple[int, int]:
    """Rows that are looked at, and plain terms that vanish on them in some directions."""
    spare = int(STRANGE.rows_per_direction * STRANGE.directions)
    size = min(STRANGE.plain, STRANGE.plain_per_column * X.shape[1], len(X) - spare)
    return min(len(X), size + spare), size


class _Blocks:
    """Small formulas h with values [H, N] and their multiples by a few factors, as seen in some directions."""

    def __init__(self, seen: _Directions, formulas: Formulas, factors: Sequence[tuple[Node, FloatArray]]) -> None:
        self.formulas, self.factors = formulas, factors
        others = np.stack([x for _, x in factors])
        parts = np.array_split(formulas.values, len(formulas.values) // STRANGE.at_once + 1)
        columns = [seen.shown((h[:, None, :] * others).reshape(-1, seen.n)) for h in parts]
        shape = (len(formulas.values), len(others), -1)
        self.bases = np.linalg.qr(np.concatenate(columns).reshape(shape).transpose(0, 2, 1))[0]  # [H, D, B]

    def left(self, target: FloatArray) -> FloatArray:
        """Share [H] of the square of a target [D] of size 1 that is left beside each block."""
        return np.asarray(1.0 - np.sum(np.matmul(target, self.bases) ** 2, axis=1))

    def left_of_any(self, targets: FloatArray) -> FloatArray:
        """The least such share [H] of any sum of targets with a basis [D, T]; 1 where it is clearly no rounding."""
        inside = np.matmul(targets.T, self.bases)
        left = np.eye(targets.shape[1]) - np.matmul(inside, inside.transpose(0, 2, 1))
        # where nothing is left of a sum, what solves for any right side is large: quicker than all eigenvalues
        slack = 0.1 * STRANGE.vanished * np.eye(targets.shape[1])
        drawn = np.random.default_rng(0).normal(size=(targets.shape[1], 1))
        solved = np.linalg.norm(np.linalg.solve(left + slack, drawn), axis=(1, 2))
        shares = np.ones(len(left))
        few = np.flatnonzero(solved > STRANGE.large * np.linalg.norm(drawn))
        shares[few] = np.linalg.eigvalsh(left[few])[:, 0]
        return shares

    def terms(self, h: int) -> list[tuple[Node, FloatArray]]:
        """The columns of a block with their values [N]."""
        node = self.formulas.node(h)
        return [(build("mul", factor, node), x * self.formulas.values[h]) for factor, x in self.factors]


class _Directions:
    """Directions [N, D] in which plain terms over columns X [N, V] vanish, and small formulas as seen in them."""

    def __init__(self, X: FloatArray, y: FloatArray, functions: FunctionSet, size: int) -> None:
        self.n = n = len(y)
        self.X, self.functions = X, functions
        self.plain = brief_vocabulary(self.X, functions.allows, most_terms=size)
        self.weights = _weights(np.vstack([self.plain.values, y - np.median(y)]))
        basis = orthonormal((self.plain.values * self.weights).T, VOCABULARY.spanned)
        drawn = np.random.default_rng(0).normal(size=(n, STRANGE.directions))
        self.directions = np.linalg.qr(beside(basis, drawn))[0]
        small = small_terms(self.X)
        self.few = small[: 1 + X.shape[1]]
        usual = FunctionSet([name for name in USUAL if functions.allows({name})])
        columns = [Formulas.of(self.X, usual, STRANGE.looked_at, j) for j in range(X.shape[1])]
        self.small = every = Formulas.of(self.X, usual, int(STRANGE.beside / n))
        every = Formulas.together(
            [
                every,
                of_pairs(self.X, usual, int(STRANGE.of_pairs / n)),
                of_products(self.X, usual, int(STRANGE.of_products / n)),
            ]
        )
        self.tries = STRANGE.tries
        self.swept, self.sweeps = 0.0, list(STRANGE.swept_again)
        self.out_of_time: Callable[[], bool] = lambda: False
        self.beside, self.vectors = self._strange(every)
        own = self._of_columns(columns)
        self.wide = small if len(small) <= STRANGE.block else [*self.few, *_squares(self.X)][: STRANGE.block]
        cubic = [*small, *_cubes(self.X)] if X.shape[1] <= STRANGE.cubic else self.wide
        some = Formulas.together([inverse_sums(self.X, usual), self.beside.only(np.arange(STRANGE.of_all))])
        kinds = [(own, cubic), (some, _factors(self.X, functions))]
        self.blocks = [_Blocks(self, formulas, factors) for formulas, factors in kinds if len(formulas.values)]

    def shown(self, values: FloatArray) -> FloatArray:
        """Values [K, N] in these directions, [K, D] of size 1; zero where what is left is rounding."""
        with np.errstate(all="ignore"):
            weighted = values * self.weights
            found = (weighted / np.linalg.norm(weighted, axis=1, keepdims=True)) @ self.directions
            sizes = np.linalg.norm(found, axis=1, keepdims=True)
            return np.asarray(np.where(sizes > STRANGE.seen, found / sizes, 0.0))

    def _strange(self, formulas: Formulas) -> tuple[Formulas, FloatArray]:
        """Those that are no plain sums, the first of each that differ by such a sum or a factor, as seen here."""
        vectors = self.shown(formulas.values)
        signed = vectors[:, : STRANGE.told_apart] * np.where(vectors[:, :1] < 0, -1.0, 1.0)
        first = np.sort(np.unique(np.round(signed, STRANGE.digits), axis=0, return_index=True)[1])
        first = first[vectors[first].any(axis=1)]
        return formulas.only(first), vectors[first]

    def _of_columns(self, columns: Sequence[Formulas]) -> Formulas:
        """Of each column the plainest functions, since what they are multiplied by may be strange, and strange ones."""
        most = max(STRANGE.of_one // len(columns), 1)
        strange = [self._strange(some)[0] for some in columns]
        return Formulas.together(
            [plain_functions(self.X, self.functions), *(some.only(np.arange(most)) for some in strange)]
        )

    def formulas(self, stage: Stage) -> Iterator[Node]:
        """Formulas of what is left of a target, sums first."""
        readings = direct_readings(stage.target, self.functions) | outer_readings(stage.target, self.functions)
        for name, target in readings.items():
            (vector,) = self.shown(target[None])
            if vector.any():  # no plain sum: others have seen those
                for span in self._spans(vector, are_two=name == PLAIN):
                    found = span.sparse(self.weights * target)
                    if found is not None:
                        yield EVERY_READING[name].invert(sum_of(found), stage.sign)
        if self.functions.allows({"div"}):
            # few first: of many, several denominators hold
            for below in (self.few, self.wide) if stage.steps else (self.wide,):
                vectors = self.shown(np.stack([stage.target * x for _, x in below]))
                for span in self._spans_of_fractions(vectors[vectors.any(axis=1)]):
                    fraction = fraction_in(span, self.weights * stage.target, below)
                    if fraction is not None:
                        yield fraction
        if self.sweeps and len(stage.steps) <= 1:
            yield from self._behind_any_step(stage.target, self.sweeps.pop(0) * self.swept)

    @cached_property
    def _sweep(self) -> Sweep:
        """Steps by all small formulas."""
        return Sweep(
            self.small.values,
            self.small.node,
            weights=self.weights,
            directions=self.directions,
            vectors=self.vectors,
            bases=[blocks.bases for blocks in self.blocks],
            functions=self.functions,
        )

    def _behind_any_step(self, target: FloatArray, seconds: float) -> Iterator[Node]:
        """Formulas of a target [N] that are a plain sum with something strange in it behind a step by a small formula."""
        if not self.shown(target[None]).any():
            self.sweeps = []
            return  # plain terms hold it, and whatever else is as smooth
        for hit in self._sweep.hits(target, seconds, self.out_of_time)[: SWEPT.tried]:
            terms: list[tuple[Node, FloatArray]] = []
            if hit.block is not None:
                terms = self.blocks[hit.block[0]].terms(hit.block[1])
            elif hit.formula >= 0:
                terms = [(self.beside.node(hit.formula), self.beside.values[hit.formula])]
            found = self._span(terms).sparse(self.weights * hit.target)
            if found is not None:
                yield hit.back(sum_of(found))

    def _spans(self, vector: FloatArray, *, are_two: bool) -> Iterator[Span]:
        """Plain terms with a block that hold a target [D], or with a block and a small formula beside it."""
        alone = 1.0 - (self.vectors @ vector) ** 2
        for h in _least(alone, STRANGE.vanished)[: self.tries]:
            yield self._span([(self.beside.node(h), self.beside.values[h])])
        for blocks in self.blocks:
            left = blocks.left(vector)
            for h in _least(left, STRANGE.vanished)[: self.tries]:
                yield self._span(blocks.terms(h))
            for h in np.argsort(left, kind="stable")[: STRANGE.leading] if are_two else ():
                if left[h] > STRANGE.vanished:
                    basis = blocks.bases[h]
                    beside = self._beside(vector - basis @ (basis.T @ vector), basis)
                    for k in _least(beside, STRANGE.vanished / float(left[h]))[: self.tries]:
                        yield self._span([*blocks.terms(int(h)), (self.beside.node(k), self.beside.values[k])])

    def _beside(self, rest: FloatArray, basis: FloatArray) -> FloatArray:
        """Share of what a basis [D, B] leaves of a target, rest [D], that is left beside each small formula."""
        vectors = self.vectors[: STRANGE.seconds]
        others = vectors - (vectors @ basis) @ basis.T
        sizes = np.linalg.norm(others, axis=1)
        with np.errstate(all="ignore"):
            shares = 1.0 - (others @ rest / sizes) ** 2 / float(rest @ rest)
        return np.where(sizes > STRANGE.seen, shares, 1.0)

    def _spans_of_fractions(self, vectors: FloatArray) -> Iterator[Span]:
        """Plain terms with a block that hold a sum of targets [T, D]."""
        if not len(vectors):
            return
        basis = np.linalg.qr(vectors.T)[0]
        for blocks in self.blocks:
            for h in _least(blocks.left_of_any(basis), STRANGE.vanished)[: self.tries]:
                yield self._span(blocks.terms(h))

    def _span(self, strange: Sequence[tuple[Node, FloatArray]]) -> Span:
        """What plain terms and some strange ones span, over weighted rows."""
        self.tries -= 1
        values = np.vstack([self.plain.values, *(x for _, x in strange)]) * self.weights
        m = len(self.plain.values)
        return Span(values, lambda k: self.plain.node(k) if k < m else strange[k - m][0])


def _least(shares: FloatArray, bound: float) -> list[int]:
    """The few of least share, where that is rounding."""
    return [int(h) for h in np.argsort(shares, kind="stable")[: STRANGE.tried] if shares[h] < bound]


def _weights(values: FloatArray) -> FloatArray:
    """Weights [N] of rows by which no few of them swamp the others, whatever of some values [M, N] is large there."""
    sizes = np.quantile(np.abs(values), STRANGE.usual, axis=1, keepdims=True)
    usable = np.isfinite(values).all(axis=1) & (sizes[:, 0] > 0)
    return np.asarray(1.0 / np.sqrt(np.mean((values[usable] / sizes[usable]) ** 2, axis=0)))


def _squares(X: FloatArray) -> list[tuple[Node, FloatArray]]:
    return [(build("square", Variable(j)), x**2) for j, x in enumerate(X.T)]


def _cubes(X: FloatArray) -> list[tuple[Node, FloatArray]]:
    """Products of three columns, the same or not, with their values [N]."""
    names = combinations_with_replacement(range(X.shape[1]), 3)
    return [(build("mul", *map(Variable, three)), X[:, three].prod(axis=1)) for three in names]


def _factors(X: FloatArray, functions: FunctionSet) -> list[tuple[Node, FloatArray]]:
    """What formulas of several columns are multiplied by, with their values [N]: 1, columns, functions of each."""
    columns = [Variable(j) for j in range(X.shape[1])]
    nodes: list[Node] = [Constant(1.0), *columns]
    for name in ("inv", "sqrt", "exp", "log", "cos", "sin", "square"):
        nodes += [build(name, column) for column in columns if functions.allows({name})]
    return valued(nodes, X)[: STRANGE.block]
