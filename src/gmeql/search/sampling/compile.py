"""Turning the wiring of a network into a flat program: only active nodes, only constants that are not redundant.

What cannot be a sensible formula (sin of a constant, a/a, a root of a square) is refused here, before anything is
fitted. Input slots of a program: V variables, the constant 1, then log of each variable (for Π over the input layer).

Each kind of node has a function that writes it into the tape and notes what is known of its value; it returns False for
a wiring that makes no sense. They are pasted into `compile_structure`. `values` [K] of `VALUE` are the notes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gmeql.fitters.compiled import INLINE, compiled
from gmeql.fitters.opcodes import (
    ABS,
    ACOS,
    ADD,
    ASIN,
    ATAN,
    COS,
    CUBE,
    DIV,
    EXP,
    ID,
    INV,
    LOG,
    MAX_CONSTANTS,
    MAX_NODES,
    MUL,
    POW4,
    POW5,
    POW6,
    POWER_FITTED,
    PROD,
    SIN,
    SQRT,
    SQUARE,
    SUB,
    SUM,
    TANH,
    USER_OPCODE,
)
from gmeql.search.sampling.arrays import OUTPUT_OFFSET, OUTPUT_SCALE, VALUE, FormulaRules, Wiring
from gmeql.search.sampling.moves import count_uses
from gmeql.search.sampling.random import scramble

# Facts about a node's value: it is a constant; a constant factor is in it already; it is a power, a sum, a sum with an
# offset; and which kinds of functions stand somewhere inside it.
_CONSTANT, _SCALED, _POWER, _TRIGONOMETRIC, _EXPONENTIAL, _LOGARITHM, _SUM, _HAS_ONE = 1, 2, 4, 8, 16, 32, 64, 128
_FUNCTIONS = _TRIGONOMETRIC | _EXPONENTIAL | _LOGARITHM

# Marks that keep the hashes of different kinds of nodes apart.
_MARK_ONE, _MARK_SUM, _MARK_PRODUCT, _MARK_QUOTIENT, _MARK_DENOMINATOR, _MARK_FUNCTION, _MARK_POWERS = (
    np.uint64(900001), np.uint64(101), np.uint64(103), np.uint64(104), np.uint64(7), np.uint64(17), np.uint64(124),
)  # fmt: skip
_PER_OPCODE, _PER_NODE = np.uint64(1000), np.uint64(1000003)

# Places left free in a program for what is written behind its nodes: the output's scale and offset.
_SPARE_NODES, _SPARE_CONSTANTS = 2, 3

INVALID = -1
"""Length of the program of a wiring that makes no sense."""

LENGTH, CONSTANTS, COMPLEXITY, POWERS = 0, 1, 2, 3
"""Places of `Tape.sizes`: nodes and constants written, complexity so far, whether there is a Π."""


class Tape(NamedTuple):
    """A program while it is written."""

    program: np.ndarray
    """[5, MAX_NODES] opcode, slots and constants of each node, as in `gmeql.fitters.programs`."""
    weight_ids: np.ndarray
    """[MAX_CONSTANTS] which weight of the network each constant is."""
    fresh: np.ndarray
    """[MAX_CONSTANTS] its natural start."""
    sizes: np.ndarray
    """[4] places are `LENGTH`, `CONSTANTS`, `COMPLEXITY`, `POWERS`."""


class Draft(NamedTuple):
    """Scratch memory in which structures become programs, one after the other."""

    values: np.ndarray
    """[K] of `VALUE`."""
    terms: np.ndarray
    """[K] hashes of the terms of one Σ or Π."""
    pending: np.ndarray
    """[MAX_NODES + 1] nodes of the program still to be visited."""
    fresh: np.ndarray
    sizes: np.ndarray
    """Those of `Tape`."""


class Compiled(NamedTuple):
    """What is known of a program beside its nodes."""

    length: int
    n_constants: int
    key: np.uint64
    nonlinear: bool
    complexity: int
    has_powers: bool


@compiled()
def _refused():
    return Compiled(INVALID, 0, np.uint64(0), False, 0, False)


# One type for all callers: left to itself the compiler makes a version for each mix of literal and computed numbers.
@compiled("void(i2[:, ::1], i8[::1], i8, i8, i8, i8, i8)")
def _emit(program, sizes, op, left, right, left_constant, right_constant):
    k = sizes[LENGTH]
    program[0, k] = op
    program[1, k] = left
    program[2, k] = right
    program[3, k] = left_constant
    program[4, k] = right_constant
    sizes[LENGTH] = k + 1


@compiled("i8(i8[::1], f8[::1], i8[::1], i8, f8)")
def _new_constant(weight_ids, fresh, sizes, weight, start):
    """The number of one more constant, which is `weight` and naturally starts from `start`."""
    p = sizes[CONSTANTS]
    weight_ids[p] = weight
    fresh[p] = start
    sizes[CONSTANTS] = p + 1
    return p


@compiled()
def _last_slot(wiring, sizes):
    """The slot that the node written last fills."""
    return 2 * wiring.n_variables + sizes[LENGTH]


@compiled()
def _needs_constant(value):
    """Whether a constant on this input is not redundant: none is in it yet, or others read it, too."""
    return not (value.facts & _SCALED) or value.uses > 1


@compiled()
def _scaled(value):
    """The fact that a node takes over from an input that only it reads."""
    return (value.facts & _SCALED) if value.uses == 1 else 0


@compiled()
def _has_offset(value):
    return (value.facts & _CONSTANT) != 0 or ((value.facts & _SUM) != 0 and (value.facts & _HAS_ONE) != 0)


@compiled()
def _term_hash(value):
    """What a term adds to the hash of a sum; a sum that only this one reads adds its own terms."""
    if (value.facts & _SUM) and value.uses == 1:
        return value.sum
    return scramble(value.hash)


@compiled(**INLINE)
def _write_identity(mine, source):
    mine.slot = source.slot
    mine.facts = source.facts
    mine.nesting = source.nesting
    mine.hash = source.hash
    mine.sum = source.sum
    if source.uses == 1 and mine.uses > 1:
        mine.facts &= ~_SCALED


@compiled(**INLINE)
def _write_sum(mine, left, right, c, is_difference, wiring, tape):
    """left + right, each times a constant; the second one of a difference starts from -1."""
    if left.hash == right.hash or (left.facts & right.facts & _CONSTANT):
        return False
    one_left, one_right = _has_offset(left), _has_offset(right)
    if one_left and one_right and left.uses == 1 and right.uses == 1:  # two offsets in one sum
        return False
    left_constant = right_constant = -1
    if _needs_constant(left):
        left_constant = _new_constant(tape.weight_ids, tape.fresh, tape.sizes, c, 1.0)
    if _needs_constant(right):
        start = -1.0 if is_difference else 1.0
        right_constant = _new_constant(tape.weight_ids, tape.fresh, tape.sizes, c + 1, start)
    _emit(tape.program, tape.sizes, ADD, left.slot, right.slot, left_constant, right_constant)
    tape.sizes[COMPLEXITY] += 1
    mine.slot = _last_slot(wiring, tape.sizes)
    mine.facts = _SCALED | _SUM | (_HAS_ONE if one_left or one_right else 0) | ((left.facts | right.facts) & _FUNCTIONS)
    mine.nesting = max(left.nesting, right.nesting)
    mine.sum = _term_hash(left) + _term_hash(right)
    mine.hash = scramble(mine.sum + _MARK_SUM)
    return True


@compiled(**INLINE)
def _write_product(mine, left, right, wiring, tape):
    if (left.facts | right.facts) & _CONSTANT:
        return False
    _emit(tape.program, tape.sizes, MUL, left.slot, right.slot, -1, -1)
    tape.sizes[COMPLEXITY] += 1
    mine.slot = _last_slot(wiring, tape.sizes)
    mine.facts = _scaled(left) | _scaled(right) | ((left.facts | right.facts) & _FUNCTIONS)
    mine.nesting = max(left.nesting, right.nesting)
    mine.hash = scramble(scramble(left.hash) + scramble(right.hash) + _MARK_PRODUCT)
    return True


@compiled(**INLINE)
def _write_quotient(mine, left, right, is_inverse, wiring, tape):
    """left / right, or 1 / right, which is a power."""
    if right.facts & _CONSTANT:
        return False
    numerator = scramble(_MARK_ONE) if is_inverse else left.hash
    if is_inverse:
        if right.facts & _POWER:
            return False
        _emit(tape.program, tape.sizes, INV, right.slot, right.slot, -1, -1)
        mine.facts = _POWER | _scaled(right) | (right.facts & _FUNCTIONS)
        mine.nesting = right.nesting
    else:
        if left.hash == right.hash:
            return False
        _emit(tape.program, tape.sizes, DIV, left.slot, right.slot, -1, -1)
        mine.facts = _scaled(left) | _scaled(right) | ((left.facts | right.facts) & _FUNCTIONS)
        mine.nesting = max(left.nesting, right.nesting)
    tape.sizes[COMPLEXITY] += 1
    mine.slot = _last_slot(wiring, tape.sizes)
    mine.hash = scramble(scramble(numerator) - scramble(right.hash + _MARK_DENOMINATOR) + _MARK_QUOTIENT)
    return True


@compiled("b1(u8, i8, u8[::1])")
def _is_new_term(hash, n_terms, terms):
    """Whether a source of Σ or Π differs from the terms before; if so it becomes term number `n_terms`."""
    for t in range(n_terms):
        if terms[t] == hash:
            return False
    terms[n_terms] = hash
    return True


@compiled(**INLINE)
def _write_dense_sum(mine, node, values, terms, wiring, tape):
    """Σ: sums of two, one after the other; what was met before, or is a second offset, is left out."""
    n_terms = 0
    accumulator = first_constant = -1
    total = np.uint64(0)
    inside = 0
    depth = 0
    has_one = False
    for s in range(node.dense_low, node.dense_high):
        source = values[s]
        is_one = _has_offset(source)
        if (is_one and has_one) or tape.sizes[CONSTANTS] >= MAX_CONSTANTS - _SPARE_CONSTANTS:
            continue
        if not _is_new_term(source.hash, n_terms, terms):
            continue
        has_one = has_one or is_one
        n_terms += 1
        constant = -1
        if _needs_constant(source):
            weight = node.first_dense + s - node.dense_low
            constant = _new_constant(tape.weight_ids, tape.fresh, tape.sizes, weight, 1.0)
        inside |= source.facts & _FUNCTIONS
        depth = max(depth, source.nesting)
        total += _term_hash(source)
        if n_terms == 1:
            accumulator, first_constant = source.slot, constant
        else:
            if tape.sizes[LENGTH] >= MAX_NODES:
                return False
            _emit(tape.program, tape.sizes, ADD, accumulator, source.slot, first_constant, constant)
            accumulator, first_constant = _last_slot(wiring, tape.sizes), -1
            tape.sizes[COMPLEXITY] += 1
    if n_terms < 2:
        return False
    mine.slot = accumulator
    mine.facts = _SCALED | _SUM | inside | (_HAS_ONE if has_one else 0)
    mine.nesting = depth
    mine.sum = total
    mine.hash = scramble(total + _MARK_SUM)
    return True


@compiled(**INLINE)
def _write_dense_product(mine, k, node, values, terms, wiring, positive, tape):
    """Π: over variables exp of a weighted sum of logarithms, above them fitted powers."""
    n_terms = 0
    accumulator = first_constant = -1
    total = np.uint64(0)
    inside = 0
    depth = 0
    for s in range(node.dense_low, node.dense_high):
        source = values[s]
        if source.facts & _CONSTANT:
            continue
        is_full = tape.sizes[LENGTH] >= MAX_NODES - 2 - _SPARE_NODES
        if is_full or tape.sizes[CONSTANTS] >= MAX_CONSTANTS - _SPARE_CONSTANTS:
            return False
        is_variable = s < wiring.n_variables
        if (is_variable and positive[s] == 0) or not _is_new_term(source.hash, n_terms, terms):
            continue
        n_terms += 1
        weight = node.first_dense + s - node.dense_low
        constant = _new_constant(tape.weight_ids, tape.fresh, tape.sizes, weight, 0.0)
        total += scramble(source.hash)
        inside |= source.facts & _FUNCTIONS
        depth = max(depth, source.nesting)
        if is_variable:
            logarithm = wiring.n_variables + 1 + s
            if n_terms == 1:
                accumulator, first_constant = logarithm, constant
            else:
                _emit(tape.program, tape.sizes, ADD, accumulator, logarithm, first_constant, constant)
                accumulator, first_constant = _last_slot(wiring, tape.sizes), -1
        else:
            _emit(tape.program, tape.sizes, POWER_FITTED, source.slot, 0, -1, constant)
            if n_terms > 1:
                _emit(tape.program, tape.sizes, MUL, accumulator, _last_slot(wiring, tape.sizes), -1, -1)
            accumulator = _last_slot(wiring, tape.sizes)
        tape.sizes[COMPLEXITY] += 2
    tape.sizes[POWERS] = 1
    if n_terms < 1:
        return False
    if node.dense_low < wiring.n_variables:
        _emit(tape.program, tape.sizes, EXP, accumulator, accumulator, first_constant, -1)
        accumulator = _last_slot(wiring, tape.sizes)
    mine.slot = accumulator
    mine.facts = inside
    mine.nesting = depth
    mine.hash = scramble(total + _MARK_POWERS + _PER_NODE * np.uint64(k))
    return True


@compiled(**INLINE)
def _write_function(mine, source, c, op, wiring, max_nesting, tape):
    """A function of one input."""
    facts = source.facts
    is_power = op == SQRT or op == SQUARE or op == CUBE or op == POW4 or op == POW5 or op == POW6 or op == ABS
    if (facts & _CONSTANT) or (is_power and (facts & _POWER)):
        return False
    kind = 0
    if op == SIN or op == COS or op == TANH or op == ASIN or op == ACOS or op == ATAN:
        kind = _TRIGONOMETRIC
    elif op == EXP:
        kind = _EXPONENTIAL
    elif op == LOG:
        kind = _LOGARITHM
    depth = source.nesting + (1 if facts & kind else 0)
    if depth > max_nesting:
        return False
    constant = -1
    is_weighted = kind == _TRIGONOMETRIC or kind == _EXPONENTIAL or op >= USER_OPCODE
    if is_weighted and _needs_constant(source):
        constant = _new_constant(tape.weight_ids, tape.fresh, tape.sizes, c, 1.0)
    _emit(tape.program, tape.sizes, op, source.slot, source.slot, constant, -1)
    tape.sizes[COMPLEXITY] += 2
    mine.slot = _last_slot(wiring, tape.sizes)
    mine.facts = (facts & _FUNCTIONS) | kind | ((_POWER | _scaled(source)) if is_power else 0)
    mine.nesting = depth
    mine.hash = scramble(source.hash + _PER_OPCODE * np.uint64(op) + _MARK_FUNCTION)
    return True


@compiled(**INLINE)
def _write_output(output, wiring, with_offset, tape):
    """The output's scale and offset, where the formula has none of its own."""
    if output.facts & _CONSTANT:
        return False
    scale = -1
    if not (output.facts & _SCALED):
        scale = _new_constant(tape.weight_ids, tape.fresh, tape.sizes, wiring.n_weights + OUTPUT_SCALE, 1.0)
    takes_offset = with_offset and not ((output.facts & _SUM) and (output.facts & _HAS_ONE))
    if (takes_offset or scale >= 0) and tape.sizes[LENGTH] >= MAX_NODES:
        return False
    if takes_offset:
        offset = _new_constant(tape.weight_ids, tape.fresh, tape.sizes, wiring.n_weights + OUTPUT_OFFSET, 0.0)
        _emit(tape.program, tape.sizes, ADD, output.slot, wiring.n_variables, scale, offset)
    elif scale >= 0:
        _emit(tape.program, tape.sizes, ID, output.slot, output.slot, scale, -1)
    return tape.sizes[LENGTH] > 0


