"""Invariants of the elite repository, as NumPy and as JAX, against a plain list."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmeql.network import repository
from thinned import examples

CAPACITY, BATCH = 5, 4
loss = st.one_of(
    st.sampled_from([0.0, 1.0, 1.0, 2.5, np.nan, np.inf, -np.inf]), st.integers(0, 80).map(lambda n: n / 8)
)
batch = st.lists(st.tuples(loss, st.integers(0, 6)), min_size=BATCH, max_size=BATCH)


def offer(elites, candidates, xp, number):
    losses = np.array([c[0] for c in candidates], np.float32)
    marks = np.array([[c[1], 7] for c in candidates], np.uint32)
    items = {"name": np.array([10 * number + i for i in range(len(candidates))], np.int32)}
    insert = repository.insert if xp is np else jitted
    arguments = (losses, marks, items)
    return insert(elites, *arguments, xp) if xp is np else insert(elites, *jax.tree.map(jnp.asarray, arguments))


@jax.jit
def jitted(elites, losses, marks, items):
    return repository.insert(elites, losses, marks, items, jnp)


def plain(batches):
    """The same by a list of (loss, order of arrival, mark, name)."""
    kept = []
    for number, candidates in enumerate(batches):
        for i, (value, mark) in enumerate(candidates):
            if np.isfinite(value):
                kept.append((np.float32(value), len(kept) + 1000 * number, mark, 10 * number + i))
        best = {}
        for entry in sorted(kept):
            best.setdefault(entry[2], entry)
        kept = sorted(best.values())[:CAPACITY]
        kept = [(value, -CAPACITY + rank, mark, name) for rank, (value, _, mark, name) in enumerate(kept)]
    return kept


@pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])
@given(batches=st.lists(batch, min_size=1, max_size=4))
@examples(40)
def test_holds_what_a_plain_list_would_hold(xp, batches):
    elites = repository.empty(CAPACITY, {"name": np.zeros((), np.int32)}, xp, np.float32)
    for number, candidates in enumerate(batches):
        elites = offer(elites, candidates, xp, number)
        losses = np.asarray(elites.losses)
        filled = np.isfinite(losses)
        assert (np.diff(np.where(filled, losses, np.float32(3e38))) >= 0).all()
        assert not np.isnan(losses).any() and (losses[~filled] == np.inf).all()
        marks = [tuple(m) for m in np.asarray(elites.fingerprints)[filled]]
        assert len(set(marks)) == len(marks)
    expected = plain(batches)
    count = len(expected)
    assert int(repository.size(elites, xp)) == count
    np.testing.assert_array_equal(np.asarray(elites.losses)[:count], [e[0] for e in expected])
    np.testing.assert_array_equal(np.asarray(elites.fingerprints)[:count, 0], [e[2] for e in expected])
    np.testing.assert_array_equal(np.asarray(elites.items["name"])[:count], [e[3] for e in expected])


def filled(count, capacity=8):
    elites = repository.empty(capacity, np.zeros(1))
    marks = np.stack([np.arange(count), np.ones(count)], axis=1).astype(np.uint32)
    return repository.insert(elites, np.arange(count) + 1.0, marks, np.arange(count)[:, None] * 1.0)


def test_lower_loss_of_an_equal_expression_replaces_the_elite():
    elites = repository.insert(filled(4), np.array([0.5]), np.array([[3, 1]], np.uint32), np.array([[99.0]]))
    assert elites.losses[:5].tolist() == [0.5, 1.0, 2.0, 3.0, np.inf]
    assert elites.items[0, 0] == 99.0


def test_refreshed_losses_are_sorted_again():
    elites = filled(4)
    elites = elites._replace(losses=np.array([9.0, *elites.losses[1:]]))
    elites = repository.insert(elites, np.array([np.nan]), np.zeros((1, 2), np.uint32), np.zeros((1, 1)))
    assert elites.losses[:4].tolist() == [2.0, 3.0, 4.0, 9.0]
    assert elites.items[3, 0] == 0.0


@pytest.mark.parametrize("count", [1, 3, 8])
def test_draws_follow_the_power_law_over_filled_ranks(count):
    n = 100_000
    slots = repository.draw(filled(count), np.random.default_rng(0).uniform(size=n), 1.5)
    expected = repository.rank_probabilities(count, 1.5)
    np.testing.assert_allclose(expected, np.arange(1, count + 1) ** -1.5 / np.sum(np.arange(1, count + 1) ** -1.5))
    frequencies = np.bincount(slots, minlength=count) / n
    assert (np.abs(frequencies - expected) <= 4 * np.sqrt(expected * (1 - expected) / n)).all()


@pytest.mark.parametrize("count", [1, 3, 8])
def test_the_released_law_draws_by_the_place_from_the_worst(count):
    n = 100_000
    slots = repository.draw(filled(count), np.random.default_rng(0).uniform(size=n), 1.5, law="released")
    weights = (count - np.arange(count)) ** 1.5
    expected = weights / weights.sum()
    frequencies = np.bincount(slots, minlength=count) / n
    assert (np.abs(frequencies - expected) <= 4 * np.sqrt(expected * (1 - expected) / n)).all()


def test_laws_give_the_best_of_400_what_text_and_released_code_say():
    text, code = repository.power_law(400, 1.5), repository.power_law(400, 1.5, "released")
    assert text[0] / text[-1] == pytest.approx(0.398, abs=1e-3)
    assert (code[-1] - code[-2]) / code[-1] == pytest.approx(0.0062, abs=1e-4)
    with pytest.raises(ValueError, match="law"):
        repository.power_law(3, 1.5, "other")


def test_draw_is_the_inverse_of_the_cumulative_weights():
    cumulative = np.cumsum(repository.rank_probabilities(8, 1.5))
    just_below = cumulative - 1e-12
    np.testing.assert_array_equal(repository.draw(filled(8), just_below, 1.5), np.arange(8))
    assert repository.draw(filled(3), np.array([0.0, 1.0]), 1.5).tolist() == [0, 2]


@pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])
def test_empty_repository_says_so(xp):
    elites = repository.empty(3, xp.zeros(2), xp)
    assert repository.draw(elites, xp.asarray([0.1, 0.9]), 1.5, xp).tolist() == [-1, -1]
    assert int(repository.size(elites, xp)) == 0


def test_take_returns_the_items_of_slots():
    assert repository.take(filled(4), np.array([2, 0])).ravel().tolist() == [2.0, 0.0]


def test_capacity_must_be_positive():
    with pytest.raises(ValueError, match="capacity"):
        repository.empty(0, np.zeros(1))
