"""Whole generations of islands on accelerators, while the processor does something else: their start, and what comes of them.

Several are on the way at a time, so that accelerators are busy while one has few islands left, is sent or fetched. When
one has ended it is fetched, and the next one, opened meanwhile, starts before the processor looks at what was fetched.
"""

from __future__ import annotations

import copy
import time
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
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
    place: int
    """Among those that are on the way at the same time."""
    islands: list[Island]
    before: list[float]
    """Best losses of the islands."""
    portfolio: Portfolio
    rows: SearchRows
    clock: Clock
    ages: Sequence[int]
    """Ages at which the worse half is closed."""
    started: float
    drawn_before: int
    """Candidates of the search."""
    counted: int = 0
    """Its candidates that the search has counted."""

    def leading(self, n: int) -> list[Island]:
        """The n best islands. Each is only seen whose loss is not beyond the n-th best so far: seen it is never lower."""
        seen: list[tuple[float, int, Island]] = []
        for island in sorted(self.islands, key=lambda each: (self.portfolio.loss(each), each.number)):
            if len(seen) >= n and self.portfolio.loss(island) > seen[n - 1][0]:
                break
            insort(seen, (self.portfolio.seen_loss(island, self.rows), island.number, island))
        return [island for *_, island in seen[:n]]

    def fallen(self, share: float) -> list[Island]:
        """Islands whose best loss fell to less than a share of what it was."""
        pairs = zip(self.islands, self.before, strict=True)
        return [island for island, before in pairs if island.best < share * before]


@dataclass(order=True)
class _Found:
    """The best islands of a generation that has landed, to be offered to the front."""

    lowest: float
    """Loss of the best."""
    islands: list[Island] = field(compare=False)
    flight: Flight = field(compare=False)
    settled: bool = field(compare=False)
    """Whether the best is worth cutting to shape, since losses fall no more by much."""