@compiled("i8(i2[:, ::1], i8, i8, i8[::1])")
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


@compiled(**INLINE)
def _write_node(k, choices, wiring, rules, values, terms, tape):
    """Write node number k; False where its wiring makes no sense."""
    node, mine = wiring.nodes[k], values[k]
    op, c = node.op, node.first
    mine.sum = np.uint64(0)
    if op == SUM:
        return _write_dense_sum(mine, node, values, terms, wiring, tape)
    if op == PROD:
        return _write_dense_product(mine, k, node, values, terms, wiring, rules.positive, tape)
    source = values[wiring.connections[c].low + choices[c]]
    if op == ID:
        _write_identity(mine, source)
        return True
    if op == INV:
        return _write_quotient(mine, source, source, True, wiring, tape)
    if op == ADD or op == SUB or op == MUL or op == DIV:
        second = values[wiring.connections[c + 1].low + choices[c + 1]]
        if op == MUL:
            return _write_product(mine, source, second, wiring, tape)
        if op == DIV:
            return _write_quotient(mine, source, second, (source.facts & _CONSTANT) != 0, wiring, tape)
        return _write_sum(mine, source, second, c, op == SUB, wiring, tape)
    return _write_function(mine, source, c, op, wiring, rules.max_nesting, tape)


@compiled()
def make_draft(n_nodes):
    """Scratch memory for networks of `n_nodes` nodes."""
    return Draft(
        np.zeros(n_nodes, VALUE), np.zeros(n_nodes, np.uint64), np.zeros(MAX_NODES + 1, np.int64),
        np.zeros(MAX_CONSTANTS), np.zeros(4, np.int64),
    )  # fmt: skip


