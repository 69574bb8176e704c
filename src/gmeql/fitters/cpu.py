"""The CPU engine: compiled kernel, row blocks in cache, candidates shared out to threads.

The kernel releases the interpreter lock, so plain threads use all cores; each candidate's fit depends on nothing but
itself, so results do not depend on the number of threads. Compiled code is kept on disk: only the first run on a
machine compiles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gmeql.fitters.jobs import FitJob
from gmeql.fitters.kernel.arrays import FitArrays, FitData, FitLimits
from gmeql.fitters.opcodes import USER_OPCODE
from gmeql.fitters.programs import Program, from_expression, input_slots, stack, starts
from gmeql.fitters.result import FitResult
from gmeql.fitters.threads import thread_pool
from gmeql.formula.nodes import Variable, build

CHUNK = 16
"""Candidates handed to a thread at a time: small enough to balance, large enough to hide the hand-over."""


def compile_kernel() -> None:
    """Fit one small program, so that the compiled kernel is in the cache."""
    inputs, _ = input_slots(np.arange(1.0, 5.0)[:, None])
    fit([from_expression(build("sin", Variable(0)), 1)], None, inputs, np.ones(4))


def _fit_all(tasks: Sequence[tuple[FitArrays, FitData, FitLimits]], n_threads: int) -> None:
    """Fit several batches in place, all sharing the threads chunk by chunk."""
    from gmeql.fitters.kernel.levenberg_marquardt import fit_many
    from gmeql.fitters.kernel.memory import make_work

    def fit_some(first: int, last: int, batch: FitArrays, data: FitData, limits: FitLimits) -> None:
        fit_many(first, last, batch, data, limits, make_work(*data.inputs.shape))

    calls: list[tuple[Any, ...]] = []
    for task in tasks:
        n = len(task[0].lengths)
        chunk = CHUNK if n_threads > 1 else max(n, 1)
        calls += [(low, min(low + chunk, n), *task) for low in range(0, n, chunk)]
    if n_threads == 1 or len(calls) < 2:
        for call in calls:
            fit_some(*call)
    else:
        pool = thread_pool(n_threads)
        for future in [pool.submit(fit_some, *call) for call in calls]:
            future.result()


def _limits(
    inputs: np.ndarray, screen_rows: int | None, max_steps: int, tolerance: float, hopeless: float, forced: bool = False
) -> FitLimits:
    """One type for each number, whatever is given: the kernel would be compiled anew for another."""
    rows = inputs.shape[1] if screen_rows is None else min(screen_rows, inputs.shape[1])
    return FitLimits(rows, int(max_steps), float(tolerance), float(hopeless), forced)


def fit_arrays(
    codes: np.ndarray,
    lengths: np.ndarray,
    n_free: np.ndarray,
    constants: np.ndarray,
    inputs: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray,
    *,
    max_steps: int,
    tolerance: float,
    hopeless: float = np.inf,
    screen_rows: int | None = None,
    forced: bool = False,
    n_threads: int = 1,
) -> FitResult:
    """Fit programs given as arrays, as the sampler writes them; `constants` is overwritten.

    Shapes: codes [B, 5, nodes], constants [B, P], inputs [S, N], target and weights [N].
    """
    n = len(lengths)
    losses, result_codes, steps = np.full(n, np.inf), np.zeros(n, np.int64), np.zeros(n, np.int64)
    batch = FitArrays(codes, lengths, n_free, constants, losses, result_codes, steps)
    limits = _limits(inputs, screen_rows, max_steps, tolerance, hopeless, forced)
    _fit_all([(batch, FitData(inputs, target, weights), limits)], n_threads)
    return FitResult(constants, losses, result_codes, steps)


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
    """Fit the free constants of each program by Levenberg-Marquardt.

    `start` [B, P] replaces the programs' own constants where given. Programs that hold an operator registered by
    the user take the slower path of `reference.py`.
    """
    engine = partial(fit_arrays, n_threads=n_threads)
    return fit_by(engine, programs, start, inputs, target, weights, max_steps=max_steps, tolerance=tolerance)


def fit_by(
    engine: Callable[..., FitResult],
    programs: Sequence[Program],
    start: np.ndarray | None,
    inputs: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray | None,
    **limits: Any,
) -> FitResult:
    """Hand programs as arrays to an engine's `fit_arrays`; those with an operator of the user's to `reference.py`."""
    codes, lengths, n_free, own = stack(programs)
    constants = starts(own, start)
    # the kernel's parts take numbers that lie side by side, which a column of a matrix does not
    weights = np.ones(inputs.shape[1]) if weights is None else np.ascontiguousarray(weights, float)
    inputs, target = np.ascontiguousarray(inputs, float), np.ascontiguousarray(target, float)
    if any((program.code[0] >= USER_OPCODE).any() for program in programs):
        from gmeql.fitters import reference

        return reference.fit(programs, constants, inputs, target, weights, **limits)
    return engine(codes, lengths, n_free, constants, inputs, target, weights, **limits)


def fit_batches(
    jobs: Sequence[FitJob], *, max_steps: int, tolerance: float, screen_rows: int | None, n_threads: int
) -> None:
    """Fit several batches of sampled candidates in place, all sharing the threads."""
    tasks = []
    for batch, data, hopeless in jobs:
        arrays = FitArrays(
            batch.programs, batch.lengths, batch.n_constants, batch.constants, batch.losses, batch.codes, batch.steps
        )
        tasks.append((arrays, data, _limits(data.inputs, screen_rows, max_steps, tolerance, hopeless)))
    _fit_all(tasks, n_threads)
    for job in jobs:
        fit_user_operators(job, max_steps=max_steps, tolerance=tolerance)


def fit_user_operators(job: FitJob, *, max_steps: int, tolerance: float) -> None:
    """Candidates that hold an operator registered by the user, which the kernel does not know, take the slow path."""
    batch = job.batch
    unknown = np.flatnonzero((batch.programs[:, 0] >= USER_OPCODE).any(axis=1))
    if not len(unknown):
        return
    from gmeql.fitters import reference

    for b in unknown:
        n = int(batch.n_constants[b])
        code = batch.programs[b][:, : batch.lengths[b]]
        program = Program(code=code, start=batch.constants[b, :n], n_free=n, leaves=tuple(range(n)))
        fitted = reference.fit([program], None, *job.data, max_steps=max_steps, tolerance=tolerance)
        batch.constants[b, :n] = fitted.constants[0, :n]
        batch.losses[b], batch.codes[b], batch.steps[b] = fitted.losses[0], fitted.codes[0], fitted.steps[0]
