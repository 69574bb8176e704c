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
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from gmeql.fitters.threads import one_blas_thread
from gmeql.search.symmetries.config import SYMMETRIES
from gmeql.search.symmetries.proposals import joined_views, merged_views, scaled_views, views_without_factor
from gmeql.search.symmetries.smooth import fit_plane
from gmeql.search.symmetries.surrogate import OutOfTime, typical
from gmeql.search.symmetries.views import FittedView, View


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
                reading = first.reading if first is not None and first.error < SYMMETRIES.understood else None
                return first if view is start else FittedView.of(view, X, y, out_of_time, reading)

            are_ranked = first is None or first.error < SYMMETRIES.far_better * _plane_error(X, y)
            for views in smaller_views(start, fit, are_ranked=are_ranked):
                found = views + found
            if first is not None and not found and under_noise:
                # what looked like noise may be a surrogate that sees nothing in so many columns
                seen = fit(under_noise[0])
                if seen is not None and seen.error < SYMMETRIES.far_better * first.error:
                    for views in smaller_views(under_noise[0], fit):
                        found = views + found
                    found, under_noise = found + under_noise, []
        except OutOfTime:
            pass
    return list(dict.fromkeys([*under_noise, *found]))[: SYMMETRIES.max_views]


def _plane_error(X: np.ndarray, y: np.ndarray) -> float:
    """Error of a plane, as a surrogate's is counted: one that knows hardly more sees noise, in which everything holds."""
    return typical(fit_plane(X, y).residuals) / float(np.std(y))


def smaller_views(
    start: View,
    fit: Callable[[View], FittedView | None],
    *,
    negligible: float = SYMMETRIES.negligible,
    out_of_time: Callable[[], bool] = lambda: False,
    are_joined: bool = True,
    are_ranked: bool = True,
) -> Iterator[list[View]]:
    """Step by step the views that the first proposal to hold stands for, each smaller than the one before.

    `fit` says what a view knows of the target: a proposal holds that knows as much, or whose error is `negligible`. Where the
    surrogate is rough, much holds that is wrong, and of the proposals that hold the one is taken that knows most. Once it is
    `out_of_time`, no column is asked for a function before the rest. `are_joined` asks which are read together, too; unless they
    `are_ranked`, the first that holds is taken of a rough surrogate as well.
    """
    current = fit(start)
    while current is not None and not current.is_hopeless and len(current.view.columns) > 1:
        enough = max(SYMMETRIES.allowed_growth * current.error, negligible)
        fits = ((views, fit(views[0])) for views in _proposals(current, out_of_time, are_joined))
        held = ((views, smaller) for views, smaller in fits if smaller is not None and not smaller.error > enough)
        is_rough, error, current = are_ranked and current.error > SYMMETRIES.rough, current.error, None
        for views, smaller in _best_first(held, error) if is_rough else held:
            yield views
            # a multiple of powers may hold nearly, as where tanh(u) is nearly u: what holds with a column left is more
            if not views[0].is_spent or float(np.ptp(smaller.target)) <= SYMMETRIES.plane * abs(
                float(smaller.target[0])
            ):
                current = smaller
                break


_Held = tuple[list[View], FittedView]
"""Views that a proposal stands for, and what the first of them knows."""


def _best_first(held: Iterable[_Held], error: float) -> Iterator[_Held]:
    """The proposals that know most first, of one that knows far more than the view before it no others are asked."""
    asked: list[_Held] = []
    for one in held:
        asked.append(one)
        if one[1].error < SYMMETRIES.far_better * error:
            break
    yield from sorted(asked, key=lambda one: one[1].error)


def _proposals(fitted: FittedView, out_of_time: Callable[[], bool], are_joined: bool) -> Iterator[list[View]]:
    """Views that the slopes speak for, in the order in which they are asked."""
    yield from ([view] for view in itertools.islice(merged_views(fitted), SYMMETRIES.merges_tried))
    yield from scaled_views(fitted)
    yield from itertools.islice(views_without_factor(fitted, out_of_time), SYMMETRIES.factors_tried)
    if are_joined and not out_of_time():
        yield from ([view] for view in itertools.islice(joined_views(fitted), SYMMETRIES.joined_tried))
