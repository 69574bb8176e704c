"""The loss of one program, and the sums over rows that a step of its fit needs."""

from __future__ import annotations

import numpy as np
from numba import boolean, int64, void

from gmeql.fitters.compiled import compiled, inner, part
from gmeql.fitters.kernel.memory import BLOCK, KEPT, RESIDUAL, SEED, SLOTS, TARGET, load_block, rows_of
from gmeql.fitters.kernel.options import FAST, FAST_INLINE, INDICES, TABLE
from gmeql.fitters.kernel.tape import backward, forward, load
from gmeql.fitters.opcodes import MAX_CONSTANTS


@inner(**FAST)
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


@part(void(TABLE, int64, int64, int64, INDICES, boolean, int64[::1], int64[::1], TABLE), **FAST)
def _add_products(table, base, n, n_free, columns, again, wanted, places, products):
    """Add this block to the products of columns with each other and, in the last place, with the residual."""
    for p in range(n_free):
        if columns[0, p] < 0:
            continue
        count = 1
        wanted[0] = base + RESIDUAL
        places[0] = MAX_CONSTANTS
        for q in range(p + 1):
            if columns[0, q] >= 0 and not (again and columns[1, p] and columns[1, q]):
                wanted[count] = columns[0, q]
                places[count] = q
                count += 1
        for t in range(count, count + 3):
            wanted[t] = base + RESIDUAL
            places[t] = MAX_CONSTANTS + 1
        for t in range(0, count, 4):
            b, c, d, e = _four_products(table, columns[0, p], wanted[t], wanted[t + 1], wanted[t + 2], wanted[t + 3], n)
            products[p, places[t]] += b
            products[p, places[t + 1]] += c
            products[p, places[t + 2]] += d
            products[p, places[t + 3]] += e


@compiled(**FAST_INLINE)
def _residual(table, base, output, n):
    """Residuals times the root of the weights; the sum of their squares."""
    total = 0.0
    for i in range(n):
        r = table[base + SEED, i] * (table[output, i] - table[base + TARGET, i])
        table[base + RESIDUAL, i] = r
        total += r * r
    return total


@compiled(**FAST_INLINE)
def evaluate(
    program, length, constants, n_free, inputs, target, roots, unit, n_rows, mass, limit, again, with_slopes, hessian,
    gradient, table, nodes, scales, columns, column_scales, wanted, places, products,
):  # fmt: skip
    """Weighted mean squared error over the first `n_rows` rows; inf if it is not finite or not below `limit`.

    With `with_slopes` the sums JᵀWJ, JᵀWr instead, at the constants that were last evaluated without; inf if they
    are not finite. `roots` are the square roots of the weights,
    `unit` says that all are 1, `mass` is the sum of those of these rows. `again` is 0 at the first point of a fit: at others,
    what no constant moves is there already. The others are those of `Work`.
    """
    n_slots = inputs.shape[0]
    height = rows_of(n_slots)[5]
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
            load_block(target, roots, low, n, table, base)
            load(program, length, inputs, low, n, table, base)
        if not (kept and with_slopes):
            forward(program, length, constants, n_slots, table, base, n, nodes, again and kept)
            total += _residual(table, base, base + SLOTS + n_slots + length - 1, n)
            if not total < limit * mass:
                return np.inf
        if with_slopes:
            backward(
                program, length, constants, n_free, n_slots, table, base, n, unit, nodes, scales, columns, column_scales,
                again and kept,
            )  # fmt: skip
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
