"""Generations on accelerators, compiled for the processor: a whole search by time, its end, and what is left to the front."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from host_cuda import HostDriver, needs_compiler
from searches import SMALL, waves

from gmeql.search.execution import execution
from gmeql.search.accelerator.stage import Card
from gmeql.search.clock import Clock
from gmeql.search.config import SearchConfig
from gmeql.search.search import Search

FEW = dict(
    device="gpu", device_candidates=24, later_device_candidates=24, device_islands=1, few_islands=3,
    later_device_islands=6, stage_ages=(2, 3, 5), symmetries=False, direct=(),
)  # fmt: skip


@pytest.fixture(autouse=True)
def on_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(execution, "required_cards", lambda: [Card(HostDriver(), bits=14)])
    yield


def made(X: np.ndarray, y: np.ndarray, **changes) -> Search:
    return Search(X, y, config=SearchConfig(**(FEW | SMALL | dict(max_time=600.0) | changes)), seed=1)


def ended(search: Search) -> None:
    while not search._flights.generation.is_over(1.0):
        pass


@needs_compiler
def test_a_search_by_time_ends_with_an_exact_formula() -> None:
    X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 2))
    search = made(X, 2.5 * X[:, 0] ** 2 + X[:, 1], functions=("add", "mul", "square"))
    *_, final = search.run()
    assert final.reason == "exact" and str(final.best.expression) == "2.5*x1**2 + x2"
    assert search._flights.generation is None


@needs_compiler
def test_the_next_generation_sets_out_before_the_last_is_looked_at() -> None:
    search = made(*waves())
    state = search._state
    search._round()  # a short first look, three islands
    assert search._flights.generation is None and state.candidates > 0
    for n_islands in (6, 6):  # as many as all before, at most six
        search._round()
        before = search._flights.generation
        assert before is not None and len(state.islands) == n_islands
        assert all(island.age == 0 for island in state.islands)  # on the way
    ended(search)
    search._round()
    assert search._flights.generation is not before
    search._offering.settle(state)
    assert len(state.leaderboard.members) > 1
    search._flights._bring_down(state)
    search._offering._pool.shutdown()


@needs_compiler
def test_while_the_processor_looks_one_generation_follows_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    search = made(*waves())
    state, seen = search._state, []
    search._round()

    def see(clock: Clock) -> None:
        first = search._flights.generation
        while search._flights.generation is first:
            assert not clock.is_interrupted()
        seen.append((len(state.islands), len(search._flights._landed)))

    monkeypatch.setattr(search, "_see", see)
    before = state.candidates
    search._round()
    assert seen == [(6, 1)] and not search._flights._landed and state.candidates > before
    search._flights._bring_down(state)
    search._offering.settle(state)
    assert len(state.leaderboard.members) > 1
    search._offering._pool.shutdown()


@needs_compiler
def test_smaller_tables_end_the_generation_that_does_not_know_them(monkeypatch: pytest.MonkeyPatch) -> None:
    search = made(*waves())
    state = search._state
    search._round()

    def see(clock: Clock) -> None:
        state.islands = []

    monkeypatch.setattr(search, "_see", see)
    before = state.candidates
    search._round()
    assert search._flights.generation is None and not state.islands and state.candidates > before
    search._offering.settle(state)
    search._offering._pool.shutdown()


@needs_compiler
def test_at_the_end_of_the_time_it_goes_on_until_the_front_is_polished() -> None:
    search = made(*waves())
    state = search._state
    search._open_generation()
    search._flights.start(state, (3, 8), search._clock)
    state.reason = "max_time"
    search._flights.stay_up(state, search._clock)
    drawn, ages = state.candidates, [island.age for island in state.islands]
    assert drawn > 0 and min(ages) > 0 and search._flights.generation is not None
    search._flights.come_down(state, search._clock)
    assert state.candidates > drawn and search._flights.generation is None
    search._offering.settle(state)
    assert len(state.leaderboard.members) > 1
    search._offering._pool.shutdown()


@needs_compiler
def test_whatever_ends_a_search_its_islands_are_kept() -> None:
    """As for a checkpoint, and for the polishing that a stop from outside gets."""
    search = made(*waves())
    events = search.run()
    next(events), next(events)
    drawn = search.candidates
    events.close()
    assert search._flights.generation is None and search.candidates > drawn
    assert any(island.age > 0 for island in search._state.islands)
    assert search.state()["candidates"] == search.candidates
    assert search.finish("stopped by a callback").reason == "stopped by a callback"
