"""Steps of islands: the same on threads, ahead, or replayed from what travelled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from searches import SMALL, plain_text, stored, waves

from gmeql.search.config import SearchConfig
from gmeql.search.islands.island import Island
from gmeql.search.search import Search
from gmeql.search.state import SearchState
from gmeql.search.islands.steps import TrimmedStep, advance, take_steps


@pytest.fixture(scope="module")
def reached() -> SearchState:
    """A search of noisy waves some rounds into its first generation."""
    search = Search(*waves(), config=SearchConfig(stage_ages=(5, 9), **SMALL), seed=2)
    events = search.run()
    for _ in range(7):
        next(events)
    assert any(not island.finished for island in search._state.islands)
    return search._state


def copy(state: SearchState, island: Island) -> Island:
    """The same island, as a file would bring it back."""
    made = Island.from_dict(stored(island.to_dict()), state.config.island)
    made.inputs = island.inputs
    return made


def going_on(state: SearchState) -> list[Island]:
    return [copy(state, island) for island in state.islands if not island.finished]


def test_steps_taken_ahead_and_replayed_lead_where_the_island_went(reached: SearchState) -> None:
    for island in going_on(reached):
        task = reached.portfolio.task(island)
        walker, here = copy(reached, island), copy(reached, island)
        for step in advance(walker, task, reached.tried, 4):
            step.replay(here).absorb(here)
        assert plain_text(here.to_dict()) == plain_text(walker.to_dict()) != plain_text(island.to_dict())
        np.testing.assert_array_equal(here.tried.keys, walker.tried.keys)
        # and the threads of the search itself do no other steps
        while island.age < here.age:
            take_steps([island], [task], reached.tried, n_threads=1)[0].absorb(island)
        assert plain_text(here.to_dict()) == plain_text(island.to_dict())


def test_threads_change_nothing(reached: SearchState) -> None:
    ends = []
    for n_threads in (1, 3):
        islands = going_on(reached)
        tasks = [reached.portfolio.task(island) for island in islands]
        for island, step in zip(islands, take_steps(islands, tasks, reached.tried, n_threads=n_threads), strict=True):
            assert step.drawn == len(step.candidates.losses) > 0
            step.absorb(island)
        ends.append([plain_text(island.to_dict()) for island in islands])
    assert ends[0] == ends[1]


def test_the_best_candidates_are_taken_further_than_the_rest(reached: SearchState) -> None:
    """Against no further steps: at most two candidates differ, and for the better."""
    gained = 0
    for whole, brief in zip(going_on(reached), going_on(reached), strict=True):
        brief.config = replace(brief.config, finish_steps=0)
        losses = [
            take_steps([island], [reached.portfolio.task(island)], reached.tried, n_threads=1)[0].candidates.losses
            for island in (whole, brief)
        ]
        assert (losses[0] <= losses[1]).all() and np.sum(losses[0] < losses[1]) <= 2
        gained += int(np.sum(losses[0] < losses[1]))
    assert gained > 0


def test_an_island_that_draws_little_is_exhausted(reached: SearchState) -> None:
    (island, *_) = going_on(reached)
    (step,) = take_steps([island], [reached.portfolio.task(island)], reached.tried, n_threads=1)
    step.drawn = island.config.candidates_per_step // 4 - 1
    step.absorb(island)
    assert island.exhausted and island.finished


def test_a_step_in_vain_still_travels(reached: SearchState) -> None:
    """No candidate became an elite: one goes along, so that the island learns as it would have."""
    (island, *_) = going_on(reached)
    (step,) = take_steps([island], [reached.portfolio.task(island)], reached.tried, n_threads=1)
    step.candidates.losses[:] = np.inf
    trimmed = TrimmedStep.of(step, island)
    assert len(trimmed.kept["rows"]) == 1 and len(trimmed.fingerprints) == step.drawn
    assert advance(island, reached.portfolio.task(island), reached.tried, 0) == []


def test_no_islands_no_steps(reached: SearchState) -> None:
    assert take_steps([], [], reached.tried, n_threads=2) == []
