"""The kinds of nodes: each appends its part of the program and notes what is known of its value.

Each function returns whether the wiring makes sense there: sin of a constant, a/a, a root of a square do not. They are
parts that `compile_structure` calls. `values` [K] of `VALUE` are the notes, `mine` the one of the node itself; `constants`
and `size` belong to the program (`arrays.py`).
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, from_dtype, int16, int64, uint64, void

from gmeql.fitters.compiled import INLINE, compiled, inner, part
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
    SIN,
    SQRT,
    SQUARE,
    TANH,
    USER_OPCODE,
)
from gmeql.search.sampling.arrays import CONSTANT, NODE, OUTPUT_OFFSET, OUTPUT_SCALE, SIZE, VALUE
from gmeql.search.sampling.random import scramble

# Facts about a node's value: it is a constant; a constant factor is in it already; it is a power, a sum, a sum with an
# offset; and which kinds of functions stand somewhere inside it.
IS_CONSTANT, SCALED, POWER, TRIGONOMETRIC, EXPONENTIAL, LOGARITHM, IS_SUM, HAS_ONE = 1, 2, 4, 8, 16, 32, 64, 128
FUNCTIONS = TRIGONOMETRIC | EXPONENTIAL | LOGARITHM

# Marks that keep the hashes of different kinds of nodes apart.
MARK_ONE, MARK_SUM, MARK_PRODUCT, MARK_QUOTIENT, MARK_DENOMINATOR, MARK_FUNCTION, MARK_POWERS = (
    np.uint64(900001), np.uint64(101), np.uint64(103), np.uint64(104), np.uint64(7), np.uint64(17), np.uint64(124),
)  # fmt: skip
PER_OPCODE, PER_NODE = np.uint64(1000), np.uint64(1000003)

# Places left free in a program for what is written behind its nodes: the output's scale and offset.
SPARE_NODES, SPARE_CONSTANTS = 2, 3

NOTE, PROGRAM, CONSTANTS, COUNTS = from_dtype(VALUE), int16[:, ::1], from_dtype(CONSTANT)[::1], from_dtype(SIZE)
"""Types of what is known of a value, of a program, its constants and its size."""


# One type for all callers: left to itself the compiler makes a version for each mix of literal and computed numbers.
@inner(void(PROGRAM, COUNTS, int64, int64, int64, int64, int64))
def _emit(program, size, op, left, right, left_constant, right_constant):
    """Append one node to the program."""
    k = size.length
    program[0, k] = op
    program[1, k] = left
    program[2, k] = right
    program[3, k] = left_constant
    program[4, k] = right_constant
    size.length = k + 1


@inner(int64(CONSTANTS, COUNTS, int64, float64))
def _new_constant(constants, size, weight, start):
    """The number of one more constant, which is `weight` and naturally starts from `start`."""
    p = size.n_constants
    constants[p].weight = weight
    constants[p].start = start
    size.n_constants = p + 1
    return p


@inner(int64(int64, COUNTS))
def _last_slot(n_variables, size):
    """The slot that the node written last fills."""
    return 2 * n_variables + size.length


@inner()
def _needs_constant(value):
    """Whether a constant on this input is not redundant: none is in it yet, or others read it, too."""
    return not (value.facts & SCALED) or value.uses > 1


@inner()
def _scaled(value):
    """The fact that a node takes over from an input that only it reads."""
    return (value.facts & SCALED) if value.uses == 1 else 0


@inner()
def _has_offset(value):
    """Whether a value is a constant, or a sum with a constant term."""
    return (value.facts & IS_CONSTANT) != 0 or ((value.facts & IS_SUM) != 0 and (value.facts & HAS_ONE) != 0)


@inner()
def _term_hash(value):
    """What a term adds to the hash of a sum; a sum that only this one reads adds its own terms."""
    if (value.facts & IS_SUM) and value.uses == 1:
        return value.sum
    return scramble(value.hash)


@compiled(**INLINE)
def write_identity(mine, source):
    """The value itself, handed through."""
    mine.slot = source.slot
    mine.facts = source.facts
    mine.nesting = source.nesting
    mine.hash = source.hash
    mine.sum = source.sum
    if source.uses == 1 and mine.uses > 1:
        mine.facts &= ~SCALED


@part(boolean(NOTE, NOTE, NOTE, int64, boolean, int64, PROGRAM, CONSTANTS, COUNTS))
def write_sum(mine, left, right, c, is_difference, n_variables, program, constants, size):
    """left + right, each times a constant; the second one of a difference starts from -1."""
    if left.hash == right.hash or (left.facts & right.facts & IS_CONSTANT):
        return False
    one_left, one_right = _has_offset(left), _has_offset(right)
    if one_left and one_right and left.uses == 1 and right.uses == 1:  # two offsets in one sum
        return False
    left_constant = right_constant = -1
    if _needs_constant(left):
        left_constant = _new_constant(constants, size, c, 1.0)
    if _needs_constant(right):
        start = -1.0 if is_difference else 1.0
        right_constant = _new_constant(constants, size, c + 1, start)
    _emit(program, size, ADD, left.slot, right.slot, left_constant, right_constant)
    size.complexity += 1
    mine.slot = _last_slot(n_variables, size)
    mine.facts = SCALED | IS_SUM | (HAS_ONE if one_left or one_right else 0) | ((left.facts | right.facts) & FUNCTIONS)
    mine.nesting = max(left.nesting, right.nesting)
    mine.sum = _term_hash(left) + _term_hash(right)
    mine.hash = scramble(mine.sum + MARK_SUM)
    return True


@part(boolean(NOTE, NOTE, NOTE, int64, PROGRAM, COUNTS))
def write_product(mine, left, right, n_variables, program, size):
    """left * right, which carry no constants of their own: the factor moves outward."""
    if (left.facts | right.facts) & IS_CONSTANT:
        return False
    _emit(program, size, MUL, left.slot, right.slot, -1, -1)
    size.complexity += 1
    mine.slot = _last_slot(n_variables, size)
    mine.facts = _scaled(left) | _scaled(right) | ((left.facts | right.facts) & FUNCTIONS)
    mine.nesting = max(left.nesting, right.nesting)
    mine.hash = scramble(scramble(left.hash) + scramble(right.hash) + MARK_PRODUCT)
    return True


@part(boolean(NOTE, NOTE, NOTE, boolean, int64, PROGRAM, COUNTS))
def write_quotient(mine, left, right, is_inverse, n_variables, program, size):
    """left / right, or 1 / right, which is a power."""
    if right.facts & IS_CONSTANT:
        return False
    numerator = scramble(MARK_ONE) if is_inverse else left.hash
    if is_inverse:
        if right.facts & POWER:
            return False
        _emit(program, size, INV, right.slot, right.slot, -1, -1)
        mine.facts = POWER | _scaled(right) | (right.facts & FUNCTIONS)
        mine.nesting = right.nesting
    else:
        if left.hash == right.hash:
            return False
        _emit(program, size, DIV, left.slot, right.slot, -1, -1)
        mine.facts = _scaled(left) | _scaled(right) | ((left.facts | right.facts) & FUNCTIONS)
        mine.nesting = max(left.nesting, right.nesting)
    size.complexity += 1
    mine.slot = _last_slot(n_variables, size)
    mine.hash = scramble(scramble(numerator) - scramble(right.hash + MARK_DENOMINATOR) + MARK_QUOTIENT)
    return True


@inner(boolean(uint64, int64, uint64[::1]))
def _is_new_term(hash, n_terms, terms):
    """Whether a source of Σ or Π differs from the terms before; if so it becomes term number `n_terms`."""
    for t in range(n_terms):
        if terms[t] == hash:
            return False
    terms[n_terms] = hash
    return True


@part(boolean(NOTE, from_dtype(NODE), NOTE[::1], uint64[::1], int64, PROGRAM, CONSTANTS, COUNTS))
def write_dense_sum(mine, node, values, terms, n_variables, program, constants, size):
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
        if (is_one and has_one) or size.n_constants >= MAX_CONSTANTS - SPARE_CONSTANTS:
            continue
        if not _is_new_term(source.hash, n_terms, terms):
            continue
        has_one = has_one or is_one
        n_terms += 1
        constant = -1
        if _needs_constant(source):
            weight = node.first_dense + s - node.dense_low
            constant = _new_constant(constants, size, weight, 1.0)
        inside |= source.facts & FUNCTIONS
        depth = max(depth, source.nesting)
        total += _term_hash(source)
        if n_terms == 1:
            accumulator, first_constant = source.slot, constant
        else:
            if size.length >= MAX_NODES:
                return False
            _emit(program, size, ADD, accumulator, source.slot, first_constant, constant)
            accumulator, first_constant = _last_slot(n_variables, size), -1
            size.complexity += 1
    if n_terms < 2:
        return False
    mine.slot = accumulator
    mine.facts = SCALED | IS_SUM | inside | (HAS_ONE if has_one else 0)
    mine.nesting = depth
    mine.sum = total
    mine.hash = scramble(total + MARK_SUM)
    return True


@part(boolean(NOTE, int64, from_dtype(NODE), NOTE[::1], uint64[::1], int64[::1], PROGRAM, CONSTANTS, COUNTS))
def write_dense_product(mine, k, node, values, terms, positive, program, constants, size):
    """Π: over variables exp of a weighted sum of logarithms, above them fitted powers."""
    n_variables = len(positive)
    n_terms = 0
    accumulator = first_constant = -1
    total = np.uint64(0)
    inside = 0
    depth = 0
    for s in range(node.dense_low, node.dense_high):
        source = values[s]
        if source.facts & IS_CONSTANT:
            continue
        is_full = size.length >= MAX_NODES - 2 - SPARE_NODES
        if is_full or size.n_constants >= MAX_CONSTANTS - SPARE_CONSTANTS:
            return False
        is_variable = s < n_variables
        if (is_variable and positive[s] == 0) or not _is_new_term(source.hash, n_terms, terms):
            continue
        n_terms += 1
        weight = node.first_dense + s - node.dense_low
        constant = _new_constant(constants, size, weight, 0.0)
        total += scramble(source.hash)
        inside |= source.facts & FUNCTIONS
        depth = max(depth, source.nesting)
        if is_variable:
            logarithm = n_variables + 1 + s
            if n_terms == 1:
                accumulator, first_constant = logarithm, constant
            else:
                _emit(program, size, ADD, accumulator, logarithm, first_constant, constant)
                accumulator, first_constant = _last_slot(n_variables, size), -1
        else:
            _emit(program, size, POWER_FITTED, source.slot, 0, -1, constant)
            if n_terms > 1:
                _emit(program, size, MUL, accumulator, _last_slot(n_variables, size), -1, -1)
            accumulator = _last_slot(n_variables, size)
        size.complexity += 2
    size.n_powers += 1
    if n_terms < 1:
        return False
    if node.dense_low < n_variables:
        _emit(program, size, EXP, accumulator, accumulator, first_constant, -1)
        accumulator = _last_slot(n_variables, size)
    mine.slot = accumulator
    mine.facts = inside
    mine.nesting = depth
    mine.hash = scramble(total + MARK_POWERS + PER_NODE * np.uint64(k))
    return True


@part(boolean(NOTE, NOTE, int64, int64, int64, int64, PROGRAM, CONSTANTS, COUNTS))
def write_function(mine, source, c, op, max_nesting, n_variables, program, constants, size):
    """A function of one input."""
    facts = source.facts
    is_power = op == SQRT or op == SQUARE or op == CUBE or op == POW4 or op == POW5 or op == POW6 or op == ABS
    if (facts & IS_CONSTANT) or (is_power and (facts & POWER)):
        return False
    kind = 0
    if op == SIN or op == COS or op == TANH or op == ASIN or op == ACOS or op == ATAN:
        kind = TRIGONOMETRIC
    elif op == EXP:
        kind = EXPONENTIAL
    elif op == LOG:
        kind = LOGARITHM
    depth = source.nesting + (1 if facts & kind else 0)
    if depth > max_nesting:
        return False
    constant = -1
    is_weighted = kind == TRIGONOMETRIC or kind == EXPONENTIAL or op >= USER_OPCODE
    if is_weighted and _needs_constant(source):
        constant = _new_constant(constants, size, c, 1.0)
    _emit(program, size, op, source.slot, source.slot, constant, -1)
    size.complexity += 2
    mine.slot = _last_slot(n_variables, size)
    mine.facts = (facts & FUNCTIONS) | kind | ((POWER | _scaled(source)) if is_power else 0)
    mine.nesting = depth
    mine.hash = scramble(source.hash + PER_OPCODE * np.uint64(op) + MARK_FUNCTION)
    return True


@compiled(**INLINE)
def write_output(output, n_weights, with_offset, n_variables, program, constants, size):
    """The output's scale and offset, where the formula has none of its own."""
    if output.facts & IS_CONSTANT:
        return False
    scale = -1
    if not (output.facts & SCALED):
        scale = _new_constant(constants, size, n_weights + OUTPUT_SCALE, 1.0)
    takes_offset = with_offset and not ((output.facts & IS_SUM) and (output.facts & HAS_ONE))
    if (takes_offset or scale >= 0) and size.length >= MAX_NODES:
        return False
    if takes_offset:
        offset = _new_constant(constants, size, n_weights + OUTPUT_OFFSET, 0.0)
        _emit(program, size, ADD, output.slot, n_variables, scale, offset)
    elif scale >= 0:
        _emit(program, size, ID, output.slot, output.slot, scale, -1)
    return size.length > 0


@compiled(**INLINE)
def write_inputs(values, n_inputs, n_variables):
    """Variables and constants, which are all the constant 1 times a weight."""
    for i in range(n_inputs):
        is_variable = i < n_variables
        values[i].slot = i if is_variable else n_variables
        values[i].facts = 0 if is_variable else IS_CONSTANT | HAS_ONE
        values[i].nesting = 0
        values[i].hash = scramble(np.uint64(i + 1) if is_variable else MARK_ONE)
        values[i].sum = np.uint64(0)
