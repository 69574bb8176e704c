"""One node of a program on one block of rows: its value, and the slopes to its inputs."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int64, types, void

from gmeql.fitters.compiled import compiled, inner, part
from gmeql.fitters.kernel.elementary import exponential, fifth_power, logarithm, sine_cosine, whole_power
from gmeql.fitters.kernel.options import FAST, FAST_INLINE, TABLE
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
    MUL,
    NEG,
    POW,
    POW4,
    POW5,
    POW6,
    POWER_FITTED,
    POWER_WHOLE,
    SIN,
    SQRT,
    SQUARE,
    SUB,
    TANH,
)


@part(
    void(TABLE, int64, int64, float64, int64, float64, float64, int64, int64, int64, int64),
    **FAST,
)
def apply(table, op, x, f, y, g, exponent, value, slope, spare, n):
    """One node on one block: row `value` from rows `x` times `f` and `y` times `g`.

    Row `slope` keeps what the reverse pass would otherwise compute again; `exponent` is that of the two powers. One
    branch per opcode, each with its own loop over the rows: that is why it is long.
    """
    if op == ID:
        for i in range(n):
            table[value, i] = f * table[x, i]
    elif op == ADD:
        for i in range(n):
            table[value, i] = f * table[x, i] + g * table[y, i]
    elif op == SUB:
        for i in range(n):
            table[value, i] = f * table[x, i] - g * table[y, i]
    elif op == MUL:
        c = f * g
        for i in range(n):
            table[value, i] = c * (table[x, i] * table[y, i])
    elif op == DIV:
        for i in range(n):
            inverse = 1.0 / (g * table[y, i])
            table[value, i] = f * table[x, i] * inverse
            table[slope, i] = inverse
    elif op == SIN:
        sine_cosine(table, x, f, value, slope, n)
    elif op == COS:
        sine_cosine(table, x, f, slope, value, n)
    elif op == SQRT:
        for i in range(n):
            table[value, i] = np.sqrt(f * table[x, i])
    elif op == SQUARE:
        for i in range(n):
            u = f * table[x, i]
            table[value, i] = u * u
    elif op == CUBE:
        for i in range(n):
            u = f * table[x, i]
            table[value, i] = u * u * u
    elif op == POW4:
        for i in range(n):
            u = f * table[x, i]
            square = u * u
            table[value, i] = square * square
    elif op == POW5:
        for i in range(n):
            u = f * table[x, i]
            square = u * u
            table[value, i] = square * square * u
    elif op == POW6:
        for i in range(n):
            u = f * table[x, i]
            square = u * u
            table[value, i] = square * square * square
    elif op == EXP:
        for i in range(n):
            table[value, i] = exponential(f * table[x, i])
    elif op == LOG:
        for i in range(n):
            table[value, i] = logarithm(f * table[x, i])
    elif op == TANH:
        for i in range(n):
            u = f * table[x, i]
            decay = exponential(-2.0 * abs(u))
            t = (1.0 - decay) / (1.0 + decay)
            table[value, i] = t if u >= 0.0 else -t
    elif op == ASIN:
        for i in range(n):
            table[value, i] = np.arcsin(f * table[x, i])
    elif op == ACOS:
        for i in range(n):
            table[value, i] = np.arccos(f * table[x, i])
    elif op == ATAN:
        for i in range(n):
            table[value, i] = np.arctan(f * table[x, i])
    elif op == ABS:
        for i in range(n):
            table[value, i] = abs(f * table[x, i])
    elif op == INV:
        for i in range(n):
            table[value, i] = 1.0 / (f * table[x, i])
    elif op == NEG:
        for i in range(n):
            table[value, i] = -f * table[x, i]
    elif op == POW:
        for i in range(n):
            log_u = logarithm(f * table[x, i])
            is_zero = f * table[x, i] == 0.0 and g * table[y, i] > 0.0
            table[slope, i] = 0.0 if is_zero else log_u
            table[value, i] = 0.0 if is_zero else exponential(g * table[y, i] * log_u)
    elif op == POWER_FITTED:
        for i in range(n):
            log_u = logarithm(f * table[x, i])
            is_zero = f * table[x, i] == 0.0 and exponent > 0.0
            table[slope, i] = 0.0 if is_zero else log_u
            table[value, i] = 0.0 if is_zero else exponential(exponent * log_u)
    elif op == POWER_WHOLE:
        power = int(exponent)
        for i in range(n):
            table[value, i] = f * table[x, i]
        whole_power(table, value, power - 1, slope, spare, n)
        for i in range(n):
            table[value, i] = table[slope, i] * table[value, i] if power != 0 else 1.0
    else:
        for i in range(n):
            table[value, i] = np.nan


@inner(**FAST)
def is_binary(op):
    """Whether a node reads both of its slots."""
    return op == ADD or op == SUB or op == MUL or op == DIV or op == POW


@compiled(**FAST_INLINE)
def times(table, a, b, out, n):
    """Row `out` is row `a` times row `b`."""
    for i in range(n):
        table[out, i] = table[a, i] * table[b, i]


@part(
    types.Tuple((int64, float64))(
        TABLE, int64, int64, int64, boolean, int64, float64, int64, float64, float64, int64, int64, int64, int64
    ),
    **FAST,
)
def slope_row(table, op, side, adjoint, is_one, x, f, y, g, exponent, value, slope, out, n):
    """Slope of the output to one weighted input of a node, from the slope to the node in row `adjoint`.

    Returns (row, factor): the slope is the row times the factor. It is written to row `out` unless it exists already.
    `is_one` says that row `adjoint` holds ones. Long as `apply` is: one branch per opcode.
    """
    if op == ID or op == ADD or op == SUB or op == NEG:
        return adjoint, -1.0 if (op == SUB and side == 1) or op == NEG else 1.0
    row, factor = -1, 1.0  # the row that row `adjoint` is to be multiplied by: one loop for all these
    if op == MUL:
        row, factor = (y, g) if side == 0 else (x, f)
    elif op == DIV and side == 0:
        row = slope
    elif op == SIN or op == COS:
        row, factor = slope, 1.0 if op == SIN else -1.0
    elif op == SQUARE:
        row, factor = x, 2.0 * f
    elif op == EXP:
        row = value
    elif op == POWER_WHOLE:
        row, factor = slope, exponent
    if row >= 0:
        if is_one:
            return row, factor
        times(table, adjoint, row, out, n)
        return out, factor
    if op == DIV:
        for i in range(n):
            table[out, i] = table[adjoint, i] * table[value, i] * table[slope, i]
        return out, -1.0
    if op == SQRT:
        for i in range(n):
            table[out, i] = table[adjoint, i] / max(table[value, i], 1e-150)
        return out, 0.5
    if op == CUBE:
        for i in range(n):
            u = f * table[x, i]
            table[out, i] = table[adjoint, i] * (u * u)
        return out, 3.0
    if op == POW4:
        for i in range(n):
            u = f * table[x, i]
            table[out, i] = table[adjoint, i] * (u * u * u)
        return out, 4.0
    if op == POW5:
        for i in range(n):
            u = f * table[x, i]
            square = u * u
            table[out, i] = table[adjoint, i] * (square * square)
        return out, 5.0
    if op == POW6:
        for i in range(n):
            table[out, i] = table[adjoint, i] * fifth_power(f * table[x, i])
        return out, 6.0
    if op == LOG:
        for i in range(n):
            table[out, i] = table[adjoint, i] / (f * table[x, i])
        return out, 1.0
    if op == TANH:
        for i in range(n):
            table[out, i] = table[adjoint, i] * (1.0 - table[value, i] * table[value, i])
        return out, 1.0
    if op == ASIN or op == ACOS:
        for i in range(n):
            u = f * table[x, i]
            table[out, i] = table[adjoint, i] / np.sqrt(max(1.0 - u * u, 1e-30))
        return out, 1.0 if op == ASIN else -1.0
    if op == ATAN:
        for i in range(n):
            u = f * table[x, i]
            table[out, i] = table[adjoint, i] / (1.0 + u * u)
        return out, 1.0
    if op == ABS:
        for i in range(n):
            u = f * table[x, i]
            sign = 1.0 if u > 0.0 else (-1.0 if u < 0.0 else 0.0)
            table[out, i] = sign * table[adjoint, i]
        return out, 1.0
    if op == INV:
        for i in range(n):
            table[out, i] = table[adjoint, i] * (table[value, i] * table[value, i])
        return out, -1.0
    if op == POW:
        if side == 0:
            for i in range(n):
                u = f * table[x, i]
                table[out, i] = 0.0 if u == 0.0 else table[adjoint, i] * (table[value, i] * (g * table[y, i])) / u
        else:
            for i in range(n):
                table[out, i] = table[adjoint, i] * (table[value, i] * table[slope, i])
        return out, 1.0
    if op == POWER_FITTED:
        for i in range(n):
            u = f * table[x, i]
            table[out, i] = 0.0 if u == 0.0 else table[adjoint, i] * table[value, i] / u
        return out, exponent
    for i in range(n):
        table[out, i] = np.nan
    return out, 1.0
