"""Formulas offered beside the search: on copies, one after the other, taken over whole."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest
from host_cuda import HostDriver, needs_compiler
from searches import SMALL, waves

from gmeql.formula.nodes import Variable
from gmeql.search.execution import execution
from gmeql.search.accelerator.stage import Card
from gmeql.search.config import SearchConfig
from gmeql.search.islands.island import Island
from gmeql.search.offers.offering import Offering
from gmeql.search.polish.scoring import Scored
from gmeql.search.search import Search
from gmeql.search.state import SearchState


def opened() -> tuple[SearchState, list[Island]]:
    state = Search(*waves(), config=SearchConfig(**SMALL))._state
    return state, [state.portfolio.open_island(state.rng) for _ in range(2)]


def put_in(complexity: int):
    """Offers a formula whose complexity alone matters here, and notes what it saw."""
    seen: list[tuple[int, int, list[int]]] = []

    def offer(state: SearchState, islands: Sequence[Island]) -> None:
        seen.append((len(state.leaderboard.members), state.portfolio.opened, [island.age for island in islands]))
        state.leaderboard.members[complexity] = Scored(Variable(0), 0.0, -1e9)
        state.last_gain = complexity

    return offer, seen


def test_offers_build_on_each_other_and_leave_the_front_they_began_with() -> None:
    state, islands = opened()
    before = state.leaderboard
    offering = Offering()
    with offering.open(state):
        (first, _), (second, seen) = put_in(3), put_in(5)
        offering.begin(first, state, islands, may_skip=False)
        offering.begin(second, state, islands, may_skip=False)
        offering.settle(state)
    assert set(state.leaderboard.members) == {1, 3, 5} and state.last_gain == 5
    assert set(before.members) == {1} and seen[0][0] == 2


def test_offers_see_islands_and_strategies_as_they_were() -> None:
    state, islands = opened()
    opened_then, go = state.portfolio.opened, threading.Event()
    offer, seen = put_in(3)

    def slow(state: SearchState, islands: Sequence[Island]) -> None:
        go.wait()
        offer(state, islands)

    offering = Offering()
    with offering.open(state):
        offering.begin(slow, state, islands, may_skip=False)
        other, never = put_in(7)
        offering.begin(other, state, islands, may_skip=True)  # busy: left out
        islands[0].age, state.portfolio.opened = 9, 99
        assert not offering.take(state)
        go.set()
    assert seen == [(1, opened_then, [0, 0])] and never == [] and set(state.leaderboard.members) == {1, 3}


def test_an_error_of_an_offer_is_an_error_of_the_search() -> None:
    state, islands = opened()

    def fail(state: SearchState, islands: Sequence[Island]) -> None:
        raise ZeroDivisionError

    offering = Offering()
    with pytest.raises(ZeroDivisionError), offering.open(state):
        offering.begin(fail, state, islands, may_skip=False)


@needs_compiler
def test_a_search_on_an_accelerator_depends_on_the_seed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "required_cards", lambda: [Card(HostDriver(), bits=14)])
    fronts = []
    for _ in range(2):
        config = SearchConfig(
            device="gpu",
            max_candidates=1500,
            n_jobs=1,
            device_candidates=24,
            later_device_candidates=24,
            device_islands=1,
            later_device_islands=6,
        )
        search = Search(*waves(), config=config, seed=3)
        for _ in search.run():
            pass
        fronts.append(([str(m.expression) for m in search.front], search.candidates))
        assert len(search.state()["tried"]["keys"]) > 500
    assert fronts[0] == fronts[1] and fronts[0][1] >= 1500


def test_a_search_that_waits_can_say_so() -> None:
    state, islands = opened()
    offering, heard = Offering(), []

    def slow(state: SearchState, islands: Sequence[Island]) -> None:
        while not offering.is_hurried():
            time.sleep(0.001)
        heard.append(True)

    with offering.open(state):
        offering.begin(slow, state, islands, may_skip=False)
        assert offering.is_busy
        offering.settle(state, hurried=True)
        assert heard and not offering.is_busy and not offering.is_hurried()
