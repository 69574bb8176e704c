"""Generations on accelerators, compiled for the processor: a whole search by time, its end, and what is left to the front."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from concurrent.futures import Future
from threading import Event
from typing import Any

import numpy as np
import pytest
from device_islands import assert_losses_are_true
from host_cuda import HostDriver, needs_compiler
from host_flights import close, ended, made, on_host, on_the_way
from late_cuda import LateDriver
from searches import waves

from gmeql.fitters.cuda.driver import AcceleratorError
from gmeql.network.repository import size
from gmeql.search.execution import execution, flights
from gmeql.search.accelerator.stage import Card
from gmeql.search.clock import Clock
from gmeql.search.islands.island import Island
from gmeql.search.offers.offering import Offer
from gmeql.search.state import SearchState

__all__ = ["on_host"]  # for every test here


@needs_compiler
def test_a_search_by_time_ends_with_an_exact_formula() -> None:
    X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 2))
    search = made(X, 2.5 * X[:, 0] ** 2 + X[:, 1], functions=("add", "mul", "square"))
    *_, final = search.run()
    assert final.reason == "exact" and str(final.best.expression) == "2.5*x1**2 + x2"
    assert not search._flights.generations


@needs_compiler
@pytest.mark.parametrize("seed", range(2))
def test_generations_beside_each_other_are_what_they_are_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their queues take turns at random; losses are those of the formulas."""
    monkeypatch.setattr(execution, "required_cards", lambda: [Card(LateDriver(seed), bits=14)])
    search = on_the_way(3)
    state = search._state
    islands = [island for flight in search._flights._aloft for island in flight.islands]
    close(search)
    assert len(islands) == 9 and all(island.age for island in islands)
    for island in islands:
        n = 1 if island.finished else int(size(island.repository))
        assert_losses_are_true(island, state.portfolio.task(island), range(n))


@needs_compiler
def test_the_next_generation_sets_out_before_the_last_is_looked_at() -> None:
    search = made(*waves(), device_generations=1, early_device_islands=3)
    state = search._state
    search._round()  # a short first look, three islands
    for n_islands in (6, 6, 6):  # all but the first are large
        (before,) = search._flights.generations
        assert state.candidates > 0 and len(state.islands) == n_islands
        assert all(island.age == 0 for island in state.islands)  # on the way
        ended(search)
        search._round()
        assert search._flights.generations != [before]
    search._offering.settle(state)
    assert len(state.leaderboard.members) > 1
    close(search)


@needs_compiler
def test_generations_are_on_the_way_side_by_side() -> None:
    """What has ended is taken in, whoever set out first; what is on the way when a search ends is taken in as it is."""
    search = on_the_way(2)
    state, flights = search._state, search._flights
    assert [flight.place for flight in flights._aloft] == [0, 1] and flights.carry(state.islands)
    first, second = flights._aloft
    assert first.generation._settled[0][0].card.tried is second.generation._settled[0][0].card.tried
    second.generation.stop()
    steps, first.generation.steps = first.generation.steps, Future()  # however long it takes
    search._round()
    assert first in flights._aloft and second not in flights._aloft
    assert state.candidates >= second.generation.drawn > 0
    first.generation.steps = steps
    aloft = list(flights._aloft)
    expected = state.candidates - sum(flight.counted for flight in aloft)
    close(search)
    expected += sum(flight.generation.drawn for flight in aloft)
    assert state.candidates == expected and not flights.generations
    assert {island.number for island in state.islands} == {
        island.number for flight in aloft for island in flight.islands if not island.finished
    }


