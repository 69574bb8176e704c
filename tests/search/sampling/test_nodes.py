"""Kinds of nodes: senseless wirings are refused, redundant constants left out, full programs told."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from sampled_islands import fitted, island, nothing

from gmeql.fitters.opcodes import ADD, EXP, ID, INV, MAX_CONSTANTS, MUL
from gmeql.fitters.programs import to_node
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, Variable, fold
from gmeql.network.architecture import Architecture
from gmeql.network.families import FAMILIES, FunctionSet, draw_architecture
from gmeql.search.sampling.arrays import OUTPUT_SCALE, FormulaRules, wiring_of
from gmeql.search.sampling.compile import INVALID, compile_once

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


def test_columns_without_a_logarithm_stay_out_of_products() -> None:
    network = Architecture(2, (("prod",), ("id",)))
    host = island(network, low=-1.0)
    host.inputs[3 + 1] = np.nan  # x2 is not positive throughout
    host.inputs[3] = np.log(np.abs(host.inputs[0]) + 1)
    batch = host.draw(nothing(), 60, 0)
    assert len(batch.lengths)
    for b in range(len(batch.lengths)):
        code = batch.programs[b][:, : batch.lengths[b]]
        assert EXP in code[0] and not (code[1:3] == 4).any()


def compiled_alone(
    network: Architecture, choices: list[int], with_offset: bool = False
) -> tuple[np.ndarray, int, list]:
    """Program, length and weights of one structure."""
    rules = FormulaRules(np.ones(network.n_variables, np.int64), with_offset, 0)
    program, length, weights = compile_once(np.array(choices), wiring_of(network), rules)
    return program[:, : max(length, 0)], length, weights.tolist()


def test_an_inverse_needs_no_constant_among_the_inputs() -> None:
    """1 / x where the network has no input 1 to take as numerator."""
    network = Architecture(2, (("id", "inv"),), constants=())
    program, length, weights = compiled_alone(network, [0, 1, 1])
    assert program[0].tolist() == [INV, ID] and program[1].tolist() == [1, 5] and length == 2
    assert weights == [network.n_weights + OUTPUT_SCALE]


@pytest.mark.parametrize(("n_products", "length"), [(3, 18 * 4 + 17), (4, INVALID)])
def test_programs_that_would_be_too_long_are_refused(n_products: int, length: int) -> None:
    """A sum of 18 terms, each of which is (a + b) x1 x1 ..: it is the sum that does not find room any more."""
    width = 18
    network = Architecture(7, (("add",) * width, *((("mul",) * width,) * n_products), ("sum",)), skip=True)
    sources: list[int] = [v for pair in list(combinations(range(7), 2))[:width] for v in pair]
    for layer in range(n_products):
        sources += [v for k in range(width) for v in (network.layer_slices[1 + layer].start + k, 0)]
    sources.append(network.n_nodes - 2)
    program, found, weights = compiled_alone(network, sources)
    assert found == length
    if length != INVALID:
        assert len(weights) == 2 * width and Counter(program[0].tolist()) == {ADD: 2 * width - 1, MUL: 3 * width}


def test_a_sum_of_one_term_is_refused() -> None:
    network = Architecture(1, (("square",), ("id",) * 3, ("sum",)))
    assert compiled_alone(network, [0, 0, 0, 0, 0])[1] == INVALID
