"""Compiled CPU kernel: walk flat programs, differentiate them in reverse, fit their constants.

A program is a list of nodes over *slots*. Slots 0..S-1 are the input columns; node k writes slot S + k and reads
slots ``left[k]`` and ``right[k]``, each times a constant of its own where ``left_constant[k]`` (``right_constant[k]``)
is not -1. The last node is the output. Opcodes are those of ``gmeql.operators`` plus the two below.

Rows are taken in blocks that stay in the first-level cache. Per block, a forward pass keeps values and local slopes,
a reverse pass turns them into one Jacobian column per constant, and the normal equations grow by that block. The
loops over rows have no branches and call no library, so the compiler vectorises them; sine, exponential and logarithm
are polynomials good to about one unit in the last place.

Legend: ``N`` rows, ``P`` constants, ``F`` free ones (the first F of P), ``S`` input slots.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gmeql.constants.result import CONVERGED, HOPELESS, NOT_FINITE, STEPS_SPENT
from gmeql.programs import MAX_CONSTANTS, MAX_NODES, POWER_FITTED, POWER_WHOLE

BLOCK = 128
"""Rows per block: 24 slots of values and slopes then fit into 48 KiB."""



_FLAGS = {"reassoc", "contract", "nsz", "arcp"}  # never nnan/ninf: non-finite values decide what is rejected
_OPTIONS = dict(cache=True, nogil=True, error_model="numpy", fastmath=_FLAGS)
# The reductions of arguments subtract a constant in two or three parts; put in another order they would lose digits.
_IN_ORDER = _OPTIONS | dict(fastmath={"contract", "nsz"})

# Arguments of sine and exponential beyond these bounds make a candidate non-finite.
_ANGLE_LIMIT = 1e6
_EXPONENT_LIMIT = 700.0

_TWO_OVER_PI = 0.6366197723675814
_HALF_PI_1 = 1.5707963267341256
_HALF_PI_2 = 6.077100506303966e-11
_HALF_PI_3 = 2.0222662487959506e-21
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.693147180369123816490
_LN2_LOW = 1.90821492927058770002e-10


@njit(**_IN_ORDER)
def _sine_cosine(x, sine, cosine, n):
    """sin and cos of x[:n]: reduce by multiples of pi/2, two Taylor polynomials on [-pi/4, pi/4], swap by quadrant."""
    for i in range(n):
        u = x[i]
        q = np.floor(u * _TWO_OVER_PI + 0.5)
        r = ((u - q * _HALF_PI_1) - q * _HALF_PI_2) - q * _HALF_PI_3
        z = r * r
        s = r + r * z * (
            -1.66666666666666307295e-1
            + z * (8.33333333332211858878e-3
            + z * (-1.98412698295895385996e-4
            + z * (2.75573136213857245213e-6
            + z * (-2.50507477628578072866e-8
            + z * 1.58962301576546568060e-10))))
        )
        c = 1.0 - 0.5 * z + z * z * (
            4.16666666666665929218e-2
            + z * (-1.38888888888730564116e-3
            + z * (2.48015872888517045348e-5
            + z * (-2.75573141792967388112e-7
            + z * (2.08757008419747316778e-9
            + z * -1.13585365213876817300e-11))))
        )
        quadrant = q - 4.0 * np.floor(q * 0.25)
        odd = quadrant - 2.0 * np.floor(quadrant * 0.5)
        sine_sign = 1.0 - 2.0 * np.floor(quadrant * 0.5)
        cosine_sign = 1.0 - 2.0 * np.floor((quadrant + 1.0 - 4.0 * np.floor((quadrant + 1.0) * 0.25)) * 0.5)
        bad = np.nan if not (abs(u) <= _ANGLE_LIMIT) else 0.0
        sine[i] = sine_sign * (s + odd * (c - s)) + bad
        cosine[i] = cosine_sign * (c + odd * (s - c)) + bad


@njit(**_IN_ORDER)
def _exponential(x, out, bits, floats, n):
    """exp of x[:n]; ``bits`` is the integer view of the scratch row ``floats``."""
    for i in range(n):
        u = min(max(x[i], -_EXPONENT_LIMIT), _EXPONENT_LIMIT)
        k = np.floor(u * _LOG2_E + 0.5)
        r = (u - k * _LN2_HIGH) - k * _LN2_LOW
        p = 1.0 + r * (1.0 + r * (0.5 + r * (1.6666666666666666e-1 + r * (4.1666666666666664e-2
            + r * (8.333333333333333e-3 + r * (1.388888888888889e-3 + r * (1.984126984126984e-4
            + r * (2.48015873015873e-5 + r * (2.7557319223985893e-6 + r * (2.755731922398589e-7
            + r * (2.505210838544172e-8 + r * 2.08767569878681e-9)))))))))))
        out[i] = p
        bits[i] = (np.int64(k) + 1023) << 52
    for i in range(n):
        bad = np.nan if not (x[i] <= _EXPONENT_LIMIT) else 0.0
        out[i] = out[i] * floats[i] + bad


@njit(**_IN_ORDER)
def _logarithm(x, out, bits, floats, n):
    """log of x[:n], nan where x <= 0: exponent off the bits, atanh series on [sqrt(1/2), sqrt(2)]."""
    for i in range(n):
        floats[i] = x[i]
    for i in range(n):
        raw = bits[i]
        out[i] = float((raw >> 52) - 1023)
        bits[i] = (raw & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000
    for i in range(n):
        m = floats[i]
        high = 1.0 if m > 1.4142135623730951 else 0.0
        m = m * (1.0 - 0.5 * high)
        e = out[i] + high
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        p = 2.0 * s * (1.0 + z * (3.333333333333333148e-1 + z * (2.0e-1 + z * (1.428571428571428492e-1
            + z * (1.111111111111111049e-1 + z * (9.090909090909091161e-2 + z * (7.692307692307692735e-2
            + z * (6.666666666666666657e-2 + z * (5.882352941176470507e-2 + z * 5.263157894736841814e-2)))))))))
        bad = np.nan if not (x[i] > 0.0 and x[i] < np.inf) else 0.0
        out[i] = e * _LN2_HIGH + (p + e * _LN2_LOW) + bad


@njit(**_OPTIONS)
def _whole_power(u, exponent):
    """u ** exponent for a whole exponent, by squaring."""
    count = abs(exponent)
    result = 1.0
    base = u
    while count > 0:
        if count & 1:
            result *= base
        base *= base
        count >>= 1
    return result if exponent >= 0 else 1.0 / result


@njit(**_OPTIONS)
def _apply(op, u, w, exponent, right, value, slope, scratch, bits, n):
    """One node on one block: value and slope to its left input.

    Binary operators other than + - * / keep their slope here too; the reverse pass knows the right-hand slope.
    ``u`` and ``w`` are the weighted inputs; ``scratch`` holds two spare rows, ``bits`` the integer view of the first.
    """
    if op == 0:
        for i in range(n):
            value[i] = u[i]
            slope[i] = 1.0
    elif op == 1:
        for i in range(n):
            value[i] = u[i] + w[i]
            slope[i] = 1.0
    elif op == 2:
        for i in range(n):
            value[i] = u[i] - w[i]
            slope[i] = 1.0
    elif op == 3:
        for i in range(n):
            value[i] = u[i] * w[i]
            slope[i] = w[i]
    elif op == 4:
        for i in range(n):
            inverse = 1.0 / w[i]
            value[i] = u[i] * inverse
            slope[i] = inverse
    elif op == 5:
        _sine_cosine(u, value, slope, n)
    elif op == 6:
        _sine_cosine(u, slope, value, n)
        for i in range(n):
            slope[i] = -slope[i]
    elif op == 7:
        for i in range(n):
            root = np.sqrt(u[i])
            value[i] = root
            slope[i] = 0.5 / max(root, 1e-150)
    elif op == 8:
        for i in range(n):
            value[i] = u[i] * u[i]
            slope[i] = 2.0 * u[i]
    elif op == 9:
        for i in range(n):
            square = u[i] * u[i]
            value[i] = square * u[i]
            slope[i] = 3.0 * square
    elif op == 10:
        for i in range(n):
            cube = u[i] * u[i] * u[i]
            value[i] = cube * u[i]
            slope[i] = 4.0 * cube
    elif op == 11:
        for i in range(n):
            square = u[i] * u[i]
            value[i] = square * square * u[i]
            slope[i] = 5.0 * square * square
    elif op == 12:
        for i in range(n):
            square = u[i] * u[i]
            value[i] = square * square * square
            slope[i] = 6.0 * square * square * u[i]
    elif op == 13:
        _exponential(u, value, bits, scratch[0], n)
        for i in range(n):
            slope[i] = value[i]
    elif op == 14:
        _logarithm(u, value, bits, scratch[0], n)
        for i in range(n):
            slope[i] = 1.0 / u[i]
    elif op == 15:
        for i in range(n):
            scratch[1, i] = -2.0 * abs(u[i])
        _exponential(scratch[1], value, bits, scratch[0], n)
        for i in range(n):
            t = (1.0 - value[i]) / (1.0 + value[i])
            value[i] = t if u[i] >= 0.0 else -t
            slope[i] = 1.0 - t * t
    elif op == 16:
        for i in range(n):
            value[i] = np.arcsin(u[i])
            slope[i] = 1.0 / np.sqrt(max(1.0 - u[i] * u[i], 1e-30))
    elif op == 17:
        for i in range(n):
            value[i] = np.arccos(u[i])
            slope[i] = -1.0 / np.sqrt(max(1.0 - u[i] * u[i], 1e-30))
    elif op == 18:
        for i in range(n):
            value[i] = np.arctan(u[i])
            slope[i] = 1.0 / (1.0 + u[i] * u[i])
    elif op == 19:
        for i in range(n):
            value[i] = abs(u[i])
            slope[i] = 1.0 if u[i] > 0.0 else (-1.0 if u[i] < 0.0 else 0.0)
    elif op == 20:
        for i in range(n):
            inverse = 1.0 / u[i]
            value[i] = inverse
            slope[i] = -inverse * inverse
    elif op == 21:
        for i in range(n):
            value[i] = -u[i]
            slope[i] = -1.0
    elif op == 22:
        _logarithm(u, scratch[1], bits, scratch[0], n)
        for i in range(n):
            slope[i] = w[i] * scratch[1, i]
        _exponential(slope, value, bits, scratch[0], n)
        for i in range(n):
            slope[i] = value[i] * w[i] / u[i]
    elif op == POWER_FITTED:
        _logarithm(u, scratch[1], bits, scratch[0], n)
        for i in range(n):
            slope[i] = exponent * scratch[1, i]
        _exponential(slope, value, bits, scratch[0], n)
        for i in range(n):
            slope[i] = exponent * value[i] / u[i]
    elif op == POWER_WHOLE:
        for i in range(n):
            below = _whole_power(u[i], right - 1)
            value[i] = below * u[i] if right != 0 else 1.0
            slope[i] = right * below
    else:
        for i in range(n):
            value[i] = np.nan
            slope[i] = np.nan


@njit(**_OPTIONS)
def _weighted(source, constants, index, spare, n):
    """The slot itself, or the slot times its constant in ``spare``."""
    if index < 0:
        return source
    c = constants[index]
    for i in range(n):
        spare[i] = c * source[i]
    return spare


@njit(**_OPTIONS)
def evaluate_block(program, length, constants, inputs, low, n, values, slopes, spare, bits):
    """Forward pass over rows low..low+n: fill ``values`` (slots) and ``slopes`` (nodes); the output slot is returned."""
    n_slots = inputs.shape[0]
    for k in range(length):
        op, left, right, left_constant, right_constant = (
            program[0, k], program[1, k], program[2, k], program[3, k], program[4, k]
        )
        u = inputs[left, low : low + n] if left < n_slots else values[left - n_slots]
        u = _weighted(u, constants, left_constant, spare[2], n)
        w = u
        exponent = 0.0
        if op == POWER_FITTED:
            exponent = constants[right_constant]
        elif (op <= 4 and op >= 1) or op == 22:
            w = inputs[right, low : low + n] if right < n_slots else values[right - n_slots]
            w = _weighted(w, constants, right_constant, spare[3], n)
        _apply(op, u, w, exponent, right, values[k], slopes[k], spare, bits, n)


@njit(**_OPTIONS)
def _accumulate(target, factor, adjoint, slope, n):
    for i in range(n):
        target[i] += factor * adjoint[i] * slope[i]


@njit(**_OPTIONS)
def jacobian_block(program, length, constants, n_free, inputs, low, n, values, slopes, adjoints, jacobian, spare, bits):
    """Reverse pass: d output / d constant per row, for the first ``n_free`` constants."""
    n_slots = inputs.shape[0]
    for p in range(n_free):
        for i in range(n):
            jacobian[p, i] = 0.0
    for k in range(length):
        for i in range(n):
            adjoints[k, i] = 0.0
    for i in range(n):
        adjoints[length - 1, i] = 1.0
    for k in range(length - 1, -1, -1):
        op, left, right, left_constant, right_constant = (
            program[0, k], program[1, k], program[2, k], program[3, k], program[4, k]
        )
        adjoint = adjoints[k]
        slope = slopes[k]
        raw = inputs[left, low : low + n] if left < n_slots else values[left - n_slots]
        factor = 1.0
        if left_constant >= 0:
            factor = constants[left_constant]
            if left_constant < n_free:
                column = jacobian[left_constant]
                for i in range(n):
                    column[i] += adjoint[i] * slope[i] * raw[i]
        if left >= n_slots:
            _accumulate(adjoints[left - n_slots], factor, adjoint, slope, n)
        if op == POWER_FITTED:
            if right_constant < n_free:
                u = _weighted(raw, constants, left_constant, spare[2], n)
                _logarithm(u, spare[1], bits, spare[0], n)
                column = jacobian[right_constant]
                for i in range(n):
                    column[i] += adjoint[i] * values[k, i] * spare[1, i]
        elif (op <= 4 and op >= 1) or op == 22:
            raw = inputs[right, low : low + n] if right < n_slots else values[right - n_slots]
            factor = 1.0 if right_constant < 0 else constants[right_constant]
            other = spare[3]
            if op == 1:
                for i in range(n):
                    other[i] = 1.0
            elif op == 2:
                for i in range(n):
                    other[i] = -1.0
            elif op == 3:
                u = inputs[left, low : low + n] if left < n_slots else values[left - n_slots]
                c = 1.0 if left_constant < 0 else constants[left_constant]
                for i in range(n):
                    other[i] = c * u[i]
            elif op == 4:
                for i in range(n):
                    other[i] = -values[k, i] * slope[i]
            else:
                u = inputs[left, low : low + n] if left < n_slots else values[left - n_slots]
                u = _weighted(u, constants, left_constant, spare[2], n)
                _logarithm(u, spare[1], bits, spare[0], n)
                for i in range(n):
                    other[i] = values[k, i] * spare[1, i]
            if right_constant >= 0 and right_constant < n_free:
                column = jacobian[right_constant]
                for i in range(n):
                    column[i] += adjoint[i] * other[i] * raw[i]
            if right >= n_slots:
                _accumulate(adjoints[right - n_slots], factor, adjoint, other, n)


@njit(**_OPTIONS)
def _normal_equations(program, length, constants, n_free, inputs, target, weights, n_rows, hessian, gradient, work):
    """Weighted mean squared error and the sums JᵀWJ, JᵀWr over the first ``n_rows`` rows; inf if not finite."""
    values, slopes, adjoints, jacobian, residual, spare, bits = work
    for p in range(n_free):
        gradient[p] = 0.0
        for q in range(p + 1):
            hessian[p, q] = 0.0
    total = 0.0
    mass = 0.0
    for low in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - low)
        evaluate_block(program, length, constants, inputs, low, n, values, slopes, spare, bits)
        output = values[length - 1]
        block = 0.0
        for i in range(n):
            residual[i] = output[i] - target[low + i]
            block += weights[low + i] * residual[i] * residual[i]
            mass += weights[low + i]
        total += block
        if not np.isfinite(total):
            return np.inf
        if n_free == 0:
            continue
        jacobian_block(
            program, length, constants, n_free, inputs, low, n, values, slopes, adjoints, jacobian, spare, bits
        )
        for p in range(n_free):
            row = jacobian[p]
            weighted = spare[0]
            for i in range(n):
                weighted[i] = weights[low + i] * row[i]
            g = 0.0
            for i in range(n):
                g += weighted[i] * residual[i]
            gradient[p] += g
            for q in range(p + 1):
                other = jacobian[q]
                h = 0.0
                for i in range(n):
                    h += weighted[i] * other[i]
                hessian[p, q] += h
    for p in range(n_free):
        if not np.isfinite(gradient[p]) or not np.isfinite(hessian[p, p]):
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
def make_work(n_constants):
    """Scratch memory of one worker."""
    values = np.empty((MAX_NODES, BLOCK))
    slopes = np.empty((MAX_NODES, BLOCK))
    adjoints = np.empty((MAX_NODES, BLOCK))
    jacobian = np.empty((n_constants, BLOCK))
    residual = np.empty(BLOCK)
    spare = np.empty((4, BLOCK))
    bits = spare[0].view(np.int64)
    return values, slopes, adjoints, jacobian, residual, spare, bits


@njit(**_OPTIONS)
def fit_one(
    program, length, constants, n_free, inputs, target, weights, n_rows, max_steps, tolerance, hopeless, forced, work
):
    """Levenberg-Marquardt on one program; ``constants`` is overwritten by the fit. Returns (loss, code, steps).

    ``hopeless`` is the loss that a candidate must come near to be worth more steps; ``forced`` takes exactly
    ``max_steps`` steps (benchmarks).
    """
    hessian = np.empty((MAX_CONSTANTS, MAX_CONSTANTS))
    trial_hessian = np.empty((MAX_CONSTANTS, MAX_CONSTANTS))
    factor = np.empty((MAX_CONSTANTS, MAX_CONSTANTS))
    gradient = np.empty(MAX_CONSTANTS)
    trial_gradient = np.empty(MAX_CONSTANTS)
    step = np.empty(MAX_CONSTANTS)
    trial = constants.copy()
    loss = _normal_equations(
        program, length, constants, n_free, inputs, target, weights, n_rows, hessian, gradient, work
    )
    if not np.isfinite(loss):
        return np.inf, NOT_FINITE, 1
    damping = 1e-3
    rejected = 0
    code = STEPS_SPENT if n_free > 0 else CONVERGED
    taken = 0
    if n_free == 0:
        return loss, code, 1
    while taken < max_steps:
        if not forced and loss < 1e-300:
            code = CONVERGED
            break
        solved = _solve_damped(hessian, gradient, damping, n_free, factor, step)
        trial_loss = np.inf
        if solved:
            for p in range(n_free):
                trial[p] = constants[p] - step[p]
            trial_loss = _normal_equations(
                program, length, trial, n_free, inputs, target, weights, n_rows, trial_hessian, trial_gradient, work
            )
            taken += 1
        if trial_loss < loss:
            gain = (loss - trial_loss) / loss
            loss = trial_loss
            for p in range(n_free):
                constants[p] = trial[p]
            hessian, trial_hessian = trial_hessian, hessian
            gradient, trial_gradient = trial_gradient, gradient
            damping = max(damping * 0.1, 1e-14)
            rejected = 0
            if not forced:
                if gain < tolerance:
                    code = CONVERGED
                    break
                if taken >= 3 and loss > 4.0 * hopeless and gain < 0.3:
                    code = HOPELESS
                    break
        else:
            damping = damping * 10.0
            rejected += 1
            if rejected > 5 and not forced:
                code = CONVERGED
                break
            if not solved and damping > 1e8:
                break
    return loss, code, taken + 1


@njit(**_OPTIONS)
def predict_one(program, length, constants, inputs, out, work):
    """The program's output for every row."""
    values, slopes, _, _, _, spare, bits = work
    n_rows = inputs.shape[1]
    for low in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - low)
        evaluate_block(program, length, constants, inputs, low, n, values, slopes, spare, bits)
        for i in range(n):
            out[low + i] = values[length - 1, i]


