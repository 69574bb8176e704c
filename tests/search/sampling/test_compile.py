"""Wiring to program: it computes what the wiring spells, equal formulas hash alike."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sampled_islands import N_ROWS, fitted, island, nothing, output

from gmeql.fitters.kernel.memory import BLOCK, make_work
from gmeql.fitters.kernel.tape import jacobian_one
from gmeql.fitters.opcodes import MAX_CONSTANTS
from gmeql.fitters.programs import expression_from_structure, to_node
from gmeql.formula.expression import Expression
from gmeql.network.architecture import Architecture, architecture_preset
from gmeql.network.families import DEFAULT_FUNCTIONS, FAMILIES, FunctionSet, draw_architecture
from gmeql.search.sampling.arrays import OUTPUT_OFFSET, OUTPUT_SCALE


def weights_of(network: Architecture, batch, b: int) -> tuple[np.ndarray, float, float]:
    """Weights of the structure that a candidate's constants are, and the output's scale and offset.

    Weights that are redundant are 1, dense inputs that were left out 0.
    """
    weights = np.ones(network.n_weights + 2)
    weights[network.n_connections : network.n_weights] = 0.0
    weights[network.n_weights + OUTPUT_OFFSET] = 0.0
    n = batch.n_constants[b]
    assert len(set(batch.weight_ids[b, :n].tolist())) == n  # no weight twice
    weights[batch.weight_ids[b, :n]] = batch.constants[b, :n]
    return (
        weights[: network.n_weights], weights[network.n_weights + OUTPUT_SCALE],
        weights[network.n_weights + OUTPUT_OFFSET],
    )  # fmt: skip


EXACT = {
    "functions": Architecture(
        2, (("id", "square", "sin", "exp", "log"), ("mul", "div", "add", "tanh"), ("add", "mul", "id"))
    ),
    "skip": Architecture(3, (("sin", "mul"), ("add", "square"), ("div", "inv"), ("mul",)), skip=True),
    "sum of functions": Architecture(
        3, (("id", "id", "square", "sin", "cube", "sqrt"), ("sum", "sum"), ("id", "mul", "sin"))
    ),
    "product of variables": Architecture(3, (("prod", "id"), ("add", "mul"))),
    "product of functions": Architecture(2, (("id", "exp", "square"), ("prod",), ("id", "sin"))),
}


@pytest.mark.parametrize("network", EXACT.values(), ids=EXACT)
def test_programs_compute_what_their_wiring_spells(network: Architecture) -> None:
    host = island(network)
    known = nothing()
    X = host.inputs[: network.n_variables].T
    compared = 0
    for _ in range(3):
        batch = host.draw(known, 60, 0)
        rng = np.random.default_rng(5)
        for b in range(len(batch.lengths)):
            n = batch.n_constants[b]
            batch.constants[b, :n] = rng.uniform(0.4, 1.6, n)
            weights, scale, offset = weights_of(network, batch, b)
            (formula,) = expression_from_structure(network, batch.choices[b], weights, protected=False)
            with np.errstate(all="ignore"):
                expected = scale * formula(X) + offset
            actual = output(batch, b, host.inputs)
            finite = np.isfinite(expected) & (np.abs(expected) < 1e12)
            np.testing.assert_allclose(actual[finite], expected[finite], rtol=1e-9, atol=1e-9)
            compared += finite.all()
        host.absorb(fitted(host, batch))
    assert compared > 20


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_draws_programs_that_read_as_formulas(family: str) -> None:
    rng = np.random.default_rng(7)
    network = draw_architecture(family, rng, 3, FunctionSet(DEFAULT_FUNCTIONS))
    assert network is not None
    host = island(network, candidates_per_step=64)
    known = nothing()
    names = ("x1", "x2", "x3")
    for _ in range(4):
        batch = host.draw(known, 60, 0)
        assert len(batch.lengths) > 0
        network.validate_choices(batch.choices)
        for b in range(len(batch.lengths)):
            node = to_node(batch.programs[b], int(batch.lengths[b]), batch.constants[b], 3)
            with np.errstate(all="ignore"):
                expected = Expression(node, names)(host.inputs[:3].T)
            actual = output(batch, b, host.inputs)
            finite = np.isfinite(expected) & np.isfinite(actual) & (np.abs(expected) < 1e6)
            np.testing.assert_allclose(actual[finite], expected[finite], rtol=1e-8, atol=1e-8)
        host.absorb(fitted(host, batch))


def test_elites_give_their_program_back() -> None:
    host = island(architecture_preset("general", 3))
    known = nothing()
    for _ in range(3):
        host.absorb(fitted(host, host.draw(known, 60, 0)))
    target = np.sin(2 * host.inputs[0]) + host.inputs[0]
    for e in range(20):
        program, length, constants = host.program_of(e)
        held = np.zeros(MAX_CONSTANTS)
        held[: len(constants)] = constants
        values = np.empty(N_ROWS)
        jacobian_one(
            program, length, held, 0, host.inputs, make_work(len(host.inputs), BLOCK), values, np.empty((0, 0))
        )
        assert np.mean((values - target) ** 2) == pytest.approx(host.repository.losses[e], rel=1e-9, abs=1e-20)
    assert (np.diff(host.repository.losses[:20]) >= 0).all()


def test_linear_structures_are_fitted_once() -> None:
    network = Architecture(2, (("square", "id"), ("add",)))
    host = island(network, candidates_per_step=32, max_tries=5)
    known = nothing()
    seen: Counter = Counter()
    for _ in range(20):
        seen.update(host.draw(known, 60, 0).hashes.tolist())
    assert set(seen.values()) == {1}


def test_equal_formulas_have_equal_hashes_whatever_the_wiring() -> None:
    """Programs with one hash compute the same values when their constants are all alike."""
    network = Architecture(2, (("id", "id", "square", "sin"), ("add", "mul"), ("id", "add")))
    host = island(network, candidates_per_step=256, max_tries=50, with_offset=False)
    known = nothing()
    values: dict[int, np.ndarray] = {}
    repeats = 0
    for _ in range(6):
        batch = host.draw(known, 60, 0)
        for b, mark in enumerate(batch.hashes.tolist()):
            batch.constants[b] = 0.7
            mine = output(batch, b, host.inputs)
            if mark in values:
                repeats += 1
                np.testing.assert_allclose(mine, values[mark], rtol=1e-9)
            values[mark] = mine
    assert repeats > 50 and len(values) > 20
