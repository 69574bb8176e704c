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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gmeql.fitters.threads import one_blas_thread
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, Variable, build, fold, leaves, row_values
from gmeql.search.losses.magnitudes import magnitudes
from gmeql.search.symmetries.config import SYMMETRIES
from gmeql.search.symmetries.factors import factors_of_column, put
from gmeql.search.symmetries.surrogate import OutOfTime, fit_surrogate, is_one_sign, typical

_ONE = Constant(1.0)


@dataclass(frozen=True)
class View:
    """A table made of another: each column a formula of the raw ones, the target divided by `factor`."""

    columns: tuple[Node, ...]
    factor: Node = _ONE
    units: tuple[int, ...] = ()
    """Raw columns that given units made the units of the others, which are the view's columns in their order."""

    @classmethod
    def raw(cls, n_variables: int) -> View:
        return cls(tuple(Variable(i) for i in range(n_variables)))

    def is_raw_of(self, n_variables: int) -> bool:
        """Whether it shows all of so many columns as they are; the first of them alone are a smaller table."""
        return self == View.raw(n_variables)

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left to explain: the target is a multiple of the factor."""
        return not any(isinstance(leaf, Variable) for column in self.columns for leaf in leaves(column))

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

    def inner(self, root: Node) -> Node:
        """The inverse of `restore` for a formula that keeps the given units: with every unit column 1, the factor is 1
        and each other column is its own quotient."""
        others = [j for j in range(len(self.columns) + len(self.units)) if j not in self.units]
        place = {j: Variable(i) for i, j in enumerate(others)}

        def leaf(node: Node) -> Node:
            return place.get(node.index, _ONE) if isinstance(node, Variable) else node

        return fold(root, leaf, lambda call, args: build(call.operator, *args))

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
            "units": list(self.units),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> View:
        columns = tuple(Expression.from_dict(column).root for column in data["columns"])
        return cls(columns, Expression.from_dict(data["factor"]).root, tuple(data.get("units", ())))


def _values(node: Node, X: np.ndarray) -> np.ndarray:
    """A formula's value on every row [N]; thousands are asked for, most of them columns as they are."""
    return X[:, node.index].copy() if isinstance(node, Variable) else row_values(node, [""] * X.shape[1], X)


def _largest_index(node: Node) -> int:
    return fold(node, lambda leaf: leaf.index if isinstance(leaf, Variable) else 0, lambda _, args: max(args))


def find_views(
    X: np.ndarray,
    y: np.ndarray,
    out_of_time: Callable[[], bool] = lambda: False,
    *,
    start: View | None = None,
    when_noisy: Callable[[], list[View]] = list,
) -> list[View]:
    """Smaller tables that hold all there is to know about y, the smallest first; empty where no symmetry is seen.

    Each accepted step makes the table smaller and the next surrogate better, so the next symmetry is clearer. `start` is
    a view that is known to hold it all, else the columns as they are. `when_noisy` is asked for tables
    where the surrogate's slopes are not to be believed alone; those come first.
    """
    start = start or View.raw(X.shape[1])
    n_variables = len(start.columns)
    if not 2 <= n_variables <= SYMMETRIES.max_variables or len(y) < SYMMETRIES.rows_per_variable * (n_variables + 1):
        return []
    X, y = X[: SYMMETRIES.rows], y[: SYMMETRIES.rows]
    found: list[View] = []
    under_noise: list[View] = []
    # the matrices are small, and one thread always rounds alike; proposals that are not finite are not believed
    with one_blas_thread(), np.errstate(all="ignore"):
        try:
            first = FittedView.of(start, X, y, out_of_time)
            if first is not None and first.error > SYMMETRIES.noisy:
                under_noise = when_noisy()

            def fit(view: View) -> FittedView | None:
                reading = None if first is None else first.reading
                return first if view is start else FittedView.of(view, X, y, out_of_time, reading)

            for views in smaller_views(start, fit):
                found = views + found
        except OutOfTime:
            pass
    return list(dict.fromkeys([*under_noise, *found]))[: SYMMETRIES.max_views]


@dataclass(frozen=True)
class FittedView:
    """A view of the data with its surrogate: table [N, V], target [N], slopes d target / d column [N, V]."""

    view: View
    table: np.ndarray
    target: np.ndarray
    error: float
    slopes: np.ndarray
    reading: tuple[int, bool] = (0, False)
    """How the surrogate reads table and target."""

    @classmethod
    def of(
        cls,
        view: View,
        X: np.ndarray,
        y: np.ndarray,
        out_of_time: Callable[[], bool],
        reading: tuple[int, bool] | None = None,
    ) -> FittedView | None:
        """None where the view or the target's quotient is not finite on every row, or nothing can be fitted."""
        table, factors = view.table(X), view.factors(X)
        target, spread = y / factors, float(np.std(y))
        sizes = magnitudes(y, many=SYMMETRIES.many)
        # of a target over many magnitudes every row counts in its own size
        units, unit = (factors, spread) if sizes is None else (factors / (sizes * np.abs(y).max()), 1.0)
        if not np.isfinite(table).all() or not np.isfinite(target).all():
            return None
        if not (np.ptp(y) > 0 and spread > 0):  # the deviation of a constant may be above 0, that of tiny values 0
            return None
        found = fit_surrogate(table, target, units=units, spread=unit, out_of_time=out_of_time, reading=reading)
        return None if found is None else cls(view, table, target, found.error, found.slopes, found.reading)