@compiled()
def compile_structure(choices, wiring, rules, draft, program, weight_ids):
    """Write the program of one structure: returns a `Compiled`, whose length is `INVALID` where there is none.

    Fills `program` [5, nodes] and `weight_ids` (which weight each constant is); `draft.fresh` then holds the natural
    start of each constant.
    """
    values = draft.values
    sizes = draft.sizes
    for i in range(len(sizes)):
        sizes[i] = 0
    tape = Tape(program, weight_ids, draft.fresh, sizes)
    count_uses(choices, wiring, values)
    for i in range(wiring.n_inputs):
        is_variable = i < wiring.n_variables
        values[i].slot = i if is_variable else wiring.n_variables
        values[i].facts = 0 if is_variable else _CONSTANT | _HAS_ONE
        values[i].nesting = 0
        values[i].hash = scramble(np.uint64(i + 1) if is_variable else _MARK_ONE)
        values[i].sum = np.uint64(0)
    output = len(wiring.nodes) - 2
    for k in range(wiring.n_inputs, output + 1):
        if values[k].uses == 0:
            continue
        if sizes[LENGTH] >= MAX_NODES - _SPARE_NODES or sizes[CONSTANTS] >= MAX_CONSTANTS - _SPARE_CONSTANTS:
            return _refused()
        if not _write_node(k, choices, wiring, rules, values, draft.terms, tape):
            return _refused()
    if not _write_output(values[output], wiring, rules.with_offset, tape):
        return _refused()
    n_constants = sizes[CONSTANTS]
    n_linear = _count_linear(program, sizes[LENGTH], 2 * wiring.n_variables + 1, draft.pending)
    whole = values[output].sum if values[output].facts & _SUM else scramble(values[output].hash)
    key = scramble(whole + np.uint64(1))
    return Compiled(
        sizes[LENGTH], n_constants, key, n_linear < n_constants, sizes[COMPLEXITY] + n_constants, sizes[POWERS] != 0
    )


def compile_once(choices: np.ndarray, wiring: Wiring, rules: FormulaRules) -> tuple[np.ndarray, int, np.ndarray]:
    """Program [5, nodes] of one structure, its length, and the weight that each of its constants is."""
    program = np.zeros((5, MAX_NODES), np.int16)
    weight_ids = np.zeros(MAX_CONSTANTS, np.int64)
    made = compile_structure(choices, wiring, rules, make_draft(len(wiring.nodes)), program, weight_ids)
    return program, made.length, weight_ids[: made.n_constants]
