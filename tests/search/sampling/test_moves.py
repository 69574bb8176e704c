"""Moves of a wiring: what is active, and that each move does what it says and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from gmeql.network.architecture import Architecture
from gmeql.search.sampling.arrays import VALUE, Wiring, wiring_of
from gmeql.search.sampling import moves
from gmeql.search.sampling.moves import count_choices

NETWORK = Architecture(2, (("id", "sin", "mul", "square"), ("add", "square", "cos"), ("id", "mul", "sin")), skip=True)
DENSE = Architecture(2, (("id", "sin", "square"), ("sum", "id"), ("mul", "id")))


@njit
def count_uses(choices, wiring, values):
    """Python cannot call a part of the sampler itself."""
    moves.count_uses(choices, wiring, values)


@njit
def bypass_node(state, choices, values, n_active, wiring):
    """The same."""
    return moves.bypass_node(state, choices, values, n_active, wiring)


@njit
def insert_node(state, choices, values, n_active, wiring, cumulative):
    """The same."""
    return moves.insert_node(state, choices, values, n_active, wiring, cumulative)


@njit
def exchange_node(state, choices, values, n_active, wiring, cumulative):
    """The same."""
    return moves.exchange_node(state, choices, values, n_active, wiring, cumulative)


def structures(network: Architecture, n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, network.n_choices, (n, network.n_connections))


def uses_of(network: Architecture, wiring: Wiring, choices: np.ndarray) -> tuple[np.ndarray, int]:
    """Values with their uses, and the number of active connections."""
    values = np.zeros(network.n_nodes, VALUE)
    count_uses(choices, wiring, values)
    return values, int(network.active_connections(choices).sum())


@pytest.mark.parametrize("network", [NETWORK, DENSE], ids=["skip", "dense"])
def test_uses_are_the_readers_that_the_output_depends_on(network: Architecture) -> None:
    wiring = wiring_of(network)
    for choices in structures(network, 50):
        values, _ = uses_of(network, wiring, choices)
        active = network.active_nodes(choices)
        hidden = slice(network.n_inputs, None)
        np.testing.assert_array_equal(values["uses"][hidden] > 0, active[hidden])
        sources = network.sources(choices)
        expected = np.zeros(network.n_nodes, int)
        expected[network.n_nodes - 1] = 1
        for k in np.flatnonzero(active):
            for c in network.connections_of(k) if k >= network.n_inputs else []:
                expected[sources[c]] += 1
            if network.node_operator[k] in ("sum", "prod"):
                expected[network.dense_of(k)[0]] += 1
        np.testing.assert_array_equal(values["uses"], expected)


def test_choices_are_counted_where_they_are_active() -> None:
    elites = structures(NETWORK, 12)
    weights = np.random.default_rng(1).uniform(size=12)
    counts = np.zeros((NETWORK.n_connections, NETWORK.max_choices))
    count_choices(elites, weights, wiring_of(NETWORK), counts)
    expected = np.zeros_like(counts)
    for weight, choices in zip(weights, elites, strict=True):
        for c in np.flatnonzero(NETWORK.active_connections(choices)):
            expected[c, choices[c]] += weight
    np.testing.assert_allclose(counts, expected, rtol=1e-12)


def moved(move: str, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Choices before and after a move, None where none was possible."""
    wiring = wiring_of(NETWORK)
    before = structures(NETWORK, 1, seed)[0]
    after = before.copy()
    values, n_active = uses_of(NETWORK, wiring, before)
    state = np.array([seed + 1], np.uint64)
    cumulative = np.cumsum(NETWORK.choice_mask / NETWORK.n_choices[:, None], axis=1)
    if move == "bypass":
        changed = bypass_node(state, after, values, n_active, wiring)
    else:
        changed = {"insert": insert_node, "exchange": exchange_node}[move](
            state, after, values, n_active, wiring, cumulative
        )
    NETWORK.validate_choices(after)
    assert changed or (after == before).all()
    return (before, after) if changed else None


def pairs(move: str) -> list[tuple[np.ndarray, np.ndarray]]:
    found = [pair for seed in range(80) if (pair := moved(move, seed)) is not None]
    assert len(found) > 15
    return found


def nodes(choices: np.ndarray) -> set[int]:
    return set(np.flatnonzero(NETWORK.active_nodes(choices)).tolist()) - set(range(NETWORK.n_inputs))


def test_a_node_is_put_between_two() -> None:
    for before, after in pairs("insert"):
        new = nodes(after) - nodes(before)
        changed = [c for c in np.flatnonzero(NETWORK.active_connections(before)) if before[c] != after[c]]
        assert len(changed) == 1 and NETWORK.sources(after)[changed[0]] in new
        between = NETWORK.sources(after)[changed[0]]
        assert NETWORK.sources(before)[changed[0]] in NETWORK.sources(after)[NETWORK.connections_of(between)]


def test_a_node_is_taken_out() -> None:
    for before, after in pairs("bypass"):
        (changed,) = np.flatnonzero(before != after).tolist() or (None,)
        if changed is None:
            continue  # it read the same source twice
        out, reads = NETWORK.sources(before)[changed], NETWORK.sources(after)[changed]
        assert out >= NETWORK.n_inputs and reads in NETWORK.sources(before)[NETWORK.connections_of(out)]


def test_another_function_takes_over() -> None:
    for before, after in pairs("exchange"):
        old, new = nodes(before) - nodes(after), nodes(after) - nodes(before)
        assert old and new
        gone = [k for k in old if k not in NETWORK.sources(after)]
        kinds = {NETWORK.node_operator[k] for k in new}
        assert any(NETWORK.node_operator[k] not in kinds or len(kinds) > 1 for k in gone)
