"""Steps of islands by the accelerator's kernels, compiled for the processor: what comes back is an island."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from device_islands import advanced, assert_losses_are_true, opened
from host_cuda import HostDriver, needs_compiler

from gmeql.network.architecture import Architecture
from gmeql.network.repository import empty, rank_probabilities, size
from gmeql.search.accelerator.source import MOST_NODES, RECORD_BYTES
from gmeql.search.accelerator.advance import advance
from gmeql.search.accelerator.stage import Card, Stage, can_hold
from gmeql.search.config import IslandConfig
from gmeql.search.islands.island import Island
from gmeql.search.sampling.moves import count_choices


@needs_compiler
def test_elites_are_sorted_distinct_and_have_the_losses_they_claim() -> None:
    state, islands = opened()
    drawn = advanced(islands, state, 4)
    assert 0 < drawn <= 3 * 4 * 48
    for island in islands:
        n = int(size(island.repository))
        losses, items = island.repository.losses[:n], island.repository.items
        assert island.age == 4 or island.finished
        assert n > 3 and (np.diff(losses) >= 0).all() and island.best <= losses[0] * 1.02
        assert len(np.unique(island.repository.fingerprints[:n], axis=0)) == n
        assert_losses_are_true(island, state.portfolio.task(island), (0, n // 2, n - 1))
        assert (items["complexity"][:n] > 0).all()


@needs_compiler
def test_structure_parameters_are_learnt_as_on_the_processor() -> None:
    """One step: the probabilities move by the learning rate towards the elites' frequencies."""
    state, (island,) = opened(1, learning_rate=1.0)
    stage = Stage(Card(HostDriver(), bits=14), [island], [state.portfolio.task(island)])
    stage.take_step()
    stage.fetch()
    counts = np.zeros_like(island.probabilities)
    n = int(size(island.repository))
    weights = rank_probabilities(n, island.config.power_law_exponent)
    count_choices(island.repository.items["choices"][:n], weights, island.wiring, counts)
    goal = (counts + 0.05 * island.uniform) / (counts.sum(axis=1, keepdims=True) + 0.05)
    goal = 0.9 * goal + 0.1 * island.uniform
    np.testing.assert_allclose(island.probabilities, goal, rtol=1e-12, atol=1e-15)
    drawn_by = stage.memory.fields[0]["draw_weights"][:n]
    np.testing.assert_allclose(drawn_by, island.draw_weights()[:n], rtol=1e-12)


@needs_compiler
def test_same_seed_same_islands_and_no_structure_is_tried_without_end() -> None:
    results = []
    for _ in range(2):
        state, islands = opened(2)
        drawn = advanced(islands, state, 3)
        results.append((drawn, [island.repository.losses.tolist() for island in islands]))
    assert results[0] == results[1]

    state, islands = opened(1)
    card = Card(HostDriver(), bits=14)
    stage = Stage(card, islands, [state.portfolio.task(islands[0])])
    for _ in range(6):
        stage.take_step()
    counts = card.tried["counts"].view(np.int32)
    assert 0 < counts.max() <= islands[0].config.max_tries * 8
    assert int(counts.sum()) == int(stage.look()["n_drawn_in_all"].sum())


@needs_compiler
def test_islands_with_other_data_are_sent_again() -> None:
    state, islands = opened(1)
    task = state.portfolio.task(islands[0])
    card = Card(HostDriver(), bits=14)
    advance([card], islands, [task], goal_age=1, enough=lambda best, drawn: False)
    assert card.stage is not None and card.stage.holds(islands[0], task)
    assert not card.stage.holds(islands[0], replace(task, target=task.target.copy()))
    islands[0].age += 1
    assert not card.stage.holds(islands[0], task)


@needs_compiler
def test_a_card_remembers_what_was_tried_elsewhere() -> None:
    state, islands = opened(1)
    task = state.portfolio.task(islands[0])
    first, second = Card(HostDriver(), bits=14), Card(HostDriver(), bits=14)
    stage = Stage(first, islands, [task])
    stage.take_step()
    keys, counts = first.known()
    assert len(keys) > 10 and int(counts.sum()) == int(stage.look()["n_drawn_in_all"].sum())
    second.learn(keys, counts)
    assert dict(zip(*map(list, second.known()), strict=True)) == dict(zip(keys, counts, strict=True))


def test_more_candidates_of_smaller_networks_still_need_more_room() -> None:
    card = Card(HostDriver(), bits=4)
    card.make_room(100, 60)
    card.make_room(200, 20)
    assert len(card.candidates["lengths"]) == 4 * 200 and len(card.candidates["choices"]) == 200 * 60
    before = card.candidates["losses"]
    card.make_room(150, 40)
    assert card.candidates["losses"] is before


def test_what_a_card_cannot_hold() -> None:
    state, (island,) = opened(1)
    assert can_hold(island)
    wide = Island(Architecture(MOST_NODES, (("add",),)), "identity", IslandConfig(), 1, np.array([1], np.uint64))
    assert not can_hold(wide)
    many = Island(island.architecture, "identity", IslandConfig(candidates_per_step=5000), 1, np.array([1], np.uint64))
    assert not can_hold(many)
    assert can_hold(island)
    island.repository = empty(1, {name: items[0] for name, items in island.repository.items.items()})
    assert not can_hold(island)  # kernels write as many elites as others have


@pytest.mark.parametrize("n_bytes", [RECORD_BYTES])
def test_records_that_are_sorted_have_the_size_that_memory_is_asked_for(n_bytes: int) -> None:
    record = np.dtype([("first", "u8"), ("second", "u8"), ("place", "i4")], align=True)
    assert record.itemsize == n_bytes