def smaller_views(
    start: View,
    fit: Callable[[View], FittedView | None],
    *,
    negligible: float = SYMMETRIES.negligible,
    out_of_time: Callable[[], bool] = lambda: False,
) -> Iterator[list[View]]:
    """Step by step the views that the first proposal to hold stands for, each smaller than the one before.

    `fit` says what a view knows of the target: a proposal holds that knows as much, or whose error is `negligible`. Once it
    is `out_of_time`, no column is asked for a function before the rest.
    """
    current = fit(start)
    while current is not None and current.error < SYMMETRIES.hopeless and len(current.view.columns) > 1:
        proposals = itertools.chain(
            ([view] for view in itertools.islice(_merged_views(current), SYMMETRIES.merges_tried)),
            _scaled_views(current),
            itertools.islice(_views_without_factor(current, out_of_time), SYMMETRIES.factors_tried),
        )
        enough = max(SYMMETRIES.allowed_growth * current.error, negligible)
        current = None
        for views in proposals:
            smaller = fit(views[0])
            if smaller is None or smaller.error > enough:
                continue
            yield views
            # a multiple of powers may hold nearly, as where tanh(u) is nearly u: what holds with a column left is more
            if not views[0].is_spent or float(np.ptp(smaller.target)) <= SYMMETRIES.plane * abs(
                float(smaller.target[0])
            ):
                current = smaller
                break


# --- proposals ------------------------------------------------------------------------------------------------------


def _merged_views(fitted: FittedView) -> Iterator[View]:
    """Views in which two columns became one, the best supported first."""
    columns, table, slopes = fitted.view.columns, fitted.table, fitted.slopes
    size = np.sqrt(np.mean((slopes * table.std(axis=0)) ** 2, axis=0))
    allowed = float(np.clip(SYMMETRIES.roughness * fitted.error, SYMMETRIES.merge_misfit, SYMMETRIES.rough_misfit))
    proposals = []
    # slopes by powers of every column, and where they are finite: a square has none to divide where its column is zero
    by_powers: list[list[tuple[float, np.ndarray, np.ndarray]]] = []
    for i, column in enumerate(table.T):
        told = [
            p for p in SYMMETRIES.powers if size[i] >= SYMMETRIES.least_slope * size.max() and _has_power(column, p)
        ]
        with np.errstate(divide="ignore", invalid="ignore"):
            each = [slopes[:, i] * column ** (1 - p) / p for p in told]
        by_powers.append([(p, slope, np.isfinite(slope)) for p, slope in zip(told, each, strict=True)])
    for i, j in itertools.combinations(range(len(columns)), 2):
        for (p, left, has_left), (q, right, has_right) in itertools.product(by_powers[i], by_powers[j]):
            both = has_left & has_right
            left, right = left[both], right[both]
            square = float(left @ left)
            ratio = float(left @ right) / square if square > 0 else math.inf
            if not abs(abs(ratio) - 1) <= max(SYMMETRIES.ratio_slack, allowed):
                continue
            sign = math.copysign(1.0, ratio)
            misfit = typical(right - sign * left) / max(typical(right), 1e-300)
            if misfit < allowed:
                proposals.append((misfit + SYMMETRIES.power_cost * (abs(p) + abs(q)), i, j, p, q, sign))
    for _, i, j, p, q, sign in sorted(proposals):
        first, second = power(columns[i], p), power(columns[j], q)
        one = build("add" if sign > 0 else "sub", first, second)
        yield View((*(c for k, c in enumerate(columns) if k not in (i, j)), one), fitted.view.factor)


def _has_power(column: np.ndarray, power: float) -> bool:
    """Whether a power of the column is finite on every row."""
    if power == 0.5:
        return bool((column > 0).all())
    return power > 0 or bool((column != 0).all())


def power(node: Node, exponent: float) -> Node:
    """A power of a formula."""
    if exponent == -1.0:
        return build("inv", node)
    return build("pow", node, Constant(exponent))