@needs_compiler
@pytest.mark.parametrize("n_cards", [2, 3])
def test_several_cards_share_the_islands_of_every_generation(n_cards: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cards = [Card(HostDriver(), bits=14) for _ in range(n_cards)]
    monkeypatch.setattr(execution, "required_cards", lambda: cards)
    search = on_the_way(2)
    for flight in search._flights._aloft:
        stages = [stage for stage, _, _ in flight.generation._settled]
        assert sorted(place for _, _, its in flight.generation._settled for place in its) == list(
            range(len(flight.islands))
        )
        assert max(len(stage.islands) for stage in stages) - min(len(stage.islands) for stage in stages) <= 1
        # in its place each card has memory of its own, and knows what was tried on it in the other
        assert [stage.card.tried is card.tried for stage, card in zip(stages, cards, strict=True)] == [True] * n_cards
        assert len({id(stage.card) for stage in stages}) == n_cards
    assert len(search._flights.generations) == 2
    close(search)
    assert len(search._state.leaderboard.members) > 1


@needs_compiler
def test_a_card_without_memory_for_two_generations_goes_on_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(card: Card, number: int) -> Card:
        raise AcceleratorError("no memory")

    monkeypatch.setattr(Card, "beside", refuse)
    search = made(*waves(), device_generations=2)
    for _ in range(3):
        search._round()
        assert len(search._flights.generations) == 1 and search._executor.on_cards
        assert search._flights.carry(search._state.islands)
    close(search)


@needs_compiler
@pytest.mark.parametrize(("free", "n"), [(3, 1), (5, 2), (20, 3)])  # the second has twice as many islands
def test_one_more_takes_at_most_a_quarter_of_the_memory_that_is_free(
    free: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is for others on this card, looks in the middle among them."""
    search = made(*waves(), device_generations=3, early_device_islands=0)
    search._open_generation()
    assert search._flights.start(search._state, (60,), search._clock)
    (card,) = search._executor.cards
    assert card.n_bytes > 24 * 3 * 500
    monkeypatch.setattr(HostDriver, "free_bytes", lambda _: free * card.n_bytes)
    while search._flights.have_room(search._state):
        search._open_generation()
        search._flights.start(search._state, (60,), search._clock)
    assert len(search._flights.generations) == search._executor.most_generations == n
    close(search)


@needs_compiler
def test_a_failure_brings_all_generations_down_with_one_line() -> None:
    search = on_the_way(2)
    for stage in (flight.generation._settled[0][0] for flight in search._flights._aloft):

        def lost(there: np.ndarray) -> np.ndarray:
            raise AcceleratorError("lost")

        stage.driver.get = lost
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        search._round()
    assert [str(one.message)[:33] for one in said] == ["the accelerator failed (lost); th"]
    assert not search._flights.generations and not search._executor.on_cards
    close(search)


@needs_compiler
def test_while_the_processor_looks_one_generation_follows_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    search = made(*waves(), device_generations=1, early_device_islands=3)
    state, seen = search._state, []
    search._round()

    def see(_: SearchState, clock: Clock) -> None:
        first = search._flights.generations
        while search._flights.generations == first:
            assert not clock.is_interrupted()
        seen.append((len(state.islands), len(search._flights._landed)))

    monkeypatch.setattr(search._looking, "see", see)
    before = state.candidates
    search._round()
    assert seen == [(6, 1)] and not search._flights._landed and state.candidates > before
    search._offering.settle(state)
    assert len(state.leaderboard.members) > 1
    close(search)


@needs_compiler
def test_smaller_tables_end_the_generation_that_does_not_know_them(monkeypatch: pytest.MonkeyPatch) -> None:
    search = made(*waves())
    state = search._state
    search._round()

    def see(_: SearchState, clock: Clock) -> None:
        state.islands = []

    monkeypatch.setattr(search._looking, "see", see)
    before, ending = state.candidates, search._flights.generations
    search._round()
    while any(generation in ending for generation in search._flights.generations):
        search._round()  # nobody waited for it
    assert search._flights.carry(state.islands) and state.candidates > before  # islands that were opened afterwards
    close(search)


@needs_compiler
def test_few_are_on_the_way_at_first() -> None:
    search = on_the_way(1, early_device_generations=2, early_device_islands=5)
    state, flights_of = search._state, search._flights
    flights_of._executor.most_generations = 3
    assert state.portfolio.opened == 3 and flights_of.have_room(state)
    search._open_generation()
    assert flights_of.start(state, (60,), search._clock) and state.portfolio.opened > 5 and flights_of.have_room(state)
    state.portfolio.opened = 5
    assert not flights_of.have_room(state)
    close(search)


@needs_compiler
def test_others_set_out_as_islands_on_the_way_are_closed() -> None:
    search = on_the_way(2, device_open=14, early_device_islands=0)
    flights_of, (first, _) = search._flights, search._flights.generations
    flights_of._executor.most_generations = 3
    search._open_generation()
    assert [len(flight.islands) for flight in flights_of._aloft] == [3, 6] and len(search._state.islands) == 6
    for n_open, has_room in ((3, False), (2, True)):
        first.n_open = n_open
        assert flights_of.have_room(search._state) == has_room
    flights_of._executor.most_generations = 2
    assert not flights_of.have_room(search._state)
    close(search)


@needs_compiler
def test_what_was_drawn_is_counted_while_it_is_on_the_way() -> None:
    search = on_the_way(1)
    state, (flight,) = search._state, search._flights._aloft
    while flight.generation.drawn == 0:
        assert not flight.generation.is_over()
    search._tend()
    assert 0 < state.candidates == flight.counted
    close(search)
    assert state.candidates == flight.generation.drawn


@needs_compiler
def test_of_exact_islands_one_is_polished_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where that ends nothing, all are offered beside the search."""
    search = on_the_way(1, few_islands=6)
    state, polished = search._state, []
    monkeypatch.setattr(flights, "is_exact", lambda *_: True)
    monkeypatch.setattr(flights, "polish_island", lambda _, island, __: polished.append(island.number))
    monkeypatch.setattr(flights, "offer_elites", lambda *_: None)
    monkeypatch.setattr(flights, "_is_exact_known", lambda _: len(polished) > 0)
    (flight,) = search._flights._aloft
    flight.generation.stop()
    ended(search)
    flight.before = [float("inf")] * len(flight.islands)
    search._flights.land(state, search._clock, (60,))
    assert len(flight.islands) == 6 and len(polished) == 1 and search._offering.is_busy
    close(search)


@needs_compiler
def test_what_looked_exact_and_is_not_goes_on_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    search = on_the_way(1)
    state, (flight,) = search._state, search._flights._aloft
    stage = flight.generation._settled[0][0]
    flight.generation._enough = lambda best, drawn: True
    ended(search)
    search._flights.land(state, search._clock, (60,))
    assert search._executor.doubted == 0.01 * min(map(state.portfolio.loss, flight.islands))
    (later,) = search._flights._aloft
    assert flight.generation.has_enough and later.generation._settled[0][0] is stage and later.ages == [60]
    assert {id(island) for island in later.islands} <= {id(island) for island in flight.islands}
    assert all(0 < island.age < 60 for island in later.islands)
    close(search)


@needs_compiler
def test_where_a_formula_is_exact_nobody_waits_for_what_is_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    search = on_the_way(2)
    state, aloft = search._state, list(search._flights._aloft)
    monkeypatch.setattr(flights, "has_exact_formula", lambda _: True)
    search._flights._bring_down(state)
    assert not search._flights.generations
    assert state.candidates == sum(flight.generation.drawn for flight in aloft)
    assert len(state.islands) == 6 and all(island.age == 0 for island in state.islands)  # as they set out


@needs_compiler
def test_what_landed_waits_until_the_thread_that_offers_is_free() -> None:
    """The best goes first, and nobody waits for it."""
    search = on_the_way(3, device_offered=2)
    state, offering = search._state, search._offering
    held, begun = Event(), []

    def busy(_: SearchState, islands: Sequence[Island]) -> None:
        held.wait(60.0)

    for _ in range(2):
        offering.begin(busy, state, (), may_skip=False)
    assert not offering.has_room
    search._flights.stop()
    state.islands, losses = [], []  # no others set out
    while search._flights._aloft:
        ended(search)
        search._flights.land(state, search._clock, (60,))
        losses.append(state.lowest)
    assert [found.lowest for found in search._flights._found] == sorted(losses) and len(losses) == 3
    begin = offering.begin

    def noted(offer: Offer, state: SearchState, islands: Sequence[Island], **options: Any) -> None:
        begun.append(min(map(state.portfolio.loss, islands)))
        begin(offer, state, islands, **options)

    offering.begin = noted  # type: ignore[method-assign]
    held.set()
    close(search)
    assert begun == sorted(losses) and len(state.leaderboard.members) > 1


@needs_compiler
def test_at_the_end_of_the_time_it_goes_on_until_the_front_is_polished() -> None:
    search = made(*waves())
    state = search._state
    search._open_generation()
    search._flights.start(state, (3, 8), search._clock)
    state.reason = "max_time"
    search._flights.stay_up(state, search._clock)
    drawn, ages = state.candidates, [island.age for island in state.islands]
    assert drawn > 0 and min(ages) > 0 and len(search._flights.generations) == 1
    search._flights.come_down(state, search._clock)
    assert state.candidates > drawn and not search._flights.generations
    search._offering.settle(state)
    assert len(state.leaderboard.members) > 1
    search._offering._pool.shutdown()


@needs_compiler
def test_at_the_end_of_the_time_each_generation_goes_on_where_it_was() -> None:
    search = on_the_way(2)
    state, flights = search._state, search._flights
    before = {flight.place: flight for flight in flights._aloft}
    stages = {place: flight.generation._settled[0][0] for place, flight in before.items()}
    state.reason = "max_time"
    flights.stay_up(state, search._clock)
    assert {flight.place for flight in flights._aloft} == {0, 1}
    for flight in flights._aloft:
        assert flight.generation._settled[0][0] is stages[flight.place]  # nothing was sent again
        assert {id(island) for island in flight.islands} <= {id(island) for island in before[flight.place].islands}
    assert len(state.islands) == sum(len(flight.islands) for flight in flights._aloft)
    drawn = state.candidates
    flights.come_down(state, search._clock)
    assert state.candidates > drawn and not flights.generations
    close(search)


@needs_compiler
def test_at_the_end_of_the_time_only_those_that_lead_are_fetched() -> None:
    search = on_the_way(3, device_ended=1)
    state, flights = search._state, search._flights
    aloft = list(flights._aloft)
    while not all(flight.generation.drawn for flight in aloft):
        pass
    state.reason = "max_time"
    flights.stay_up(state, search._clock)
    (fetched,) = [flight for flight in aloft if flight not in flights._aloft]
    lowest = fetched.generation.lowest
    assert all(flight.generation.lowest >= lowest for flight in flights._aloft if flight.place != fetched.place)
    assert len(flights._aloft) == 3 and len(state.islands) == 9
    flights.come_down(state, search._clock)
    assert all(island.age > 0 for flight in aloft for island in flight.islands) and not flights.generations
    assert all(not island.finished for island in state.islands)
    close(search)


@needs_compiler
def test_whatever_ends_a_search_its_islands_are_kept() -> None:
    """As for a checkpoint, and for the polishing that a stop from outside gets."""
    search = made(*waves())
    events = search.run()
    next(events), next(events)
    drawn = search.candidates
    events.close()
    assert not search._flights.generations and search.candidates > drawn
    assert any(island.age > 0 for island in search._state.islands)
    assert search.state()["candidates"] == search.candidates
    assert search.finish("stopped by a callback").reason == "stopped by a callback"
