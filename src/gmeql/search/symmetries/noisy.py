"""Smaller tables that noise does not speak against.

Under noise the slopes of a surrogate are too rough to be believed, but two smooth fits are still told apart: which of them
predicts left-out rows better is a sum over all rows. So slopes only say in which order symmetries are tried, and a table
without one of its columns stands where its fit is no worse than the best one, row by row, beyond chance. Tried are

- scalings xᵢ ∂f/∂xᵢ - p xⱼ ∂f/∂xⱼ = k f: f is xᵢᵏ times a function that reads the two columns as xⱼ xᵢᵖ;
- two columns that are read as xᵢᵖ ± xⱼᵠ only;
- a wave of one column before a function of the others.

Several tables of each size go on to the next, those first that are right and plain: noise leaves many that are nearly
right, of which the law is short in one. Legend: `N` rows, `A` columns of the base, `S` scalings, `D` columns of a view.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gmeql.fitters.threads import one_blas_thread
from gmeql.formula.nodes import Node, Variable, build, tree_complexity
from gmeql.search.symmetries.config import SYMMETRIES
from gmeql.search.symmetries.factors import put
from gmeql.search.symmetries.smooth import SmoothFit, fit_plane, fit_smooth
from gmeql.search.symmetries.smaller import find_views
from gmeql.search.symmetries.views import View, monomial, power, unitless

FloatArray = NDArray[np.float64]
_X = Variable(0)
_WAVES = tuple(power(build(name, _X), exponent) for exponent in (1.0, 2.0) for name in ("sin", "cos"))
"""Functions of a column that may stand before the others, beside its powers."""


def smaller_tables(
    X: FloatArray, y: FloatArray, out_of_time: Callable[[], bool] = lambda: False, *, start: View | None = None
) -> list[View]:
    """Smaller tables that hold all there is to know about y, by a surrogate's slopes or, under noise, by its errors."""
    is_raw = start is None or start.is_raw_of(X.shape[1])
    return find_views(
        X, y, out_of_time, start=start, when_noisy=lambda: noisy_views(X, y, out_of_time) if is_raw else []
    )


def noisy_views(X: FloatArray, y: FloatArray, out_of_time: Callable[[], bool] = lambda: False) -> list[View]:
    """Smaller tables that hold all that can be told of y under noise: the best of each size, the smallest first, and
    another of the smallest."""
    n_variables = X.shape[1]
    if not 2 <= n_variables <= SYMMETRIES.max_variables or len(y) < SYMMETRIES.noisy_rows_per_variable * n_variables:
        return []
    X, y = X[: SYMMETRIES.noisy_rows], y[: SYMMETRIES.noisy_rows]
    with one_blas_thread(), np.errstate(all="ignore"):
        levels = list(_levels(X, y, out_of_time))[::-1]
    others = levels[0][1:2] if levels else []
    return [*(level[0] for level in levels[: SYMMETRIES.noisy_sizes]), *others]


@dataclass(frozen=True, eq=False)
class _Reduced:
    """A table under some scalings: those multiply column j of the base by powers `exponents[s, j]` of a factor and the target
    by `degrees[s]`. The view's columns are those of the base at `places`, divided by powers of the rest."""

    base: View
    exponents: FloatArray
    degrees: FloatArray
    view: View
    places: tuple[int, ...]

    @classmethod
    def of(cls, base: View) -> _Reduced:
        n = len(base.columns)
        return cls(base, np.empty((0, n)), np.empty(0), base, tuple(range(n)))

    def key(self) -> tuple[View, bytes]:
        """The same for all ways to state the same scalings."""
        return self.base, np.round(_echelon(np.column_stack([self.exponents, self.degrees])), 6).tobytes()

    def scaled(self, i: int, j: int, p: float, k: float) -> _Reduced:
        """With a scaling more: by column i of the view, by its power -p of column j, and by the k-th of the target."""
        row = np.zeros(len(self.base.columns))
        row[self.places[j]] = -p
        row[self.places[i]] = 1.0
        columns = self.view.columns
        new = [
            monomial([(column, 1.0), (columns[i], p)]) if place == j else column
            for place, column in enumerate(columns)
            if place != i
        ]
        return _Reduced(
            self.base,
            np.vstack([self.exponents, row]),
            np.append(self.degrees, k),
            View(tuple(new), monomial([(self.view.factor, 1.0), (columns[i], k)])),
            tuple(place for n, place in enumerate(self.places) if n != i),
        )

    def plainest(self, X: FloatArray) -> _Reduced:
        """The same with the columns as units that make the plainest view."""
        if not len(self.degrees):
            return self
        n = len(self.base.columns)
        whole = np.array([not (column > 0).all() for column in self.base.table(X).T])
        views = unitless(self.base, self.exponents, self.degrees, whole, units=range(n), most=1)
        if not views:
            return self
        places = tuple(place for place in range(n) if place not in views[0].units)
        return replace(self, view=replace(views[0], units=()), places=places)


