"""The search inside a template, behind the interface of `search/search.py`.

Tracks follow one another until a formula is exact or the budget is spent. A state is taken where a track begins, with
the generator as it stood there: who goes on from it draws the very same candidates again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from gmeql.formula.nodes import Node
from gmeql.network.families import DEFAULT_FUNCTIONS, FunctionSet
from gmeql.search.clock import Clock
from gmeql.search.direct.table import Effort
from gmeql.search.events import Progress
from gmeql.search.groups.config import GROUPS
from gmeql.search.losses.losses import find_loss
from gmeql.search.polish.scoring import JudgedRows
from gmeql.search.offers.promotion import reweigh
from gmeql.search.running import RunningSearch
from gmeql.search.state import SearchState
from gmeql.search.stopping import why_stop
from gmeql.search.templates.config import TEMPLATES
from gmeql.search.templates.cutting import cut, scored
from gmeql.search.templates.solutions import Solution, least_effective_solution, refit_solutions
from gmeql.search.templates.tracks import Track


class TemplateSearch(RunningSearch):
    """A search for the free functions and constants of `config.knowledge.template`."""

    def _begin(self, state: SearchState) -> None:
        knowledge = state.config.knowledge
        if knowledge is None or knowledge.template is None:
            raise ValueError("a template is needed; the search without one is gmeql.search.search.Search")
        self._state, self.template = state, knowledge.template
        self._snapshot = state.to_dict()
        self._clock = Clock.unlimited()
        self._best: list[Solution] = []

    # --- the algorithm -----------------------------------------------------------------------------------------------

    def run(self) -> Iterator[Progress]:
        """Tracks until the search ends; an event after each round of steps. Closing the iterator is a clean stop."""
        state = self._state
        self._clock = Clock.start(state.config, elapsed=state.elapsed)
        while not state.reason:
            before = state.candidates
            for _ in self._track():
                state.elapsed = self._clock.elapsed()
                yield self.progress()
            state.elapsed = self._clock.elapsed()
            idle = state.config.max_idle_rounds if state.candidates == before else 0
            state.reason = why_stop(state, self._clock, idle) or ("" if self.template.functions else "exhausted")
            if state.reason:
                self._finish()
                yield self.progress()
            else:
                self._reweigh()
                self._snapshot = state.to_dict()

    def _track(self) -> Iterator[None]:
        """One attempt from the start, until it has not gained for long or the budget is spent."""
        state, late = self._state, self._clock.is_late
        functions = FunctionSet(state.config.functions or DEFAULT_FUNCTIONS)
        rows = self._rows(state.rows.light)
        state.portfolio.opened += 1
        track = Track(self.template, state.config, functions, state.rng, number=state.portfolio.opened, rows=rows)
        state.candidates += track.start()
        self._offer(track)
        last_gain, best = 0, track.best
        for number in range(TEMPLATES.steps_per_track if self.template.functions else 0):
            for i in range(len(track.islands)):
                state.candidates += track.step(i)
                if number in TEMPLATES.looked_after and not late():
                    state.candidates += track.look(i, Effort(TEMPLATES.direct_seconds, late))
            if track.best < best * (1 - TEMPLATES.gain):
                last_gain, best = number, track.best
            self._offer(track)
            yield
            if number - last_gain >= TEMPLATES.patience or self._is_over() or rows.is_exact(track.best):
                break
        ranked = sorted(track.pool.values(), key=lambda solution: solution.loss)
        for solution in ranked[: TEMPLATES.polished_per_track]:
            if not late():
                judged = self._rows(state.rows.polished, opened=state.portfolio.opened - 1)
                met = cut(solution, judged, late)
                self._best += met if state.rows.is_reweighed else met[:1]
                if state.rows.groups is None:
                    state.offer([scored(found, judged) for found in met])
                for found in met[: TEMPLATES.shared_per_solution] if state.rows.groups is not None else ():
                    state.offer_to_groups(found.root)

    def _rows(self, rows: JudgedRows, opened: int | None = None) -> JudgedRows:
        """Where there are groups, a track looks at one of the largest; what it finds is then fitted to all."""
        if rows.groups is None:
            return rows
        number = self._state.portfolio.opened if opened is None else opened
        largest = np.argsort(-np.bincount(rows.groups), kind="stable")[: GROUPS.looked]
        return rows.only(np.flatnonzero(rows.groups == largest[number % len(largest)]))

    def _is_over(self) -> bool:
        most = self._state.config.max_candidates
        return self._clock.is_closing() or (most is not None and self._state.candidates >= most)

    def _offer(self, track: Track) -> None:
        """Offer what a track has, refitted on the rows that the front is judged by; with groups, only what it ends with."""
        rows = self._state.rows.polished
        if rows.groups is not None:
            return
        ranked = sorted(track.pool.values(), key=lambda solution: (solution.complexity, solution.loss))
        chosen: list[Solution] = []
        for solution in ranked:
            if not chosen or solution.loss < chosen[-1].loss:
                chosen.append(solution)
        wanted = [s for s in chosen if self._state.leaderboard.is_promising(s.loss, s.complexity)]
        found = refit_solutions(wanted, rows, max_steps=TEMPLATES.finish_steps)
        self._state.offer([scored(solution, rows) for solution in found if math.isfinite(solution.loss)])

    def _finish(self) -> None:
        """Refit the best solutions on all rows where the search saw a sample, and look at unseen rows."""
        state = self._state
        if state.rows.is_sampled:
            state.rows = state.rows.whole()
            self._rank_best(state.config.front.final_steps)
        for _ in range(state.config.reweighings_at_end):
            if self._clock.is_late() or not self._reweigh(state.config.least_reweighing_at_end):
                break
        if state.rows.errors is not None:
            self._converge_effective()
        self._judge()

    def _judge(self) -> None:
        """What the front promises on unseen rows; constants that the user gave bounds for stay where they are."""
        state = self._state
        bounded = any(math.isfinite(c.low) or math.isfinite(c.high) for c in self.template.constants)
        if find_loss(state.config.loss).value is None:
            state.leaderboard.look_out(state.rows)
        else:
            state.leaderboard.converge(state.rows, move=not bounded)

    def _reweigh(self, least: float | None = None) -> bool:
        """Let rows weigh by the best formula so far, as the loss has it; whether that changed anything."""
        state = self._state
        closest = state.leaderboard.closest
        rows = state.rows.reweighted(closest.root, closest.own, least=least)
        if rows is state.rows:
            return False
        if rows.groups is not None:
            reweigh(state, rows)
            return True
        if not self._best:
            return False
        state.rows = rows
        self._rank_best(TEMPLATES.finish_steps)
        return True

    def _rank_best(self, max_steps: int) -> None:
        """Let the front be the best solutions, fitted anew to the rows as they are now."""
        rows = self._state.rows.polished
        found = refit_solutions(self._best, rows, max_steps=max_steps)
        self._best = [solution for solution in found if math.isfinite(solution.loss)]
        self._state.rank_anew([scored(solution, rows) for solution in self._best])

    def _converge_effective(self) -> None:
        """Lead the constants of the front to the least of the effective variance, a function's in all its places at once."""
        rows = self._state.rows
        if self._best and rows.groups is None:
            self._rank_best(TEMPLATES.finish_steps)
        solutions = {solution.root: solution for solution in self._best}

        def least(root: Node) -> Node:
            solution = solutions.get(root)
            if solution is None or rows.errors is None:
                return root
            return least_effective_solution(solution, rows.X, rows.given_y, rows.given_weights, rows.errors).root

        self._state.leaderboard.converge_effective(rows, least)

    # --- what others see ---------------------------------------------------------------------------------------------

    def finish(self, reason: str) -> Progress:
        """End the search between two rounds for a reason of the caller's."""
        self._state.reason = reason
        self._finish()
        return self.progress()

    def state(self) -> dict[str, Any]:
        """Everything needed to go on from where the present track began."""
        return self._state.to_dict() if self.reason else {**self._snapshot, "elapsed": float(self.elapsed)}
