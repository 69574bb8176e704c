"""Programs as right sides of differential equations, integrated for many lanes side by side.

A lane is one start value with parameters of its own. Explicit Runge-Kutta steps of any tableau; all lanes take the same
number of steps, each of its own size.

Legend: `Z` states, `W` known columns (inputs, time), `K` parameters, `M` lanes, `B` pieces, `T` steps, `Q` stages.
"""

from __future__ import annotations

import numpy as np

from gmeql.fitters.compiled import compiled
from gmeql.fitters.kernel.memory import BLOCK
from gmeql.fitters.kernel.node import apply, is_binary
from gmeql.fitters.kernel.options import FAST, FAST_INLINE
from gmeql.fitters.opcodes import MAX_NODES, POWER_FITTED, POWER_WHOLE


@compiled(**FAST_INLINE)
def right_sides(programs, lengths, constants, n_slots, table, slopes, n):
    """Fill `slopes` [Z, n] with what the programs make of the input slots in the first rows of the table."""
    scratch = n_slots + MAX_NODES
    for e in range(len(lengths)):
        for k in range(lengths[e]):
            op = programs[e, 0, k]
            f = constants[e, programs[e, 3, k]] if programs[e, 3, k] >= 0 else 1.0
            g, y, exponent = 1.0, programs[e, 1, k], 0.0
            if is_binary(op):
                g = constants[e, programs[e, 4, k]] if programs[e, 4, k] >= 0 else 1.0
                y = programs[e, 2, k]
            elif op == POWER_FITTED:
                exponent = constants[e, programs[e, 4, k]]
            elif op == POWER_WHOLE:
                exponent = float(programs[e, 2, k])
            apply(table, op, programs[e, 1, k], f, y, g, exponent, n_slots + k, scratch, scratch + 1, n)
        for i in range(n):
            slopes[e, i] = table[n_slots + lengths[e] - 1, i]


@compiled(**FAST)
def integrate(programs, lengths, constants, starts, parameters, piece, sizes, ends, known, A, B, bound, path):
    """Fill `path` [Z, intervals + 1, M] with the states at the ends of the intervals.

    Programs [Z, 5, MAX_NODES] read the slots of Z states, W known columns and K parameters; `starts` [Z, M],
    `parameters` [K, M], `piece` [M] the piece of a lane, `sizes` [T, B] of the steps, `ends` [T] whether an interval ends
    with a step, `known` [T, Q, W, B], tableau `A` [Q, Q] and `B` [Q], `bound` [Z] where states are cut off.
    """
    Z, M = starts.shape
    W, K, Q = known.shape[2], len(parameters), len(B)
    n_variables = Z + W + K
    n_slots = 2 * n_variables + 1
    table = np.ones((n_slots + MAX_NODES + 2, BLOCK))
    slopes = np.empty((Q, Z, BLOCK))
    state = np.empty((Z, BLOCK))
    for low in range(0, M, BLOCK):
        n = min(BLOCK, M - low)
        for k in range(K):
            for i in range(n):
                table[Z + W + k, i] = parameters[k, low + i]
        for j in range(Z):
            for i in range(n):
                state[j, i] = starts[j, low + i]
                path[j, 0, low + i] = state[j, i]
        reached = 0
        for step in range(len(sizes)):
            for s in range(Q):
                for j in range(Z):
                    for i in range(n):
                        ahead = 0.0
                        for r in range(s):
                            ahead += A[s, r] * slopes[r, j, i]
                        table[j, i] = state[j, i] + sizes[step, piece[low + i]] * ahead
                for w in range(W):
                    for i in range(n):
                        table[Z + w, i] = known[step, s, w, piece[low + i]]
                right_sides(programs, lengths, constants, n_slots, table, slopes[s], n)
            for j in range(Z):
                for i in range(n):
                    ahead = 0.0
                    for r in range(Q):
                        ahead += B[r] * slopes[r, j, i]
                    state[j, i] += sizes[step, piece[low + i]] * ahead
            if ends[step]:
                reached += 1
                for j in range(Z):
                    for i in range(n):
                        value = state[j, i]
                        if not abs(value) <= bound[j]:  # nan too
                            value = -bound[j] if value < 0.0 else bound[j]
                        state[j, i] = value
                        path[j, reached, low + i] = value