def _echelon(rows: FloatArray) -> FloatArray:
    """The reduced echelon form of rows, with pivots from the left."""
    rows, r = rows.copy(), 0
    for column in range(rows.shape[1] - 1):
        if r == len(rows):
            break
        pivot = r + int(np.abs(rows[r:, column]).argmax())
        if abs(rows[pivot, column]) < SYMMETRIES.singular:
            continue
        rows[[r, pivot]] = rows[[pivot, r]]
        rows[r] /= rows[r, column]
        others = np.arange(len(rows)) != r
        rows[others] -= np.outer(rows[others, column], rows[r])
        r += 1
    return rows + 0.0


def _levels(X: FloatArray, y: FloatArray, out_of_time: Callable[[], bool]) -> Iterator[list[View]]:
    """For each number of columns, from all less one to one, the views that stand, the best first."""
    raw = _Reduced.of(View.raw(X.shape[1]))
    best = _fitted(raw, X, y)
    beam = [raw]
    if best is None or not best.error < SYMMETRIES.hopeless**2 * float(np.var(y)):
        return
    if _is_as_good(fit_plane(X, y), best):
        return  # a sum of the columns says all: any two of like slopes would merge
    for narrower, its_fit in _without_idle(raw, X, y, out_of_time):
        beam, best = [narrower], min(best, its_fit, key=lambda fit: fit.error)
        yield [narrower.view]
    while beam and len(beam[0].view.columns) > 1:
        tried: dict[tuple[View, bytes], tuple[_Reduced, SmoothFit]] = {}
        for reduced in beam:
            for proposal in _proposals(reduced, X, y):
                if out_of_time():
                    return
                key = proposal.key()
                if key not in tried and (fit := _fitted(proposal, X, y)) is not None:
                    tried[key] = proposal, fit
        best = min([best, *(fit for _, fit in tried.values())], key=lambda fit: fit.error)
        allowed = [(one.plainest(X), fit) for one, fit in tried.values() if _is_as_good(fit, best)]
        # wide tables take long, and their first steps are plain
        n_left = len(beam[0].view.columns) - 1
        beam = _briefest(allowed)[: SYMMETRIES.noisy_beam[min(n_left, len(SYMMETRIES.noisy_beam)) - 1]]
        if beam:
            yield [reduced.view for reduced in beam]


def _without_idle(
    wide: _Reduced, X: FloatArray, y: FloatArray, out_of_time: Callable[[], bool]
) -> Iterator[tuple[_Reduced, SmoothFit]]:
    """A table without one more of the columns without which it predicts left-out rows no worse: those need not be looked for
    among all symmetries of as wide a table."""
    fit = _fitted(wide, X, y, with_slopes=True)
    if fit is None:
        return
    sizes = np.sqrt(np.mean((fit.slopes * wide.view.table(X).std(axis=0)) ** 2, axis=0))
    for column in np.argsort(sizes, kind="stable").tolist():
        if len(wide.view.columns) < 2 or out_of_time():
            return
        place = wide.places.index(column)
        without = wide.scaled(place, place, 0.0, 0.0)
        rest = _fitted(without, X, y)
        if rest is not None and not rest.error > fit.error:
            wide, fit = without, rest
            yield wide, fit


def _briefest(allowed: list[tuple[_Reduced, SmoothFit]]) -> list[_Reduced]:
    """Tables by rising length, of those with one error only the first: they are one, written twice."""
    found: dict[str, _Reduced] = {}
    for reduced, fit in sorted(allowed, key=lambda one: _length(*one)):
        found.setdefault(f"{fit.error:.9e}", reduced)
    return list(found.values())


def _fitted(reduced: _Reduced, X: FloatArray, y: FloatArray, *, with_slopes: bool = False) -> SmoothFit | None:
    """The smooth fit in a view; None where its factor or columns are not finite."""
    table, factors = reduced.view.table(X), reduced.view.factors(X)
    if not (np.isfinite(table).all() and np.isfinite(factors).all() and (factors != 0).all()):
        return None
    return fit_smooth(table, factors, y, with_slopes=with_slopes)


def _length(reduced: _Reduced, fit: SmoothFit) -> float:
    """Nats for what the fit leaves and for the view's symbols."""
    symbols = sum(tree_complexity(node) for node in (*reduced.view.columns, reduced.view.factor))
    return 0.5 * len(fit.residuals) * math.log(max(fit.error, 1e-300)) + SYMMETRIES.noisy_symbol * symbols


def _is_as_good(fit: SmoothFit, best: SmoothFit) -> bool:
    """Whether left-out rows are predicted no worse than by the best fit, beyond chance."""
    more = fit.residuals**2 - best.residuals**2
    return float(more.mean()) <= SYMMETRIES.noisy_spreads * float(more.std()) / math.sqrt(len(more))


# --- proposals ------------------------------------------------------------------------------------------------------


