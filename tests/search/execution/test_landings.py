"""What becomes of generations that have ended: who leads, and who sets out again."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from host_cuda import HostDriver, needs_compiler
from host_flights import close, ended, made, on_host, on_the_way
from searches import waves

from gmeql.search.clock import Clock
from gmeql.search.execution import flights

__all__ = ["on_host"]  # for every test here


def test_the_leading_islands_are_those_of_the_least_loss_that_is_seen() -> None:
    """Whatever their own losses are; but few of the islands are looked at."""

    class Losses:
        def __init__(self) -> None:
            self.seen: list[int] = []

        def loss(self, island: Any) -> float:
            return island.own

        def seen_loss(self, island: Any, rows: Any) -> float:
            self.seen.append(island.number)
            return max(island.own, island.inverted)

    rng = np.random.default_rng(0)
    for n in (1, 3, 8):
        islands = [
            SimpleNamespace(number=k, own=rng.exponential(), inverted=rng.choice([0.0, np.inf])) for k in range(60)
        ]
        portfolio = Losses()
        flight = flights.Flight(None, 0, islands, [], portfolio, None, None, (), 0.0, 0)  # type: ignore[arg-type]
        found = [island.number for island in flight.leading(n)]
        every = sorted(islands, key=lambda island: (max(island.own, island.inverted), island.number))
        assert found == [island.number for island in every[:n]]
        assert len(portfolio.seen) < 8 * n


@needs_compiler
def test_the_memory_of_cards_goes_with_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a look for garbage. What a card records does not refer to who recorded it."""

    def record(driver: HostDriver, launches: Callable[[], None]) -> Callable[[], None]:
        later = weakref.WeakMethod(launches)
        return lambda: later()()  # type: ignore[misc]

    monkeypatch.setattr(HostDriver, "record", record)
    search = made(*waves(), max_time=2.0)
    for _ in search.run():
        pass
    cards = [weakref.ref(card) for card in search._executor.cards]
    gc.disable()
    try:
        del search, _
        assert cards and not any(card() for card in cards)
    finally:
        gc.enable()


@needs_compiler
def test_islands_that_have_landed_do_not_set_out_again() -> None:
    search = made(*waves(), stage_ages=(2, 3))
    state, flights = search._state, search._flights
    search._open_generation()
    assert flights.start(state, (2,), search._clock)
    ended(search)
    flights.land(state, search._clock, (2, 3))
    assert not flights.generations and not state.islands
    close(search)


@needs_compiler
@pytest.mark.parametrize("is_late", [False, True])
def test_what_time_has_ended_does_not_go_on(is_late: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights, "is_exact", lambda state, island: False)
    search = on_the_way(1)
    (flight,) = search._flights._aloft
    search._flights.stop()
    ended(search)
    flight.generation.has_enough = True
    flight.clock = Clock(0.0, judging=-1.0 if is_late else np.inf)
    search._state.islands = []
    search._flights.land(search._state, search._clock, (60,))
    assert bool(search._flights.generations) == (not is_late)
    close(search)


@needs_compiler
@pytest.mark.parametrize("faster", [0.9, 1.1])
def test_the_processor_is_compared_with_all_that_cards_drew_meanwhile(faster: float) -> None:
    """Not with one of the generations that share them."""
    search = on_the_way(2)
    state, aloft = search._state, list(search._flights._aloft)
    while not all(flight.generation.drawn for flight in aloft):
        pass
    search._flights.stop()
    while not all(flight.generation.is_over() for flight in aloft):
        pass
    drawn = [flight.generation.drawn for flight in aloft]
    for flight in aloft:
        flight.started -= 1000.0
    search._executor.processor_rate = sum(drawn) / 1000.0 / faster
    assert faster < 1 or max(drawn) < sum(drawn) / faster
    state.islands = []
    search._flights.land(state, search._clock, (60,))
    assert search._executor.on_cards == (faster > 1)
    close(search)
