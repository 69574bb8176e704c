"""When the data are looked at, and by whom: the search itself between two stages, or other processes beside it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from gmeql.fitters.cuda.driver import Driver
from gmeql.formula.nodes import Constant, Node
from gmeql.search.clock import Clock
from gmeql.search.config import SearchConfig
from gmeql.search.data.readings import PLAIN
from gmeql.search.data.viewed import ViewedTable
from gmeql.search.direct.methods import FAULTS
from gmeql.search.offers.beside import LooksBeside
from gmeql.search.offers.moments import is_time_to_go_on, is_time_to_look, is_time_to_look_again
from gmeql.search.offers.offering import Offering
from gmeql.search.offers.promotion import polish_formula
from gmeql.search.offers.seeing import (
    go_on,
    look_again,
    look_at_smaller,
    look_directly,
    look_early,
    views_of_leading,
)
from gmeql.search.offers.turns import counted
from gmeql.search.state import SearchState
from gmeql.search.stopping import has_exact_formula
from gmeql.search.symmetries.noisy import smaller_tables
from gmeql.search.symmetries.views import View

_log = logging.getLogger(__name__)


class Looking:
    """Looks at the data for symmetries and directly, for one search."""

    def __init__(self, config: SearchConfig, offering: Offering) -> None:
        self._offering = offering
        self.beside = LooksBeside(config, offering)
        self._viewed: set[Node] = set()
        """Formulas that were asked for smaller tables."""
        self._first = iter((look_early, self.look_for_symmetries, self._look_directly))
        """What can be looked for before islands have drawn anything."""

    @contextmanager
    def open(self) -> Iterator[None]:
        """Whatever ends the search, nobody looks any more."""
        with self.beside.open():
            yield

    def look_deeper(self, state: SearchState, driver: Driver | None) -> None:
        """Have an accelerator look at the data, too, as soon as there is one."""
        if driver is not None and self.beside.deeper.begin_on(driver, state):
            self._offering.take_turns()  # what looks there has a thread of its own

    def tend(self, state: SearchState, clock: Clock) -> None:
        """Between two steps of the search: see to those who look beside it."""
        self.beside.tend(state, clock, lambda views: self.take_views(state, views, clock.is_late))

    def see(self, state: SearchState, clock: Clock) -> None:
        """Look directly, as far as it is time; before that, once, for smaller tables; go on from formulas found so far.

        A fault on the way ends the looks, not the search.
        """
        with self._without_faults(state):
            self._look(state, clock)
            if is_time_to_go_on(state):
                self._offering.settle(state)
                go_on(state, clock)

    @contextmanager
    def _without_faults(self, state: SearchState) -> Iterator[None]:
        try:
            yield
        except FAULTS:
            _log.warning("a look at the data failed; the search goes on without looks", exc_info=True)
            state.symmetries_done = state.direct_done = True
            state.later_looks, state.growing_looks = (
                len(state.config.clock.later_from),
                len(state.config.clock.growing_from),
            )

    def see_first(self, state: SearchState, clock: Clock) -> bool:
        """A look before islands have drawn anything, where time is the budget and their kernels are being compiled; whether
        there was something to look for. It ends when the kernels are there, and what it did not see through comes again."""
        config = state.config
        if state.candidates or state.direct_done or config.max_time is None or config.max_candidates is not None:
            return False
        from gmeql.fitters.compiled import are_coming

        look = next(self._first, None) if are_coming() else None
        if look is not None:
            with self._without_faults(state):
                look(state, replace(clock, is_interrupted=lambda: clock.is_interrupted() or not are_coming()))
        return look is not None

    def _look_directly(self, state: SearchState, clock: Clock) -> None:
        """All direct methods; those that are interrupted are asked again."""
        look_directly(state, clock)
        state.direct_done = not clock.is_interrupted()

    def _look(self, state: SearchState, clock: Clock) -> None:
        """Look for smaller tables and directly. Nothing where others do.

        While these start, which takes a second, the quick methods of linear algebra are asked here. What is interrupted by
        an island that looks exact, and is not, comes again.
        """
        is_for_others = self.beside.takes_looks(state, clock)
        if is_for_others and self.beside.are_ready():
            return
        if not state.symmetries_done:
            self._offering.settle(state)
            look_early(state, clock)
        if is_for_others:
            return
        if is_time_to_look(state) and not (state.symmetries_done and state.direct_done):
            self._offering.settle(state)
            if not state.symmetries_done and not has_exact_formula(state):
                self.look_for_symmetries(state, clock)
            if not state.direct_done and not has_exact_formula(state) and not clock.is_interrupted():
                self._look_directly(state, clock)
        elif is_time_to_look_again(state):
            self._offering.settle(state)
            # where nothing is left, but for what takes no time worth mentioning
            limit = (clock if state.looks_left > 0 else replace(clock, formula_seconds=0.0)).formula_limit()
            with counted(state):
                views = views_of_leading(state, self._viewed, limit)
                self.take_views(state, views, clock.is_late)
            look_at_smaller(state, clock, views)
            look_again(state, clock)

    def look_for_symmetries(self, state: SearchState, clock: Clock) -> None:
        """See whether smaller tables tell as much, and begin anew with them."""
        rows = state.rows.polished
        starts, limit = state.portfolio.starting_views(), clock.symmetry_limit()
        with counted(state):
            views = [view for start in starts for view in smaller_tables(rows.X, rows.target, limit, start=start)]
            if not clock.is_interrupted():
                state.symmetries_done = True
                self.take_views(state, views, clock.is_late)

    def take_views(self, state: SearchState, views: Sequence[View], is_late: Callable[[], bool]) -> None:
        """Begin anew with smaller tables, of those views that are allowed."""
        tables = []
        self._offering.settle(state, hurried=state.config.max_candidates is None)  # a smaller table is worth more
        for view in views:
            if not state.portfolio.functions.allows(view.operators()) or not state.keeps_units(view):
                continue
            table = state.portfolio.table(view, state.rows)
            if view.is_spent:
                offer_multiple(state, table, is_late)
            elif PLAIN in table.readings:
                tables.append(table)
        if tables:
            state.portfolio.add_tables(tables)
            state.islands = []


def offer_multiple(state: SearchState, table: ViewedTable, is_late: Callable[[], bool]) -> None:
    """Offer a multiple of a view's factor: all there is to say where its columns hold nothing more."""
    polish_formula(state, table.view.restore(Constant(table.scale)), is_late, thorough=table.view.is_spent)
