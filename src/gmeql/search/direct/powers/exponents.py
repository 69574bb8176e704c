"""Laws with a column in an exponent: 1 - exp(-(t/l)**k), b + (m - b)/(1 + (x/e)**h), P*r/(1 - (1 + r)**-n), A*exp(-b*exp(-c*t)).

The target less a column, over a column or two or a difference of two, is z: a share that lies between 0 and 1, or one over
such. Then z, 1 - z, z/(1 - z), and so on, may be u**k, whose logarithm over k is log(u), or exp(-u**k), whose logarithm's
logarithm is. So every such T is divided by every column, by one over it and by products of two. What is left may be a sum of
columns, of products and fractions of two, and of logarithms; or its exponential, or one over that, a sum without logarithms. All
are asked at once: what is a sum on every row is at right angles to whatever stands at right angles to its terms.

Legend: `N` rows, `R` of them that tell, `M` terms, `V` columns, `E` exponents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build, row_values
from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import DirectTable, Effort

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ExponentsConfig:
    """Numbers of the method."""

    max_columns: int = 6
    few_rows: int = 100
    rows: int = 400  # from which those are taken that tell
    angles: int = 8  # directions at right angles to all terms
    far: float = 30.0  # size of a logarithm from which a share is 0 or 1 but for rounding; such rows tell nothing,
    near: float = 1e-5  # as do those that are so near to one of them
    telling: float = 0.4  # share of the rows that must
    met: float = 1e-6  # what a sum may leave, relative to its size
    negligible: float = 1e-9  # a term's share of the sum below which it is none
    digits: int = 12  # of factors: what is behind them is rounding
    verified: float = 1e-8  # error of the formula on all rows, relative to the target's spread
    tried: int = 12  # sums that are written down
    seconds: float = 0.01  # of one core (measured: up to 0.025 on six columns)


EXPONENTS = ExponentsConfig()
_Way = Callable[[Node], Node]
"""From a formula of something to one of the target, or of what it was made from."""


@dataclass(frozen=True, eq=False)
class _Target:
    """A logarithm T [N] of something made from the target, and the way back from what it is the logarithm of."""

    values: FloatArray
    undo: _Way


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """Laws with a column in an exponent that are the target on all rows. Draws nothing at random."""
    n = min(len(table.y), EXPONENTS.rows)
    if not 1 <= table.n_columns <= EXPONENTS.max_columns or n < EXPONENTS.few_rows or not table.varies:
        return
    if not functions.allows({"exp", "log", "add", "sub", "mul", "div"}):
        return
    if effort.seconds < EXPONENTS.seconds or effort.out_of_time():
        return
    X, y = table.X[:n], table.y[:n]
    with np.errstate(all="ignore"):
        sums, targets = _Sums(X), list(_targets(X, y))
    tried = 0
    for target in targets:
        if effort.out_of_time():
            return
        with np.errstate(all="ignore"):
            found = list(sums.of(target))
        for root in found:
            tried += 1
            if table.error(root) < EXPONENTS.verified:
                yield root
                return
            if tried >= EXPONENTS.tried:
                return


# --- what is made from the target ---------------------------------------------------------------------------------


def _targets(X: FloatArray, y: FloatArray) -> Iterator[_Target]:
    """Logarithms of shares, and logarithms of these."""
    for z, back in _shares(X, y):
        for form in _FORMS:
            values = form.forward(z)
            if not (values > -EXPONENTS.near).all() or not np.mean(values > EXPONENTS.near) > EXPONENTS.telling:
                continue
            logarithm = _telling(np.log(values), values)
            yield _Target(logarithm, _chained(back, form.undo))
            if (sign := _one_sign(logarithm)) != 0.0:
                inner = _telling(np.log(np.abs(logarithm)), np.abs(logarithm))
                yield _Target(inner, _chained(back, form.undo, _exponential_of(sign)))


def _shares(X: FloatArray, y: FloatArray) -> Iterator[tuple[FloatArray, _Way]]:
    """The target less a column or none, over a column, a product, a fraction or a difference of two; the way back."""
    columns = [Variable(j) for j in range(X.shape[1])]
    plain: list[Node] = [_ONE, *columns]
    names = [f"x{j}" for j in range(X.shape[1])]
    for node in (*plain, *_products(X.shape[1]), *_fractions(X.shape[1])):
        yield y / row_values(node, names, X), partial(build, "mul", node)
    for less in columns:
        others: list[Node] = [node for node in plain if node != less]
        others += [build("sub", node, less) for node in columns if node != less]
        rest = y - X[:, less.index]
        for node in others:
            values = rest / row_values(node, names, X)
            yield values, _chained(partial(build, "add", less), partial(build, "mul", node))


@dataclass(frozen=True)
class _Form:
    """Something made from a share, and the share by it."""

    forward: Callable[[FloatArray], FloatArray]
    undo: _Way


_ONE = Constant(1.0)
_FORMS = (
    _Form(lambda z: z, lambda f: f),
    _Form(lambda z: 1 - z, lambda f: build("sub", _ONE, f)),
    _Form(lambda z: z - 1, lambda f: build("add", _ONE, f)),
    _Form(lambda z: 1 / z - 1, lambda f: build("inv", build("add", _ONE, f))),
    _Form(lambda z: 1 - 1 / z, lambda f: build("inv", build("sub", _ONE, f))),
)


def _products(n_columns: int) -> list[Node]:
    return [build("mul", Variable(a), Variable(b)) for a, b in combinations(range(n_columns), 2)]


def _fractions(n_columns: int) -> list[Node]:
    return [build("div", Variable(a), Variable(b)) for a, b in permutations(range(n_columns), 2)]


def _telling(logarithm: FloatArray, values: FloatArray) -> FloatArray:
    """A logarithm without the rows that have no digits of it: those are nan."""
    tells = (np.abs(logarithm) < EXPONENTS.far) & (values > EXPONENTS.near)
    return np.where(tells, logarithm, np.nan)


def _one_sign(values: FloatArray) -> float:
    """The sign of all values that are known; 0 where they have several."""
    known = values[np.isfinite(values)]
    return float(np.sign(known[0])) if len(known) and (np.sign(known) == np.sign(known[0])).all() else 0.0


def _exponential_of(sign: float) -> _Way:
    return lambda f: build("exp", f if sign > 0 else build("neg", f))


def _chained(*ways: _Way) -> _Way:
    def chained(root: Node) -> Node:
        for way in reversed(ways):
            root = way(root)
        return root

    return chained


# --- sums in an exponent, or under a power ------------------------------------------------------------------------


class _Sums:
    """Sums of plain terms over columns X [N, V], and of logarithms, and what may stand before them in an exponent."""

    def __init__(self, X: FloatArray) -> None:
        names = [f"x{j}" for j in range(X.shape[1])]
        columns: list[Node] = [Variable(j) for j in range(X.shape[1])]
        products = _products(X.shape[1])
        terms = [_ONE, *columns, *products, *_fractions(X.shape[1])]
        logged = [*columns, *(build(name, a, b) for a, b in combinations(columns, 2) for name in ("add", "sub"))]
        self._terms, self._plain = _finite(terms, [row_values(node, names, X) for node in terms])
        inside = [np.abs(row_values(node, names, X)) for node in logged]
        self._logged, logarithms = _finite(logged, [np.log(values) for values in inside])
        self._all = np.column_stack([self._plain, logarithms])
        self._signs = [1.0 if row_values(node, names, X)[0] > 0 else -1.0 for node in self._logged]
        before = [_ONE, *columns, *(build("inv", node) for node in columns), *products]
        self._exponents, divisors = _finite(before, [row_values(node, names, X) for node in before])
        self._divisors = divisors.T
        self._right_angles: dict[bytes, tuple[NDArray[np.int_], FloatArray, FloatArray]] = {}

    def of(self, target: _Target) -> Iterator[Node]:
        """Formulas by which a target's logarithm is an exponent times a sum, or times the logarithm of one."""
        known = np.isfinite(target.values)
        found = self._telling_rows(known)
        if found is None:
            return
        rows, beside_all, beside_plain = found
        left = target.values[rows] / self._divisors[:, rows]  # [E, R]
        looks = ((np.exp(left), beside_plain, self._base), (np.exp(-left), beside_plain, self._base_below))
        for values, beside, write in (*looks, (left, beside_all, self._sum)):
            size = np.sqrt(np.mean((values - values.mean(axis=1, keepdims=True)) ** 2, axis=1))
            off = np.sqrt(np.mean((values @ beside) ** 2, axis=1))
            for e in np.flatnonzero((off < EXPONENTS.met * size) & np.isfinite(size)):
                root = write(target.values[known] / self._divisors[e, known], known)
                if root is not None:
                    yield target.undo(build("exp", build("mul", self._exponents[e], root)))

    def _telling_rows(self, known: NDArray[np.bool_]) -> tuple[NDArray[np.int_], FloatArray, FloatArray] | None:
        """Some rows on which a logarithm is known, and directions at right angles to all terms there, and to all but the
        logarithms."""
        key = known.tobytes()
        if key not in self._right_angles:
            rows = np.flatnonzero(known)[: self._all.shape[1] + EXPONENTS.angles]
            if len(rows) < self._all.shape[1] + EXPONENTS.angles:
                return None
            self._right_angles[key] = rows, _right_angles(self._all[rows]), _right_angles(self._plain[rows])
        return self._right_angles[key]

    def _sum(self, values: FloatArray, known: NDArray[np.bool_]) -> Node | None:
        """A sum of the terms and logarithms that is so many values."""
        factors = _factors(self._all[known], values)
        if factors is None:
            return None
        plain = len(self._terms)
        weighted = list(zip(factors[:plain].tolist(), self._terms, strict=True))
        for factor, sign, node in zip(factors[plain:].tolist(), self._signs, self._logged, strict=True):
            weighted.append((factor, build("log", node if sign > 0 else build("neg", node))))
        return _sum_of([(factor, node) for factor, node in weighted if factor != 0.0])

    def _base(self, values: FloatArray, known: NDArray[np.bool_]) -> Node | None:
        """The logarithm of a sum without logarithms."""
        factors = _factors(self._plain[known], np.exp(values))
        if factors is None:
            return None
        weighted = zip(factors.tolist(), self._terms, strict=True)
        return build("log", _sum_of([(factor, node) for factor, node in weighted if factor != 0.0]))

    def _base_below(self, values: FloatArray, known: NDArray[np.bool_]) -> Node | None:
        """The same of one over such a sum."""
        root = self._base(-values, known)
        return None if root is None else build("neg", root)