def _proposals(reduced: _Reduced, X: FloatArray, y: FloatArray) -> Iterator[_Reduced]:
    """Tables without one of the columns, those first that the slopes speak for."""
    fit = _fitted(reduced, X, y, with_slopes=True)
    if fit is None:
        return
    table, factors = reduced.view.table(X), reduced.view.factors(X)
    found = [*_scalings(reduced, table, factors, fit), *_merges(reduced, table, factors, fit)]
    found.sort(key=lambda proposal: proposal[0])
    yield from (make() for _, make in found[: SYMMETRIES.noisy_tried])
    for j, column in enumerate(reduced.view.columns):
        if np.ptp(table[:, j]) > SYMMETRIES.least_angle_range:
            for wave in _WAVES:
                yield _Reduced.of(_without(reduced.view, j, factor=put(wave, column)))


_Proposal = tuple[float, Callable[[], _Reduced]]
"""How far slopes are from it, and what makes it."""


def _scalings(reduced: _Reduced, table: FloatArray, factors: FloatArray, fit: SmoothFit) -> list[_Proposal]:
    """Scalings of one column and the target, or of two and the target, with how far slopes are from each: the nearest.

    A column that scales nothing else says nothing.
    """
    n = table.shape[1]
    fields = np.column_stack([fit.slopes * table * factors[:, None], fit.values])
    every = np.array([
        (i, j, p, k)
        for i, j in itertools.product(range(n), repeat=2)
        for p in (SYMMETRIES.noisy_powers if i != j else (0.0,))
        for k in SYMMETRIES.noisy_degrees
    ])  # fmt: skip
    whole, exponents = np.array([not (column > 0).all() for column in table.T]), every[:, 2:]
    every = every[~(whole[every[:, 0].astype(int)] & (exponents != np.round(exponents)).any(axis=1))]
    misfits = _misfits(every, fields.T @ fields) + SYMMETRIES.power_cost * np.abs(every[:, 2:]).sum(axis=1)

    def proposal(misfit: float, i: float, j: float, p: float, k: float) -> _Proposal:
        return misfit, lambda: reduced.scaled(int(i), int(j), p, k)

    nearest = np.argsort(misfits, kind="stable")[: SYMMETRIES.noisy_tried]
    return [proposal(float(misfits[m]), *every[m].tolist()) for m in nearest]


def _misfits(directions: FloatArray, products: FloatArray) -> FloatArray:
    """Squares of field i less p times field j and k times the last one [S], as a share of the largest of the three, or of the
    largest of all but the last where field i is alone; i, j, p and k are the `directions` [S, 4], told by products of fields."""
    i, j = directions[:, :2].astype(int).T
    p, k = directions[:, 2:].T
    sizes = np.diag(products)
    squares = sizes[i] + p**2 * sizes[j] + k**2 * sizes[-1]
    squares += 2 * (p * k * products[j, -1] - p * products[i, j] - k * products[i, -1])
    largest = np.max([sizes[i], p**2 * sizes[j], k**2 * sizes[-1]], axis=0)
    largest = np.where((p == 0) & (k == 0), sizes[:-1].max(), largest)
    return np.asarray(squares / np.maximum(largest, 1e-300))


def _merges(reduced: _Reduced, table: FloatArray, factors: FloatArray, fit: SmoothFit) -> Iterator[_Proposal]:
    """Two columns read as the sum or difference of their powers, with how far slopes are from that."""
    view = reduced.view
    powers = SYMMETRIES.noisy_merged
    slopes = fit.slopes * factors[:, None]
    by_power = {p: slopes * table ** (1 - p) / p for p in powers}
    for i, j in itertools.combinations(range(table.shape[1]), 2):
        for p, q in itertools.product(powers, repeat=2):
            left, right = by_power[p][:, i], by_power[q][:, j]
            larger = max(float(left @ left), float(right @ right))
            for name, sign in (("add", 1.0), ("sub", -1.0)):
                rest = left - sign * right
                misfit = float(rest @ rest) / larger + SYMMETRIES.power_cost * (abs(p) + abs(q))
                if not math.isfinite(misfit):
                    continue
                powers_of = (i, p), (j, q)
                # the loop's names are bound now; few are made
                yield misfit, lambda name=name, of=powers_of: _Reduced.of(_merged(view, name, of))  # type: ignore[misc]


def _merged(view: View, name: str, powers_of: tuple[tuple[int, float], ...]) -> View:
    """The view with two of its columns read as the sum or difference of their powers."""
    both = build(name, *(power(view.columns[place], exponent) for place, exponent in powers_of))
    merged = {place for place, _ in powers_of}
    return View((*(column for n, column in enumerate(view.columns) if n not in merged), both), view.factor)


def _without(view: View, j: int, *, factor: Node) -> View:
    """The view without a column, its factor times another."""
    rest = tuple(column for place, column in enumerate(view.columns) if place != j)
    return View(rest, monomial([(view.factor, 1.0), (factor, 1.0)]))
