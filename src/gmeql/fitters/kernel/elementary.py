"""Sine, cosine, exponential, logarithm and whole powers that the compiler can vectorise: polynomials, no branches."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import float64, int64, types, void
from numba.extending import intrinsic

from gmeql.fitters.compiled import inner, part
from gmeql.fitters.kernel.options import FAST, IN_ORDER, TABLE
from gmeql.formula.limits import ANGLE_LIMIT, EXPONENTIAL_LIMIT

_TWO_OVER_PI = 0.6366197723675814
# pi/2 in parts of 24 bits, of which 2**29 times each of the first three is exact.
_HALF_PI_1 = 1.570796251296997
_HALF_PI_2 = 7.549789415861596e-08
_HALF_PI_3 = 5.390302529957765e-15
_HALF_PI_4 = 3.2820035428735005e-22
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.693147180369123816490
_LN2_LOW = 1.90821492927058770002e-10
# Adding 1.5 * 2**52 rounds a double to a whole number and leaves that number in its lowest bits.
_ROUNDER = 6755399441055744.0
_ROUNDER_BITS = 0x4338000000000000


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


@part(void(TABLE, int64, float64, int64, int64, int64), **IN_ORDER)
def sine_cosine(table, source, factor, sine, cosine, n):
    """sin and cos of a row times a factor: reduce by multiples of pi/2, two polynomials, swap by quadrant."""
    for i in range(n):
        u = factor * table[source, i]
        rounded = u * _TWO_OVER_PI + _ROUNDER
        quadrant = _bits(rounded)
        q = rounded - _ROUNDER
        r = (((u - q * _HALF_PI_1) - q * _HALF_PI_2) - q * _HALF_PI_3) - q * _HALF_PI_4
        z = r * r
        s = 1.58962301576546568060e-10
        s = -2.50507477628578072866e-8 + z * s
        s = 2.75573136213857245213e-6 + z * s
        s = -1.98412698295895385996e-4 + z * s
        s = 8.33333333332211858878e-3 + z * s
        s = -1.66666666666666307295e-1 + z * s
        s = r + r * z * s
        c = -1.13585365213876817300e-11
        c = 2.08757008419747316778e-9 + z * c
        c = -2.75573141792967388112e-7 + z * c
        c = 2.48015872888517045348e-5 + z * c
        c = -1.38888888888730564116e-3 + z * c
        c = 4.16666666666665929218e-2 + z * c
        c = 1.0 - 0.5 * z + z * z * c
        odd = (quadrant & 1) != 0
        bad = 0.0 if abs(u) <= ANGLE_LIMIT else np.nan
        table[sine, i] = _double(_bits(c if odd else s) ^ ((quadrant & 2) << 62)) + bad
        table[cosine, i] = _double(_bits(s if odd else c) ^ (((quadrant + 1) & 2) << 62)) + bad


@inner(**IN_ORDER)
def exponential(x):
    """exp(x); nan beyond the limit."""
    u = min(max(x, -EXPONENTIAL_LIMIT), EXPONENTIAL_LIMIT)
    rounded = u * _LOG2_E + _ROUNDER
    k = rounded - _ROUNDER
    r = (u - k * _LN2_HIGH) - k * _LN2_LOW
    p = 2.08767569878681e-9
    p = 2.505210838544172e-8 + r * p
    p = 2.755731922398589e-7 + r * p
    p = 2.7557319223985893e-6 + r * p
    p = 2.48015873015873e-5 + r * p
    p = 1.984126984126984e-4 + r * p
    p = 1.388888888888889e-3 + r * p
    p = 8.333333333333333e-3 + r * p
    p = 4.1666666666666664e-2 + r * p
    p = 1.6666666666666666e-1 + r * p
    p = 0.5 + r * p
    p = 1.0 + r * p
    p = 1.0 + r * p
    power = _double((_bits(rounded) - (_ROUNDER_BITS - 1023)) << 52)
    return p * power + (0.0 if x <= EXPONENTIAL_LIMIT else np.nan)


@inner(**IN_ORDER)
def logarithm(x):
    """log(x), nan where x <= 0: exponent off the bits, atanh series on [sqrt(1/2), sqrt(2)]."""
    raw = _bits(x)
    exponent = _double(((raw >> 52) & 0xFFF) + _ROUNDER_BITS) - (_ROUNDER + 1023.0)
    m = _double((raw & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000)
    is_high = m > 1.4142135623730951
    m = 0.5 * m if is_high else m
    e = exponent + 1.0 if is_high else exponent
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 5.263157894736841814e-2
    p = 5.882352941176470507e-2 + z * p
    p = 6.666666666666666657e-2 + z * p
    p = 7.692307692307692735e-2 + z * p
    p = 9.090909090909091161e-2 + z * p
    p = 1.111111111111111049e-1 + z * p
    p = 1.428571428571428492e-1 + z * p
    p = 2.0e-1 + z * p
    p = 3.333333333333333148e-1 + z * p
    p = 1.0 + z * p
    p = 2.0 * s * p
    return e * _LN2_HIGH + (p + e * _LN2_LOW) + (0.0 if x > 0.0 and x < np.inf else np.nan)


@inner(**IN_ORDER)
def fifth_power(x):
    """x**5. In order: left free, the compiler multiplies one way where it pastes the caller and another where not, so
    that a process that has just compiled the kernel would fit other last digits than one that loads it."""
    square = x * x
    return square * square * x


@part(void(TABLE, int64, int64, int64, int64, int64), **FAST)
def whole_power(table, source, exponent, out, spare, n):
    """A row to a whole power, by squaring; row `spare` is overwritten."""
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