@njit(**_OPTIONS)
def fit_many(
    first, last, programs, lengths, n_free, constants, losses, codes, steps, inputs, target, weights, screen_rows,
    max_steps, tolerance, hopeless, forced,
):
    """Fit candidates first..last-1. With ``screen_rows`` < N, only what stays promising there sees all rows."""
    n_rows = inputs.shape[1]
    work = make_work(MAX_CONSTANTS)
    for b in range(first, last):
        start = constants[b]
        if screen_rows < n_rows:
            loss, code, taken = fit_one(
                programs[b], lengths[b], start, n_free[b], inputs, target, weights, screen_rows,
                max_steps, tolerance, hopeless, forced, work,
            )
            if not loss < 2.0 * hopeless:
                losses[b] = loss
                codes[b] = HOPELESS if np.isfinite(loss) else NOT_FINITE
                steps[b] = taken
                continue
        loss, code, taken = fit_one(
            programs[b], lengths[b], start, n_free[b], inputs, target, weights, n_rows,
            max_steps, tolerance, hopeless, forced, work,
        )
        losses[b] = loss
        codes[b] = code
        steps[b] = taken


@njit(**_OPTIONS)
def jacobian_one(program, length, constants, n_free, inputs, out, jacobian_out, work):
    """Output and Jacobian for every row (confidence intervals, tests)."""
    values, slopes, adjoints, jacobian, _, spare, bits = work
    n_rows = inputs.shape[1]
    for low in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - low)
        evaluate_block(program, length, constants, inputs, low, n, values, slopes, spare, bits)
        jacobian_block(
            program, length, constants, n_free, inputs, low, n, values, slopes, adjoints, jacobian, spare, bits
        )
        for i in range(n):
            out[low + i] = values[length - 1, i]
            for p in range(n_free):
                jacobian_out[p, low + i] = jacobian[p, i]
