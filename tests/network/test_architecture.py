"""Networks: numbering, wiring, the active part, fingerprints, presets that hold the paper's truths."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import jax.numpy as jnp
import numpy as np
import pytest

from gmeql.evaluation.problems import paper_problem
from gmeql.fitters.programs import expression_from_structure
from gmeql.formula.operators import get_operator
from gmeql.network.architecture import HAND_CHOSEN, PRESETS, Architecture, architecture_preset, as_architecture

SMALL = Architecture(n_variables=2, layers=(("square", "sin", "div"), ("add", "sum")), n_outputs=2)


def test_nodes_and_connections_are_numbered_bottom_to_top() -> None:
    assert SMALL.n_inputs == 3 and SMALL.n_nodes == 3 + 3 + 2 + 2
    assert [(s.start, s.stop) for s in SMALL.layer_slices] == [(0, 3), (3, 6), (6, 8), (8, 10)]
    assert SMALL.node_operator == ("id",) * 3 + ("square", "sin", "div", "add", "sum") + ("id",) * 2
    # square 1, sin 1, div 2, add 2, two outputs 1 each; Σ has none
    assert SMALL.connection_node.tolist() == [3, 4, 5, 5, 6, 6, 8, 9]
    assert SMALL.source_low.tolist() == [0, 0, 0, 0, 3, 3, 6, 6]
    assert SMALL.source_high.tolist() == [3, 3, 3, 3, 6, 6, 8, 8]
    assert SMALL.n_choices.tolist() == [3, 3, 3, 3, 3, 3, 2, 2] and SMALL.max_choices == 3
    assert SMALL.choice_mask.sum(axis=1).tolist() == SMALL.n_choices.tolist()
    assert SMALL.connections_of(5).tolist() == [2, 3] and SMALL.connections_of(7).tolist() == []
    sources, weights = SMALL.dense_of(7)
    assert sources.tolist() == [3, 4, 5] and weights.tolist() == [8, 9, 10]
    assert (SMALL.n_connections, SMALL.n_dense, SMALL.n_weights) == (8, 3, 11)


def test_skip_connections_reach_every_layer_below() -> None:
    network = Architecture(n_variables=2, layers=(("sin",), ("add",)), skip=True)
    assert network.source_low.tolist() == [0, 0, 0, 0]
    assert network.source_high.tolist() == [3, 4, 4, 5]


def test_named_constants_stand_in_the_input_layer() -> None:
    network = Architecture(n_variables=1, layers=(("add",),), constants=(1, "pi"))
    assert network.constants == (1.0, math.pi) and network.n_inputs == 3
    (formula,) = expression_from_structure(network, [0, 2, 0], np.ones(3), protected=False)
    np.testing.assert_allclose(formula(np.array([[1.0], [2.0]])), [1 + math.pi, 2 + math.pi])


def test_active_part_follows_the_outputs_down() -> None:
    network = Architecture(n_variables=2, layers=(("square", "sin", "cos"), ("add", "mul")))
    #         square sin cos  add    mul   output
    choices = [0, 1, 1, 0, 1, 2, 2, 0]
    active = network.active_nodes(choices)
    assert np.flatnonzero(active).tolist() == [0, 1, 3, 4, 6, 8]
    assert network.active_connections(choices).tolist() == [True, True, False, True, True, False, False, True]


def test_a_dense_node_keeps_its_whole_layer_active() -> None:
    network = Architecture(n_variables=2, layers=(("square", "sin"), ("sum",)))
    assert network.active_nodes([0, 0, 0])[3:].all()


def test_dense_nodes_and_several_outputs_spell_what_they_compute() -> None:
    network = Architecture(n_variables=2, layers=(("id", "square"), ("sum", "prod")), n_outputs=2)
    X = np.random.default_rng(0).uniform(0.5, 2.0, (20, 2))
    # id <- x1, square <- x2; outputs: 2 Σ and 3 Π
    weights = np.array([1.5, 0.5, 2.0, 3.0, 0.7, -0.4, 1.5, -0.5])
    total, product = expression_from_structure(network, [0, 1, 0, 1], weights, protected=False)
    low, square = 1.5 * X[:, 0], (0.5 * X[:, 1]) ** 2
    np.testing.assert_allclose(total(X), 2.0 * (0.7 * low - 0.4 * square), rtol=1e-12)
    np.testing.assert_allclose(product(X), 3.0 * low**1.5 * square**-0.5, rtol=1e-12)


# --- fingerprints -----------------------------------------------------------------------------------------------------


def spelled(network: Architecture, choices: tuple[int, ...]) -> tuple:
    """The expression of a structure as nested tuples, inputs of commutative nodes in a fixed order."""
    sources = network.sources(np.array(choices))

    def of(node: int) -> object:
        if node < network.n_inputs:
            return ("input", node)
        operator = get_operator(network.node_operator[node])
        inputs = network.dense_of(node)[0] if operator.is_dense else sources[network.connections_of(node)]
        parts = [of(int(i)) for i in inputs]
        if operator.name == "id":
            return parts[0]
        return (operator.name, *(sorted(parts, key=repr) if operator.commutative or operator.is_dense else parts))

    return tuple(of(node) for node in range(network.layer_slices[-1].start, network.n_nodes))


@pytest.mark.parametrize(
    "network",
    [
        Architecture(n_variables=1, layers=(("id", "sin"), ("add", "sub"))),
        Architecture(n_variables=1, layers=(("square", "mul"), ("sum", "div"))),
        Architecture(n_variables=1, layers=(("sin",), ("mul", "id")), skip=True),
        Architecture(n_variables=1, layers=(("sin", "id"), ("sub", "id")), n_outputs=2),
    ],
    ids=str,
)
def test_fingerprints_are_equal_exactly_when_the_expressions_are(network: Architecture) -> None:
    structures = list(itertools.product(*(range(n) for n in network.n_choices)))
    assert 50 < len(structures) < 20_000
    marks = network.fingerprints(np.array(structures))
    assert marks.shape == (len(structures), 2) and marks.dtype == np.uint32
    by_mark, by_text = defaultdict(set), defaultdict(set)
    for choices, mark in zip(structures, map(tuple, marks.tolist()), strict=True):
        text = spelled(network, choices)
        by_mark[mark].add(text)
        by_text[text].add(mark)
    assert len(by_text) < len(structures)  # some wirings do spell the same
    assert all(len(texts) == 1 for texts in by_mark.values())
    assert all(len(found) == 1 for found in by_text.values())


def test_fingerprints_of_jax_are_those_of_numpy() -> None:
    rng = np.random.default_rng(3)
    network = architecture_preset("general", 3)
    choices = rng.integers(0, network.n_choices, (2, 5, network.n_connections)).astype(np.int32)
    np.testing.assert_array_equal(network.fingerprints(jnp.asarray(choices), jnp), network.fingerprints(choices))


def test_random_structures_of_a_large_network_do_not_collide() -> None:
    network = architecture_preset("released", 3)
    choices = np.random.default_rng(0).integers(0, network.n_choices, (3000, network.n_connections))
    texts = {spelled(network, tuple(c)) for c in choices.tolist()}
    assert len({tuple(mark) for mark in network.fingerprints(choices).tolist()}) == len(texts)


# --- presets ----------------------------------------------------------------------------------------------------------


class Wiring:
    """Choices and weights of a network, set node by node; a node is named by layer, operator and count."""

    def __init__(self, network: Architecture) -> None:
        self.network = network
        self.choices = np.zeros(network.n_connections, int)
        self.weights = np.ones(network.n_weights)
        self.weights[network.n_connections :] = 0.0

    def node(self, layer: int, name: str, count: int = 0) -> int:
        where = self.network.layer_slices[layer]
        matches = [n for n in range(where.start, where.stop) if self.network.node_operator[n] == name]
        return matches[count]

    def wire(self, node: int, *sources: int | tuple[float, int]) -> int:
        connections = self.network.connections_of(node)
        assert len(connections) == len(sources)
        for connection, source in zip(connections, sources, strict=True):
            weight, number = source if isinstance(source, tuple) else (1.0, source)
            self.choices[connection] = number - self.network.source_low[connection]
            self.weights[connection] = weight
        return node

    def dense(self, node: int, terms: dict[int, float]) -> int:
        sources, ids = self.network.dense_of(node)
        for source, weight in terms.items():
            self.weights[ids[sources.tolist().index(source)]] = weight
        return node

    def output(self, source: int) -> None:
        self.wire(self.network.n_nodes - 1, source)


def sum_of_powers(w: Wiring, terms: list[tuple[float, int, int]]) -> int:
    """Coefficient, variable, exponent: one node each below one Σ."""
    names = {1: "id", 2: "square", 3: "cube", 4: "pow4", 5: "pow5", 6: "pow6"}
    used = {w.wire(w.node(1, names[exponent]), variable): c for c, variable, exponent in terms}
    return w.dense(w.node(2, "sum"), used)


def wired_sum(name: str, w: Wiring) -> int:
    """b1-b4: powers under one Σ."""
    return sum_of_powers(
        w,
        {
            "b1": [(0.8, 0, 3), (0.9, 1, 2), (1.2, 2, 1)],
            "b2": [(0.8, 2, 4), (0.8, 0, 3), (1.2, 1, 2), (1.4, 2, 1)],
            "b3": [(0.8, 2, 5), (1.2, 1, 4), (1.2, 0, 3), (0.9, 1, 2), (1.1, 2, 1)],
            "b4": [(1.1, 0, 6), (0.8, 1, 5), (0.9, 2, 4), (1.3, 0, 3), (1.2, 1, 2), (0.9, 2, 1)],
        }[name],
    )


def wired(name: str, w: Wiring) -> int:
    if name in ("b1", "b2", "b3", "b4"):
        return w.wire(w.node(3, "id"), wired_sum(name, w))
    if name == "b5":
        first = w.wire(w.node(2, "id"), w.wire(w.node(1, "sin"), 0))
        second = w.wire(w.node(2, "sin"), w.wire(w.node(1, "square"), 1))
        return w.wire(w.node(3, "add"), (1.5, first), (1.3, second))
    if name == "b6":
        sine, cosine = w.wire(w.node(1, "sin"), (1.1, 0)), w.wire(w.node(1, "cos"), (0.9, 1))
        return w.wire(w.node(3, "id"), (1.2, w.wire(w.node(2, "mul"), sine, cosine)))
    if name == "b7":
        x1, x2 = w.wire(w.node(1, "id"), 0), w.wire(w.node(1, "id", 1), 1)
        wave = w.wire(w.node(2, "mul"), w.wire(w.node(1, "mul"), 0, 1), w.wire(w.node(1, "cos"), (1.2, 2)))
        return w.wire(w.node(3, "add"), w.wire(w.node(2, "add"), (1.1, x1), (0.9, x2)), (2.1, wave))
    one = w.wire(w.node(1, "id"), w.network.n_variables)
    ratio = w.wire(w.node(1, "div"), 1, 0)
    return w.wire(w.node(3, "sqrt"), w.wire(w.node(2, "add"), (1.3, one), (1.2, ratio)))


@pytest.mark.parametrize("name", [f"b{i}" for i in range(1, 9)])
def test_presets_hold_the_paper_truths(name: str) -> None:
    problem = paper_problem(name)
    X, y = problem.sample(np.random.default_rng(0), 50)
    for preset in (name, "general"):
        w = Wiring(architecture_preset(preset, X.shape[1]))
        w.output(wired(name, w))
        (formula,) = expression_from_structure(w.network, w.choices, w.weights, protected=False)
        np.testing.assert_allclose(formula(X), y, rtol=1e-10)


def wired_by_hand(name: str, w: Wiring) -> int:
    """The truths in the small networks selected by hand."""
    if name in ("b1", "b2", "b3", "b4"):
        return w.wire(w.node(3, "id"), wired_sum(name, w))
    if name == "b5":
        first = w.wire(w.node(2, "sin"), w.wire(w.node(1, "id"), 0))
        second = w.wire(w.node(2, "sin", 1), w.wire(w.node(1, "square"), 1))
        return w.wire(w.node(3, "add"), (1.5, first), (1.3, second))
    if name == "b6":
        x1, x2 = w.wire(w.node(1, "id"), 0), w.wire(w.node(1, "id", 1), 1)
        sine, cosine = w.wire(w.node(2, "sin"), (1.1, x1)), w.wire(w.node(2, "cos"), (0.9, x2))
        return w.wire(w.node(3, "mul"), (1.2, sine), cosine)
    if name == "b7":
        x1, x2 = w.wire(w.node(1, "id"), 0), w.wire(w.node(1, "id", 1), 1)
        wave = w.wire(w.node(2, "mul"), w.wire(w.node(1, "mul"), 0, 1), w.wire(w.node(1, "cos"), (1.2, 2)))
        terms = {w.wire(w.node(2, "id"), x1): 1.1, w.wire(w.node(2, "id", 1), x2): 0.9, wave: 2.1}
        return w.dense(w.node(3, "sum"), terms)
    ratio, one = w.wire(w.node(1, "div"), 1, 0), w.wire(w.node(1, "id"), w.network.n_variables)
    return w.wire(w.node(3, "sqrt"), w.dense(w.node(2, "sum"), {one: 1.3, ratio: 1.2}))


@pytest.mark.parametrize("name", sorted(HAND_CHOSEN))
def test_networks_selected_by_hand_hold_the_paper_truths(name: str) -> None:
    problem = paper_problem(name)
    X, y = problem.sample(np.random.default_rng(0), 50)
    w = Wiring(architecture_preset(HAND_CHOSEN[name], X.shape[1]))
    w.output(wired_by_hand(name, w))
    (formula,) = expression_from_structure(w.network, w.choices, w.weights, protected=False)
    np.testing.assert_allclose(formula(X), y, rtol=1e-10)
    assert w.network.n_nodes < architecture_preset("general", X.shape[1]).n_nodes


def test_the_released_layers_without_waves_hold_b1_to_b4() -> None:
    for name in ("b1", "b4"):
        problem = paper_problem(name)
        X, y = problem.sample(np.random.default_rng(0), 50)
        w = Wiring(architecture_preset("powers", 3))
        total = wired_sum(name, w)
        w.output(w.wire(w.node(3, "add"), (0.5, total), (0.5, total)))
        (formula,) = expression_from_structure(w.network, w.choices, w.weights, protected=False)
        np.testing.assert_allclose(formula(X), y, rtol=1e-10)


def test_preset_names_and_what_users_may_give() -> None:
    assert str(architecture_preset("released", 3)) == (
        "[id, square, cube, pow4, pow5, pow6, sin, cos] -> [add, mul, div, sum] -> [add, mul]"
    )
    assert {architecture_preset(name, 2).n_variables for name in PRESETS} == {2}
    network = as_architecture([["sin", "+"], ["×"]], 2)
    assert network.layers == (("sin", "add"), ("mul",)) and as_architecture(network, 2) is network
    assert as_architecture("b5", 2) == architecture_preset("general", 2)
    with pytest.raises(ValueError, match="unknown architecture preset 'b9'; known: released"):
        architecture_preset("b9", 2)
    with pytest.raises(ValueError, match="the architecture has 2 variables and 1 outputs, the data 3 and 1"):
        as_architecture(network, 3)


def test_round_trip_through_a_dict() -> None:
    network = Architecture(2, (("sin",), ("sum", "mul")), n_outputs=3, constants=(1.0, "pi"), skip=True)
    again = Architecture.from_dict(network.to_dict())
    assert again == network and hash(again) == hash(network)
    for bad in ({}, {"n_variables": 1}, {"n_variables": 1, "layers": [["sin"]], "more": 1}, [1]):
        with pytest.raises(ValueError, match="needs n_variables and layers"):
            Architecture.from_dict(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": (("sine",),)}, "layer 1: unknown operator 'sine'"),
        ({"layers": (("sin",), ("add", "plus"))}, "layer 2: unknown operator 'plus'"),
        ({"layers": ()}, "at least one layer"),
        ({"layers": "sin"}, "at least one layer"),
        ({"layers": ("sin",)}, "layer 1 must be a non-empty list of operator names, got 'sin'"),
        ({"layers": (("sin",), ())}, "layer 2 must be a non-empty list"),
        ({"n_variables": 0}, "n_variables must be a whole number of at least 1, got 0"),
        ({"n_variables": 1.5}, "n_variables must be a whole number"),
        ({"n_outputs": 0}, "n_outputs must be a whole number of at least 1"),
        ({"constants": ("tau",)}, r"finite numbers or names \(1, pi, e\), got 'tau'"),
        ({"constants": (math.inf,)}, "finite numbers"),
    ],
)
def test_bad_networks_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Architecture(**({"n_variables": 2, "layers": (("sin",),)} | changes))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ([0, 0], "must end in 3 connections"),
        ([0, 3, 0], r"connection 1 must choose one of 0..2, got 3"),
        ([0, 0, -1], r"connection 2 must choose one of 0..1, got -1"),
        ([0.5, 0, 0], "whole numbers"),
    ],
)
def test_bad_choices_are_refused(choices: list, message: str) -> None:
    network = Architecture(n_variables=2, layers=(("sin", "cos"),))
    with pytest.raises(ValueError, match=message):
        network.active_nodes(choices)


def test_no_node_can_be_a_derivative() -> None:
    with pytest.raises(ValueError, match="layer 1: D acts on formulas"):
        Architecture(2, (("sin", "D"),))
