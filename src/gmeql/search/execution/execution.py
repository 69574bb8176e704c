"""Where islands' steps are taken: on the threads of this process, on an accelerator, or by workers.

Workers (`workers/`) take the rest of a stage ahead, island by island. Whoever takes them, the steps are the same.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import numpy as np

from gmeql.fitters.cuda.driver import MOST_MEMORY, AcceleratorError, Driver
from gmeql.search.accelerator.advance import Enough, Generation, advance
from gmeql.search.accelerator.cards import Claim, Preparation, required_cards, say_fallback
from gmeql.search.accelerator.stage import Card, can_hold
from gmeql.search.clock import Clock
from gmeql.search.config import SearchConfig
from gmeql.search.islands.island import Island
from gmeql.search.losses.losses import is_reweighed
from gmeql.search.state import SearchState
from gmeql.search.islands.steps import Step, StepTask, take_steps
from gmeql.search.islands.tried import TriedStructures
from gmeql.search.workers.pool import WorkerPool, find_pool

DOUBT = 0.01
"""Share of a loss that looked exact and was not, from which another looks exact."""
WHOLE = 2
"""Times as many islands of a generation come home with all their elites as are offered: their order there is another."""


def _tasks(state: SearchState, islands: Sequence[Island]) -> list[StepTask]:
    return [state.portfolio.task(island) for island in islands]


class Executor:
    """Takes steps of islands for one search."""

    def __init__(self, config: SearchConfig) -> None:
        self.config = config
        self.pool: WorkerPool | None = None
        self.n_lent = 0  # of the threads, to what goes on beside the steps
        self.cards: list[Card] = required_cards() if config.device == "gpu" else []
        self.beside: dict[int, list[Card]] = {}  # the same cards, for generations beside the first
        self.taught: list[Card] = []  # those that know what was tried elsewhere
        self.preparation: Preparation | None = None
        self.most_generations = config.device_generations
        self.doubted = math.inf  # mean squared error that looks exact no more, since a lower one was not
        self.processor_rate = 0.0  # candidates a second, to be outdone by accelerators that nobody asked for

    @contextmanager
    def open(self, tried: TriedStructures) -> Iterator[None]:
        """With workers, where a joblib backend has some; returns when the first is ready. Accelerators are let go."""
        most = self.config.islands_per_generation
        pool = None if self.cards else find_pool(self.config.n_jobs, tried, most)
        claim = Claim(shared=True) if self.cards else None
        try:
            if pool is not None:
                pool.open()
                self.pool = pool
            yield
        finally:
            for card in (*self.cards, *(card for cards in self.beside.values() for card in cards)):
                card.stage = None  # which refers to its card: its memory would wait for a look for garbage
            self.beside.clear()
            if claim is not None:
                claim.let_go()
            if self.preparation is not None:
                self.preparation.give_back()
            if pool is not None:
                self.pool = None
                pool.close()

    def together(self, waiting: list[Island]) -> list[Island]:
        """The islands that take a step in this round: those furthest behind, on an accelerator all.

        Where time is the budget, one for each thread at least; else the result would depend on their number.
        """
        if self.cards:
            return waiting
        limited, config = self.config.max_candidates is not None, self.config
        return waiting[: config.islands if limited else max(config.islands, self.n_threads)]

    @property
    def n_threads(self) -> int:
        """Threads for the steps: those that are not lent."""
        return max(self.config.n_threads - self.n_lent, 1)

    def advance(self, state: SearchState, islands: Sequence[Island], give_up: Callable[[], bool]) -> int:
        """The rest of the stage for all islands, on the accelerators; returns how many candidates were drawn."""
        if not islands:
            return 0
        started = time.perf_counter()
        goal, enough = self.config.stage_ages[state.stage], self._enough(state, islands, give_up)
        try:
            self._teach(state)
            drawn = advance(self.cards, islands, _tasks(state, islands), goal_age=goal, enough=enough)
        except AcceleratorError as error:
            self._fall_back(error)
            return 0
        self.keep_if_faster(drawn, time.perf_counter() - started)
        return drawn

    def takes_generations(self, state: SearchState) -> bool:
        """Whether accelerators take whole generations, while the processor does something else.

        Only where time is the budget, else the result would depend on who is faster; and where what an island has learnt
        stays true: not while outliers are weighed anew.
        """
        is_free = self.config.max_candidates is None and not is_reweighed(self.config.loss)
        return is_free and self.takes_stages(state, state.islands)

    def start(
        self,
        state: SearchState,
        islands: Sequence[Island],
        ages: Sequence[int],
        give_up: Callable[[], bool],
        *,
        place: int = 0,
    ) -> Generation | None:
        """Let accelerators take islands up to some ages; None where one fails.

        Generations at other places step side by side. A card that has no memory for a second one goes on with the first.
        """
        units = np.array([state.portfolio.unit(island) for island in islands])
        enough = self._enough(state, islands, give_up)
        try:
            if place and place not in self.beside and not self._have_memory():
                self.most_generations = place
                return None
            self._teach(state)
            cards, tasks = self._cards_at(place), _tasks(state, islands)
            whole = WHOLE * self.config.device_offered
            return Generation(cards, islands, tasks, ages=ages, units=units, enough=enough, n_whole=whole)
        except AcceleratorError as error:
            if place:
                self.beside.pop(place, None)
                self.most_generations = place
            else:
                self._fall_back(error)
            return None

    def prepare_beside(self) -> None:
        """Make ready what a second generation needs, while nothing else is to be done."""
        with suppress(AcceleratorError):  # that is told when it sets out
            self._cards_at(1)

    def _have_memory(self) -> bool:
        """Whether cards have memory for one more generation."""
        known = [self.cards, *self.beside.values()]
        each = (max(places, key=lambda card: card.n_bytes) for places in zip(*known, strict=True))
        return all(card.n_bytes <= MOST_MEMORY * card.driver.free_bytes() for card in each)

    def _cards_at(self, place: int) -> list[Card]:
        """The cards for generations at a place."""
        if place and place not in self.beside:
            self.beside[place] = [card.beside(place) for card in self.cards]
        return self.beside[place] if place else self.cards

    def fetch(self, generation: Generation) -> int:
        """Let the islands of a generation be what they have become; candidates drawn."""
        try:
            return generation.fetch()
        except AcceleratorError as error:
            self._fall_back(error)
            return 0

    def keep_if_faster(self, drawn: int, seconds: float) -> None:
        """Leave cards on which all that steps there drew fewer candidates in so many seconds than the processor does."""
        if drawn < self.processor_rate * seconds:
            self._leave_cards()  # the processor is faster here
            if self.preparation is not None:
                self.preparation.give_back()

    def _enough(self, state: SearchState, islands: Sequence[Island], give_up: Callable[[], bool]) -> Enough:
        """Says of the best losses whether one looks exact that did not before, and whether a budget is spent.

        Where the front has an exact formula that ends nothing, as there may be a shorter twin, another one ends no step.
        """
        portfolio, numbers = state.portfolio, state.config.front
        looks_exact = min((numbers.near_exact * state.rows.polished.spread) ** 2, self.doubted)
        near = looks_exact / np.array([portfolio.unit(island) for island in islands])
        fresh = np.array([island.best for island in islands]) > near
        left = math.inf if self.config.max_candidates is None else self.config.max_candidates - state.candidates

        def enough(best: np.ndarray, drawn: int) -> bool:
            is_first = not state.rows.polished.is_exact(state.leaderboard.best.loss)
            return (is_first and bool((fresh & (best <= near)).any())) or drawn >= left or give_up()

        return enough

    def doubt(self, loss: float) -> None:
        """Islands looked exact with this loss, and were not: others that come as close are to interrupt nobody."""
        self.doubted = min(self.doubted, DOUBT * loss)

    def _fall_back(self, error: AcceleratorError) -> None:
        if self.cards:
            say_fallback(error)
        self._leave_cards()

    def _leave_cards(self) -> None:
        self.cards = []
        self.beside.clear()

    def _teach(self, state: SearchState) -> None:
        """Tell accelerators that are new here what was tried before them."""
        for card in self.cards:
            if card not in self.taught:
                card.learn(*state.tried.known())
        self.taught = list(self.cards)

    def prepare_accelerators(self, state: SearchState, clock: Clock) -> None:
        """Once a search has taken a while: make accelerators ready beside it.

        Only where time is the budget: with a number of candidates the result must not depend on a measurement.
        """
        config = self.config
        if config.device != "auto" or config.max_candidates is not None or self.cards or self.pool is not None:
            return
        is_time = self.preparation is None and clock.elapsed() > config.device_patience
        if is_time and state.rows.groups is None and Preparation.is_thinkable():
            self.preparation = Preparation()

    def look_for_accelerators(self, state: SearchState, clock: Clock) -> bool:
        """Between stages: take accelerators that have been made ready; whether islands that open now will be there."""
        if self.preparation is None:
            self.prepare_accelerators(state, clock)
        elif ready := self.preparation.ready():
            self.preparation.cards = []  # a second try would be measured the same
            self.cards = ready
            self.processor_rate = state.candidates / clock.elapsed()
        return self.on_cards

    def until_ready(self, state: SearchState, clock: Clock) -> Clock:
        """A clock for the first look at the data, which comes again beside accelerators once they are ready.

        What linear algebra sees early is asked only once, and so is what comes later: neither is interrupted.
        """
        if state.direct_done or self.cards:
            return clock

        def is_interrupted() -> bool:
            self.prepare_accelerators(state, clock)
            return state.direct_spent > 0 and self.preparation is not None and bool(self.preparation.ready())

        return replace(clock, is_interrupted=is_interrupted)

    @property
    def on_cards(self) -> bool:
        """Whether islands that open now will step on accelerators."""
        return bool(self.cards)

    @property
    def driver(self) -> Driver | None:
        """One of the accelerators, for what looks at the data there."""
        return self.cards[0].driver if self.cards else None

    def takes_stages(self, state: SearchState, islands: Sequence[Island]) -> bool:
        """Whether accelerators take the rest of the stage for these islands: not where groups have own constants."""
        return bool(self.cards) and state.rows.groups is None and all(can_hold(island) for island in islands)

    def collect_tried(self, state: SearchState) -> None:
        """Let the state know what was tried on accelerators."""
        for card in self.cards:
            state.tried.merge(*card.known())

    def draw_and_fit(
        self, state: SearchState, active: list[Island], waiting: list[Island], give_up: Callable[[], bool]
    ) -> Sequence[Step | None]:
        """One step of each active island; None where time ran out while a worker had it."""
        if self.pool is None:
            return take_steps(active, _tasks(state, active), state.tried, n_threads=self.n_threads)
        self._assign_ahead(self.pool, state, waiting)
        return [self.pool.take(island, give_up) for island in active]

    def share_tried(self, state: SearchState) -> None:
        """Let all islands and workers know what each island tried."""
        for island in state.islands:
            fingerprints = island.share_tried(state.tried)
            if self.pool is not None:
                self.pool.share_tried(fingerprints)

    def _assign_ahead(self, pool: WorkerPool, state: SearchState, waiting: list[Island]) -> None:
        """Have workers take the rest of the stage, as far as the budget of candidates is sure to reach."""
        config = self.config
        goal = config.stage_ages[state.stage]
        per_step = config.island.candidates_per_step
        left = math.inf if config.max_candidates is None else config.max_candidates - state.candidates
        for first in range(0, len(waiting), config.islands):
            together = waiting[first : first + config.islands]
            steps = goal if math.isinf(left) else max(math.ceil(left / (per_step * len(together))), 0)
            for island in together:
                n = min(goal - island.age, steps)
                if n > 0 and not pool.has(island.number):
                    pool.assign(island, state.portfolio.task(island), n)
                left -= per_step * n
