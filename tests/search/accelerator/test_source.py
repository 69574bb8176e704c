"""The sampler's twin for accelerators writes the very programs that the compiled sampler writes."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from host_cuda import library, needs_compiler

from gmeql.fitters.opcodes import MAX_CONSTANTS, MAX_NODES
from gmeql.network.architecture import Architecture
from gmeql.network.families import DEFAULT_FUNCTIONS, FAMILIES, FunctionSet, draw_architecture
from gmeql.search.accelerator.layout import WIRING, flat_wiring
from gmeql.search.accelerator.source import step_source
from gmeql.search.sampling.arrays import FormulaRules, wiring_of
from gmeql.search.sampling.compile import compile_from_python, make_draft


def compiled_there(choices: np.ndarray, architecture: Architecture, rules: FormulaRules) -> tuple:
    """Length, program, weights, starts, key and facts from the C++ twin."""
    wiring = wiring_of(architecture)
    nodes, connections = flat_wiring(wiring)
    positive, short = rules.positive.astype(np.int32), choices.astype(np.int16)
    record = np.zeros(1, WIRING)
    a = architecture
    values = (
        nodes.ctypes.data, connections.ctypes.data, positive.ctypes.data, a.n_nodes, a.n_connections, a.n_inputs,
        a.n_variables, a.n_weights, a.max_choices, rules.with_offset, rules.max_nesting,
    )  # fmt: skip
    for name, value in zip(WIRING.names, values, strict=True):
        record[name] = value
    program, weights = np.zeros((5, MAX_NODES), np.int16), np.zeros(MAX_CONSTANTS, np.int16)
    starts, key, facts = np.zeros(MAX_CONSTANTS), np.zeros(1, np.uint64), np.zeros(4, np.int32)
    arrays = (short, record, program, weights, starts, key, facts)
    length = library(step_source()).compile_one(*(ctypes.c_void_p(array.ctypes.data) for array in arrays))
    return length, program, weights, starts, int(key[0]), facts.tolist()


@needs_compiler
@pytest.mark.parametrize("n_variables", [1, 4])
def test_programs_are_the_compiled_samplers(n_variables: int) -> None:
    rng = np.random.default_rng(n_variables)
    valid = 0
    for family in FAMILIES:
        architecture = draw_architecture(family, rng, n_variables, FunctionSet(DEFAULT_FUNCTIONS), True)
        if architecture is None:
            continue
        wiring, draft = wiring_of(architecture), make_draft(architecture.n_nodes + 1)
        rules = FormulaRules(
            (rng.random(n_variables) < 0.7).astype(np.int64), bool(rng.integers(2)), int(rng.integers(2))
        )
        for _ in range(60):
            choices = (rng.random(architecture.n_connections) * architecture.n_choices).astype(np.int64)
            program = np.zeros((5, MAX_NODES), np.int16)
            made = compile_from_python(choices, wiring, rules, draft, program)
            length, other, weights, starts, key, facts = compiled_there(choices, architecture, rules)
            assert length == made.length
            if length < 0:
                continue
            valid += 1
            n = made.n_constants
            assert (other[:, :length] == program[:, :length]).all()
            assert key == int(made.key)
            assert facts == [n, made.complexity, int(made.nonlinear), int(made.has_powers)]
            assert (weights[:n] == draft.constants["weight"][:n]).all()
            assert (starts[:n] == draft.constants["start"][:n]).all()
    assert valid > 100
