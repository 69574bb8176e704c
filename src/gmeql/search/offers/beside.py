"""Looks at the data beside the search, in processes of their own, while islands go on: symmetries and direct methods.

The interpreter lets one thread of a process work at a time, and a direct method is mostly Python. On one core a search spends
half of its time looking and cutting to shape, on sixteen cores nine tenths. So if time is the budget and there is more than one
core, other processes look (`lookers/`). They are asked what `seeing.py` asks, but side by side: methods of linear algebra and
the other methods about the columns as they are, symmetries, then all methods about smaller tables, later those for noise. What
they see is offered by a thread for that (`offering.py`). An accelerator looks, too (`deeper.py`). With a number of candidates
the search looks itself, at set moments, since its result must not depend on who is faster.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from gmeql.formula.nodes import Node
from gmeql.formula.operators import OPERATORS
from gmeql.search.clock import Clock
from gmeql.search.config import SearchConfig
from gmeql.search.direct.methods import AT_FIRST, EARLY, LAST, NOISY
from gmeql.search.islands.island import Island
from gmeql.search.lookers.jobs import DirectLook, FormulaLook, Job, SymmetryLook
from gmeql.search.lookers.pool import Lookers, Ticket, shared_lookers
from gmeql.search.offers.deeper import DeeperLooks
from gmeql.search.offers.moments import is_time_to_look_again, later_seconds
from gmeql.search.offers.offering import Offering
from gmeql.search.offers.seeing import (
    PlannedLook,
    asked_of,
    is_brief,
    later_shares,
    look_at_smaller,
    offer_seen,
    plan,
)
from gmeql.search.offers.tables import noisy_views_of, plainest_views, small_views_of
from gmeql.search.state import SearchState
from gmeql.search.stopping import has_exact_formula
from gmeql.search.symmetries.config import SYMMETRIES
from gmeql.search.symmetries.views import View

TakeViews = Callable[[Sequence[View]], None]
"""Lets the search begin anew with smaller tables."""


@dataclass(eq=False)
class _Asked:
    """A job that was handed in; `look` says which direct method it is."""

    job: Job
    look: PlannedLook | None
    ticket: Ticket


@dataclass(order=True)
class _Seen:
    """A formula over the columns as they are, and its error on the table where it was seen."""

    error: float
    root: Node = field(compare=False)


class LooksBeside:
    """What other processes look for, for one search: asked for, taken in."""

    def __init__(self, config: SearchConfig, offering: Offering) -> None:
        self._config, self._offering = config, offering
        self.deeper = DeeperLooks(config)
        self.is_allowed = True
        self._lookers: Lookers | None = None
        self._due: list[tuple[float, Job, PlannedLook | None]] = []  # rank, job, which direct method it is
        self._running: list[_Asked] = []
        self._seen: list[_Seen] = []
        self._has_begun = self._are_slow_asked = False
        self._started = 0.0
        self._later_seconds = 0.0

    @contextmanager
    def open(self) -> Iterator[None]:
        """Whatever ends the search, nobody looks any more."""
        try:
            yield
        finally:
            self.stop()

    # --- whether others look -----------------------------------------------------------------------------------------

    def takes_looks(self, state: SearchState, clock: Clock) -> bool:
        """Whether others look at the data, or will: they are started once the search has taken a moment.

        Not where the search is to give the same whoever is faster, nor in a process that is one of many already.
        """
        config = self._config
        if self._lookers is None:
            if (
                not self.is_allowed
                or config.max_time is None
                or config.max_candidates is not None
                or config.n_lookers == 0
                or not _is_something_left(state)
                or state.rows.groups is not None
                or multiprocessing.parent_process() is not None
                or any(operator.is_user_defined for operator in OPERATORS.values())
            ):
                return False
            lookers = shared_lookers()
            is_warm = lookers.n_ready() > 0
            if not is_warm:  # those that are there can begin at once
                if clock.elapsed() < config.looked_alone_for:
                    return True
                if config.max_time < config.lookers_least_time:
                    return False
            lookers.start(config.n_lookers)
            self._lookers, self._started = lookers, clock.elapsed()
        are_late = clock.elapsed() > self._started + config.lookers_late
        return self.are_ready() or not (self._lookers.has_failed or are_late)

    def are_under_way(self, state: SearchState, clock: Clock) -> bool:
        """Whether the first looks are still to come, or others are at them."""
        is_done = self._has_begun and not self._running and not self._seen
        return self.deeper.is_at_work or (not is_done and self.takes_looks(state, clock))

    def are_ready(self) -> bool:
        """Whether one of them takes jobs."""
        return self._lookers is not None and self._lookers.n_ready() > 0

    @property
    def n_busy(self) -> int:
        """How many have something to do: none, up to half of them or all, so that few pools of threads are needed."""
        n, busy = self._config.n_lookers, len(self._running)
        return n if busy > n // 2 else min(busy, 1) * max(n // 2, 1)

    # --- looking -----------------------------------------------------------------------------------------------------

    def tend(self, state: SearchState, clock: Clock, take_views: TakeViews) -> None:
        """Between two steps of the search: ask for what is due, take in what was found."""
        if clock.is_closing():
            return
        self._seen += [_Seen(*seen) for seen in self.deeper.tend(state)]
        if self.takes_looks(state, clock) and self.are_ready():
            self._tend_others(state, clock, take_views)
        self._offer(state, clock)

    def _tend_others(self, state: SearchState, clock: Clock, take_views: TakeViews) -> None:
        if not self._has_begun:
            self._begin(state, clock)
        elif not self._running and is_time_to_look_again(state):
            self._later_seconds = later_seconds(state)
            state.later_looks += 1
            roots = [scored.root for scored in state.leaderboard.leading(self._config.formulas_viewed)]
            self._ask(0.0, FormulaLook(roots, state.rows.polished.X, SYMMETRIES.formula_slacks))
        self._hand_in()
        for asked in list(self._running):
            self._take_in(asked, state, clock, take_views)
        self._hand_in()  # what is to be looked for in smaller tables
        if not self._running and not state.direct_done:
            state.direct_done = True
            first = self._config.clock.first_share
            state.direct_spent = max(state.direct_spent, first * self._config.direct_seconds)

    def stop(self) -> None:
        """Let those who look end soon; what they find is not heard any more."""
        self._due.clear()
        self.deeper.stop()
        for asked in self._running:
            if self._lookers is not None:
                self._lookers.cancel(asked.ticket)
        self._running.clear()

    def _begin(self, state: SearchState, clock: Clock) -> None:
        """Symmetries, and all methods about the columns as they are; one after the other the quick ones come first."""
        self._has_begun = True
        if not state.symmetries_done:
            rows, starts = state.rows.polished, tuple(state.portfolio.starting_views())
            rank = 0.0 if self._config.n_lookers > 1 else 1.5
            self._ask(rank, SymmetryLook(rows.X, rows.target, starts, clock.symmetry_seconds))
        if state.direct_done:
            return
        numbers, seconds = self._config.clock, self._config.direct_seconds * self._config.lookers_boost
        (*smaller, whole) = plainest_views(state)
        early = asked_of(state, EARLY)
        others = [name for name in asked_of(state, AT_FIRST) if name not in EARLY]
        left = numbers.beside_share * seconds
        is_asked = state.direct_spent > 0  # by the search itself, in less time
        if not is_asked or self._config.n_lookers > 1:
            self._plan(3.5 if is_asked else 1.0, state, early, numbers.early_share * seconds, [whole])
        self._plan(3.0, state, others, left, [whole])
        if state.symmetries_done:
            self._plan(2.0, state, asked_of(state, AT_FIRST), left, smaller)
        if self._config.n_lookers > 1:  # else they would keep all others waiting
            self._plan_slow(4.0, state)

    def _plan(self, rank: float, state: SearchState, names: list[str], seconds: float, views: list[View]) -> None:
        """Ask direct methods to look at smaller tables, one job for each look."""
        if not names or not views:
            return
        more = self._config.trail_seconds * min(self._config.lookers_boost, 2.0)
        for look in plan(replace(state, direct_done=True, direct_spent=0.0), names, seconds, views):
            job = DirectLook(
                look.name, look.table, state.portfolio.functions, look.seconds, more, (state.seed, look.number)
            )
            self._ask(rank, job, look)

    def _plan_slow(self, rank: float, state: SearchState) -> None:
        """Ask the methods that take long to begin, about the columns as they are, once."""
        self._are_slow_asked = True
        seconds = sum(self._config.clock.last_shares) * self._config.direct_seconds * self._config.lookers_boost
        self._plan(rank, state, asked_of(state, LAST), seconds, [state.portfolio.tables[0].view])

    def _ask(self, rank: float, job: Job, look: PlannedLook | None = None) -> None:
        """Have a job handed in with what else is due; those of lower rank go first."""
        self._due.append((rank, job, look))

    def _hand_in(self) -> None:
        """All that is due, at once: the search has no time to see to it whenever a process is done with something."""
        assert self._lookers is not None
        for rank, job, look in sorted(self._due, key=lambda due: due[0]):
            self._running.append(_Asked(job, look, self._lookers.take(job, rank)))
        self._due.clear()

    def _take_in(self, asked: _Asked, state: SearchState, clock: Clock, take_views: TakeViews) -> None:
        """What a job has found so far."""
        is_over = asked.ticket.is_over  # before what it found is read, or the last of it would be missed
        while asked.ticket.found:
            found: Any = asked.ticket.found.popleft()
            if asked.look is not None:
                if asked.look.is_heard(found):
                    self._seen.append(_Seen(asked.look.table.error(found), asked.look.view.restore(found)))
            elif isinstance(asked.job, SymmetryLook):
                self._begin_with(found, state, clock, take_views)
            else:
                self._look_again(found, state, clock, take_views)
        if is_over:
            self._running.remove(asked)
            state.symmetries_done = state.symmetries_done or isinstance(asked.job, SymmetryLook)

    def _begin_with(self, views: Sequence[View], state: SearchState, clock: Clock, take_views: TakeViews) -> None:
        """Smaller tables that symmetries allow: islands begin anew with them, and methods look at them."""
        state.symmetries_done = True
        take_views(views)
        if not state.direct_done:
            look_at_smaller(state, clock, plainest_views(state))
        if not state.direct_done and not has_exact_formula(state):
            numbers, seconds = self._config.clock, self._config.direct_seconds * self._config.lookers_boost
            left = numbers.beside_share * seconds
            for view, share in noisy_views_of(state):
                self._plan(0.5, state, asked_of(state, NOISY), share * seconds, [view])
                left -= share * seconds
            for view, share in small_views_of(state):
                self._plan(1.0, state, asked_of(state, AT_FIRST), share * self._config.trail_seconds, [view])
            self._plan(2.0, state, asked_of(state, AT_FIRST), max(left, 0.0), plainest_views(state)[:-1])

    def _look_again(self, views: Sequence[View], state: SearchState, clock: Clock, take_views: TakeViews) -> None:
        """Smaller tables that formulas found until now suggest, and what may be noise, or looks like it."""
        known = {table.view for table in state.portfolio.tables}
        new = [view for view in views if view not in known]
        take_views(new)
        look_at_smaller(state, clock, new)
        views = plainest_views(state)
        for names, seconds, _ in later_shares(state, self._later_seconds, views):
            self._plan(1.0, state, names, seconds * self._config.lookers_boost, views)
        if state.later_looks == len(self._config.clock.later_from) and not self._are_slow_asked:
            self._plan_slow(2.0, state)

    def _offer(self, state: SearchState, clock: Clock) -> None:
        """Have what was seen offered to the front, the closest first, as soon as the thread for that is free.

        What looks exact does not wait for what the thread is busy with.
        """
        if not self._seen:
            return
        is_urgent = min(self._seen).error < self._config.front.near_exact
        if is_urgent:
            self._offering.settle(state, hurried=True)
        elif self._offering.is_busy:
            return
        waiting, self._seen = sorted(self._seen), []

        def offer(state: SearchState, _: Sequence[Island]) -> None:
            while waiting and not self._offering.is_hurried() and not clock.is_time_to_judge():
                offer_seen(state, waiting.pop(0).root, clock, cut=True)
                if has_exact_formula(state) and is_brief(state):
                    return
            self._seen += waiting  # later

        self._offering.begin(offer, state, (), may_skip=False)


def _is_something_left(state: SearchState) -> bool:
    """Whether anything is to be looked for."""
    has_methods = state.config.direct is None or bool(state.config.direct)
    has_looks = not state.direct_done or state.later_looks < len(state.config.clock.later_from)
    return not state.symmetries_done or (has_methods and has_looks)
