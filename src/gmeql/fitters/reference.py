"""The slow, obvious engine: NumPy, one program at a time, slopes from the operator table.

What the compiled engines are tested against, and the path for operators registered by users.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gmeql.fitters.method import (
    DAMPING_DOWN,
    DAMPING_UP,
    FIRST_DAMPING,
    LEAST_DAMPING,
    MAX_REJECTED,
    PIVOT_SHARE,
    STUCK_DAMPING,
    TINY,
)
from gmeql.fitters.opcodes import MAX_CONSTANTS, POW, POWER_FITTED, POWER_WHOLE
from gmeql.fitters.programs import Program
from gmeql.fitters.result import CONVERGED, NOT_FINITE, STEPS_SPENT, FitResult
from gmeql.formula.calculus import power_partials
from gmeql.formula.operators import operator_of_opcode


def evaluate(code: np.ndarray, constants: np.ndarray, n_free: int, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Output [N] and Jacobian [N, F] of a program by forward differentiation: each slot carries its own slopes."""
    n_rows = inputs.shape[1]
    values = list(inputs)
    slopes = [np.zeros((n_rows, n_free)) for _ in values]

    def read(slot: int, constant: int) -> tuple[np.ndarray, np.ndarray]:
        if constant < 0:
            return values[slot], slopes[slot]
        slope = constants[constant] * slopes[slot]
        if constant < n_free:
            slope = slope.copy()
            slope[:, constant] += values[slot]
        return constants[constant] * values[slot], slope

    for op, left, right, left_constant, right_constant in code.T.tolist():
        u, du = read(left, left_constant)
        if op == POWER_WHOLE:
            value, slope = u ** float(right), (right * u ** float(right - 1))[:, None] * du
        elif op == POWER_FITTED:
            exponent = constants[right_constant]
            by_base, by_exponent = power_partials(np, u, exponent)
            value, slope = u**exponent, by_base[:, None] * du
            if right_constant < n_free:
                slope[:, right_constant] += by_exponent
        else:
            operator = operator_of_opcode(op)
            pairs = [(u, du)] if operator.arity == 1 else [(u, du), read(right, right_constant)]
            args = [pair[0] for pair in pairs]
            value = operator.natural(np, *args)
            partials = (power_partials if op == POW else operator.partials)(np, *args)
            slope = sum(np.asarray(p)[:, None] * d for p, (_, d) in zip(partials, pairs, strict=True))
        values.append(value)
        slopes.append(slope)
    return values[-1], slopes[-1]


def fit(
    programs: Sequence[Program],
    start: np.ndarray | None,
    inputs: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    max_steps: int = 20,
    tolerance: float = 1e-9,
    n_threads: int = 1,
) -> FitResult:
    """The contract of `cpu.fit`, slowly."""
    constants = np.zeros((len(programs), MAX_CONSTANTS))
    losses = np.full(len(programs), np.inf)
    codes = np.full(len(programs), NOT_FINITE)
    steps = np.zeros(len(programs), np.int64)
    weights = np.ones(inputs.shape[1]) if weights is None else weights
    for b, program in enumerate(programs):
        own = program.start if start is None else start[b, : len(program.start)]
        fitted, losses[b], codes[b], steps[b] = _fit_one(program, own, inputs, target, weights, max_steps, tolerance)
        constants[b, : len(fitted)] = fitted
    return FitResult(constants, losses, codes, steps)


def _fit_one(
    program: Program,
    start: np.ndarray,
    inputs: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray,
    max_steps: int,
    tolerance: float,
) -> tuple[np.ndarray, float, int, int]:
    """Constants, loss, code and steps of one program; `method.py` holds the numbers."""
    n_free = program.n_free
    constants = np.array(start, float)

    def loss_and_slopes(theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        with np.errstate(all="ignore"):
            output, jacobian = evaluate(program.code, theta, n_free, inputs)
            residual = output - target
            loss = float(np.sum(weights * residual**2) / np.sum(weights))
            hessian = jacobian.T @ (weights[:, None] * jacobian)
            gradient = jacobian.T @ (weights * residual)
        finite = np.isfinite(loss) and np.isfinite(hessian).all() and np.isfinite(gradient).all()
        return (loss if finite else np.inf), hessian, gradient

    loss, hessian, gradient = loss_and_slopes(constants)
    if not np.isfinite(loss):
        return constants, np.inf, NOT_FINITE, 1
    if n_free == 0:
        return constants, loss, CONVERGED, 1
    damping, rejected, taken = FIRST_DAMPING, 0, 0
    while taken < max_steps:
        if loss < TINY:
            return constants, loss, CONVERGED, taken + 1
        step = _damped_step(hessian, gradient, damping)
        trial_loss = np.inf
        if step is not None:
            trial = constants.copy()
            trial[:n_free] -= step
            trial_loss, trial_hessian, trial_gradient = loss_and_slopes(trial)
            taken += 1
        if trial_loss < loss:
            gain = (loss - trial_loss) / loss
            constants, loss, hessian, gradient = trial, trial_loss, trial_hessian, trial_gradient
            damping, rejected = max(DAMPING_DOWN * damping, LEAST_DAMPING), 0
            if gain < tolerance:
                return constants, loss, CONVERGED, taken + 1
        else:
            damping, rejected = DAMPING_UP * damping, rejected + 1
            if rejected > MAX_REJECTED:
                return constants, loss, CONVERGED, taken + 1
            if step is None and damping > STUCK_DAMPING:
                break
    return constants, loss, STEPS_SPENT, taken + 1


def _damped_step(hessian: np.ndarray, gradient: np.ndarray, damping: float) -> np.ndarray | None:
    """Solution of (H + damping diag H) step = gradient, or None where H is not positive definite to rounding."""
    diagonal = np.diag(hessian)
    damped = hessian + np.diag(damping * diagonal + TINY)
    try:
        factor = np.linalg.cholesky(damped)
    except np.linalg.LinAlgError:
        return None
    if not (np.diag(factor) ** 2 > PIVOT_SHARE * diagonal).all():
        return None
    return np.linalg.solve(damped, gradient)
