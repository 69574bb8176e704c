"""Compiled: small formulas enumerated on a few rows, and pairs of them looked up by hash.

`R` rows, `K` formulas with values kept, `M` formulas in all, `S` slots of a hash table (a power of two).

A formula is (operator, left, right): numbers of earlier formulas, -1 where there is none. Two formulas of the same
values are one formula. The *form* of a formula is its values without scale and offset: b and c0 + c1*b have the same,
so one look-up finds b with both constants free. Forms that rest on one row are left out: any two such look alike.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import boolean, float64, int64, uint64
from numpy.typing import NDArray

from gmeql.fitters.compiled import compiled, inner, part
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
    LOG,
    MUL,
    SIN,
    SQRT,
    SQUARE,
    SUB,
    TANH,
)

LARGEST = 1e12
"""Values beyond this, or (but for 0) below its inverse, are left out."""
LARGEST_ANGLE = 100.0
LARGEST_EXPONENT = 30.0
VALUE_SHIFT = 26
"""Bits of a mantissa that values need not agree in: 26 of 52 are compared, some eight digits."""
FORM_STEPS = 2.0**21
"""Steps of a form's values, which lie between -1 and 1."""
LEAST_SUPPORT = 1e-3
"""Range of a form without its farthest row, as a share of that row's deviation: else it rests on one row."""
LEAST_DEVIATION = 1e-9
"""Deviation of a formula's values, relative to their size, below which it is constant."""
LARGEST_CONSTANT_COST = 3
"""Constants made of 1 and 2 are kept up to this cost."""
MINUS, PLUS, TIMES, OVER, UNDER = 0, 1, 2, 3, 4
"""Steps towards the middle: from r to r - a, r + a, r*a, r/a and a/r ..."""
SQUARED, LOGGED, RAISED = 5, 6, 7
"""... and to r², log|r| and exp(r), by no formula."""
STAY = -1
"""No step."""
DROWNED = 1e5
"""Range of a over that of r beyond which r - a is taken for a alone: it has the form of a up to rounding."""


ROW = float64[::1]
"""Type of the values of a formula."""


@part(boolean(int64, ROW, ROW, ROW))
def combine(operator, left, right, out):
    """Values [R] of an operator into `out`; whether all of them are of a size worth keeping."""
    for i in range(len(out)):
        x = left[i]
        y = right[i]
        if operator == ADD:
            z = x + y
        elif operator == SUB:
            z = x - y
        elif operator == MUL:
            z = x * y
        elif operator == DIV:
            if y == 0.0:
                return False
            z = x / y
        elif operator == SQUARE:
            z = x * x
        elif operator == CUBE:
            z = x * x * x
        elif operator == SQRT:
            if x < 0.0:
                return False
            z = math.sqrt(x)
        elif operator == LOG:
            if x <= 0.0:
                return False
            z = math.log(x)
        elif operator == EXP:
            if abs(x) > LARGEST_EXPONENT:
                return False
            z = math.exp(x)
        elif operator == SIN or operator == COS:
            if abs(x) > LARGEST_ANGLE:
                return False
            z = math.sin(x) if operator == SIN else math.cos(x)
        elif operator == TANH:
            z = math.tanh(x)
        elif operator == ABS:
            z = abs(x)
        elif operator == ATAN:
            z = math.atan(x)
        elif operator == ASIN or operator == ACOS:
            if abs(x) > 1.0:
                return False
            z = math.asin(x) if operator == ASIN else math.acos(x)
        else:
            return False
        size = abs(z)
        if not size < LARGEST or (size < 1.0 / LARGEST and z != 0.0):
            return False
        out[i] = z + 0.0
    return True


