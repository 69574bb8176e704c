"""Whole generations of islands on accelerators, while the processor does something else: their start, and what comes of them.

A generation is fetched when it has ended, and the next one, opened meanwhile, starts before the processor looks at what
was fetched. So accelerators wait for the processor only while islands are copied.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from gmeql.search.accelerator.advance import Generation
from gmeql.search.clock import Clock
from gmeql.search.execution.execution import Executor
from gmeql.search.islands.island import Island
from gmeql.search.offers.offering import Offering
from gmeql.search.islands.portfolio import Portfolio
from gmeql.search.offers.promotion import is_exact, offer_elites, offer_ranked, polish_island
from gmeql.search.data.rows import SearchRows
from gmeql.search.state import SearchState
from gmeql.search.stopping import has_exact_formula


@dataclass
class Flight:
    """A generation on the way, and what the search was like when it set out."""

    generation: Generation
    islands: list[Island]
    before: list[float]
    """Best losses of the islands."""
    portfolio: Portfolio
    rows: SearchRows
    clock: Clock
    started: float

    def fallen(self, share: float) -> list[Island]:
        """Islands whose best loss fell to less than a share of what it was."""
        pairs = zip(self.islands, self.before, strict=True)
        return [island for island, before in pairs if island.best < share * before]


class Flights:
    """One generation at a time. What its islands found is offered by the thread for that."""

    def __init__(self, executor: Executor, offering: Offering) -> None:
        self._executor, self._offering = executor, offering
        self._flight: Flight | None = None
        self._landed: list[Flight] = []  # while the processor looked at the data: still to be taken in

    @contextmanager
    def open(self, state: SearchState) -> Iterator[None]:
        """Whatever ends the search, what is on the way comes down, and its islands are the open ones."""
        try:
            yield
        finally:
            self._bring_down(state)

    @property
    def generation(self) -> Generation | None:
        """What is on the way."""
        return None if self._flight is None else self._flight.generation

    def start(self, state: SearchState, ages: Sequence[int], clock: Clock) -> Generation | None:
        """Let the open islands set out, up to some ages at which the worse half is closed; None where that fails."""
        before = [island.best for island in state.islands]
        give_up = partial(clock.is_nearly_time_to_judge, state.config.clock.device_seconds)
        generation = self._executor.start(state, ages, give_up)
        if generation is not None:
            # later rows change the portfolio, not what it refers to
            seen, now = copy.copy(state.portfolio), time.perf_counter()
            self._flight = Flight(generation, state.islands, before, seen, state.rows, clock, now)
        return generation

    def tend(self, state: SearchState, clock: Clock, set_out: Callable[[], None]) -> bool:
        """Whether an island looks exact. A generation that has ended without one makes room for the next, which sets out.

        For the processor while it looks at the data, which may take longer than a generation lives.
        """
        if self._flight is None:
            return False
        generation = self._flight.generation
        if generation.is_over() and not generation.has_enough and not clock.is_closing():
            self._landed.append(self._fetched(state))
            if self._executor.on_cards:
                set_out()
        return generation.has_enough

    def take_in_landed(self, state: SearchState) -> None:
        """Take in what landed meanwhile."""
        for flight in self._landed:
            self._take_in(flight, state)
        self._landed.clear()

    def land(self, state: SearchState, clock: Clock, ages: Sequence[int]) -> None:
        """Fetch what is on the way, and take it in; the open islands set out before that, unless one fetched looks exact."""
        flight = self._fetched(state)
        if flight.generation.has_enough:
            self._take_in(flight, state)
        if state.islands and self._executor.takes_generations(state) and not has_exact_formula(state):
            self.start(state, ages, clock)
        if not flight.generation.has_enough:
            self._take_in(flight, state)

    def stay_up(self, state: SearchState, clock: Clock) -> None:
        """Take in what is on the way when a search ends; where time is over, it goes on until the front is polished."""
        self._bring_down(state)
        if state.reason == "max_time" and state.islands and self._executor.takes_generations(state):
            self.start(state, (state.config.island.life,), clock)

    def come_down(self, state: SearchState, clock: Clock) -> None:
        """Offer what was found since `stay_up`, as it is."""
        if self._flight is None:
            return
        fallen = self._fetched(state).fallen(1.0)
        for island in sorted(fallen, key=state.portfolio.loss)[: state.config.front.islands_at_end]:
            if is_exact(state, island):
                polish_island(state, island, clock.is_late)
            offer_elites(state, island)
        if fallen and has_exact_formula(state):
            state.reason = "exact"

    def _fetched(self, state: SearchState) -> Flight:
        """What was on the way, its islands as they have become."""
        assert self._flight is not None
        flight, self._flight = self._flight, None
        state.candidates += self._executor.fetch(flight.generation, time.perf_counter() - flight.started)
        return flight

    def _bring_down(self, state: SearchState) -> None:
        """Take in what is on the way, as it is now; its islands are the open ones where their tables are still the same."""
        if self._flight is None:
            return
        flight = self._fetched(state)
        self._take_in(flight, state)
        is_same = flight.portfolio.tables is state.portfolio.tables
        state.islands = [island for island in flight.islands if not island.finished] if is_same else []

    def _take_in(self, flight: Flight, state: SearchState) -> None:
        """Polish at once what looks exact; reward, and have the best of each island offered beside the search."""
        config = state.config
        seen = replace(state, portfolio=flight.portfolio)
        if exact := [island for island in flight.fallen(config.large_fall) if is_exact(seen, island)]:
            self._offering.settle(state)
            seen = replace(state, portfolio=flight.portfolio)
            for island in exact:
                polish_island(seen, island, flight.clock.is_late)
            state.leaderboard, state.last_gain = seen.leaderboard, seen.last_gain
        losses = {island.number: flight.portfolio.seen_loss(island, flight.rows) for island in flight.islands}
        ranked = sorted(flight.islands, key=lambda island: (losses[island.number], island.number))
        state.portfolio.reward(ranked)
        lowest = flight.portfolio.loss(ranked[0])
        settled, state.lowest = lowest > config.large_fall * state.lowest, lowest
        offer = partial(offer_ranked, settled=settled, out_of_time=flight.clock.is_late)
        best = ranked[: config.device_offered]
        self._offering.begin(offer, state, best, may_skip=False, portfolio=flight.portfolio)
