"""Which tables direct methods look at: the columns as they are and smaller ones, and which of these are noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gmeql.formula.nodes import Variable, row_values
from gmeql.search.direct.smoothed import smooth_error, smooth_values
from gmeql.search.direct.table import DirectTable
from gmeql.search.state import SearchState
from gmeql.search.symmetries.config import SYMMETRIES
from gmeql.search.symmetries.views import View


def plainest_views(state: SearchState) -> list[View]:
    """The plainest view of each number of columns, the smallest first, and the columns as they are.

    Later the smallest few that were not looked at again yet, the newest first: those that formulas found until then
    suggest.
    """
    views = [table.view for table in state.portfolio.tables]
    if state.later_looks:
        new = [i for i in reversed(range(len(views))) if i not in state.looked_again]
        new = sorted(new, key=lambda i: len(views[i].columns))[: state.config.tables_looked_at_again]
        state.looked_again += new
        return [views[i] for i in new]
    plainest: dict[int, View] = {}
    for view in views[1:]:
        plainest.setdefault(len(view.columns), view)
    return [*(view for _, view in sorted(plainest.items())), views[0]]


def plain_table_of(view: View, state: SearchState) -> DirectTable | None:
    """The rows that formulas are cut to shape on, as a view shows them; None where that is not finite or hides rows."""
    rows = state.rows.polished
    with np.errstate(all="ignore"):
        factors = view.factors(rows.X)
        X, y, weights = view.table(rows.X), rows.target / factors, rows.weights * factors**2
    if not (np.isfinite(X).all() and np.isfinite(y).all() and np.isfinite(weights).all() and weights.sum() > 0):
        return None
    if (weights[rows.weights > 0] == 0).any():  # a factor over so many magnitudes that its square is no number
        return None
    return DirectTable(X, y, weights / weights.mean())


def table_of(view: View, state: SearchState) -> DirectTable | None:
    """`plain_table_of`, with what was found so far."""
    table, rows, is_raw = plain_table_of(view, state), state.rows.polished, view.is_raw_of(state.rows.n_variables)
    if table is None:
        return None
    leading = state.leaderboard.leading(state.config.formulas_filled) if is_raw else []
    table = replace(table, found=tuple(scored.root for scored in leading))
    with np.errstate(all="ignore"):
        best = row_values(state.leaderboard.best.root, rows.names, rows.X) / view.factors(rows.X)
    # in the table's own spread: what a factor explains is no part of it
    if not np.isfinite(best).all():
        return table
    table = replace(table, unexplained=table.error_of(best), explained=best)
    smooth = smooth_values(table) if table.unexplained > SYMMETRIES.noisy and not is_raw else None
    closer = smooth is not None and table.error_of(smooth) < table.unexplained
    return replace(table, explained=smooth) if closer else table


def small_views_of(state: SearchState) -> list[tuple[View, float]]:
    """The smallest tables, of very few columns, each with its share of the time kept for trails.

    Where no smooth fit comes near the target, that is most likely noise, but it may be a wave: one table has a little time, if
    columns stand together in it. That the others say nothing is no sign of a law.
    """
    numbers = state.config.clock
    smaller = [view for view in plainest_views(state)[:-1] if len(view.columns) <= numbers.small_columns]
    if not smaller or not _is_noisy(smaller[0], state):
        return list(zip(smaller, numbers.small_shares, strict=False))
    together = [view for view in smaller if not all(isinstance(column, Variable) for column in view.columns)]
    return list(zip(together, numbers.small_noisy_shares, strict=False))


def noisy_views_of(state: SearchState) -> list[tuple[View, float]]:
    """The smallest tables, of few columns, where even there no smooth fit comes near the target: what it leaves is noise.
    Each with its share of the time for direct methods."""
    smaller = [view for view in plainest_views(state)[:-1] if is_small(view, state)]
    is_noise = bool(smaller) and _is_noisy(smaller[0], state)
    return list(zip(smaller, state.config.clock.noisy_shares, strict=False)) if is_noise else []


def is_noisy(state: SearchState) -> bool:
    """Whether no smooth fit comes near the target in the smallest table that there is; not where there is none."""
    smaller = [view for table in state.portfolio.tables if not (view := table.view).is_raw_of(state.rows.n_variables)]
    return bool(smaller) and _is_noisy(min(smaller, key=lambda view: len(view.columns)), state)


def is_small(view: View, state: SearchState) -> bool:
    """Whether a noisy table has few columns, and is worth time of its own: else laws are hardly shorter there."""
    return len(view.columns) <= state.config.clock.noisy_columns


def _is_noisy(view: View, state: SearchState) -> bool:
    table = table_of(view, state)
    if table is None or not table.unexplained > SYMMETRIES.noisy:
        return False
    # what is explained is the smooth fit's already, where that is closer than the best formula
    error = smooth_error(table) if table.explained is None else table.error_of(table.explained)
    return min(table.unexplained, error) > SYMMETRIES.noisy
