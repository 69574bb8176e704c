"""Drawing candidates: programs spell their wiring, nothing is tried in vain, senseless wirings are refused."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from gmeql.fitters.cpu import fit_arrays
from gmeql.fitters.kernel import jacobian_one
from gmeql.fitters.programs import MAX_CONSTANTS, expression_from_structure, input_slots, to_node
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, Variable, fold
from gmeql.formula.operators import get_operator
from gmeql.network.architecture import Architecture, architecture_preset
from gmeql.network.templates import DEFAULT_FUNCTIONS, FAMILIES, FunctionSet, draw_architecture
from gmeql.search.config import IslandConfig
from gmeql.search.island import Island
from gmeql.search.tried import TriedStructures
from gmeql.search.sampling.arrays import OUTPUT_OFFSET, OUTPUT_SCALE

N_ROWS = 40


def island(network: Architecture, seed: int = 1, low: float = 0.5, **options) -> Island:
    """An island on its own with rows to evaluate on."""
    made = Island(
        architecture=network, reading="identity", config=IslandConfig(**options), number=1,
        random_state=np.array([seed], np.uint64),
    )  # fmt: skip
    X = np.random.default_rng(0).uniform(low, 2.0, (N_ROWS, network.n_variables))
    made.inputs = input_slots(X)[0]
    return made


def nothing() -> TriedStructures:
    """What is known before anything was tried."""
    return TriedStructures(16)


def output(batch, b: int, inputs: np.ndarray) -> np.ndarray:
    result = np.empty(inputs.shape[1])
    jacobian_one(batch.programs[b], batch.lengths[b], batch.constants[b], 0, inputs, result, np.empty((0, 0)))
    return result


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


def fitted(host: Island, batch):
    """The batch with its constants fitted to some target, as the search does it."""
    target = np.sin(2 * host.inputs[0]) + host.inputs[0]
    result = fit_arrays(
        batch.programs, batch.lengths, batch.n_constants, batch.constants, host.inputs, target, np.ones(N_ROWS),
        max_steps=5, tolerance=1e-4,
    )  # fmt: skip
    batch.losses[:] = result.losses
    return batch


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
        jacobian_one(program, length, held, 0, host.inputs, values, np.empty((0, 0)))
        assert np.mean((values - target) ** 2) == pytest.approx(host.repository.losses[e], rel=1e-9, abs=1e-20)
    assert (np.diff(host.repository.losses[:20]) >= 0).all()


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


FORBIDDEN_CONSTANT_ARGUMENT = frozenset("sin cos exp log sqrt square cube tanh abs inv".split())


def senseless(node: Node) -> list[str]:
    """Parts of a formula that no search should ever fit."""
    found: list[str] = []

    def has_variable(part: Node) -> bool:
        return fold(part, lambda leaf: isinstance(leaf, Variable), lambda _, parts: any(parts))

    def call(part: Call, _: list[None]) -> None:
        if part.operator in FORBIDDEN_CONSTANT_ARGUMENT and not has_variable(part.args[0]):
            found.append(f"{part.operator} of a constant")
        if part.operator == "div" and part.args[0] == part.args[1]:
            found.append("a / a")
        if part.operator == "sub" and part.args[0] == part.args[1]:
            found.append("a - a")
        if part.operator == "div" and isinstance(part.args[1], Constant):
            found.append("a / constant")

    fold(node, lambda leaf: None, call)
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_senseless_wirings_never_appear(family: str) -> None:
    functions = FunctionSet(tuple("add sub mul div sum sin cos sqrt square cube exp log inv".split()))
    network = draw_architecture(family, np.random.default_rng(11), 2, functions)
    assert network is not None
    host = island(network, candidates_per_step=128)
    known = nothing()
    drawn = 0
    for _ in range(4):
        batch = host.draw(known, 60, 0)
        drawn += len(batch.lengths)
        for b in range(len(batch.lengths)):
            constants = np.arange(1, MAX_CONSTANTS + 1) / 7
            root = to_node(batch.programs[b], int(batch.lengths[b]), constants, 2)
            assert senseless(root) == [], str(Expression(root, ("x", "y")))
        host.absorb(fitted(host, batch))
    assert drawn > 50


def test_functions_of_one_kind_do_not_nest_unless_allowed() -> None:
    network = Architecture(1, (("sin",), ("cos",), ("id",)))
    batch = island(network).draw(nothing(), 60, 0)
    assert len(batch.lengths) == 0
    batch = island(network, max_nesting=1).draw(nothing(), 60, 0)
    assert len(batch.lengths) > 0


def test_long_formulas_are_not_drawn() -> None:
    host = island(architecture_preset("general", 3))
    for limit in (4, 8, 20):
        batch = host.draw(nothing(), limit, 0)
        assert len(batch.complexities) and batch.complexities.max() <= limit


def test_columns_without_a_logarithm_stay_out_of_products() -> None:
    network = Architecture(2, (("prod",), ("id",)))
    host = island(network, low=-1.0)
    host.inputs[3 + 1] = np.nan  # x2 is not positive throughout
    host.inputs[3] = np.log(np.abs(host.inputs[0]) + 1)
    batch = host.draw(nothing(), 60, 0)
    assert len(batch.lengths)
    opcode = get_operator("exp").opcode
    for b in range(len(batch.lengths)):
        code = batch.programs[b][:, : batch.lengths[b]]
        assert opcode in code[0] and not (code[1:3] == 4).any()


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
