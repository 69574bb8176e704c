"""One island: elites kept, structure parameters learnt from them, restored exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from searches import plain_text, stored

from gmeql.fitters.programs import input_slots
from gmeql.network.architecture import Architecture, architecture_preset
from gmeql.network.repository import size
from gmeql.search.config import IslandConfig
from gmeql.search.islands.island import UNSEEN_WEIGHT, Island
from gmeql.search.islands.steps import StepTask, take_steps
from gmeql.search.islands.tried import TriedStructures

X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 2))
TARGET = np.sin(X[:, 0]) * X[:, 1]


def island(network: Architecture | None = None, **options: Any) -> Island:
    network = network or architecture_preset("general", 2)
    made = Island(network, "identity", IslandConfig(**options), 1, np.array([5], np.uint64))
    made.inputs = input_slots(X[:, : network.n_variables])[0]
    return made


def step(host: Island, tried: TriedStructures | None = None) -> None:
    task = StepTask(host.inputs, TARGET, np.ones(40), 0, 60, 40)
    take_steps([host], [task], tried or TriedStructures(12), n_threads=1)[0].absorb(host)


def test_elites_only_get_better() -> None:
    host = island()
    tried = TriedStructures(14)
    before = np.full(host.config.capacity, np.inf)
    for age in range(1, 6):
        step(host, tried)
        losses = host.repository.losses
        assert (
            host.age == age and (losses <= before).all() and (np.diff(losses[: int(size(host.repository))]) >= 0).all()
        )
        assert host.worst == losses[-1] and host.best <= losses[0] / (1 - host.config.min_gain)
        before = losses.copy()
    assert np.isfinite(host.best)


def test_islands_of_a_size_begin_with_the_same_nothing() -> None:
    """Making it takes longer than all else of opening an island; nobody writes into it."""
    first, second = island(), island()
    assert first.repository is second.repository
    step(first)
    assert int(size(first.repository)) > 0 and int(size(second.repository)) == 0
    assert not any(values.any() for values in second.repository.items.values())


def test_learning_goes_towards_the_elites_frequencies() -> None:
    """(1 - η) p + η ((1 - ε) (f + w u)/(n + w) + ε u), with f the weight of elites that use a choice actively."""
    host = island()
    step(host)
    before = host.probabilities.copy()
    n = int(size(host.repository))
    weights = np.arange(1, n + 1) ** -host.config.power_law_exponent
    weights /= weights.sum()
    counts = np.zeros_like(before)
    for weight, choices in zip(weights, host.repository.items["choices"][:n], strict=True):
        for c in np.flatnonzero(host.architecture.active_connections(choices)):
            counts[c, choices[c]] += weight
    host.learn()
    goal = (counts + UNSEEN_WEIGHT * host.uniform) / (counts.sum(axis=1, keepdims=True) + UNSEEN_WEIGHT)
    goal = 0.9 * goal + 0.1 * host.uniform
    np.testing.assert_allclose(host.probabilities, before + 0.1 * (goal - before), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(host.probabilities.sum(axis=1), 1.0, rtol=1e-12)
    assert np.isneginf(host.logits[~host.architecture.choice_mask]).all()


def test_elites_are_drawn_by_rank_within_and_across_complexities() -> None:
    host = island()
    step(host)
    n = int(size(host.repository))
    classes = host.repository.items["complexity"][:n] // 2
    expected = []
    for e in range(n):
        rank_in_class = 1 + int(np.sum(classes[:e] == classes[e]))
        expected.append(0.5 / rank_in_class / len(set(classes.tolist())) + 0.5 / (e + 1) / np.log(n + 2))
    cumulative = host.draw_weights()
    np.testing.assert_allclose(np.diff(cumulative[:n], prepend=0.0), expected, rtol=1e-9)
    plain = island(complexity_classes=0.0)
    assert np.diff(plain.draw_weights())[0] == pytest.approx(0.5 * plain.draw_weights()[0])


def test_relevant_columns_of_a_wide_table_are_chosen_more_often() -> None:
    network = Architecture(8, (("id", "sin"), ("add",)))
    relevance = np.array([0.0, 0.6, 0.0, 0.2, 0, 0, 0, 0])
    host = Island(network, "identity", IslandConfig(), 1, np.array([5], np.uint64))
    host.prefer_columns(relevance)
    first = host.probabilities[0, :8]  # a choice among the columns alone
    shares = 0.5 / 8 + 0.5 * relevance / relevance.sum()
    np.testing.assert_allclose(first / first.sum(), shares, rtol=1e-12)
    assert (first > 0).all()
    narrow = island()
    narrow.prefer_columns(np.array([1.0, 0.0]))
    np.testing.assert_array_equal(narrow.probabilities, narrow.uniform)


def test_an_island_ends_when_old_or_without_gain() -> None:
    old = island(life=2)
    step(old)
    assert not old.finished
    step(old)
    assert old.finished
    idle = island(patience=2)
    idle.best, idle.age, idle.last_gain = -1.0, 5, 4
    assert not idle.finished
    step(idle)  # nothing beats a loss below zero
    assert idle.finished and idle.last_gain == 4


def test_what_was_tried_is_handed_over_once() -> None:
    host, shared = island(), TriedStructures(14)
    step(host, shared)
    own = host.tried.fingerprints
    assert len(own) > 0 and not shared.keys.any()
    np.testing.assert_array_equal(host.share_tried(shared), own)
    assert len(host.share_tried(shared)) == 0
    assert int(shared.counts.sum()) == len(own)


def test_a_restored_island_goes_on_the_same() -> None:
    host, tried = island(), TriedStructures(14)
    for _ in range(3):
        step(host, tried)
    again = Island.from_dict(stored(host.to_dict()), host.config)
    again.inputs = host.inputs
    for each in (host, again):
        step(each, tried)
    assert plain_text(again.to_dict()) == plain_text(host.to_dict())


def test_choices_that_the_network_does_not_have_are_refused() -> None:
    host = island()
    step(host)
    data = stored(host.to_dict())
    data["items"]["choices"][0, 0] = 99
    with pytest.raises(ValueError):
        Island.from_dict(data, host.config)
