"""The fit: Levenberg-Marquardt on one program after the other."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int16, int64, types, void

from gmeql.fitters.compiled import compiled, part
from gmeql.fitters.kernel.memory import BLOCK, KEPT, SLOTS, WORK, load_block, rows_of
from gmeql.fitters.kernel.node import is_binary
from gmeql.fitters.kernel.normal_equations import evaluate
from gmeql.fitters.kernel.options import FAST, FAST_INLINE, NUMBERS, PROGRAM, TABLE
from gmeql.fitters.kernel.tape import plan
from gmeql.fitters.method import (
    DAMPING_DOWN,
    DAMPING_UP,
    FIRST_DAMPING,
    HOPELESS_AFTER,
    HOPELESS_FACTOR,
    HOPELESS_GAIN,
    LEAST_DAMPING,
    MAX_REJECTED,
    PIVOT_SHARE,
    SCREEN_FACTOR,
    STUCK_DAMPING,
    TINY,
)
from gmeql.fitters.result import CONVERGED, HOPELESS, NOT_FINITE, STEPS_SPENT

_BEFORE_START = FIRST_DAMPING / DAMPING_DOWN  # accepting the start itself lowers the damping for the first time


@part(boolean(TABLE, NUMBERS, float64, int64, TABLE, NUMBERS), **FAST)
def _solve_damped(hessian, gradient, damping, n, factor, step):
    """Cholesky solve of (H + damping diag(H)) step = gradient; False where H is not positive definite."""
    for p in range(n):
        for q in range(p + 1):
            total = hessian[p, q]
            if p == q:
                total += damping * hessian[p, p] + TINY
            for r in range(q):
                total -= factor[p, r] * factor[q, r]
            if p == q:
                if not total > PIVOT_SHARE * hessian[p, p]:
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


@part(void(int64, int64, int16[:, :, ::1], int64[::1], TABLE, NUMBERS, NUMBERS, TABLE, int64[::1]), **FAST)
def _load_all(first, last, programs, lengths, inputs, target, roots, table, is_read):
    """Copy what candidates first..last-1 read into the table, where its blocks stay there."""
    n_slots, n_rows = inputs.shape
    for slot in range(n_slots):
        is_read[slot] = 0
    for b in range(first, last):
        for k in range(lengths[b]):
            for side in range(1, 3 if is_binary(programs[b, 0, k]) else 2):
                if programs[b, side, k] < n_slots:
                    is_read[programs[b, side, k]] = 1
    height = rows_of(n_slots)[5]
    if n_rows > KEPT * BLOCK:
        return
    for low in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - low)
        base = (low // BLOCK) * height
        load_block(target, roots, low, n, table, base)
        for slot in range(n_slots):
            if is_read[slot]:
                for i in range(n):
                    table[base + SLOTS + slot, i] = inputs[slot, low + i]


@part(
    types.Tuple((float64, int64, int64))(
        PROGRAM, int64, NUMBERS, int64, TABLE, NUMBERS, NUMBERS, boolean, int64, float64, int64, float64, float64, boolean,
        WORK,
    ),
    **FAST,
)  # fmt: skip
def _fit_one(
    program, length, constants, n_free, inputs, target, roots, unit, n_rows, mass, max_steps, tolerance, hopeless, forced,
    work,
):  # fmt: skip
    """Levenberg-Marquardt on one program; `constants` is overwritten by the fit. Returns (loss, code, steps).

    Only the first `n_rows` rows count, whose weights sum up to `mass`; the rest is as in `evaluate` and `FitLimits`.
    """
    # Unpacked once a fit: each time counts references, a sixth of its time where every evaluation does it.
    table, nodes, scales, columns, column_scales, wanted, places, products = work[:8]
    hessian, trial_hessian, gradient, trial_gradient, factor, step, trial = work[8:15]
    for p in range(len(constants)):
        trial[p] = constants[p]
    loss = np.inf
    damping = _BEFORE_START
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
            result = evaluate(
                program, length, trial, n_free, inputs, target, roots, unit, n_rows, mass, loss, again, with_slopes,
                trial_hessian, trial_gradient, table, nodes, scales, columns, column_scales, wanted, places, products,
            )  # fmt: skip
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
            damping = max(damping * DAMPING_DOWN, LEAST_DAMPING)
            rejected = 0
            if n_free == 0 or (not forced and (gain < tolerance or (loss < TINY and taken <= max_steps))):
                code = CONVERGED
                break
            if not forced and taken > HOPELESS_AFTER and loss > HOPELESS_FACTOR * hopeless and gain < HOPELESS_GAIN:
                code = HOPELESS
                break
        else:
            if taken == 1:
                code = NOT_FINITE
                break
            damping = damping * DAMPING_UP
            rejected += 1
            if rejected > MAX_REJECTED and not forced:
                code = CONVERGED
                break
            if not solved and damping > STUCK_DAMPING:
                break
        if taken > max_steps:
            break
        solved = _solve_damped(hessian, gradient, damping, n_free, factor, step)
        if solved:
            for p in range(n_free):
                trial[p] = constants[p] - step[p]
    return loss, code, taken


@compiled(**FAST_INLINE)
def _sum(values, n):
    """Sum of the first n values."""
    total = 0.0
    for i in range(n):
        total += values[i]
    return total


@compiled(**FAST_INLINE)
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
        second += weights[i] * ((target[i] - mean) * (target[i] - mean))
    return second / mass + TINY


@compiled(**FAST)
def fit_many(first, last, batch, data, limits, work):
    """Fit candidates first..last-1. With `screen_rows` < N, only what stays promising there sees all rows.

    `batch`, `data` and `limits` are the `FitArrays`, `FitData` and `FitLimits` of `arrays.py`, `work` is what `make_work`
    made for as many slots and rows.
    """
    # The named tuples end here: a field that is read in the loop, or a tuple that is handed on, counts references each
    # time, and threads that count the same ones wait for each other.
    programs, lengths, n_free, constants, losses, codes, steps = batch
    inputs, target, weights = data
    screen_rows, max_steps, tolerance, hopeless, forced = limits
    n_slots, n_rows = inputs.shape
    table, nodes, roots, is_read = work.table, work.nodes, work.roots, work.is_read
    n_unit = 0
    for i in range(n_rows):
        roots[i] = np.sqrt(weights[i])
        n_unit += weights[i] == 1.0
    unit = n_unit == n_rows
    mass = _sum(weights, n_rows)
    screen_mass = _sum(weights, screen_rows)
    # the same relative error is another loss where the few rows vary more, or less, than all do
    screen_hopeless = hopeless * _variance(target, weights, screen_rows) / _variance(target, weights, n_rows)
    _load_all(first, last, programs, lengths, inputs, target, roots, table, is_read)
    for b in range(first, last):
        plan(programs[b], lengths[b], n_free[b], n_slots, nodes)
        rows = screen_rows
        while True:
            goal = hopeless if rows == n_rows else screen_hopeless
            losses[b], codes[b], steps[b] = _fit_one(
                programs[b], lengths[b], constants[b], n_free[b], inputs, target, roots, unit, rows,
                screen_mass if rows < n_rows else mass, max_steps, tolerance, goal, forced, work,
            )  # fmt: skip
            if rows == n_rows:
                break
            rows = n_rows
            if not losses[b] < SCREEN_FACTOR * goal:
                codes[b] = HOPELESS if np.isfinite(losses[b]) else NOT_FINITE
                break
