"""Symmetries of the data, and smaller tables that they allow.

Formulas of science mean the same in every unit: scale some columns and the target scales along. Many also read two
columns only as their difference, their sum or the sum of their squares. Each such symmetry takes a variable away, and
a formula of two variables is far easier to find than one of five.

A smooth surrogate (a Gaussian process over a linear trend) is fitted to a few hundred rows, and its slopes are asked:

- scaling: exponents e with Σ eᵢ xᵢ ∂f/∂xᵢ = a f on all rows are the null space of a matrix with one row per data row.
  With k of them, k columns serve as units: every other column is divided by the powers of them that take its units
  away, and the target likewise (Buckingham's theorem, read off the data);
- merging: f reads xᵢ and xⱼ only through xᵢᵖ ± xⱼᵠ where xᵢ¹⁻ᵖ ∂f/∂xᵢ and xⱼ¹⁻ᵠ ∂f/∂xⱼ keep a constant ratio.

A proposal is believed when a new surrogate on the smaller table predicts left-out rows as well as the one before. A
wrong belief costs a share of the islands, never the formula: other islands go on with the columns as they are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, Variable, build, fold

MAX_VARIABLES = 10
MAX_VIEWS = 4
_ROWS = 700
"""Rows of the surrogate."""
_LEARNING_ROWS = 200
"""Rows that its lengths are learnt from."""
_LARGEST_RATIO = 1e4
"""A positive column, or a target of one sign, is read by its logarithm up to this ratio of largest to smallest."""
_POWERS = (1.0, 2.0, -1.0, 3.0, -2.0, 0.5)
_ONE = Constant(1.0)
_NEAR_NULL = 0.1
"""Directions whose slopes are below this share of the largest may be symmetries; the new surrogate decides."""


@dataclass(frozen=True)
class View:
    """A table made of another: each column a formula of the raw ones, the target divided by ``factor``."""

    columns: tuple[Node, ...]
    factor: Node = _ONE

    @classmethod
    def raw(cls, n_variables: int) -> View:
        return cls(tuple(Variable(i) for i in range(n_variables)))

    @property
    def is_raw(self) -> bool:
        return self == View.raw(len(self.columns))

    def table(self, X: np.ndarray) -> np.ndarray:
        """The view's columns [N, V] of raw rows."""
        return np.column_stack([_values(column, X) for column in self.columns])

    def factors(self, X: np.ndarray) -> np.ndarray:
        return _values(self.factor, X)

    def restore(self, root: Node) -> Node:
        """A formula over the view's columns for target/factor, as one over the raw columns for the target."""
        inner = fold(
            root,
            lambda leaf: self.columns[leaf.index] if isinstance(leaf, Variable) else leaf,
            lambda call, args: Call(call.operator, tuple(args), call.protected),
        )
        return build("mul", self.factor, inner)

    def operators(self) -> set[str]:
        """Names of the functions that the view's formulas use."""
        used: set[str] = set()

        def call(node: Call, _: list[Any]) -> None:
            used.add(node.operator)

        for node in (*self.columns, self.factor):
            fold(node, lambda leaf: None, call)
        return used

    def to_dict(self) -> dict[str, Any]:
        names = tuple(f"x{i}" for i in range(1 + max(_largest_index(node) for node in (*self.columns, self.factor))))
        return {
            "columns": [Expression(column, names).to_dict() for column in self.columns],
            "factor": Expression(self.factor, names).to_dict(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> View:
        columns = tuple(Expression.from_dict(column).root for column in data["columns"])
        return cls(columns, Expression.from_dict(data["factor"]).root)


def _values(node: Node, X: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return Expression(node, tuple(f"x{i}" for i in range(X.shape[1])))(X)


def _largest_index(node: Node) -> int:
    return fold(node, lambda leaf: leaf.index if isinstance(leaf, Variable) else 0, lambda _, args: max(args))


def find_views(X: np.ndarray, y: np.ndarray, out_of_time: Callable[[], bool] = lambda: False) -> list[View]:
    """Smaller tables that hold all there is to know about y, the smallest first; empty where no symmetry is seen.

    Each accepted step makes the table smaller and the next surrogate better, so the next symmetry is clearer.
    """
    n_variables = X.shape[1]
    if not 2 <= n_variables <= MAX_VARIABLES or len(y) < 20 * (n_variables + 1):
        return []
    from threadpoolctl import threadpool_limits

    X, y = X[:_ROWS], y[:_ROWS]
    found: list[View] = []
    with threadpool_limits(1, user_api="blas"):  # the matrices are small, and one thread always rounds alike
        try:
            current = _Reading.of(View.raw(n_variables), X, y, out_of_time)
            while current is not None and current.error < _HOPELESS and len(current.view.columns) > 1:
                current, views = _step(current, X, y, out_of_time)
                found = views + found
        except _OutOfTime:
            pass
    return found[:MAX_VIEWS]


class _OutOfTime(Exception):
    """The time for looking is over; what was found stands."""


def _step(
    current: _Reading, X: np.ndarray, y: np.ndarray, out_of_time: Callable[[], bool]
) -> tuple[_Reading | None, list[View]]:
    """The first proposal that holds, as a reading to go on from, with the views it stands for."""
    proposals = itertools.chain(
        ([view] for view in itertools.islice(_merged_views(current), 3)), _scaled_views(current),
        itertools.islice(_views_without_factor(current), 2),
    )  # fmt: skip
    for views in proposals:
        smaller = _Reading.of(views[0], X, y, out_of_time)
        if smaller is not None and smaller.error <= max(1.02 * current.error, _NEGLIGIBLE):
            return smaller, views
    return None, []


# --- the surrogate --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reading:
    """A view of the data with a surrogate: its error on left-out rows in units of std(y), its slopes."""

    view: View
    table: np.ndarray
    target: np.ndarray
    error: float
    slopes: np.ndarray  # d target / d column, [N, V]

    @classmethod
    def of(cls, view: View, X: np.ndarray, y: np.ndarray, out_of_time: Callable[[], bool]) -> _Reading | None:
        table, factors = view.table(X), view.factors(X)
        with np.errstate(all="ignore"):
            target = y / factors
        if not np.isfinite(table).all() or not np.isfinite(target).all() or not np.ptp(y) > 0:
            return None
        coordinates, inner = _coordinates(table)
        error, slopes = math.inf, np.empty(0)
        for reading in _HEIGHTS:
            if error < _GOOD or not reading.applies(target):
                continue
            with np.errstate(all="ignore"):
                residuals, rise = _surrogate(coordinates, reading.heights(target), out_of_time)
                inverse = 1 / reading.slope(target)
            own = _typical(residuals * inverse * factors) / float(np.std(y))
            if own < error:
                error, slopes = own, rise * inverse[:, None] * inner
        return cls(view, table, target, error, slopes) if math.isfinite(error) else None


@dataclass(frozen=True)
class _Heights:
    """What the surrogate is fitted to: a smooth function of the target."""

    heights: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]
    applies: Callable[[np.ndarray], bool]


_GOOD = 1e-5
"""Error below which no other heights are tried."""
_HOPELESS = 0.5
"""Error of a surrogate that has understood nothing."""
_NEGLIGIBLE = 3e-4
"""Error at which a surrogate is taken as perfect."""
_HEIGHTS = (
    _Heights(lambda t: np.log(np.abs(t)), lambda t: 1 / t, lambda t: _is_one_sign(t) and _ratio(t) < _LARGEST_RATIO**2),
    _Heights(lambda t: t, np.ones_like, lambda t: True),
    _Heights(np.square, lambda t: 2 * t, lambda t: _is_one_sign(t)),
)


def _is_one_sign(values: np.ndarray) -> bool:
    return bool((values > 0).all() or (values < 0).all())


def _ratio(values: np.ndarray) -> float:
    size = np.abs(values)
    return float(size.max() / max(size.min(), 1e-300))


def _typical(values: np.ndarray) -> float:
    """Root mean square without the largest tenth: a surrogate is weak in the corners."""
    squares = np.sort(values**2)
    return math.sqrt(float(squares[: max(1, len(squares) * 9 // 10)].mean()))


def _coordinates(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns by their logarithm where they are positive, and the slope of that coordinate to the column."""
    coordinates, inner = table.copy(), np.ones_like(table)
    for j in range(table.shape[1]):
        column = table[:, j]
        if (column > 0).all() and _ratio(column) < _LARGEST_RATIO:
            coordinates[:, j], inner[:, j] = np.log(column), 1 / column
    return coordinates, inner


def _surrogate(Z: np.ndarray, heights: np.ndarray, out_of_time: Callable[[], bool]) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian process over a linear trend: leave-one-out residuals [N] and slopes at the rows [N, V]."""
    from scipy.linalg import cho_factor, cho_solve

    spread = Z.std(axis=0)
    spread[spread == 0] = 1.0
    U = (Z - Z.mean(axis=0)) / spread
    height = float(np.std(heights)) or 1.0
    v = (heights - heights.mean()) / height
    trend = np.column_stack([np.ones(len(v)), U])
    coefficients = np.linalg.lstsq(trend, v, rcond=None)[0]
    rest = v - trend @ coefficients
    if np.abs(rest).max() < 1e-9:  # a plane: a product of powers, read by logarithms
        return rest * height, np.broadcast_to(coefficients[1:] * height / spread, Z.shape)
    lengths, amplitude, noise = _learn_lengths(U[:_LEARNING_ROWS], rest[:_LEARNING_ROWS], out_of_time)
    scaled = U / lengths
    kernel = amplitude * _gaussian(scaled)
    damped = kernel + (noise + 1e-12 * amplitude) * np.eye(len(v))
    factor = cho_factor(damped, lower=True)
    weights = cho_solve(factor, rest)
    residuals = weights / np.diag(cho_solve(factor, np.eye(len(v))))
    # d k(u, u') / d u_i = k (u'_i - u_i) / length_i²
    slopes = (kernel @ (weights[:, None] * U) - U * (kernel @ weights)[:, None]) / lengths**2 + coefficients[1:]
    return residuals * height, slopes * height / spread


def _gaussian(scaled: np.ndarray) -> np.ndarray:
    squares = (scaled**2).sum(axis=1)
    return np.exp(-0.5 * np.maximum(squares[:, None] + squares - 2 * scaled @ scaled.T, 0.0))


def _learn_lengths(U: np.ndarray, rest: np.ndarray, out_of_time: Callable[[], bool]) -> tuple[np.ndarray, float, float]:
    """Length per coordinate, amplitude and noise of most likelihood, with a weak prior on the lengths."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve
    from scipy.optimize import minimize

    n, d = U.shape
    size = float(rest.std()) + 1e-12
    squares = [(U[:, i, None] - U[:, i]) ** 2 for i in range(d)]
    middle = 0.7

    def loss(p: np.ndarray) -> tuple[float, np.ndarray]:
        if out_of_time():
            raise _OutOfTime
        precision, amplitude, noise = np.exp(-2 * p[:d]), math.exp(2 * p[d]), math.exp(2 * p[d + 1])
        kernel = amplitude * np.exp(-0.5 * sum(w * s for w, s in zip(precision, squares, strict=True)))
        try:
            factor = cho_factor(kernel + noise * np.eye(n), lower=True)
        except LinAlgError:
            return 1e10, np.zeros_like(p)
        weights = cho_solve(factor, rest)
        half = 0.5 * (cho_solve(factor, np.eye(n)) - np.outer(weights, weights))
        weighed = half * kernel
        value = 0.5 * rest @ weights + np.log(np.diag(factor[0])).sum() + 0.05 * np.sum((p[:d] - middle) ** 2)
        slopes = [w * np.sum(weighed * s) for w, s in zip(precision, squares, strict=True)]
        gradient = np.array([*slopes, 2 * weighed.sum(), 2 * noise * np.trace(half)])
        gradient[:d] += 0.1 * (p[:d] - middle)
        return float(value), gradient

    level = math.log(size)
    bounds = [(-3.0, 5.0)] * d + [(level - 3, level + 6), (level - 14, level + 1)]
    tries = []
    for length in (middle, -1.0) if d <= 2 else (middle,):  # a wave may be short
        start = np.array([length] * d + [level + 0.7, level - 3.5])
        tries.append(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 30}))
    best = min(tries, key=lambda found: found.fun).x
    return np.exp(best[:d]), math.exp(2 * best[d]), math.exp(2 * best[d + 1])


# --- proposals ------------------------------------------------------------------------------------------------------


def _merged_views(reading: _Reading) -> Iterator[View]:
    """Views in which two columns became one, the best supported first."""
    columns, table, slopes = reading.view.columns, reading.table, reading.slopes
    size = np.sqrt(np.mean((slopes * table.std(axis=0)) ** 2, axis=0))
    proposals = []
    for i, j in itertools.combinations(range(len(columns)), 2):
        if min(size[i], size[j]) < 1e-3 * size.max():
            continue
        for p, q in itertools.product(_POWERS, _POWERS):
            if not (_has_power(table[:, i], p) and _has_power(table[:, j], q)):
                continue
            left = slopes[:, i] * table[:, i] ** (1 - p) / p
            right = slopes[:, j] * table[:, j] ** (1 - q) / q
            ratio = float(left @ right / (left @ left))
            if abs(abs(ratio) - 1) > 0.1:
                continue
            sign = math.copysign(1.0, ratio)
            misfit = _typical(right - sign * left) / max(_typical(right), 1e-300)
            if misfit < 0.1:
                proposals.append((misfit + 0.002 * (abs(p) + abs(q)), i, j, p, q, sign))
    for _, i, j, p, q, sign in sorted(proposals):
        first, second = _power(columns[i], p), _power(columns[j], q)
        both = build("add" if sign > 0 else "sub", first, second)
        yield View((*(c for k, c in enumerate(columns) if k not in (i, j)), both), reading.view.factor)


def _has_power(column: np.ndarray, power: float) -> bool:
    if power == 0.5:
        return bool((column > 0).all())
    return power > 0 or bool((column != 0).all())


def _power(node: Node, exponent: float) -> Node:
    if exponent == -1.0:
        return build("inv", node)
    return build("pow", node, Constant(exponent))


def _scaled_views(reading: _Reading) -> Iterator[list[View]]:
    """Views without units, by how many columns serve as units, most first; each list the simplest choices of them."""
    fields = np.column_stack([reading.slopes * reading.table, reading.target])
    if _is_one_sign(reading.target):
        fields = fields / reading.target[:, None]  # every row counts alike, however large its target
    fields = fields / np.sqrt(np.mean(fields**2))
    inner = np.sum(fields**2, axis=1) <= np.quantile(np.sum(fields**2, axis=1), 0.95)
    _, sizes, directions = np.linalg.svd(fields[inner] / math.sqrt(inner.sum()), full_matrices=False)
    n_null = int((sizes < _NEAR_NULL * sizes[0]).sum())
    whole = np.array([not (column > 0).all() for column in reading.table.T])
    for k in range(min(n_null, len(reading.view.columns)), 0, -1):
        if k < n_null and sizes[-k] > 0.5 * sizes[-k - 1]:
            continue  # no gap between symmetries and the rest
        for symmetries in _rational_rows(directions[-k:]):
            views = _unitless(reading.view, symmetries[:, :-1], -symmetries[:, -1], whole)
            if views:
                yield views


def _views_without_factor(reading: _Reading) -> Iterator[list[View]]:
    """Views without one column, of which the target is a power or a plain function times the rest; best first."""
    columns, target = reading.view.columns, reading.target
    proposals: list[tuple[float, int, Node]] = []
    for j, column in enumerate(columns):
        x, slope = reading.table[:, j], reading.slopes[:, j]
        power = round(2 * float(slope * x @ target / (target @ target))) / 2
        if power == round(power) or (x > 0).all():
            proposals.append((_misfit(slope * x, power * target), j, _monomial([(column, power)])))
        for name, (function, derivative, applies) in _FACTORS.items():
            if applies(x):
                proposals.append((_misfit(slope * function(x), target * derivative(x)), j, build(name, column)))
    for misfit, j, factor in sorted(proposals, key=lambda proposal: proposal[:2]):
        if misfit < 0.2:
            rest = tuple(c for k, c in enumerate(columns) if k != j)
            yield [View(rest, _monomial([(reading.view.factor, 1.0), (factor, 1.0)]))]


_FACTORS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[np.ndarray], bool]]] = {
    "cos": (np.cos, lambda x: -np.sin(x), lambda x: bool(np.ptp(x) > 0.5)),
    "sin": (np.sin, np.cos, lambda x: bool(np.ptp(x) > 0.5)),
    "exp": (np.exp, np.exp, lambda x: bool(np.abs(x).max() < 50)),
    "log": (np.log, lambda x: 1 / x, lambda x: bool((x > 0).all())),
}
"""Functions g of a column that may stand before the rest, with g': then f' g = f g' on all rows."""


def _misfit(left: np.ndarray, right: np.ndarray) -> float:
    return _typical(left - right) / max(_typical(left), _typical(right), 1e-300)


def _rational_rows(basis: np.ndarray) -> Iterator[np.ndarray]:
    """The row space's reduced form with entries rounded to small fractions, where they are near such.

    Pivots are taken among the exponents only, the last column being the target's.
    """
    rows = basis.copy()
    n_rows, n_columns = rows.shape
    free = list(range(n_columns - 1))
    for r in range(n_rows):
        below = np.abs(rows[r:, free])
        place = np.unravel_index(int(below.argmax()), below.shape)
        if below[place] < 1e-2:
            return
        pivot_row, pivot = r + int(place[0]), free[int(place[1])]
        rows[[r, pivot_row]] = rows[[pivot_row, r]]
        rows[r] /= rows[r, pivot]
        others = [i for i in range(n_rows) if i != r]
        rows[others] -= np.outer(rows[others, pivot], rows[r])
        free.remove(pivot)
    tried: list[np.ndarray] = []
    for parts, slack in ((1, 0.25), (2, 0.15), (3, 0.1)):
        rounded = np.round(rows * parts) / parts
        close = np.abs(rounded - rows).max() <= slack and np.abs(rounded).max() <= 12
        if close and not any((rounded == other).all() for other in tried):
            tried.append(rounded)
            yield rounded


def _unitless(view: View, exponents: np.ndarray, degrees: np.ndarray, whole: np.ndarray) -> list[View]:
    """The view with k columns taken as units, for the choices of units that give the plainest columns."""
    k, n = exponents.shape
    choices = []
    for units in itertools.combinations(range(n), k):
        square = exponents[:, units]
        if abs(np.linalg.det(square)) < 1e-6:
            continue
        others = [j for j in range(n) if j not in units]
        # each other column and the target, as powers of the units
        powers = np.linalg.solve(square, np.column_stack([exponents[:, others], degrees]))
        powers = np.round(powers * 6) / 6
        fractional = np.abs(powers - np.round(powers)) > 1e-9
        if fractional[whole[list(units)]].any():
            continue
        cost = float(np.abs(powers).sum() + fractional.sum())
        choices.append((cost, units, others, powers))
    views = []
    for _, units, others, powers in sorted(choices, key=lambda choice: choice[:2])[:MAX_VIEWS]:
        columns = [
            _monomial([(view.columns[j], 1.0), *((view.columns[u], -powers[i, c]) for i, u in enumerate(units))])
            for c, j in enumerate(others)
        ]
        factor = _monomial([(view.factor, 1.0), *((view.columns[u], powers[i, -1]) for i, u in enumerate(units))])
        views.append(View(tuple(columns) or (_ONE,), factor))
    return views


def _monomial(parts: list[tuple[Node, float]]) -> Node:
    """A product of powers, negative ones below the line."""
    above = [_power(node, e) for node, e in parts if e > 0]
    below = [_power(node, -e) for node, e in parts if e < 0]
    numerator = build("mul", *above) if above else _ONE
    return build("div", numerator, build("mul", *below)) if below else numerator
