"""Method "fitted": islands of GMEQL networks whose every candidate gets constants of its own.

`Search._round` is the algorithm:

1. draw: each island draws candidates from its elites and structure parameters (`islands/island.py`, `sampling`). It leaves out
   what anyone tried before this stage and what it tried itself since; islands hear of each other only between stages;
2. fit: every candidate's constants are fitted to the island's reading of the target (`islands/steps.py`), wherever that is done
   (`execution/execution.py`);
3. learn: islands keep their elites and learn their structure parameters (`islands/island.py`);
4. compete: at certain ages the worse half of a generation is closed; what the better half was opened with is chosen more
   often from then on (`islands/portfolio.py`);
5. polish: what islands found is cut to shape (`offers/promotion.py`) and offered to the front of loss against complexity
   (`front/leaderboard.py`);
6. see: direct methods look for formulas that need no search (`offers/seeing.py`, `direct`): the cheapest and the quick ones at
   the very start, all after the first stage (linear algebra first, those for noise later). They also look at the smaller
   tables that symmetries of the data allow, which are looked for once, after the first stages (`symmetries`).

Islands of a generation open together (`opening.py`); a stage is the steps between two competitions. If time is the
budget, accelerators take whole generations, competitions included, while the processor does the rest
(`execution/flights.py`). What the search carries is a `SearchState` (`state.py`); `running.py` says how it is made and what
others see of it.

The search ends when a formula is exact, when a budget is spent, or when nothing has been gained for long (`stopping.py`).
With a candidate budget the result depends on the seed alone, not on threads or clocks.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gmeql.fitters.threads import one_blas_thread
from gmeql.formula.nodes import Node
from gmeql.search.clock import Clock
from gmeql.search.collecting import among_new_objects
from gmeql.search.events import Progress
from gmeql.search.execution.execution import Executor
from gmeql.search.execution.flights import Flights
from gmeql.search.islands.island import Island
from gmeql.search.losses.losses import is_reweighed
from gmeql.search.offers.looking import Looking
from gmeql.search.offers.offering import Offering
from gmeql.search.offers.promotion import (
    is_exact,
    judge_front,
    offer_elites,
    offer_ranked,
    polish_front,
    polish_island,
    reweigh,
)
from gmeql.search.opening import islands_of_guesses, open_generation
from gmeql.search.polish.scoring import refit
from gmeql.search.running import RunningSearch
from gmeql.search.state import SearchState
from gmeql.search.islands.steps import Step
from gmeql.search.stopping import has_exact_formula, why_stop

POLL_SECONDS = 0.02
"""How often the thread that offers formulas is asked, while accelerators have the search."""

FIRST_SHOWN = 2
"""Steps of the first island after which its formulas are shown."""

LACKING = ("no gain", "exhausted")
"""Reasons to end for which islands find nothing more."""


class Search(RunningSearch):
    """A search over one target. `run` yields progress; between events `state` is complete and resumable.

    >>> import numpy as np
    >>> from gmeql.search.config import SearchConfig
    >>> X = np.linspace(1, 3, 50)[:, None]
    >>> search = Search(X, 2 * X[:, 0] ** 2 + 1, names=("x",), config=SearchConfig(max_candidates=2000), seed=0)
    >>> for progress in search.run():
    ...     pass
    >>> print(progress.best.expression)
    2*x**2 + 1
    """

    def _begin(self, state: SearchState) -> None:
        self._state = state
        self._executor = Executor(state.config)
        self._offering = Offering()
        self._flights = Flights(self._executor, self._offering)
        self._looking = Looking(state.config, self._offering)
        self._clock = Clock.unlimited()

    # --- the algorithm -----------------------------------------------------------------------------------------------

    def run(self) -> Iterator[Progress]:
        """Rounds until the search ends; an event after each. Closing the iterator is a clean stop.

        Where a joblib backend other than threads is active, its workers take the islands' steps; the clock starts when
        the first of them is ready.
        """
        state = self._state
        beside = self._offering.open(state), self._flights.open(state), self._looking.open()
        with among_new_objects(), self._executor.open(state.tried), beside[0], beside[1], beside[2]:
            refitted_rows = len(state.rows.y) if state.rows.is_sampled else 0
            self._clock = Clock.start(state.config, elapsed=state.elapsed, refitted_rows=refitted_rows)
            self._looking.beside.is_allowed = self._executor.pool is None  # workers have the cores already
            idle_rounds = 0
            self._looking.look_deeper(state, self._executor.driver)
            while not state.reason:
                with one_blas_thread():  # several take longer for the small matrices of a front that is judged
                    idle_rounds = self._turn(idle_rounds)
                yield self.progress()

    def _turn(self, idle_rounds: int) -> int:
        """A round, and the end where it was the last one; how many rounds without a candidate there were by now."""
        state, clock = self._state, self._clock
        before = state.candidates
        self._round()
        self._tend()
        idle_rounds = idle_rounds + 1 if state.candidates == before else 0
        state.elapsed = clock.elapsed()
        state.reason = why_stop(state, clock, idle_rounds)
        is_polished = state.reason == "max_time" and self._polish_in_time()
        if is_polished and (later := clock.closing_later(clock.elapsed() - state.elapsed, state.config.clock)):
            clock = self._clock = later
            state.reason = ""
        if state.reason in LACKING and self._looking.beside.are_under_way(state, clock):
            state.reason = ""  # they may see what islands do not find
            time.sleep(POLL_SECONDS if idle_rounds else 0.0)
        if state.reason:
            self._end(is_polished=is_polished)
            state.elapsed = clock.elapsed()
        return idle_rounds

    def _polish_in_time(self) -> bool:
        """Polish the front before the end where nothing else goes on meanwhile, so that it is known how long that takes;
        whether it was done."""
        if self._executor.on_cards or self._flights.generations or self._clock.is_interrupted():
            return False
        self._offering.settle(self._state)
        polish_front(self._state, self._clock)
        return True

    def _round(self) -> None:
        """One step of the islands that are furthest behind; at the end of a stage the better half goes on."""
        state, clock = self._state, self._clock
        if not state.islands:
            guessed = islands_of_guesses(state, clock) if state.candidates == 0 else []
            self._open_generation()
            state.islands = [*guessed, *state.islands]
            if has_exact_formula(state):
                return  # seen before anything was drawn
        if not self._executor.on_cards and self._looking.see_first(state, self._clock):
            return
        if self._executor.takes_generations(state):
            self._take_generation()
            return
        self._executor.prepare_accelerators(state, clock)
        waiting = state.behind()
        active = self._executor.together(waiting)
        if self._executor.takes_stages(state, active):
            self._advance(active)
        else:
            steps = self._executor.draw_and_fit(state, active, waiting, clock.is_closing)
            for island, step in zip(active, steps, strict=True):
                if step is not None:
                    self._learn(island, step)
        if len(waiting) <= len(active) and not clock.is_closing() and not state.behind():
            ranked = self._compete()
            self._polish(ranked)
            self._prepare_next_stage()

    def _open_generation(self, is_interrupted: Callable[[], bool] = lambda: False) -> None:
        open_generation(self._state, self._executor, self._clock, is_interrupted)

    def _take_generation(self) -> None:
        """A round where accelerators take whole generations: meanwhile the processor looks at the data, and opens the next."""
        state, flights = self._state, self._flights
        is_first = state.candidates == 0 and not flights.generations
        if not flights.carry(state.islands) and not flights.start(state, self._ages(short=is_first), self._clock):
            return  # it failed: the processor takes the islands
        self._open_next()
        if is_first:
            self._executor.prepare_beside()
        are_opened = bool(state.islands)
        if not is_first and not self._look_beside():
            return
        if are_opened and not state.islands and not has_exact_formula(state):  # smaller tables were found
            self._open_next()
            flights.stop()
        while not flights.is_one_over(POLL_SECONDS):
            had_islands = bool(state.islands)
            self._tend()
            if had_islands and not state.islands and not has_exact_formula(state):  # ... by those who look beside it
                self._open_next()
                flights.stop()
            if self._is_enough() or has_exact_formula(state):
                return  # at the end of the time it goes on while the front is polished
            if state.islands and not is_first and flights.have_room(state):
                if flights.start(state, self._ages(), self._clock):
                    self._open_next()
        while flights.is_one_over() and not has_exact_formula(state) and not self._clock.is_closing():
            flights.land(state, self._clock, self._ages())
            self._tend()
            if flights.is_one_over() and flights.carry(state.islands) and flights.have_room(state):
                self._open_next()  # they set out with the next landing: of many the last is a while away
        if state.symmetries_done and (grown := state.rows.grown()) is not state.rows:
            state.rows = grown
            state.portfolio.attach_rows(grown)
            if not flights.carry(state.islands):
                state.islands = []  # they were handed fewer rows

    def _open_next(self) -> None:
        """Open islands while others are on accelerators, which come back at once where smaller tables are found meanwhile."""
        state, flights = self._state, self._flights
        n_tables, tended, is_over = len(state.portfolio.tables), time.perf_counter(), False

        def is_interrupted() -> bool:
            nonlocal tended, is_over
            if time.perf_counter() > tended + POLL_SECONDS:
                self._tend()
                tended, is_over = time.perf_counter(), has_exact_formula(state)
            return is_over or flights.has_enough()

        self._open_generation(is_interrupted)
        if len(state.portfolio.tables) > n_tables:
            flights.stop()

    def _tend(self) -> None:
        """See to what goes on beside the steps: others who look at the data, the thread that offers."""
        state = self._state
        if state.config.max_candidates is None:
            self._flights.count(state)
            self._offering.take(state)
            self._flights.offer(state)
        self._looking.look_deeper(state, self._executor.driver)
        self._looking.tend(state, self._clock)
        self._executor.n_lent = self._looking.beside.n_busy

    def _look_beside(self) -> bool:
        """Look at the data while accelerators take one generation after the other; whether some are on the way then."""
        state, flights = self._state, self._flights

        def set_out() -> None:
            if not state.islands:
                self._open_generation()
            if flights.start(state, self._ages(), self._clock):
                self._open_generation(flights.has_enough)  # the next ones are ready when room is made

        def is_interrupted() -> bool:
            return flights.tend(state, self._clock, set_out)

        self._looking.see(state, replace(self._clock, is_interrupted=is_interrupted))
        flights.take_in_landed(state)
        return bool(flights.generations)

    def _ages(self, *, short: bool = False) -> tuple[int, ...]:
        """Ages at which the worse half of a generation is closed; up to the first of them where it is only a `short` look."""
        ages = self._state.config.stage_ages
        return ages[1:2] or ages if short else ages[self._state.stage :]

    def _learn(self, island: Island, step: Step) -> None:
        """Let an island learn from its step."""
        self._state.candidates += step.drawn
        before = island.best
        step.absorb(island)
        self._show(island, before, is_first=island.age == FIRST_SHOWN)

    def _advance(self, islands: list[Island]) -> None:
        """Let an accelerator take the rest of the stage: draw, fit, learn. It stops early where a formula looks exact."""
        before = [(island.best, island.age == 0) for island in islands]
        drawn = self._executor.advance(self._state, islands, self._is_enough)
        self._receive()
        self._state.candidates += drawn
        for island, (best, is_first) in zip(islands, before, strict=True):
            self._show(island, best, is_first=is_first)

    def _receive(self) -> None:
        """Take over what was offered beside the steps: all of it where the result must not depend on who was faster."""
        if self._state.config.max_candidates is None:
            self._offering.take(self._state)
        else:
            self._offering.settle(self._state)

    def _is_enough(self) -> bool:
        """Whether an accelerator need not go on: time is over, or what was offered meanwhile is exact."""
        state = self._state
        if state.config.max_candidates is None and self._offering.take(state) and has_exact_formula(state):
            return True
        return self._clock.is_closing()

    def _show(self, island: Island, before: float, *, is_first: bool) -> None:
        """What is exact, and the very first formulas, need not wait for the stage; `before` was the island's best loss."""
        state, closing = self._state, self._clock.is_closing
        if is_first and island is state.islands[0] and state.lowest == math.inf and not closing():
            offer_elites(state, island)  # something to show within the first moments
        fell = island.best < state.config.large_fall * before and not self._was_exact(island, before)
        if fell and is_exact(state, island) and not closing():
            self._offering.settle(state, hurried=True)
            polish_island(state, island, self._clock.is_late)

    def _was_exact(self, island: Island, before: float) -> bool:
        """Whether an island's best loss was rounding alone before: it falls by half then and again, and says nothing."""
        state = self._state
        exact = state.config.front.exact * state.rows.polished.spread
        return before * state.portfolio.unit(island) < exact**2

    def _compete(self) -> list[Island]:
        """Close the worse half, and all after the last stage. Returns the islands of this stage, the best first."""
        state = self._state
        self._executor.share_tried(state)
        seen = {island.number: state.portfolio.seen_loss(island, state.rows) for island in state.islands}
        ranked = sorted(state.islands, key=lambda island: (seen[island.number], island.number))
        state.portfolio.reward(ranked)
        better = [island for island in ranked[: (len(ranked) + 1) // 2] if not island.finished]
        state.stage += 1
        state.islands = better if state.stage < len(state.config.stage_ages) and len(ranked) > 1 else []
        return ranked

    def _polish(self, ranked: list[Island]) -> None:
        """Offer what the islands of a stage found. While the loss still falls, a formula cut to shape is soon outdone."""
        state, config = self._state, self._state.config
        lowest = state.portfolio.loss(ranked[0])
        settled = lowest > config.large_fall * state.lowest
        state.lowest = lowest

        def out_of_time() -> bool:
            return self._offering.is_hurried() or self._clock.is_time_to_judge()

        offer = partial(offer_ranked, settled=settled, out_of_time=out_of_time)
        on_cards, limited = self._executor.on_cards, config.max_candidates is not None
        if on_cards or (config.n_threads > 1 and not limited):
            is_last = not state.islands  # survivors are offered again, later
            best = ranked[: config.device_offered] if on_cards else ranked
            self._offering.begin(offer, state, best, may_skip=not is_last and not limited)
        else:
            self._offering.settle(state)
            offer(state, ranked)

    def _prepare_next_stage(self) -> None:
        """Nothing exact so far: weigh outliers anew, see more rows, look for smaller tables and directly once."""
        state = self._state
        if is_reweighed(state.config.loss):
            self._offering.settle(state)
        before = state.rows
        closest = state.leaderboard.closest
        reweighted = before.reweighted(closest.root, closest.own)
        if reweighted is not before:
            reweigh(state, reweighted)
            state.islands = []  # what they learnt was learnt with other weights
        if state.symmetries_done and not state.islands:
            state.rows = state.rows.grown()
        if state.rows is not before:
            state.portfolio.attach_rows(state.rows)
        executor, on_cards = self._executor, self._executor.on_cards
        if on_cards or not executor.look_for_accelerators(state, self._clock):
            self._looking.see(state, executor.until_ready(state, self._clock))
        if not on_cards and executor.look_for_accelerators(state, self._clock):
            state.islands = []  # a new generation sets out there at once, and the processor looks at the data meanwhile

    def _end(self, *, is_polished: bool = False) -> None:
        """Polish and judge the front. Accelerators go on as long as it is polished; what they find is offered as it is."""
        state, clock = self._state, self._clock
        self._looking.beside.stop()
        self._flights.stay_up(state, clock)
        self._offering.settle(state, hurried=state.reason == "exact")
        if not is_polished:
            polish_front(state, self._flights.polishing_clock(clock))
        self._flights.come_down(state, clock)
        judge_front(state, clock)

    # --- what others see ---------------------------------------------------------------------------------------------

    def finish(self, reason: str) -> Progress:
        """End the search between two rounds for a reason of the caller's, with the polishing a budget's end gets."""
        self._state.reason = reason
        self._end()
        return self.progress()

    def take_in(self, roots: Sequence[Node], *, candidates: int, seconds: float) -> None:
        """Formulas that a search without outliers found, and what that took, which counts as this one's own."""
        state = self._state
        state.aside = list(roots)
        state.candidates += candidates
        state.last_gain += candidates  # nothing was lost meanwhile
        state.elapsed += seconds
        state.offer(refit(list(roots), state.rows.polished, keep_recognised=False))

    def state(self) -> dict[str, Any]:
        """Everything needed to go on exactly here: plain scalars, lists and arrays."""
        self._offering.settle(self._state)
        self._executor.collect_tried(self._state)
        return self._state.to_dict()

    def draw_once(self) -> None:
        """Draw candidates for an island and forget them: the compiled sampler is loaded then."""
        state = self._state
        state.portfolio.open_island(state.rng).draw(state.tried, state.config.max_complexity, table_key=0)
