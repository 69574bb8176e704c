"""Views that the slopes of a surrogate speak for, each with fewer columns than the one before."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from gmeql.formula.nodes import build, row_values
from gmeql.search.symmetries.config import SYMMETRIES
from gmeql.search.symmetries.factors import factors_of_column, put
from gmeql.search.symmetries.joined import joined_products, joined_sums
from gmeql.search.symmetries.surrogate import typical
from gmeql.search.symmetries.views import FittedView, View, monomial, power, unitless


def merged_views(fitted: FittedView) -> Iterator[View]:
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


def scaled_views(fitted: FittedView) -> Iterator[list[View]]:
    """Views without units, by how many columns serve as units, most first; each list the simplest choices of them."""
    fields = np.column_stack([fitted.slopes * fitted.table, fitted.target])
    if fitted.is_relative:
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


def joined_views(fitted: FittedView) -> Iterator[View]:
    """Views in which two columns became one product of functions of theirs, or one sum behind a power; best first."""
    columns, table, slopes = fitted.view.columns, fitted.table, fitted.slopes
    size = np.sqrt(np.mean((slopes * table.std(axis=0)) ** 2, axis=0))
    matters = [int(j) for j in np.flatnonzero(size >= SYMMETRIES.least_slope * size.max())]
    told = fitted.target[:, None] if fitted.is_relative else np.ones((len(table), 1))
    given = table, slopes / told, fitted.target / told[:, 0], matters
    allowed = SYMMETRIES.rough_misfit if fitted.error > SYMMETRIES.rough else SYMMETRIES.merge_misfit
    found = [one for one in itertools.chain(joined_products(*given), joined_sums(*given)) if one.away < allowed]
    for one in sorted(found, key=lambda one: one.away):
        (left, p), (right, q) = one.left, one.right
        first, second = put(left, columns[one.i]), put(right, columns[one.j])
        if one.sign:
            read = build("add" if one.sign > 0 else "sub", power(first, p), power(second, q))
        else:
            is_root = p != np.round(p) and (row_values(right, [""], table[:, [one.j]]) > 0).all()
            whole = 2.0 if is_root else 1.0  # what is read squared needs no root
            read = monomial([(second, whole * q), (first, whole * p)])
        rest = (column for place, column in enumerate(columns) if place not in (one.i, one.j))
        yield View((*rest, read), monomial([(fitted.view.factor, 1.0), (first, one.before)]))


def views_without_factor(fitted: FittedView, out_of_time: Callable[[], bool]) -> Iterator[list[View]]:
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
