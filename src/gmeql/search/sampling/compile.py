"""Turning the wiring of a network into a flat program: only active nodes, only constants that are not redundant.

What cannot be a sensible formula is refused here, before anything is fitted. Input slots of a program: V variables, the
constant 1, then log of each variable (for Π over the input layer).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import boolean, int64, types, uint64

from gmeql.fitters.compiled import compiled, inner, part
from gmeql.fitters.opcodes import ADD, DIV, ID, INV, MAX_CONSTANTS, MAX_NODES, MUL, PROD, SUB, SUM
from gmeql.search.sampling.arrays import CONSTANT, SIZE, VALUE, FormulaRules, Wiring
from gmeql.search.sampling.moves import CHOICES, WIRING, count_uses
from gmeql.search.sampling.nodes import (
    CONSTANTS,
    COUNTS,
    IS_CONSTANT,
    IS_SUM,
    NOTE,
    PROGRAM,
    SPARE_CONSTANTS,
    SPARE_NODES,
    write_dense_product,
    write_dense_sum,
    write_function,
    write_identity,
    write_inputs,
    write_output,
    write_product,
    write_quotient,
    write_sum,
)
from gmeql.search.sampling.random import scramble

INVALID = -1
"""Length of the program of a wiring that makes no sense."""


class Draft(NamedTuple):
    """Scratch memory in which structures become programs, one after the other."""

    values: np.ndarray
    """[K] of `VALUE`."""
    terms: np.ndarray
    """[K] hashes of the terms of one Σ or Π."""
    pending: np.ndarray
    """[MAX_NODES + 1] nodes of the program still to be visited."""
    constants: np.ndarray
    """[MAX_CONSTANTS] of `CONSTANT`."""
    sizes: np.ndarray
    """[1] of `SIZE`."""


class Compiled(NamedTuple):
    """What is known of a program beside its nodes."""

    length: int
    n_constants: int
    key: np.uint64
    nonlinear: bool
    complexity: int
    has_powers: bool


@inner()
def _refused():
    """What is known of a wiring that makes no sense."""
    return Compiled(INVALID, 0, np.uint64(0), False, 0, False)


@part(int64(PROGRAM, int64, int64, int64[::1]))
def _count_linear(program, length, n_slots, pending):
    """Constants met on the way down through sums are linear; any other one makes the fit depend on its start."""
    linear = 0
    pending[0] = length - 1
    n_pending = 1
    while n_pending > 0:
        n_pending -= 1
        k = pending[n_pending]
        if program[0, k] != ID and program[0, k] != ADD:
            continue
        for side in range(2 if program[0, k] == ADD else 1):
            below = program[1 + side, k] - n_slots
            if program[3 + side, k] >= 0:
                linear += 1
            elif below >= 0:
                pending[n_pending] = below
                n_pending += 1
    return linear


def make_draft(n_nodes: int) -> Draft:
    """Scratch memory for networks of `n_nodes` nodes."""
    return Draft(
        np.zeros(n_nodes, VALUE), np.zeros(n_nodes, np.uint64), np.zeros(MAX_NODES + 1, np.int64),
        np.zeros(MAX_CONSTANTS, CONSTANT), np.zeros(1, SIZE),
    )  # fmt: skip


RULES = types.NamedTuple([int64[::1], boolean, int64], FormulaRules)
DRAFT = types.NamedTuple([NOTE[::1], uint64[::1], int64[::1], CONSTANTS, COUNTS[::1]], Draft)
COMPILED = types.NamedTuple([int64, int64, uint64, boolean, int64, boolean], Compiled)


@part(COMPILED(CHOICES, WIRING, RULES, DRAFT, PROGRAM))
def compile_structure(choices, wiring, rules, draft, program):
    """Write the program of one structure: returns a `Compiled`, whose length is `INVALID` where there is none.

    Fills `program` [5, nodes]; `draft.constants` then holds which weight each constant is, and its natural start.
    """
    # Unpacked once, and handed on one by one: each array that is read by name, or handed on, counts references.
    nodes, connections, n_inputs, n_variables, n_weights = wiring
    values, terms, pending, constants, sizes = draft
    positive, with_offset, max_nesting = rules
    size = sizes[0]
    size.length = size.n_constants = size.complexity = size.n_powers = 0
    output = len(nodes) - 2
    count_uses(choices, wiring, values)
    write_inputs(values, n_inputs, n_variables)
    for k in range(n_inputs, output + 1):
        mine = values[k]
        if mine.uses == 0:
            continue
        if size.length >= MAX_NODES - SPARE_NODES or size.n_constants >= MAX_CONSTANTS - SPARE_CONSTANTS:
            return _refused()
        node = nodes[k]
        op, c = node.op, node.first
        mine.sum = np.uint64(0)
        is_sensible = True
        if op == SUM:
            is_sensible = write_dense_sum(mine, node, values, terms, n_variables, program, constants, size)
        elif op == PROD:
            is_sensible = write_dense_product(mine, k, node, values, terms, positive, program, constants, size)
        else:
            first = values[connections[c].low + choices[c]]
            if op == ID:
                write_identity(mine, first)
            elif op == ADD or op == SUB or op == MUL or op == DIV:
                second = values[connections[c + 1].low + choices[c + 1]]
                if op == MUL:
                    is_sensible = write_product(mine, first, second, n_variables, program, size)
                elif op == DIV:
                    is_inverse = (first.facts & IS_CONSTANT) != 0
                    is_sensible = write_quotient(mine, first, second, is_inverse, n_variables, program, size)
                else:
                    is_sensible = write_sum(mine, first, second, c, op == SUB, n_variables, program, constants, size)
            elif op == INV:
                is_sensible = write_quotient(mine, first, first, True, n_variables, program, size)
            else:
                is_sensible = write_function(mine, first, c, op, max_nesting, n_variables, program, constants, size)
        if not is_sensible:
            return _refused()
    last = values[output]
    if not write_output(last, n_weights, with_offset, n_variables, program, constants, size):
        return _refused()
    n_linear = _count_linear(program, size.length, 2 * n_variables + 1, pending)
    key = scramble((last.sum if last.facts & IS_SUM else scramble(last.hash)) + np.uint64(1))
    return Compiled(
        size.length, size.n_constants, key, n_linear < size.n_constants, size.complexity + size.n_constants,
        size.n_powers > 0,
    )  # fmt: skip


@compiled()
def compile_from_python(choices, wiring, rules, draft, program):
    """`compile_structure`, which Python cannot call."""
    return compile_structure(choices, wiring, rules, draft, program)


def compile_once(choices: np.ndarray, wiring: Wiring, rules: FormulaRules) -> tuple[np.ndarray, int, np.ndarray]:
    """Program [5, nodes] of one structure, its length, and the weight that each of its constants is."""
    program = np.zeros((5, MAX_NODES), np.int16)
    draft = make_draft(len(wiring.nodes))
    made = compile_from_python(choices, wiring, rules, draft, program)
    return program, made.length, draft.constants["weight"][: made.n_constants]
