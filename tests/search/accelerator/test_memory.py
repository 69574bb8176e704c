"""Islands in the memory of a card: whole or with their best elite alone, they come home as they are there."""

from __future__ import annotations

import numpy as np
import pytest
from device_islands import opened
from host_cuda import HostDriver, needs_compiler

from gmeql.network.repository import size
from gmeql.search.accelerator.memory import IslandMemory
from gmeql.search.accelerator.stage import Card, Stage
from gmeql.search.islands.island import Island
from gmeql.search.state import SearchState


def stepped(n: int, steps: int = 3) -> tuple[SearchState, list[Island], Stage]:
    state, islands = opened(n)
    stage = Stage(Card(HostDriver(), bits=14), islands, [state.portfolio.task(island) for island in islands])
    for _ in range(steps):
        stage.take_step()
    return state, islands, stage


@needs_compiler
@pytest.mark.parametrize("whole", [{2}, {0, 2, 3, 5}, set()])  # one by one, all at once, none
def test_islands_that_are_closed_bring_their_best_elite(whole: set[int]) -> None:
    _, all_of_it, stage = stepped(6)
    stage.fetch()
    _, islands, stage = stepped(6)
    stage.fetch(whole=whole)
    for i, (island, before) in enumerate(zip(islands, all_of_it, strict=True)):
        assert (island.age, island.best, island.last_gain) == (before.age, before.best, before.last_gain)
        n = int(size(before.repository)) if i in whole else 1
        assert int(size(island.repository)) == n and island.finished == (i not in whole or before.finished)
        np.testing.assert_array_equal(island.repository.losses[:n], before.repository.losses[:n])
        np.testing.assert_array_equal(island.repository.fingerprints[:n], before.repository.fingerprints[:n])
        for name, items in island.repository.items.items():
            np.testing.assert_array_equal(items[:n], before.repository.items[name][:n])
        for here, there in zip(island.program_of(0), before.program_of(0), strict=True):
            np.testing.assert_array_equal(here, there)
    for i in whole:
        np.testing.assert_array_equal(islands[i].probabilities, all_of_it[i].probabilities)


@needs_compiler
def test_elites_are_sent_where_an_island_has_some() -> None:
    state, islands, stage = stepped(3)
    stage.fetch()
    before = [island.repository for island in islands]
    fresh = state.portfolio.open_island(state.rng)
    again = Stage(Card(HostDriver(), bits=14), [fresh, *islands], [state.portfolio.task(fresh), *stage.tasks])
    again.fetch()
    assert int(size(fresh.repository)) == 0
    for island, expected in zip(islands, before, strict=True):
        np.testing.assert_array_equal(island.repository.losses, expected.losses)
        n = int(size(expected))
        for name, items in expected.items.items():
            np.testing.assert_array_equal(island.repository.items[name][:n], items[:n])


def test_records_say_what_islands_are() -> None:
    _, islands = opened(4)
    islands[1].age, islands[2].exhausted = 7, True
    memory = IslandMemory(HostDriver(), islands, islands[0].config)
    records = memory.records
    assert records["age"].tolist() == [0, 7, 0, 0] and records["is_finished"].tolist() == [0, 0, 1, 0]
    assert records["random_state"].tolist() == [int(island.random_state[0]) for island in islands]
    networks = [island.architecture for island in islands]
    assert records["wiring"]["n_connections"].tolist() == [network.n_connections for network in networks]
    for one in records:
        places = [int(one[name]) for name in ("probabilities", "cumulative", "counts", "draw_weights")]
        places += [int(place) for which in one["elites"] for place in which]
        assert len(set(places)) == len(places) and all(place % 16 == 0 for place in places)