class Flights:
    """Generations on the way. What their islands found is offered by the thread for that."""

    def __init__(self, executor: Executor, offering: Offering) -> None:
        self._executor, self._offering = executor, offering
        self._aloft: list[Flight] = []  # in the order in which they set out
        self._landed: list[Flight] = []  # while the processor looked at the data: still to be taken in
        self._found: list[_Found] = []  # what the thread that offers had no time for, the best first

    @contextmanager
    def open(self, state: SearchState) -> Iterator[None]:
        """Whatever ends the search, what is on the way comes down, and its islands are the open ones."""
        try:
            yield
        finally:
            self._bring_down(state)

    @property
    def generations(self) -> list[Generation]:
        """What is on the way."""
        return [flight.generation for flight in self._aloft]

    def count(self, state: SearchState) -> None:
        """Count what was drawn meanwhile: how long the search has looked on does not wait for a landing."""
        for flight in self._aloft:
            drawn = flight.generation.drawn
            state.candidates += drawn - flight.counted
            flight.counted = drawn

    def has_enough(self) -> bool:
        """Whether an island on the way looks exact."""
        return any(generation.has_enough for generation in self.generations)

    def carry(self, islands: Sequence[Island]) -> bool:
        """Whether these very islands are on the way."""
        return any(flight.islands is islands for flight in self._aloft)

    def have_room(self, state: SearchState) -> bool:
        """Whether one more may set out; few at first, which end soon, as the steps of one wait for those of the others.

        Later on as islands of the others are closed, so that old and young ones share an accelerator: all grow old together
        where all set out together, and then none of them fills it.
        """
        if not self._aloft:
            return self._executor.on_cards
        config, most = state.config, self._executor.most_generations
        if state.portfolio.opened <= config.early_device_islands:
            return len(self._aloft) < min(config.early_device_generations, most)
        n_open = sum(generation.n_open for generation in self.generations)
        n_next = 0 if self.carry(state.islands) else len(state.islands)
        return len(self._aloft) < most and n_open + n_next <= config.device_open

    def start(self, state: SearchState, ages: Sequence[int], clock: Clock) -> bool:
        """Let the open islands set out, up to some ages at which the worse half is closed; whether they could."""
        taken = [flight.place for flight in self._aloft]
        place = min(place for place in range(len(taken) + 1) if place not in taken)
        return self._start(state, state.islands, ages, clock, place)

    def _start(self, state: SearchState, islands: list[Island], ages: Sequence[int], clock: Clock, place: int) -> bool:
        before = [island.best for island in islands]
        give_up = partial(clock.is_nearly_time_to_judge, state.config.clock.device_seconds)
        generation = self._executor.start(state, islands, ages, give_up, place=place)
        if generation is not None:
            # later rows change the portfolio, not what it refers to
            seen, now = copy.copy(state.portfolio), time.perf_counter()
            self.count(state)
            self._aloft.append(
                Flight(generation, place, islands, before, seen, state.rows, clock, ages, now, state.candidates)
            )
        return generation is not None

    def is_one_over(self, seconds: float = 0.0) -> bool:
        """Whether one has ended, after waiting for that so many seconds at most."""
        steps = [generation.steps for generation in self.generations]
        return any(each.done() for each in steps) or bool(
            seconds > 0 and wait(steps, seconds, return_when=FIRST_COMPLETED).done
        )

    def stop(self) -> None:
        """Let all end after the steps under way. Nobody waits: they have ended when `is_one_over` says so."""
        for generation in self.generations:
            generation.ask_to_stop()

    def tend(self, state: SearchState, clock: Clock, set_out: Callable[[], None]) -> bool:
        """Whether an island looks exact. A generation that has ended without one makes room for the next, which sets out.

        For the processor while it looks at the data, which may take longer than a generation lives.
        """
        if not self.has_enough() and not clock.is_closing():
            if self.is_one_over():
                self._landed.append(self._fetched(state))
            if self.have_room(state):
                set_out()
        return self.has_enough()

    def take_in_landed(self, state: SearchState) -> None:
        """Take in what landed meanwhile."""
        for flight in self._landed:
            self._take_in(flight, state)
        self._landed.clear()

    def land(self, state: SearchState, clock: Clock, ages: Sequence[int]) -> None:
        """Fetch one that has ended, and take it in; the open islands set out before that, unless one fetched looks exact.

        Where it was not, its islands go on: a close approximation is often on the way to the formula. Else those that have
        landed do not set out again.
        """
        opened, flight = state.islands, self._fetched(state)
        if flight.islands is opened:
            state.islands = []
        if flight.generation.has_enough:
            self._take_in(flight, state)
            if not _is_exact_known(state):
                self._executor.doubt(min(map(flight.portfolio.loss, flight.islands)))
            self._go_on(flight, state)
        may_start = state.islands and not self.carry(state.islands) and self._executor.takes_generations(state)
        if may_start and self.have_room(state) and not has_exact_formula(state):
            self.start(state, ages, clock)
        if not flight.generation.has_enough:
            self._take_in(flight, state)
        while self._aloft and not self._executor.on_cards:  # the processor goes on alone
            self._take_in(self._fetched(state), state)

    def _go_on(self, flight: Flight, state: SearchState) -> None:
        """Let the islands of a flight that ended early set out again, where they are, unless time ended it."""
        if flight.clock.is_nearly_time_to_judge(state.config.clock.device_seconds):
            return
        still = self._still_open(flight, state)
        ages = [age for age in flight.ages if age > max(island.age for island in flight.islands)]
        if still and ages and self._executor.on_cards and not has_exact_formula(state):
            self._start(state, still, ages, flight.clock, flight.place)

    def stay_up(self, state: SearchState, clock: Clock) -> None:
        """Take in what is on the way when a search ends; where time is over, it goes on until the front is polished.

        Those that lead are fetched and go on, and only then looked at: accelerators are busy meanwhile, with the others, too.
        """
        if state.reason != "max_time" or not self._executor.on_cards:
            self._bring_down(state)
            return
        ages = (state.config.island.life,)
        if not self._aloft and state.islands and self._executor.takes_generations(state):
            self.start(state, ages, clock)
            return
        ending = sorted(self._aloft, key=lambda flight: flight.generation.lowest)[: state.config.device_ended]
        grounded: list[Island] = []
        for flight in ending:
            flight.generation.ask_to_stop()
        for flight in ending:
            self._fetch(flight, state)
            still = self._still_open(flight, state)
            if not (still and self._executor.on_cards and self._start(state, still, ages, clock, flight.place)):
                grounded += still
        for flight in ending:
            self._take_in(flight, state)
        self.offer(state, all_of_it=True)
        state.islands = [*grounded, *(island for flight in self._aloft for island in flight.islands)]

    def come_down(self, state: SearchState, clock: Clock) -> None:
        """Offer what was found since `stay_up`, as it is."""
        fallen: list[Island] = []
        self.stop()  # all at once, before the first is waited for
        while self._aloft:
            fallen += self._fetched(state).fallen(1.0)
        for island in sorted(fallen, key=state.portfolio.loss)[: state.config.front.islands_at_end]:
            if is_exact(state, island):
                polish_island(state, island, clock.is_late)
            offer_elites(state, island)
        if fallen and has_exact_formula(state):
            state.reason = "exact"
        state.islands = [island for island in state.islands if not island.finished]

    def polishing_clock(self, clock: Clock) -> Clock:
        """Until when the front is polished: what goes on meanwhile needs a moment to be fetched and offered."""
        seconds = self._executor.config.clock.device_seconds if self._aloft else 0.0
        return replace(clock, judging=clock.judging - seconds)

    def _fetched(self, state: SearchState) -> Flight:
        """One that was on the way, its islands as they have become: the first that looks exact, or has ended, or set out."""
        flight = min(self._aloft, key=lambda each: (not each.generation.has_enough, not each.generation.is_over()))
        self._fetch(flight, state)
        return flight

    def _fetch(self, flight: Flight, state: SearchState) -> None:
        self._aloft.remove(flight)
        drawn = self._executor.fetch(flight.generation)
        state.candidates += max(drawn - flight.counted, 0)
        self.count(state)
        self._executor.keep_if_faster(state.candidates - flight.drawn_before, time.perf_counter() - flight.started)
        if state.islands is flight.islands:
            state.islands = self._still_open(flight, state)

    def _bring_down(self, state: SearchState) -> None:
        """Take in what is on the way, as it is now, unless a formula is exact; its islands are the open ones."""
        if not self._aloft:
            self.offer(state, all_of_it=True)
            return
        self.stop()  # all at once, before the first is waited for
        state.islands = []
        while self._aloft:
            if has_exact_formula(state):  # nobody waits for the others
                flight = self._aloft.pop()
                state.candidates += flight.generation.leave() - flight.counted
            else:
                flight = self._fetched(state)
                self._take_in(flight, state)
            state.islands += self._still_open(flight, state)
        self.offer(state, all_of_it=not has_exact_formula(state))

    @staticmethod
    def _still_open(flight: Flight, state: SearchState) -> list[Island]:
        """Its islands that go on, where their tables are still the same."""
        is_same = flight.portfolio.tables is state.portfolio.tables
        return [island for island in flight.islands if is_same and not island.finished]

    def _take_in(self, flight: Flight, state: SearchState) -> None:
        """Polish at once what looks exact; else reward, and have the best of each island offered beside the search."""
        config = state.config
        if self._polish_exact(flight, state):
            return
        ranked = flight.leading(max(config.device_offered, config.rewarded_per_stage))
        state.portfolio.reward(ranked, flight.portfolio)
        lowest = flight.portfolio.loss(ranked[0])
        settled, state.lowest = lowest > config.large_fall * state.lowest, lowest
        self._found = sorted([*self._found, _Found(lowest, ranked[: config.device_offered], flight, settled)])
        del self._found[config.device_generations :]
        self.offer(state)

    def offer(self, state: SearchState, *, all_of_it: bool = False) -> None:
        """Have what was found offered, the best first, as the thread for that is free: nobody waits, but for `all_of_it`."""
        while self._found and (all_of_it or self._offering.has_room):
            found = self._found.pop(0)
            clock = found.flight.clock

            def out_of_time(clock: Clock = clock) -> bool:
                return self._offering.is_hurried() or clock.is_time_to_judge()

            offer = partial(offer_ranked, settled=found.settled, out_of_time=out_of_time)
            self._offering.begin(offer, state, found.islands, may_skip=False, portfolio=found.flight.portfolio)

    def _polish_exact(self, flight: Flight, state: SearchState) -> bool:
        """Polish what looks exact, the shortest first, until a formula is; whether one is.

        Of a simple formula many islands find a form of their own: one of them, and what its island has beside it, will do.
        Where that ends nothing, as there may be a shorter twin, a few of each generation are enough: later ones draw on.
        """
        seen = replace(state, portfolio=flight.portfolio)
        fallen = flight.fallen(state.config.large_fall)
        for island in sorted(fallen, key=lambda each: int(each.repository.items["complexity"][0])):
            if _is_exact_known(state) or flight.clock.is_time_to_judge():
                break
            if not is_exact(seen, island):
                continue
            self._offering.settle(state, hurried=True)
            seen = replace(state, portfolio=flight.portfolio)
            polish_island(seen, island, flight.clock.is_time_to_judge)
            offer_elites(seen, island)
            state.leaderboard, state.last_gain = seen.leaderboard, seen.last_gain
        return has_exact_formula(state)


def _is_exact_known(state: SearchState) -> bool:
    """Whether the front has an exact formula, be it one that ends nothing."""
    return state.rows.polished.is_exact(state.leaderboard.best.loss)
