"""Drawing: nothing is tried in vain, limits hold, the same seed draws the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from sampled_islands import fitted, island, nothing

from gmeql.network.architecture import Architecture, architecture_preset


def test_no_structure_is_fitted_more_often_than_allowed() -> None:
    network = Architecture(2, (("id", "sin", "square"), ("add", "mul"), ("id",)))
    host = island(network, candidates_per_step=64, max_tries=3)
    known = nothing()
    seen: Counter = Counter()
    empty_rounds = 0
    for _ in range(60):
        batch = host.draw(known, 60, 0)
        seen.update(batch.hashes.tolist())
        empty_rounds += len(batch.hashes) == 0
        host.absorb(fitted(host, batch))
    assert max(seen.values()) <= 3 and 3 in seen.values()
    assert empty_rounds > 5  # a small network is exhausted, and says so
    assert len(host.share_tried(known)) == sum(seen.values()) and len(host.tried.fingerprints) == 0
    again = island(network, candidates_per_step=64, max_tries=3)
    assert len(again.draw(known, 60, 0).hashes) == 0  # another island does not repeat it
    assert len(again.draw(known, 60, 12345).hashes) > 0  # another reading of the target does


def test_an_island_hears_of_others_by_what_is_known_alone() -> None:
    network = Architecture(2, (("id", "sin", "square"), ("add", "mul"), ("id",)))
    known = nothing()
    one, two = (island(network, seed=3, candidates_per_step=64) for _ in range(2))
    np.testing.assert_array_equal(one.draw(known, 60, 0).hashes, two.draw(known, 60, 0).hashes)
    assert not known.keys.any()  # drawing only reads it
    one.share_tried(known)
    assert len(two.draw(known, 60, 0).hashes) < 64 == len(one.tried.fingerprints) + 64


def test_long_formulas_are_not_drawn() -> None:
    host = island(architecture_preset("general", 3))
    for limit in (4, 8, 20):
        batch = host.draw(nothing(), limit, 0)
        assert len(batch.complexities) and batch.complexities.max() <= limit


def test_the_same_seed_draws_the_same() -> None:
    network = architecture_preset("general", 2)
    one, two, other = (island(network, seed).draw(nothing(), 60, 0) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.choices, two.choices)
    np.testing.assert_array_equal(one.constants, two.constants)
    assert not np.array_equal(one.choices[:20], other.choices[:20])


def test_structure_parameters_move_towards_the_elites() -> None:
    """The maximiser of the offline objective: frequencies of the elites' active choices."""
    host = island(architecture_preset("general", 3), candidates_per_step=128)
    known = nothing()
    before = host.probabilities.copy()
    for _ in range(8):
        host.absorb(fitted(host, host.draw(known, 60, 0)))
    after = host.probabilities
    np.testing.assert_allclose(after.sum(axis=1), 1.0, rtol=1e-12)
    assert (after[~host.architecture.choice_mask] == 0).all() and (after[host.architecture.choice_mask] > 0).all()
    best = host.repository.items["choices"][0]
    active = host.architecture.active_connections(best)
    gain = np.array([after[c, best[c]] - before[c, best[c]] for c in np.flatnonzero(active)])
    assert gain.mean() > 0


def test_without_changes_a_candidate_is_its_parent() -> None:
    """No fresh candidates, no crossing, no moves, no re-sampled connection: only elites' active parts come back."""
    network = architecture_preset("general", 2)
    host = island(network, candidates_per_step=32, max_tries=50)
    first = host.draw(nothing(), 60, 0)
    known = set(first.hashes.tolist())
    host.absorb(fitted(host, first))
    host.config = replace(
        host.config, fresh_share=0.0, cross_share=0.0, insert_share=0.0, bypass_share=0.0, exchange_share=0.0,
        resample_fraction=0.0, jitter=0.0, inherit_share=1.0,
    )  # fmt: skip
    batch = host.draw(nothing(), 60, 0)
    assert len(batch.lengths) and set(batch.hashes.tolist()) <= known
