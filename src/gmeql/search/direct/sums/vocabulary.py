"""Sums of any number of plain terms, their fractions and what has a root beside them: one fit over a whole vocabulary.

Where a table has more rows than a vocabulary has terms, none need be chosen: if the target is a sum of some of them, one
least squares fit over all leaves nothing, and what it does not need is dropped afterwards, many terms at a time. The
basis of the vocabulary also answers, for next to nothing, whether a reading of the target is such a sum, whether it is one
times a small denominator D (y D is in the span for a null vector D of what the span leaves of y times small terms), and
whether y is L ± sqrt(Q) (y² - 2 L y is in the span).

Many terms together come near anything smooth. A sum is believed only where each of its terms is seen: without it the others
leave far more than rounding.

Legend: `N` rows, `M` terms, `K` dimensions of their span, `B` small terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build, tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.data.readings import PLAIN
from gmeql.search.direct.readings import DIRECT_READINGS, direct_readings
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.terms.column_functions import PLAIN_TERMS
from gmeql.search.direct.terms.denominators import Below
from gmeql.search.direct.terms.library import Library, function_vocabulary, vocabulary

FloatArray = NDArray[np.float64]
Weighted = list[tuple[float, Node]]
"""Terms with their factors."""


@dataclass(frozen=True)
class VocabularyConfig:
    """Numbers of the method; "tried" on sums of three to six terms of the vocabulary over one to five columns."""

    sizes: tuple[int, ...] = (160, 350, 700)  # of vocabularies, one after the other,
    functions: int = 450  # and of that in which functions stand before products of other columns
    max_columns: int = 10
    rows_per_term: float = 1.3
    spare_rows: int = 20
    most_rows_per_term: float = 2.0  # more tell nothing more
    spanned: float = 1e-15  # singular values below this share of the largest span nothing
    outside: int = 64  # directions in which a span vanishes, and
    few_outside: int = 16  # that it takes to tell what does too
    more_outside: float = 1.5  # times as many as small terms of which a sum may vanish
    surely: float = 2.0  # times a bound: a glimpse beyond that is never below the bound when looked at closely
    exact: float = 1e-11  # error, relative to the target's size, from which it is taken to be in the span
    rounding: float = 3e-14  # ... and up to which what is left is rounding,
    above_fit: float = 30.0  # or up to so many times what the whole vocabulary leaves
    seen: float = 1e-6  # error, relative to the target's size, that a sum must have without any of its terms
    max_terms: int = 14
    vain: int = 4  # targets in the span of which no few terms were the sum, after which no more are looked at
    shares: tuple[float, ...] = (1 / 8, 1 / 4, 1 / 2, 1.0)  # of the terms, the plainest, that are tried alone first
    digits: int = 9  # to which the values of two terms, over their sizes, agree where they are one
    dropped: float = 1 / 3  # share of the terms that are dropped together at first
    singly: int = 40  # terms from which each is tried by itself
    null: float = 1e-11  # singular values of y times small terms, beside the span, that are none,
    gap: float = 1e4  # and by how much the next must be larger
    may_vanish: float = 1e-3  # share of a column beside those before it from which singular values are asked for
    verified: float = 1e-8  # error of the formula on all rows, relative to the target's spread
    divided: int = 100  # terms that may stand over a denominator, or beside it
    seconds_per_product: float = 5e-10  # of a row with two terms, on one core (measured)


VOCABULARY = VocabularyConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """A sum of plain terms, a fraction of two, or one with a root beside it that is the target. Draws nothing."""
    if not 1 <= table.n_columns <= VOCABULARY.max_columns or not functions.allows({"add", "mul"}):
        return
    if not table.has_values:
        return
    sign = 1.0 if table.y.mean() >= 0 else -1.0
    left, last = effort.seconds, 0
    for size, terms_of in _vocabularies(table.n_columns):
        most = min(size, int((len(table.y) - VOCABULARY.spare_rows) / VOCABULARY.rows_per_term))
        if most <= last and terms_of is _plain_terms:
            return
        if effort.out_of_time():
            return
        terms = terms_of(table.X[: int(VOCABULARY.most_rows_per_term * most) + VOCABULARY.spare_rows], functions, most)
        n = min(len(table.y), int(VOCABULARY.most_rows_per_term * len(terms)) + VOCABULARY.spare_rows)
        left -= VOCABULARY.seconds_per_product * n * len(terms) ** 2
        if left < 0 or effort.out_of_time():
            return
        last = most if terms_of is _plain_terms else last
        span = Span(terms.values[:, :n], terms.node)
        readings = {name: target[:n] for name, target in direct_readings(table.y, functions).items()}
        for root in formulas_in(span, Below(table.X[:n]), readings, functions, sign, has_ended=effort.out_of_time):
            if table.error(root) < VOCABULARY.verified:
                yield root
                return
        if effort.is_quick:
            return  # the first is the smallest


def _plain_terms(X: FloatArray, functions: FunctionSet, most: int) -> Library:
    return vocabulary(X, functions.allows, numbers=replace(PLAIN_TERMS, most_terms=most))


def _terms_with_functions(X: FloatArray, functions: FunctionSet, most: int) -> Library:
    return function_vocabulary(X, functions.allows, most_terms=most)


def _vocabularies(n_columns: int) -> Iterator[tuple[int, Callable[[FloatArray, FunctionSet, int], Library]]]:
    """Sizes of vocabularies and what makes them, one after the other; the products of three are those of three columns."""
    few, *more = VOCABULARY.sizes
    yield few, _plain_terms
    if n_columns >= 3:
        yield VOCABULARY.functions, _terms_with_functions
    yield from ((size, _plain_terms) for size in more)


def formulas_in(
    span: Span,
    below: Below,
    readings: dict[str, FloatArray],
    functions: FunctionSet,
    sign: float,
    *,
    has_ended: Callable[[], bool] = lambda: False,
) -> Iterator[Node]:
    """Formulas whose target is in the span in one way or another, sums first; `has_ended` is asked between two ways."""
    for name, target in readings.items():
        found = span.sparse(target)
        if found is not None:
            yield DIRECT_READINGS[name].invert(sum_of(found), sign)
    sums = ("few", "small", "of_three") if functions.allows({"div"}) else ()
    for kind, name in ((some, name) for some in sums for name in (readings if some != "of_three" else (PLAIN,))):
        if has_ended():
            return
        fraction = fraction_in(span, readings[name], getattr(below, kind))
        if fraction is not None:
            yield DIRECT_READINGS[name].invert(fraction, sign)
    if functions.allows({"sqrt"}) and not has_ended():
        beside = beside_root(span, readings[PLAIN], below.small, below.X)
        if beside is not None:
            yield beside
    fraction = fraction_in(span, readings[PLAIN], below.powers) if functions.allows({"div", "cube"}) else None
    if fraction is not None:
        yield fraction


def sum_of(terms: Weighted) -> Node:
    return build("add", *(build("mul", Constant(factor), node) for factor, node in terms))


class Span:
    """What terms with values [M, N] span: `columns` [N, M'] of size 1 and a `basis` [N, K]; `node` says which term is m."""

    def __init__(self, values: FloatArray, node: Callable[[int], Node]) -> None:
        sizes = np.sqrt(np.mean(values**2, axis=1))
        usable = np.flatnonzero(np.isfinite(sizes) & (sizes > 0))
        # of terms that are one another's multiples on these rows the plainest
        alike = np.round(values[usable] / sizes[usable, None], VOCABULARY.digits) + 0.0  # the two zeros are one number
        first = {row.tobytes(): place for place, row in reversed(list(enumerate(alike)))}
        self.numbers = usable[sorted(first.values())]
        self.values, self.node, self.sizes = values[self.numbers], node, sizes[self.numbers]
        self.columns = (self.values / self.sizes[:, None]).T
        n, m = self.columns.shape
        drawn = np.random.default_rng(m).standard_normal((n, max(0, min(VOCABULARY.outside, n - m))))
        basis = np.linalg.qr(np.column_stack([self.columns, drawn]))[
            0
        ]  # the first so many columns span the first terms
        self.basis, self.outside = basis[:, :m], basis[:, m:]
        self.vain = 0

    def with_quotients(self, denominator: Node, below: FloatArray) -> Span:
        """The plainest of the terms, and each of them over a denominator [N]."""
        values, m = self.values[: VOCABULARY.divided], min(len(self.values), VOCABULARY.divided)

        def node(k: int) -> Node:
            own = self.node(int(self.numbers[k % m]))
            return own if k < m else build("div", own, denominator)

        return Span(np.concatenate([values, values / below]), node)

    def left(self, targets: FloatArray, *, times: int = 2) -> FloatArray:
        """What is left of targets [N] or [N, T] beside the span; projected twice, since once rounds."""
        for _ in range(times):
            targets = targets - self.basis @ (self.basis.T @ targets)
        return np.asarray(targets)

    def glimpse(self, targets: FloatArray) -> FloatArray:
        """What is left of targets [N] or [N, T] beside the span, as seen in some directions [D] or [D, T], with about the size
        that it has in all of them: a tenth of the work, and nothing only where nothing is left."""
        n_outside = self.outside.shape[1]
        if n_outside < VOCABULARY.few_outside:
            return self.left(targets)
        return np.asarray(self.outside.T @ targets * math.sqrt((len(self.basis) - self.basis.shape[1]) / n_outside))

    def sparse(self, target: FloatArray) -> Weighted | None:
        """The few terms whose sum is the target; None where there are none, or where one of them is hardly seen."""
        size, bound = _size(target), VOCABULARY.exact * math.sqrt(len(target))
        if not (math.isfinite(size) and size > 0):
            return None
        if np.linalg.norm(self.glimpse(target)) > VOCABULARY.surely * bound * size:
            return None
        if _size(self.left(target)) > VOCABULARY.exact * size:
            return None
        if self.vain >= VOCABULARY.vain:
            return None  # over a narrow range the terms are one another's sums, and hold whatever is smooth
        without = np.cumsum((self.basis.T @ target)[::-1] ** 2)[
            ::-1
        ]  # squares that each of the terms, or one behind it, is for
        for n_terms in (math.ceil(share * self.columns.shape[1]) for share in VOCABULARY.shares):
            if n_terms < len(without) and without[n_terms] > (VOCABULARY.surely * bound * size) ** 2:
                continue
            found = self._sparse_of(n_terms, target / size)
            if found is not None:
                own = size * found[1] / self.sizes[found[0]]
                return [
                    (float(f"{c:.13g}"), self.node(int(self.numbers[m]))) for c, m in zip(own, found[0], strict=True)
                ]
        self.vain += 1
        return None

    def _sparse_of(self, n_terms: int, target: FloatArray) -> tuple[NDArray[np.int64], FloatArray] | None:
        """Which of the plainest terms, and their factors, are a target of size 1; None where they are not."""
        kept, factors, error = self._fitted(np.arange(n_terms), target)
        if error > VOCABULARY.exact:
            return None
        allowed = max(VOCABULARY.rounding, VOCABULARY.above_fit * error)
        few = self._without_small(kept, factors, target, allowed)
        kept, factors = min((self._singly(*few, target, allowed, weight) for weight in (_sizes, _seen)),
                            key=lambda one: len(one[0]))  # fmt: skip
        least = np.min(_seen(self.columns[:, kept], factors))
        return None if len(kept) > VOCABULARY.max_terms or not least > VOCABULARY.seen else (kept, factors)

    def _fitted(self, kept: NDArray[np.int64], target: FloatArray) -> tuple[NDArray[np.int64], FloatArray, float]:
        columns = self.columns[:, kept]
        factors = np.asarray(np.linalg.lstsq(columns, target, rcond=VOCABULARY.spanned)[0])
        return kept, factors, _size(target - columns @ factors)

    def _without_small(
        self, kept: NDArray[np.int64], factors: FloatArray, target: FloatArray, allowed: float
    ) -> tuple[NDArray[np.int64], FloatArray]:
        """The terms that are left when those of least size go, as many together as leave no more than rounding."""
        together = max(1, int(VOCABULARY.dropped * len(kept)))
        while together and len(kept) > VOCABULARY.singly:
            fewer = np.sort(kept[np.argsort(np.abs(factors), kind="stable")[together:]])
            trial = self._fitted(fewer, target)
            if trial[2] <= allowed:
                kept, factors, _ = trial
                together = max(1, min(2 * together, len(kept) // 2))
            else:
                together //= 2
        return kept, factors

    def _singly(
        self, kept: NDArray[np.int64], factors: FloatArray, target: FloatArray, allowed: float, weight: _Weight
    ) -> tuple[NDArray[np.int64], FloatArray]:
        """The terms that are left when one after the other goes, that of least weight of those that can."""
        needed: set[int] = set()
        while len(kept) > 1 and len(kept) <= VOCABULARY.singly:
            order = kept[np.argsort(weight(self.columns[:, kept], factors), kind="stable")]
            m = next((int(m) for m in order if m not in needed), None)
            if m is None:
                break
            trial = self._fitted(kept[kept != m], target)
            if trial[2] <= allowed:
                kept, factors, _ = trial
            else:
                needed.add(m)
        return kept, factors


_Weight = Callable[[FloatArray, FloatArray], FloatArray]


def _sizes(columns: FloatArray, factors: FloatArray) -> FloatArray:
    """How large terms are [M], given columns [N, M] of size 1."""
    return np.abs(factors)


def _seen(columns: FloatArray, factors: FloatArray) -> FloatArray:
    """What the others leave without each term [M], least squares: |c| over the root of the diagonal of (A'A)⁻¹."""
    inverse = np.linalg.pinv(np.linalg.qr(columns, mode="r"), rcond=VOCABULARY.spanned)
    return np.asarray(np.abs(factors) / np.sqrt(np.sum(inverse**2, axis=1) * len(columns)))


def _size(values: FloatArray) -> float:
    """Root mean square."""
    return math.sqrt(float(np.mean(values**2)))


# --- fractions and roots ------------------------------------------------------------------------------------------------


def fraction_in(span: Span, y: FloatArray, below: Sequence[tuple[Node, FloatArray]]) -> Node | None:
    """S/D with S in the span and D a sum of small terms, where y is that; None where it is not."""
    small = np.stack([values for _, values in below], axis=1)
    vector = _null_vector(span, y[:, None] * small)
    if vector is None or np.count_nonzero(vector) < 1 or not np.ptp(small @ vector) > 0:
        return None
    values = small @ vector
    above = span.sparse(y * values)
    if above is None or not (values != 0).all():
        return None
    denominator = sum_of([(float(f"{c:.13g}"), node) for c, (node, _) in zip(vector, below, strict=True) if c])
    forms = [build("div", sum_of(above), denominator)]
    mixed = span.with_quotients(denominator, values).sparse(y)
    forms += [] if mixed is None else [sum_of(mixed)]
    return min(forms, key=tree_complexity)


def beside_root(
    span: Span,
    y: FloatArray,
    before: Sequence[tuple[Node, FloatArray]],
    X: FloatArray,
    weights: FloatArray | None = None,
) -> Node | None:
    """L + A sqrt(Q) with L a sum of small terms, A a column, a sum of two or a number, and A²Q and Q in the span of terms with
    such weights [N], where y is that; None where it is not."""
    small, weights = np.stack([values for _, values in before], axis=1), np.ones(len(y)) if weights is None else weights
    vector = _null_vector(span, weights[:, None] * np.column_stack([y**2, y[:, None] * small]))
    if vector is None or not vector[0] or not np.count_nonzero(vector[1:]):
        return None
    # as they are written: a rounding of the twelfth digit, which another processor has, hides the sum under the root
    factors = np.array([float(f"{c:.11g}") for c in -vector[1:] / (2 * vector[0])])
    rest = y - small @ factors
    turned = _of_sign(rest, X)
    under = None if turned is None else span.sparse(weights * (rest / turned[1]) ** 2)
    if under is None or turned is None:
        return None
    whole = [(float(c), node) for c, (node, _) in zip(factors, before, strict=True) if c]
    return build("add", sum_of(whole), build("mul", turned[0], build("sqrt", sum_of(under))))


def _of_sign(values: FloatArray, X: FloatArray) -> tuple[Node, FloatArray] | None:
    """What has the sign of values [N] on every row: a number, a column, a sum or a difference of two; None where none has."""
    signs = np.sign(values)
    columns: list[Node] = [Variable(j) for j in range(X.shape[1])]
    ways: list[tuple[Node, FloatArray]] = [(Constant(1.0), np.ones(len(values))), *zip(columns, X.T, strict=True)]
    for i, j in combinations(range(len(columns)), 2):
        ways += [(build(name, columns[i], columns[j]), X[:, i] + s * X[:, j]) for name, s in (("add", 1), ("sub", -1))]
    for node, x in ways:
        agree = float(np.sum(signs * np.sign(x)))
        if abs(agree) == len(signs):
            return (node, x) if agree > 0 else (build("neg", node), x)
    return None


def _null_vector(span: Span, columns: FloatArray) -> FloatArray | None:
    """The one sum of columns [N, B] that is in the span, with as few of them as it takes; None where there is none.

    Columns that are in the span themselves say nothing.
    """
    sizes = np.sqrt(np.mean(columns**2, axis=0))
    if not (np.isfinite(sizes).all() and (sizes > 0).all()):
        return None
    beside = span.glimpse(columns / sizes)
    if len(beside) > VOCABULARY.more_outside * columns.shape[1] and not _may_vanish(beside):
        return None
    beside = span.left(columns / sizes, times=1)
    if not _may_vanish(beside):
        return None
    beside = span.left(beside, times=1)
    kept = np.flatnonzero(np.sqrt(np.mean(beside**2, axis=0)) > VOCABULARY.exact)
    vector = _last(beside[:, kept])
    if vector is None:
        return None
    for m in kept[np.argsort(np.abs(vector), kind="stable")]:
        fewer = kept[kept != m]
        trial = _last(beside[:, fewer]) if len(fewer) else None
        if trial is not None:
            kept, vector = fewer, trial
    found = np.zeros(len(sizes))
    found[kept] = vector / sizes[kept]
    unit = found[kept[np.argmin(np.abs(found[kept]))]]
    return np.asarray(found / unit) if unit else None  # over so many magnitudes that one of them is no number


def _may_vanish(columns: FloatArray) -> bool:
    """Whether some sum of columns [N, B] may vanish: the last column of it then is all but a sum of those before it, which
    the diagonal of their triangle tells for a fraction of what singular values take."""
    columns = columns[:, np.linalg.norm(columns, axis=0) > 0]
    if columns.shape[1] < 2:
        return False
    diagonal = np.abs(np.diag(np.linalg.qr(columns / np.linalg.norm(columns, axis=0), mode="r")))
    return bool(diagonal.min() < VOCABULARY.may_vanish)


def _last(columns: FloatArray) -> FloatArray | None:
    """The factors that make columns [N, B] vanish; None where they do not, or where there are several such."""
    if columns.shape[1] < 2:
        return None
    _, singular, vectors = np.linalg.svd(np.linalg.qr(columns, mode="r"))
    if singular[-1] > VOCABULARY.null * singular[0] or singular[-2] < VOCABULARY.gap * singular[-1]:
        return None
    return np.asarray(vectors[-1])
