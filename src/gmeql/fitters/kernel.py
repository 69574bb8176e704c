"""Compiled CPU kernel: walk flat programs, differentiate them in reverse, fit their constants.

A program is a list of nodes over *slots*. Slots 0..S-1 are the input columns; node k writes slot S + k and reads
slots ``left[k]`` and ``right[k]``, each times a constant of its own where ``left_constant[k]`` (``right_constant[k]``)
is not -1. The last node is the output. Opcodes are those of ``gmeql.formula.operators`` plus the two of ``gmeql.fitters.programs``.

All numbers of one worker lie in one table whose rows hold ``BLOCK`` data rows each: target, root of the weights,
residual, slots, and what the reverse pass needs (``_rows_of``). Up to ``KEPT`` blocks stay in memory between
evaluations, each with a table of its own, so inputs are copied once for many candidates. The loops over data rows have
no branches, call no library and create no views of arrays, so the compiler vectorises them and nothing else is left
beside them; sine, exponential and logarithm are polynomials good to about one unit in the last place.

What need not be computed is not: parts without free constants once a fit, slopes only at points that are accepted,
slopes only towards free constants. A slope is a row times a scalar, so sums, signs and factors cost nothing on the way
back, and the Jacobian column of a constant in a sum is the slot itself. Products of two columns that never change are
taken once.

Legend: ``N`` data rows, ``P`` constants, ``F`` free ones (the first F of P), ``S`` input slots.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from gmeql.fitters.programs import MAX_CONSTANTS, MAX_NODES, POWER_FITTED, POWER_WHOLE
from gmeql.fitters.result import CONVERGED, HOPELESS, NOT_FINITE, STEPS_SPENT
from gmeql.formula.limits import ANGLE_LIMIT, EXPONENTIAL_LIMIT

BLOCK = 256
"""Data rows per block: a row of the table has 2 KiB, and the twenty or so that a program touches stay in cache."""
KEPT = 8
"""Blocks whose slots stay in memory between evaluations; with more data rows each pass computes them anew."""

_FLAGS = {"reassoc", "contract", "nsz", "arcp"}  # never nnan/ninf: non-finite values decide what is rejected
_OPTIONS = dict(cache=True, nogil=True, error_model="numpy", fastmath=_FLAGS)
# The reductions of arguments subtract a constant in two or three parts; put in another order they would lose digits.
_IN_ORDER = _OPTIONS | dict(fastmath={"contract", "nsz"})
# Numba optimises a function anew inside each one that calls it: what is called from one place is pasted there instead.
_INLINE = _OPTIONS | dict(inline="always")

_TWO_OVER_PI = 0.6366197723675814
_HALF_PI_1 = 1.5707963267341256
_HALF_PI_2 = 6.077100506303966e-11
_HALF_PI_3 = 2.0222662487959506e-21
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.693147180369123816490
_LN2_LOW = 1.90821492927058770002e-10
# Adding 1.5 * 2**52 rounds a double to a whole number and leaves that number in its lowest bits.
_ROUNDER = 6755399441055744.0
_ROUNDER_BITS = 0x4338000000000000

# Rows of the table, in each block: three of the data, the slots, then per node what the reverse pass needs.
_TARGET, _SEED, _RESIDUAL, _SLOTS = 0, 1, 2, 3
# What is known of a node
_USES, _MOVES, _ROW, _STATES = 0, 1, 2, 3


@intrinsic
def _bits(_, number):
    """The bits of a double as an integer."""

    def convert(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), convert


@intrinsic
def _double(_, number):
    """The double that has the given bits."""

    def convert(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), convert


@njit(**_IN_ORDER)
def _sine_cosine(table, source, factor, sine, cosine, n):
    """sin and cos of a row times a factor: reduce by multiples of pi/2, two polynomials, swap by quadrant."""
    for i in range(n):
        u = factor * table[source, i]
        rounded = u * _TWO_OVER_PI + _ROUNDER
        quadrant = _bits(rounded)
        q = rounded - _ROUNDER
        r = ((u - q * _HALF_PI_1) - q * _HALF_PI_2) - q * _HALF_PI_3
        z = r * r
        s = r + r * z * (
            -1.66666666666666307295e-1
            + z
            * (
                8.33333333332211858878e-3
                + z
                * (
                    -1.98412698295895385996e-4
                    + z
                    * (2.75573136213857245213e-6 + z * (-2.50507477628578072866e-8 + z * 1.58962301576546568060e-10))
                )
            )
        )
        c = (
            1.0
            - 0.5 * z
            + z
            * z
            * (
                4.16666666666665929218e-2
                + z
                * (
                    -1.38888888888730564116e-3
                    + z
                    * (
                        2.48015872888517045348e-5
                        + z
                        * (
                            -2.75573141792967388112e-7
                            + z * (2.08757008419747316778e-9 + z * -1.13585365213876817300e-11)
                        )
                    )
                )
            )
        )
        odd = (quadrant & 1) != 0
        bad = 0.0 if abs(u) <= ANGLE_LIMIT else np.nan
        table[sine, i] = _double(_bits(c if odd else s) ^ ((quadrant & 2) << 62)) + bad
        table[cosine, i] = _double(_bits(s if odd else c) ^ (((quadrant + 1) & 2) << 62)) + bad


@njit(**_IN_ORDER)
def _exponential(x):
    """exp(x); nan beyond the limit."""
    u = min(max(x, -EXPONENTIAL_LIMIT), EXPONENTIAL_LIMIT)
    rounded = u * _LOG2_E + _ROUNDER
    k = rounded - _ROUNDER
    r = (u - k * _LN2_HIGH) - k * _LN2_LOW
    p = 1.0 + r * (
        1.0
        + r
        * (
            0.5
            + r
            * (
                1.6666666666666666e-1
                + r
                * (
                    4.1666666666666664e-2
                    + r
                    * (
                        8.333333333333333e-3
                        + r
                        * (
                            1.388888888888889e-3
                            + r
                            * (
                                1.984126984126984e-4
                                + r
                                * (
                                    2.48015873015873e-5
                                    + r
                                    * (
                                        2.7557319223985893e-6
                                        + r
                                        * (2.755731922398589e-7 + r * (2.505210838544172e-8 + r * 2.08767569878681e-9))
                                    )
                                )
                            )
                        )
                    )
                )
            )
        )
    )
    power = _double((_bits(rounded) - (_ROUNDER_BITS - 1023)) << 52)
    return p * power + (0.0 if x <= EXPONENTIAL_LIMIT else np.nan)


@njit(**_IN_ORDER)
def _logarithm(x):
    """log(x), nan where x <= 0: exponent off the bits, atanh series on [sqrt(1/2), sqrt(2)]."""
    raw = _bits(x)
    exponent = _double(((raw >> 52) & 0xFFF) + _ROUNDER_BITS) - (_ROUNDER + 1023.0)
    m = _double((raw & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000)
    is_high = m > 1.4142135623730951
    m = 0.5 * m if is_high else m
    e = exponent + 1.0 if is_high else exponent
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = (
        2.0
        * s
        * (
            1.0
            + z
            * (
                3.333333333333333148e-1
                + z
                * (
                    2.0e-1
                    + z
                    * (
                        1.428571428571428492e-1
                        + z
                        * (
                            1.111111111111111049e-1
                            + z
                            * (
                                9.090909090909091161e-2
                                + z
                                * (
                                    7.692307692307692735e-2
                                    + z
                                    * (
                                        6.666666666666666657e-2
                                        + z * (5.882352941176470507e-2 + z * 5.263157894736841814e-2)
                                    )
                                )
                            )
                        )
                    )
                )
            )
        )
    )
    return e * _LN2_HIGH + (p + e * _LN2_LOW) + (0.0 if x > 0.0 and x < np.inf else np.nan)


@njit(**_OPTIONS)
def _whole_power(table, source, exponent, out, spare, n):
    """A row to a whole power, by squaring; ``spare`` is overwritten."""
    count = abs(exponent)
    for i in range(n):
        table[out, i] = 1.0
        table[spare, i] = table[source, i]
    while count > 0:
        if count & 1:
            for i in range(n):
                table[out, i] *= table[spare, i]
        count >>= 1
        if count > 0:
            for i in range(n):
                table[spare, i] *= table[spare, i]
    if exponent < 0:
        for i in range(n):
            table[out, i] = 1.0 / table[out, i]


@njit(**_OPTIONS)
def _apply(table, op, x, f, y, g, exponent, value, slope, spare, n):
    """One node on one block: row ``value`` from rows ``x`` times ``f`` and ``y`` times ``g``.

    Row ``slope`` keeps what the reverse pass would otherwise compute again; ``exponent`` is that of the two powers.
    """
    if op == 0:
        for i in range(n):
            table[value, i] = f * table[x, i]
    elif op == 1:
        for i in range(n):
            table[value, i] = f * table[x, i] + g * table[y, i]
    elif op == 2:
        for i in range(n):
            table[value, i] = f * table[x, i] - g * table[y, i]
    elif op == 3:
        c = f * g
        for i in range(n):
            table[value, i] = c * (table[x, i] * table[y, i])
    elif op == 4:
        for i in range(n):
            inverse = 1.0 / (g * table[y, i])
            table[value, i] = f * table[x, i] * inverse
            table[slope, i] = inverse
    elif op == 5:
        _sine_cosine(table, x, f, value, slope, n)
    elif op == 6:
        _sine_cosine(table, x, f, slope, value, n)
    elif op == 7:
        for i in range(n):
            table[value, i] = np.sqrt(f * table[x, i])
    elif op == 8:
        for i in range(n):
            u = f * table[x, i]
            table[value, i] = u * u
    elif op == 9:
        for i in range(n):
            u = f * table[x, i]
            table[value, i] = u * u * u
    elif op == 10:
        for i in range(n):
            u = f * table[x, i]
            square = u * u
            table[value, i] = square * square
    elif op == 11:
        for i in range(n):
            u = f * table[x, i]
            square = u * u
            table[value, i] = square * square * u
    elif op == 12:
        for i in range(n):
            u = f * table[x, i]
            square = u * u
            table[value, i] = square * square * square
    elif op == 13:
        for i in range(n):
            table[value, i] = _exponential(f * table[x, i])
    elif op == 14:
        for i in range(n):
            table[value, i] = _logarithm(f * table[x, i])
    elif op == 15:
        for i in range(n):
            u = f * table[x, i]
            decay = _exponential(-2.0 * abs(u))
            t = (1.0 - decay) / (1.0 + decay)
            table[value, i] = t if u >= 0.0 else -t
    elif op == 16:
        for i in range(n):
            table[value, i] = np.arcsin(f * table[x, i])
    elif op == 17:
        for i in range(n):
            table[value, i] = np.arccos(f * table[x, i])
    elif op == 18:
        for i in range(n):
            table[value, i] = np.arctan(f * table[x, i])
    elif op == 19:
        for i in range(n):
            table[value, i] = abs(f * table[x, i])
    elif op == 20:
        for i in range(n):
            table[value, i] = 1.0 / (f * table[x, i])
    elif op == 21:
        for i in range(n):
            table[value, i] = -f * table[x, i]
    elif op == 22:
        for i in range(n):
            logarithm = _logarithm(f * table[x, i])
            table[slope, i] = logarithm
            table[value, i] = _exponential(g * table[y, i] * logarithm)
    elif op == POWER_FITTED:
        for i in range(n):
            logarithm = _logarithm(f * table[x, i])
            table[slope, i] = logarithm
            table[value, i] = _exponential(exponent * logarithm)
    elif op == POWER_WHOLE:
        power = int(exponent)
        for i in range(n):
            table[value, i] = f * table[x, i]
        _whole_power(table, value, power - 1, slope, spare, n)
        for i in range(n):
            table[value, i] = table[slope, i] * table[value, i] if power != 0 else 1.0
    else:
        for i in range(n):
            table[value, i] = np.nan


@njit(**_INLINE)
def _is_binary(op):
    return (op >= 1 and op <= 4) or op == 22


@njit(**_INLINE)
def _rows_of(n_slots):
    """First rows of: kept slopes, slopes to left inputs, to right inputs, sums of slopes, Jacobian; and their end."""
    slope = _SLOTS + n_slots + MAX_NODES
    return (
        slope, slope + MAX_NODES, slope + 2 * MAX_NODES, slope + 3 * MAX_NODES, slope + 4 * MAX_NODES,
        slope + 4 * MAX_NODES + MAX_CONSTANTS,
    )  # fmt: skip


@njit(**_INLINE)
def _plan(program, length, n_free, n_slots, nodes):
    """How often each node is read by what the output depends on, and whether free constants move it."""
    for k in range(length):
        nodes[_USES, k] = 0
    nodes[_USES, length - 1] = 1
    for k in range(length - 1, -1, -1):
        if nodes[_USES, k] > 0:
            if program[1, k] >= n_slots:
                nodes[_USES, program[1, k] - n_slots] += 1
            if _is_binary(program[0, k]) and program[2, k] >= n_slots:
                nodes[_USES, program[2, k] - n_slots] += 1
    for k in range(length):
        op = program[0, k]
        moves = 0 <= program[3, k] < n_free or (program[1, k] >= n_slots and nodes[_MOVES, program[1, k] - n_slots] > 0)
        if _is_binary(op) or op == POWER_FITTED:
            moves = moves or 0 <= program[4, k] < n_free
        if _is_binary(op) and program[2, k] >= n_slots:
            moves = moves or nodes[_MOVES, program[2, k] - n_slots] > 0
        nodes[_MOVES, k] = 1 if moves else 0


@njit(**_INLINE)
def _load(program, length, inputs, low, n, table, base):
    """Copy the input slots that a program reads, rows low..low+n, into the table."""
    n_slots = inputs.shape[0]
    for k in range(length):
        for side in range(1, 3 if _is_binary(program[0, k]) else 2):
            slot = program[side, k]
            if slot < n_slots:
                for i in range(n):
                    table[base + _SLOTS + slot, i] = inputs[slot, low + i]


@njit(**_INLINE)
def _forward(program, length, constants, n_slots, table, base, n, nodes, moving_only):
    """Fill the slots of the nodes that the output depends on; with ``moving_only`` those that constants move."""
    slope, spare, _, _, _, _ = _rows_of(n_slots)
    for k in range(length):
        if nodes[_USES, k] == 0 or (moving_only and nodes[_MOVES, k] == 0):
            continue
        op = program[0, k]
        f = constants[program[3, k]] if program[3, k] >= 0 else 1.0
        g = 1.0
        y = program[1, k]
        exponent = 0.0
        if _is_binary(op):
            g = constants[program[4, k]] if program[4, k] >= 0 else 1.0
            y = program[2, k]
        elif op == POWER_FITTED:
            exponent = constants[program[4, k]]
        elif op == POWER_WHOLE:
            exponent = float(program[2, k])
        first = base + _SLOTS
        _apply(
            table,
            op,
            first + program[1, k],
            f,
            first + y,
            g,
            exponent,
            first + n_slots + k,
            base + slope + k,
            base + spare + k,
            n,
        )


@njit(**_INLINE)
def _times(table, a, b, out, n):
    for i in range(n):
        table[out, i] = table[a, i] * table[b, i]


@njit(**_OPTIONS)
def _slope_row(table, op, side, adjoint, is_one, x, f, y, g, exponent, value, slope, out, n):
    """Slope of the output to one weighted input of a node, from the slope to the node in row ``adjoint``.

    Returns (row, factor): the slope is the row times the factor. It is written to row ``out`` unless it exists already.
    ``is_one`` says that row ``adjoint`` holds ones.
    """
    if op <= 2 or op == 21:
        return adjoint, -1.0 if (op == 2 and side == 1) or op == 21 else 1.0
    if op == 3:
        other, factor = (y, g) if side == 0 else (x, f)
        if is_one:
            return other, factor
        _times(table, adjoint, other, out, n)
        return out, factor
    if op == 4:
        if side == 0:
            if is_one:
                return slope, 1.0
            _times(table, adjoint, slope, out, n)
            return out, 1.0
        for i in range(n):
            table[out, i] = table[adjoint, i] * table[value, i] * table[slope, i]
        return out, -1.0
    if op == 5 or op == 6:
        factor = 1.0 if op == 5 else -1.0
        if is_one:
            return slope, factor
        _times(table, adjoint, slope, out, n)
        return out, factor
    if op == 7:
        for i in range(n):
            table[out, i] = table[adjoint, i] / max(table[value, i], 1e-150)
        return out, 0.5
    if op == 8:
        if is_one:
            return x, 2.0 * f
        _times(table, adjoint, x, out, n)
        return out, 2.0 * f
    if op == 9:
        for i in range(n):
            u = f * table[x, i]
            table[out, i] = table[adjoint, i] * (u * u)
        return out, 3.0
    if op == 10:
        for i in range(n):
            u = f * table[x, i]
            table[out, i] = table[adjoint, i] * (u * u * u)
        return out, 4.0
    if op == 11:
        for i in range(n):
            u = f * table[x, i]
            square = u * u
            table[out, i] = table[adjoint, i] * (square * square)
        return out, 5.0
    if op == 12:
        for i in range(n):
            u = f * table[x, i]
            square = u * u
            table[out, i] = table[adjoint, i] * (square * square * u)
        return out, 6.0
    if op == 13:
        if is_one:
            return value, 1.0
        _times(table, adjoint, value, out, n)
        return out, 1.0
    if op == 14:
        for i in range(n):
            table[out, i] = table[adjoint, i] / (f * table[x, i])
        return out, 1.0
    if op == 15:
        for i in range(n):
            table[out, i] = table[adjoint, i] * (1.0 - table[value, i] * table[value, i])
        return out, 1.0
    if op == 16 or op == 17:
        for i in range(n):
            u = f * table[x, i]
            table[out, i] = table[adjoint, i] / np.sqrt(max(1.0 - u * u, 1e-30))
        return out, 1.0 if op == 16 else -1.0
    if op == 18:
        for i in range(n):
            u = f * table[x, i]
            table[out, i] = table[adjoint, i] / (1.0 + u * u)
        return out, 1.0
    if op == 19:
        for i in range(n):
            u = f * table[x, i]
            sign = 1.0 if u > 0.0 else (-1.0 if u < 0.0 else 0.0)
            table[out, i] = sign * table[adjoint, i]
        return out, 1.0
    if op == 20:
        for i in range(n):
            table[out, i] = table[adjoint, i] * (table[value, i] * table[value, i])
        return out, -1.0
    if op == 22:
        if side == 0:
            for i in range(n):
                table[out, i] = table[adjoint, i] * (table[value, i] * (g * table[y, i])) / (f * table[x, i])
        else:
            for i in range(n):
                table[out, i] = table[adjoint, i] * (table[value, i] * table[slope, i])
        return out, 1.0
    if op == POWER_FITTED:
        for i in range(n):
            table[out, i] = table[adjoint, i] * table[value, i] / (f * table[x, i])
        return out, exponent
    if op == POWER_WHOLE:
        _times(table, adjoint, slope, out, n)
        return out, exponent
    for i in range(n):
        table[out, i] = np.nan
    return out, 1.0


@njit(**_INLINE)
def _backward(
    program, length, constants, n_free, n_slots, table, base, n, unit, nodes, scales, columns, column_scales, again
):
    """Reverse pass on one block: the Jacobian column of constant p is row ``columns[0, p]`` times ``column_scales[p]``.

    Every column is times the root of the weights. ``columns[1, p]`` tells that the row never changes; with ``again``
    such rows are there already. -1 marks a constant that nothing depends on.
    """
    slope, left_out, right_out, sums, jacobian, _ = _rows_of(n_slots)
    first = base + _SLOTS
    seed = base + _SEED
    for p in range(n_free):
        columns[0, p] = -1
        columns[1, p] = 0
    for k in range(length):
        nodes[_ROW, k] = -1
    nodes[_ROW, length - 1] = seed
    scales[length - 1] = 1.0
    for k in range(length - 1, -1, -1):
        if nodes[_USES, k] == 0 or nodes[_MOVES, k] == 0:
            continue
        op = program[0, k]
        adjoint = nodes[_ROW, k]
        scale = scales[k]
        f = constants[program[3, k]] if program[3, k] >= 0 else 1.0
        g = 1.0
        y = program[1, k]
        exponent = 0.0
        sides = 1
        if _is_binary(op):
            g = constants[program[4, k]] if program[4, k] >= 0 else 1.0
            y = program[2, k]
            sides = 2
        elif op == POWER_FITTED:
            exponent = constants[program[4, k]]
            p = program[4, k]
            if p < n_free:
                for i in range(n):
                    table[base + jacobian + p, i] = (
                        table[adjoint, i] * table[first + n_slots + k, i] * table[base + slope + k, i]
                    )
                columns[0, p] = base + jacobian + p
                column_scales[p] = scale
        elif op == POWER_WHOLE:
            exponent = float(program[2, k])
        for side in range(sides):
            source = program[1 + side, k]
            p = program[3 + side, k]
            below = source - n_slots
            is_free = 0 <= p < n_free
            goes_on = below >= 0 and nodes[_MOVES, max(below, 0)] > 0
            if not (is_free or goes_on):
                continue
            out = base + k + (left_out if side == 0 else right_out)
            row, factor = _slope_row(
                table,
                op,
                side,
                adjoint,
                unit and adjoint == seed,
                first + program[1, k],
                f,
                first + y,
                g,
                exponent,
                first + n_slots + k,
                base + slope + k,
                out,
                n,
            )
            factor *= scale
            if is_free:
                column_scales[p] = factor
                columns[1, p] = 1 if row == seed and not goes_on else 0
                if unit and row == seed:
                    columns[0, p] = first + source
                else:
                    columns[0, p] = base + jacobian + p
                    if not (again and columns[1, p]):
                        _times(table, row, first + source, base + jacobian + p, n)
            if goes_on:
                factor *= f if side == 0 else g
                if nodes[_USES, below] == 1:
                    nodes[_ROW, below] = row
                    scales[below] = factor
                elif nodes[_ROW, below] < 0:
                    nodes[_ROW, below] = base + sums + below
                    scales[below] = 1.0
                    for i in range(n):
                        table[base + sums + below, i] = factor * table[row, i]
                else:
                    for i in range(n):
                        table[base + sums + below, i] += factor * table[row, i]


@njit(**_OPTIONS)
def _four_products(table, a, b, c, d, e, n):
    """Sums over n of row a times rows b, c, d, e."""
    ab = 0.0
    ac = 0.0
    ad = 0.0
    ae = 0.0
    for i in range(n):
        x = table[a, i]
        ab += x * table[b, i]
        ac += x * table[c, i]
        ad += x * table[d, i]
        ae += x * table[e, i]
    return ab, ac, ad, ae


@njit(**_INLINE)
def _add_products(table, base, n, n_free, columns, again, wanted, places, products):
    """Add this block to the products of columns with each other and, in the last place, with the residual."""
    for p in range(n_free):
        if columns[0, p] < 0:
            continue
        count = 1
        wanted[0] = base + _RESIDUAL
        places[0] = MAX_CONSTANTS
        for q in range(p + 1):
            if columns[0, q] >= 0 and not (again and columns[1, p] and columns[1, q]):
                wanted[count] = columns[0, q]
                places[count] = q
                count += 1
        for t in range(count, count + 3):
            wanted[t] = base + _RESIDUAL
            places[t] = MAX_CONSTANTS + 1
        for t in range(0, count, 4):
            b, c, d, e = _four_products(table, columns[0, p], wanted[t], wanted[t + 1], wanted[t + 2], wanted[t + 3], n)
            products[p, places[t]] += b
            products[p, places[t + 1]] += c
            products[p, places[t + 2]] += d
            products[p, places[t + 3]] += e


@njit(**_INLINE)
def _residual(table, base, output, n):
    """Residuals times the root of the weights; the sum of their squares."""
    total = 0.0
    for i in range(n):
        r = table[base + _SEED, i] * (table[output, i] - table[base + _TARGET, i])
        table[base + _RESIDUAL, i] = r
        total += r * r
    return total


@njit(**_INLINE)
def _load_block(target, roots, low, n, table, base):
    for i in range(n):
        table[base + _TARGET, i] = target[low + i]
        table[base + _SEED, i] = roots[low + i]


@njit(**_OPTIONS)
def _evaluate(
    program,
    length,
    constants,
    n_free,
    inputs,
    target,
    roots,
    n_rows,
    mass,
    limit,
    unit,
    again,
    with_slopes,
    hessian,
    gradient,
    work,
):
    """Weighted mean squared error over the first ``n_rows`` rows; inf if it is not finite or not below ``limit``.

    With ``with_slopes`` the sums JᵀWJ, JᵀWr instead, at the constants that were last evaluated without; inf if they
    are not finite. ``again`` is 0 at the first point of a fit: at others, what no constant moves is there already.
    """
    table, nodes, scales, columns, column_scales, wanted, places, products = work[:8]
    n_slots = inputs.shape[0]
    height = _rows_of(n_slots)[5]
    kept = n_rows <= KEPT * BLOCK
    total = 0.0
    if with_slopes:
        for p in range(n_free):
            products[p, MAX_CONSTANTS] = 0.0
            for q in range(p + 1):
                if not (again and columns[1, p] and columns[1, q]):
                    products[p, q] = 0.0
    for low in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - low)
        base = (low // BLOCK) * height if kept else 0
        if not kept:
            _load_block(target, roots, low, n, table, base)
            _load(program, length, inputs, low, n, table, base)
        if not (kept and with_slopes):
            _forward(program, length, constants, n_slots, table, base, n, nodes, again and kept)
            total += _residual(table, base, base + _SLOTS + n_slots + length - 1, n)
            if not total < limit * mass:
                return np.inf
        if with_slopes:
            _backward(
                program,
                length,
                constants,
                n_free,
                n_slots,
                table,
                base,
                n,
                unit,
                nodes,
                scales,
                columns,
                column_scales,
                again and kept,
            )
            _add_products(table, base, n, n_free, columns, again, wanted, places, products)
    if with_slopes:
        for p in range(n_free):
            if columns[0, p] < 0:
                column_scales[p] = 0.0
            gradient[p] = column_scales[p] * products[p, MAX_CONSTANTS]
            for q in range(p + 1):
                hessian[p, q] = column_scales[p] * column_scales[q] * products[p, q]
            if not (np.isfinite(gradient[p]) and np.isfinite(hessian[p, p])):
                return np.inf
    return total / mass


@njit(**_OPTIONS)
def _solve_damped(hessian, gradient, damping, n, factor, step):
    """Cholesky solve of (H + damping diag(H)) step = gradient; False where H is not positive definite."""
    for p in range(n):
        for q in range(p + 1):
            total = hessian[p, q]
            if p == q:
                total += damping * hessian[p, p] + 1e-300
            for r in range(q):
                total -= factor[p, r] * factor[q, r]
            if p == q:
                if not total > 1e-14 * hessian[p, p]:
                    return False
                factor[p, p] = np.sqrt(total)
            else:
                factor[p, q] = total / factor[q, q]
    for p in range(n):
        total = gradient[p]
        for r in range(p):
            total -= factor[p, r] * step[r]
        step[p] = total / factor[p, p]
    for p in range(n - 1, -1, -1):
        total = step[p]
        for r in range(p + 1, n):
            total -= factor[r, p] * step[r]
        step[p] = total / factor[p, p]
    return True


@njit(**_OPTIONS)
def make_work(n_slots, n_rows):
    """Scratch memory of one worker for programs over ``n_slots`` input slots and ``n_rows`` data rows."""
    blocks = min((n_rows + BLOCK - 1) // BLOCK, KEPT) if n_rows <= KEPT * BLOCK else 1
    table = np.empty((_rows_of(n_slots)[5] * blocks, BLOCK))
    nodes = np.empty((_STATES, MAX_NODES), np.int64)
    scales = np.empty(MAX_NODES)
    columns = np.empty((2, MAX_CONSTANTS), np.int64)
    column_scales = np.empty(MAX_CONSTANTS)
    wanted = np.empty(MAX_CONSTANTS + 8, np.int64)
    places = np.empty(MAX_CONSTANTS + 8, np.int64)
    products = np.zeros((MAX_CONSTANTS, MAX_CONSTANTS + 2))
    hessian = np.empty((2, MAX_CONSTANTS, MAX_CONSTANTS))
    gradient = np.empty((2, MAX_CONSTANTS))
    factor = np.empty((MAX_CONSTANTS, MAX_CONSTANTS))
    step = np.empty(MAX_CONSTANTS)
    trial = np.empty(MAX_CONSTANTS)
    return (
        table, nodes, scales, columns, column_scales, wanted, places, products, hessian[0], hessian[1], gradient[0],
        gradient[1], factor, step, trial,
    )  # fmt: skip


@njit(**_INLINE)
def _load_all(first, last, programs, lengths, inputs, target, roots, n_rows, work):
    """Copy what candidates first..last-1 read into the table, where its blocks stay there."""
    table = work[0]
    is_read = np.zeros(inputs.shape[0], np.bool_)
    for b in range(first, last):
        for k in range(lengths[b]):
            for side in range(1, 3 if _is_binary(programs[b, 0, k]) else 2):
                if programs[b, side, k] < inputs.shape[0]:
                    is_read[programs[b, side, k]] = True
    height = _rows_of(inputs.shape[0])[5]
    if n_rows > KEPT * BLOCK:
        return
    for low in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - low)
        base = (low // BLOCK) * height
        _load_block(target, roots, low, n, table, base)
        for slot in np.flatnonzero(is_read):
            for i in range(n):
                table[base + _SLOTS + slot, i] = inputs[slot, low + i]


@njit(**_INLINE)
def _fit_one(
    program,
    length,
    constants,
    n_free,
    inputs,
    target,
    roots,
    n_rows,
    mass,
    unit,
    max_steps,
    tolerance,
    hopeless,
    forced,
    work,
):
    """Levenberg-Marquardt on one program; ``constants`` is overwritten by the fit. Returns (loss, code, steps).

    ``roots`` are the square roots of the weights, ``mass`` the sum of the weights of these rows, ``unit`` says that all
    are 1. ``hopeless`` is the loss that a candidate must come near to be worth more steps; ``forced`` takes exactly
    ``max_steps`` steps (benchmarks).
    """
    hessian, trial_hessian, gradient, trial_gradient, factor, step, trial = work[8:15]
    for p in range(len(constants)):
        trial[p] = constants[p]
    loss = np.inf
    damping = 1e-2
    rejected = 0
    code = STEPS_SPENT
    taken = 0  # the start itself counts as the first
    solved = True
    while True:
        trial_loss = np.inf
        slopes_sum = np.inf
        gain = 1.0
        ends = n_free == 0
        again = min(taken, 1)
        for with_slopes in range(2 if solved else 0):
            if with_slopes and (ends or not trial_loss < loss):
                break
            result = _evaluate(
                program,
                length,
                trial,
                n_free,
                inputs,
                target,
                roots,
                n_rows,
                mass,
                loss,
                unit,
                again,
                with_slopes,
                trial_hessian,
                trial_gradient,
                work,
            )
            if with_slopes:
                slopes_sum = result
            else:
                trial_loss = result
                if taken > 0:
                    gain = (loss - trial_loss) / loss
                    ends = ends or taken >= max_steps or (gain < tolerance and not forced)
        taken += 1 if solved else 0
        better = trial_loss < loss and (ends or slopes_sum < np.inf)
        if better:
            loss = trial_loss
            for p in range(n_free):
                constants[p] = trial[p]
            hessian, trial_hessian = trial_hessian, hessian
            gradient, trial_gradient = trial_gradient, gradient
            damping = max(damping * 0.1, 1e-14)
            rejected = 0
            if n_free == 0 or (not forced and (gain < tolerance or (loss < 1e-300 and taken <= max_steps))):
                code = CONVERGED
                break
            if not forced and taken > 3 and loss > 4.0 * hopeless and gain < 0.3:
                code = HOPELESS
                break
        else:
            if taken == 1:
                code = NOT_FINITE
                break
            damping = damping * 10.0
            rejected += 1
            if rejected > 5 and not forced:
                code = CONVERGED
                break
            if not solved and damping > 1e8:
                break
        if taken > max_steps:
            break
        solved = _solve_damped(hessian, gradient, damping, n_free, factor, step)
        if solved:
            for p in range(n_free):
                trial[p] = constants[p] - step[p]
    return loss, code, taken


@njit(**_INLINE)
def _sum(values, n):
    total = 0.0
    for i in range(n):
        total += values[i]
    return total


@njit(**_INLINE)
def _variance(target, weights, n):
    """Weighted variance of the first n values, plus a tiny number."""
    mass = 0.0
    first = 0.0
    second = 0.0
    for i in range(n):
        mass += weights[i]
        first += weights[i] * target[i]
    mean = first / mass
    for i in range(n):
        second += weights[i] * (target[i] - mean) ** 2
    return second / mass + 1e-300


@njit(**_OPTIONS)
def fit_many(
    first,
    last,
    programs,
    lengths,
    n_free,
    constants,
    losses,
    codes,
    steps,
    inputs,
    target,
    weights,
    screen_rows,
    max_steps,
    tolerance,
    hopeless,
    forced,
):
    """Fit candidates first..last-1. With ``screen_rows`` < N, only what stays promising there sees all rows."""
    n_slots, n_rows = inputs.shape
    work = make_work(n_slots, n_rows)
    roots = np.sqrt(weights)
    n_unit = 0
    for i in range(n_rows):
        n_unit += weights[i] == 1.0
    unit = n_unit == n_rows
    mass = _sum(weights, n_rows)
    screen_mass = _sum(weights, screen_rows)
    # the same relative error is another loss where the few rows vary more, or less, than all do
    screen_hopeless = hopeless * _variance(target, weights, screen_rows) / _variance(target, weights, n_rows)
    _load_all(first, last, programs, lengths, inputs, target, roots, n_rows, work)
    for b in range(first, last):
        _plan(programs[b], lengths[b], n_free[b], n_slots, work[1])
        rows = screen_rows
        while True:
            goal = hopeless if rows == n_rows else screen_hopeless
            losses[b], codes[b], steps[b] = _fit_one(
                programs[b],
                lengths[b],
                constants[b],
                n_free[b],
                inputs,
                target,
                roots,
                rows,
                screen_mass if rows < n_rows else mass,
                unit,
                max_steps,
                tolerance,
                goal,
                forced,
                work,
            )
            if rows == n_rows:
                break
            rows = n_rows
            if not losses[b] < 2.0 * goal:
                codes[b] = HOPELESS if np.isfinite(losses[b]) else NOT_FINITE
                break


@njit(**_OPTIONS)
def jacobian_one(program, length, constants, n_free, inputs, out, jacobian_out):
    """Output [N] and Jacobian [F, N] for every row (tests)."""
    n_slots, n_rows = inputs.shape
    table, nodes, scales, columns, column_scales = make_work(n_slots, BLOCK)[:5]
    _plan(program, length, n_free, n_slots, nodes)
    for low in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - low)
        _load(program, length, inputs, low, n, table, 0)
        _forward(program, length, constants, n_slots, table, 0, n, nodes, 0)
        for i in range(n):
            table[_SEED, i] = 1.0
            out[low + i] = table[_SLOTS + n_slots + length - 1, i]
        _backward(
            program, length, constants, n_free, n_slots, table, 0, n, False, nodes, scales, columns, column_scales, 0
        )
        for p in range(n_free):
            for i in range(n):
                jacobian_out[p, low + i] = column_scales[p] * table[columns[0, p], i] if columns[0, p] >= 0 else 0.0