def _sum_of(weighted: list[tuple[float, Node]]) -> Node:
    return build("add", *(build("mul", Constant(factor), node) for factor, node in weighted))


def _finite(nodes: list[Node], values: list[FloatArray]) -> tuple[list[Node], FloatArray]:
    """Those of some nodes with values [N] on every row, and these as columns."""
    kept = [m for m, each in enumerate(values) if np.isfinite(each).all() and each.any()]
    return [nodes[m] for m in kept], np.array([values[m] for m in kept]).T


def _right_angles(terms: FloatArray) -> FloatArray:
    """Directions [R, .] at right angles to terms [R, M] of any sizes."""
    scaled = terms / np.maximum(np.abs(terms).max(axis=0), np.finfo(float).tiny)
    return np.asarray(np.linalg.qr(scaled, mode="complete")[0][:, terms.shape[1] :])


def _factors(terms: FloatArray, values: FloatArray) -> FloatArray | None:
    """Factors [M] of the terms in a sum that is so many values, 0 where one is rounding; None where none is left."""
    scale = np.maximum(np.abs(terms).max(axis=0), np.finfo(float).tiny)
    if not np.isfinite(values).all():
        return None
    factors = np.linalg.lstsq(terms / scale, values, rcond=1e-13)[0]
    factors[np.abs(factors) < EXPONENTS.negligible * np.abs(values).max()] = 0.0
    rounded = np.array([float(f"{factor:.{EXPONENTS.digits}g}") for factor in factors / scale])
    return rounded if rounded.any() else None
