"""One step of a search: direct methods look at every table, and what they see goes to the front.

It is taken once, after the look for symmetries: smaller tables come first, since there a formula is short. Of several
tables with as many columns, which the same symmetry gives, the plainest is looked at. Methods that cost next to nothing
are asked about the plain columns before that, at the very start. Time or work is shared evenly over the tables and, as
`SHARES` says, over the methods; time that a method leaves over is the next one's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np

from gmeql.formula.nodes import Node
from gmeql.search.clock import Clock
from gmeql.search.direct.methods import AT_ONCE, DIRECT_METHODS, SHARES
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.polish.scoring import clean, refit
from gmeql.search.promotion import polish_formula
from gmeql.search.state import SearchState
from gmeql.search.stopping import has_exact_formula
from gmeql.search.symmetries.views import View


def look_at_once(state: SearchState, clock: Clock) -> None:
    """Before anything is drawn, ask the cheapest methods: there is something to show, and to be better than."""
    if not state.direct_done:
        _look(state, clock, [name for name in _asked(state) if name in AT_ONCE], cut=False)


def look_directly(state: SearchState, clock: Clock) -> None:
    """Let every direct method see every table, until a formula is exact or the share of the budget is spent."""
    state.direct_done = True
    _look(state, clock, _asked(state), cut=True)


def _asked(state: SearchState) -> list[str]:
    return list(DIRECT_METHODS if state.config.direct is None else state.config.direct)


def _look(state: SearchState, clock: Clock, names: list[str], *, cut: bool) -> None:
    from threadpoolctl import threadpool_limits

    # the matrices are small, and one thread always rounds alike
    with threadpool_limits(1, user_api="blas"):
        solved: View | None = None
        for view, root in _proposals(state, names):
            if solved not in (None, view) or clock.is_closing():
                return  # the other methods had their turn on that table: one of them may have a shorter form
            _offer(state, view.restore(root), clock, cut=cut)
            if solved is None and has_exact_formula(state):
                solved = view
                if state.leaderboard.best.complexity <= state.config.front.short:
                    return


def _proposals(state: SearchState, names: list[str]) -> Iterator[tuple[View, Node]]:
    """What the methods see, over the columns of which view; tables of few columns first.

    Methods that were asked at once are heard again only where they fit better than the best formula so far.
    """
    config = state.config
    tables = [(view, table) for view in _views(state) if (table := _table(view, state)) is not None]
    looks = [(view, table, name) for view, table in tables for name in names]
    first = not state.direct_done
    shares = np.array([SHARES.get(name, 1.0) for _, _, name in looks])
    seconds, began = config.direct_seconds * shares / shares.sum(), time.perf_counter()
    for i, (view, table, name) in enumerate(looks):
        effort = Effort(float(seconds[i]))
        if config.max_time is not None:
            until = began + float(seconds[: i + 1].sum())
            effort = Effort.timed(max(until - time.perf_counter(), 0.0), until=until)
        rng = np.random.default_rng([state.seed, i])
        for root in DIRECT_METHODS[name](table, functions=state.portfolio.functions, effort=effort, rng=rng):
            if first or name not in AT_ONCE or table.error(root) < table.unexplained:
                yield view, root


def _views(state: SearchState) -> list[View]:
    """The plainest view of each number of columns, the smallest first, and the columns as they are."""
    raw, *others = (table.view for table in state.portfolio.tables)
    plainest: dict[int, View] = {}
    for view in others:
        plainest.setdefault(len(view.columns), view)
    return [*(view for _, view in sorted(plainest.items())), raw]


def _table(view: View, state: SearchState) -> DirectTable | None:
    """The rows that formulas are cut to shape on, as a view shows them; None where that is not finite or hides rows."""
    rows = state.rows.polished
    with np.errstate(all="ignore"):
        factors = view.factors(rows.X)
        X, y, weights = view.table(rows.X), rows.target / factors, rows.weights * factors**2
    if not (np.isfinite(X).all() and np.isfinite(y).all() and np.isfinite(weights).all() and weights.sum() > 0):
        return None
    if (weights[rows.weights > 0] == 0).any():  # a factor over so many magnitudes that its square is no number
        return None
    unexplained = math.sqrt(state.leaderboard.best.loss) / rows.spread
    return DirectTable(X, y, weights / weights.mean(), unexplained)


def _offer(state: SearchState, root: Node, clock: Clock, *, cut: bool) -> None:
    """Refit a formula on the rows that all are judged on, and offer it: cut to shape all the way where it is exact."""
    rows, numbers = state.rows.polished, state.config.front
    cleaned = clean(root, rows)
    for scored in refit(
        [] if cleaned is None else [cleaned], rows, keep_recognised=False, max_steps=numbers.exact_steps
    ):
        state.offer([scored])
        if scored.loss < (numbers.exact * rows.spread) ** 2:
            polish_formula(state, scored.root, clock.is_late, thorough=True)
        elif cut and state.leaderboard.is_promising(scored.loss, scored.complexity):
            polish_formula(state, scored.root, clock.is_late, thorough=False)