@inner()
def mixed(key, value):
    """A hash with one number more."""
    key = (key ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
    return key ^ (key >> np.uint64(29))


@part(uint64(int64[::1]))
def value_key(bits):
    """Hash of values up to rounding, given as whole numbers of the same bits."""
    key = np.uint64(0x2545F4914F6CDD1D)
    for i in range(len(bits)):
        key = mixed(key, (bits[i] + (1 << (VALUE_SHIFT - 1))) >> VALUE_SHIFT)
    return key | np.uint64(1)


@part(uint64(ROW, ROW))
def form_key(values, signs):
    """Hash of values without scale and offset; 0 where they are constant or rest on one row.

    The sign is taken away by a fixed direction `signs` [R].
    """
    n = len(values)
    mean = size = along = first = 0.0
    far = 0
    for i in range(n):
        mean += values[i] / n
        size = max(size, abs(values[i]))
    for i in range(n):
        deviation = values[i] - mean
        along += signs[i] * deviation
        if abs(deviation) > first:
            first = abs(deviation)
            far = i
    lowest, highest = math.inf, -math.inf
    for i in range(n):
        if i != far:
            lowest = min(lowest, values[i])
            highest = max(highest, values[i])
    if not first > LEAST_DEVIATION * size or highest - lowest < LEAST_SUPPORT * first or along == 0.0:
        return np.uint64(0)
    scale = FORM_STEPS / first if along > 0.0 else -FORM_STEPS / first
    key = np.uint64(0x2545F4914F6CDD1D)
    for i in range(n):
        key = mixed(key, np.int64(math.floor((values[i] - mean) * scale + 0.5)))
    return key | np.uint64(1)


@inner()
def find_or_insert(keys, places, key, place):
    """The place under which a key is kept; where it is new, it is kept under `place` (if not negative) and -1 returned."""
    mask = np.uint64(len(keys) - 1)
    slot = (key >> np.uint64(20)) & mask
    while keys[slot] != np.uint64(0):
        if keys[slot] == key:
            return places[slot]
        slot = (slot + np.uint64(1)) & mask
    if place >= 0:
        keys[slot] = key
        places[slot] = place
    return -1


@inner()
def is_constant(values):
    for i in range(1, len(values)):
        if values[i] != values[0]:
            return False
    return True


@inner()
def take_in(code, out, bits, tables, values, counts, signs):
    """Keep the formula `code` [4] (operator, left, right, cost) with values `out`, if it is new; whether there is room.

    `bits` is `out` as whole numbers. `tables` are `formulas` [M, 3], their costs [M], and hash tables from values and from
    forms to formulas. `counts` are formulas with values, formulas in all, and tries. Once `values` [K, R] is full, only
    forms are kept.
    """
    formulas, costs, value_keys, value_places, form_keys, form_places = tables
    n = counts[1]
    kept = n == counts[0] and n < len(values)
    if kept and find_or_insert(value_keys, value_places, value_key(bits), n) >= 0:
        return True
    key = form_key(out, signs)
    is_new = key != np.uint64(0) and find_or_insert(form_keys, form_places, key, n) < 0
    if kept:
        for i in range(len(out)):  # as one assignment this takes seconds to compile
            values[n, i] = out[i]
        counts[0] += 1
    elif not is_new:
        return True
    for i in range(3):
        formulas[n, i] = code[i]
    costs[n] = code[3]
    counts[1] += 1
    return counts[1] < len(formulas)


@inner()
def try_formula(code, out, bits, tables, values, counts, signs):
    """Compute a formula and take it in; whether there is room for more. No function is made of constants alone."""
    counts[2] += 1
    if not combine(code[0], values[code[1]], values[max(code[2], 0)], out):
        return True
    if is_constant(out) and (code[3] > LARGEST_CONSTANT_COST or code[2] < 0):
        return True
    return take_in(code, out, bits, tables, values, counts, signs)


def enumerate_formulas(
    leaves: NDArray[np.float64],
    unary: NDArray[np.int64],
    unary_costs: NDArray[np.int64],
    binary: NDArray[np.int64],
    tables: tuple[NDArray[Any], ...],
    values: NDArray[np.float64],
    counts: NDArray[np.int64],
    signs: NDArray[np.float64],
    max_cost: int,
    max_tries: int,
) -> None:
    """Fill the tables with all formulas by rising cost, from leaves [L, R] of cost 1.

    `unary` and `binary` are opcodes; a binary operator costs 1. Ends when a table is full or after `max_tries`.
    """
    out = np.empty(values.shape[1])
    scratch = out, out.view(np.int64), np.empty(4, np.int64), np.zeros(max_cost + 2, np.int64)
    fill_tables(leaves, unary, unary_costs, binary, tables, values, counts, signs, max_cost, max_tries, scratch)


@compiled()
def fill_tables(leaves, unary, unary_costs, binary, tables, values, counts, signs, max_cost, max_tries, scratch):
    """`enumerate_formulas` with arrays to work in: compiled code takes seconds more to compile if it makes them."""
    out, bits, code, starts = scratch  # `starts`: first formula of each cost
    code[0] = code[2] = -1
    code[3] = 1
    for number in range(len(leaves)):
        for i in range(len(out)):
            out[i] = leaves[number, i]
        code[1] = number
        take_in(code, out, bits, tables, values, counts, signs)
    for cost in range(2, max_cost + 1):
        starts[cost] = counts[0]
        code[3] = cost
        # one loop for all operators, so that the rest is compiled into it once; a function has one right side, -1
        for left in range(1, cost):
            right = cost - 1 - left
            for i in range(starts[left], starts[left + 1]):
                code[1] = i
                for b in range(len(binary) + len(unary)):
                    first, last = -1, 0
                    if b < len(binary):
                        commutes = binary[b] == ADD or binary[b] == MUL
                        if right < 1 or (commutes and left > right):
                            continue
                        code[0] = binary[b]
                        first = i if commutes and left == right else starts[right]
                        last = starts[right + 1]
                    else:
                        if left != cost - unary_costs[b - len(binary)]:
                            continue
                        code[0] = unary[b - len(binary)]
                    for j in range(first, last):
                        code[2] = j
                        if not try_formula(code, out, bits, tables, values, counts, signs):
                            return
                if counts[2] > max_tries:
                    return


@part(boolean(int64, ROW, ROW, ROW))
def step_towards(step, values, by, out):
    """One step from values r [R] by a [R], or r itself; whether it is finite."""
    for i in range(len(out)):
        if step == MINUS:
            z = values[i] - by[i]
        elif step == PLUS:
            z = values[i] + by[i]
        elif step == TIMES:
            z = values[i] * by[i]
        elif step == OVER:
            z = values[i] / by[i]
        elif step == UNDER:
            z = by[i] / values[i]
        elif step == SQUARED:
            z = values[i] * values[i]
        elif step == LOGGED:
            z = math.log(abs(values[i]))
        elif step == RAISED:
            z = math.exp(min(values[i], LARGEST_EXPONENT))
        else:
            z = values[i]
        if not abs(z) < LARGEST:
            return False
        out[i] = z
    return True


@inner()
def drowns(step, values, by):
    """Whether nothing is left of r [R] beside a [R]: what was taken to be a step from r is a alone."""
    return (step == MINUS or step == PLUS) and np.ptp(by) > DROWNED * np.ptp(values)


def meet(
    targets: NDArray[np.float64],
    values: NDArray[np.float64],
    n_first: int,
    n_second: int,
    steps: NDArray[np.int64],
    form_table: NDArray[np.uint64],
    form_places: NDArray[np.int32],
    signs: NDArray[np.float64],
    hits: NDArray[np.int64],
) -> int:
    """Look for g(y) one or two steps before a form: rows (target, step, a, second step, second a, b) into `hits`.

    `targets` [T, R] are readings of y, `steps` [P, 2] which steps follow each other. The first step is by the first
    `n_first` formulas, the second by `n_second`. Returns how many were found, at most an equal share of what `hits` holds
    for each target.
    """
    once, twice = np.empty((2, values.shape[1]))
    found = look_up(targets, values, n_first, n_second, steps, form_table, form_places, signs, hits, once, twice)
    return int(found)


@compiled()
def look_up(targets, values, n_first, n_second, steps, form_table, form_places, signs, hits, once, twice):
    """`meet` with two rows to work in."""
    nothing = np.int64(-1)
    n_hits = 0
    room = len(hits) // len(targets)
    for t in range(len(targets)):
        most = n_hits + room
        for p in range(len(steps)):
            for i in range(n_first if STAY < steps[p, 0] <= UNDER else 1):
                if not step_towards(steps[p, 0], targets[t], values[i], once):
                    continue
                for j in range(n_second if STAY < steps[p, 1] <= UNDER else 1):
                    if not step_towards(steps[p, 1], once, values[j], twice):
                        continue
                    key = form_key(twice, signs)
                    if key == np.uint64(0):
                        continue
                    b = find_or_insert(form_table, form_places, key, nothing)
                    is_hit = b >= 0 and n_hits < most
                    if is_hit and not (
                        drowns(steps[p, 0], targets[t], values[i]) or drowns(steps[p, 1], once, values[j])
                    ):
                        hits[n_hits, 0] = t
                        hits[n_hits, 1] = steps[p, 0]
                        hits[n_hits, 2] = i
                        hits[n_hits, 3] = steps[p, 1]
                        hits[n_hits, 4] = j
                        hits[n_hits, 5] = b
                        n_hits += 1
    return n_hits