def _scaled_views(fitted: FittedView) -> Iterator[list[View]]:
    """Views without units, by how many columns serve as units, most first; each list the simplest choices of them."""
    fields = np.column_stack([fitted.slopes * fitted.table, fitted.target])
    if is_one_sign(fitted.target):
        fields = fields / fitted.target[:, None]  # every row counts alike, however large its target
    fields = fields / np.sqrt(np.mean(fields**2))
    if not np.isfinite(fields).all():
        return
    inner = np.sum(fields**2, axis=1) <= np.quantile(np.sum(fields**2, axis=1), SYMMETRIES.inner_rows)
    _, sizes, directions = np.linalg.svd(fields[inner] / math.sqrt(inner.sum()), full_matrices=False)
    n_null = int((sizes < SYMMETRIES.near_null * sizes[0]).sum())
    whole = np.array([not (column > 0).all() for column in fitted.table.T])
    for k in range(min(n_null, len(fitted.view.columns)), 0, -1):
        if k < n_null and sizes[-k] > SYMMETRIES.null_gap * sizes[-k - 1]:
            continue  # no gap between symmetries and the rest
        for symmetries in _rational_rows(directions[-k:]):
            views = unitless(fitted.view, symmetries[:, :-1], -symmetries[:, -1], whole)
            if views:
                yield views


def _views_without_factor(fitted: FittedView, out_of_time: Callable[[], bool]) -> Iterator[list[View]]:
    """Views without one column, of which the target is a function times the rest; best first."""
    columns, table = fitted.view.columns, fitted.table
    proposals = [
        (misfit, j, factor)
        for j in range(len(columns))
        if not out_of_time()
        for misfit, factor in factors_of_column(table[:, j], fitted.slopes[:, j], fitted.target)
        if misfit < SYMMETRIES.factor_misfit
    ]
    for _, j, factor in sorted(proposals, key=lambda proposal: proposal[:2]):
        rest = tuple(c for k, c in enumerate(columns) if k != j)
        yield [View(rest, monomial([(fitted.view.factor, 1.0), (put(factor, columns[j]), 1.0)]))]


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
        if below[place] < SYMMETRIES.least_pivot:
            return
        pivot_row, pivot = r + int(place[0]), free[int(place[1])]
        rows[[r, pivot_row]] = rows[[pivot_row, r]]
        rows[r] /= rows[r, pivot]
        others = [i for i in range(n_rows) if i != r]
        rows[others] -= np.outer(rows[others, pivot], rows[r])
        free.remove(pivot)
    tried: list[np.ndarray] = []
    for parts, slack in SYMMETRIES.fraction_slacks:
        rounded = np.round(rows * parts) / parts
        close = np.abs(rounded - rows).max() <= slack and np.abs(rounded).max() <= SYMMETRIES.largest_exponent
        if close and not any((rounded == other).all() for other in tried):
            tried.append(rounded)
            yield rounded


def unitless(
    view: View,
    exponents: np.ndarray,
    degrees: np.ndarray,
    whole: np.ndarray,
    *,
    units: Iterable[int] | None = None,
    most: int = SYMMETRIES.max_views,
) -> list[View]:
    """The view with k columns taken as units, for the choices of units that give the plainest columns.

    Scaling s multiplies column j by the power `exponents[s, j]` of a factor and the target by `degrees[s]`; [k, V] and
    [k]. `whole` [V] are columns that only whole powers may be taken of, `units` those that may serve as units.
    """
    k, n = exponents.shape
    choices = []
    possible = range(n) if units is None else units
    for chosen in itertools.islice(itertools.combinations(possible, k), SYMMETRIES.unit_choices):
        square = exponents[:, chosen]
        if abs(np.linalg.det(square)) < SYMMETRIES.singular:
            continue
        others = [j for j in range(n) if j not in chosen]
        # each other column and the target, as powers of the units
        powers = np.linalg.solve(square, np.column_stack([exponents[:, others], degrees]))
        powers = np.round(powers * SYMMETRIES.unit_parts) / SYMMETRIES.unit_parts
        fractional = np.abs(powers - np.round(powers)) > 1e-9
        if fractional[whole[list(chosen)]].any():
            continue
        cost = float(np.abs(powers).sum() + SYMMETRIES.root_cost * fractional.sum())
        choices.append((cost, chosen, others, powers))
    views = []
    for _, chosen, others, powers in sorted(choices, key=lambda choice: choice[:2])[:most]:
        columns = [
            monomial([(view.columns[j], 1.0), *((view.columns[u], -powers[i, c]) for i, u in enumerate(chosen))])
            for c, j in enumerate(others)
        ]
        factor = monomial([(view.factor, 1.0), *((view.columns[u], powers[i, -1]) for i, u in enumerate(chosen))])
        views.append(View(tuple(columns) or (_ONE,), factor, tuple(map(int, chosen)) if units is not None else ()))
    return views


def monomial(parts: list[tuple[Node, float]]) -> Node:
    """A product of powers, negative ones below the line."""
    above = [power(node, e) for node, e in parts if e > 0]
    below = [power(node, -e) for node, e in parts if e < 0]
    numerator = build("mul", *above) if above else _ONE
    return build("div", numerator, build("mul", *below)) if below else numerator
