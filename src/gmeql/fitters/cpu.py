"""The CPU engine: compiled kernel, row blocks in cache, candidates shared out to threads.

The kernel releases the interpreter lock, so plain threads use all cores; each candidate's fit depends on nothing but
itself, so results do not depend on the number of threads. Compiled code is kept on disk: only the first run on a
machine compiles.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gmeql.fitters.programs import MAX_CONSTANTS, Program, from_expression, input_slots, stack
from gmeql.fitters.result import FitResult
from gmeql.formula.nodes import Variable, build
from gmeql.formula.operators import USER_OPCODE

CHUNK = 16
"""Candidates handed to a thread at a time: small enough to balance, large enough to hide the hand-over."""


@lru_cache(maxsize=4)
def thread_pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="gmeql-fit")


def default_threads() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_compiled() -> bool:
    """Whether the cache on disk holds a compiled kernel (perhaps of an older version)."""
    from gmeql.fitters.kernel import fit_many

    return any(Path(fit_many._cache.cache_path).glob("kernel.fit_many-*.nbc"))


def compile_kernel() -> None:
    """Fit one small program, so that the compiled kernel is in the cache."""
    inputs, _ = input_slots(np.arange(1.0, 5.0)[:, None])
    fit([from_expression(build("sin", Variable(0)), 1)], None, inputs, np.ones(4))


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
    """Fit programs given as arrays, as the sampler writes them; ``constants`` is overwritten.

    Shapes: codes [B, 5, nodes], constants [B, P], inputs [S, N], target and weights [N].
    """
    from gmeql.fitters.kernel import fit_many

    n = len(lengths)
    losses = np.full(n, np.inf)
    result_codes = np.zeros(n, np.int64)
    steps = np.zeros(n, np.int64)
    rows = inputs.shape[1] if screen_rows is None else min(screen_rows, inputs.shape[1])
    arguments: tuple[Any, ...] = (
        codes, lengths, n_free, constants, losses, result_codes, steps, inputs, target, weights, rows, max_steps,
        tolerance, hopeless, forced,
    )  # fmt: skip
    if n_threads == 1 or n <= CHUNK:
        fit_many(0, n, *arguments)
    else:
        pool = thread_pool(n_threads)
        for future in [pool.submit(fit_many, i, min(i + CHUNK, n), *arguments) for i in range(0, n, CHUNK)]:
            future.result()
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

    ``start`` [B, P] replaces the programs' own constants where given. Programs that hold an operator registered by
    the user take the slower path of ``reference.py``.
    """
    codes, lengths, n_free, own = stack(programs)
    spare = 0 if start is None else MAX_CONSTANTS - start.shape[1]
    constants = own if start is None else np.pad(np.asarray(start, float), ((0, 0), (0, spare)))
    weights = np.ones(inputs.shape[1]) if weights is None else np.asarray(weights, float)
    if any((program.code[0] >= USER_OPCODE).any() for program in programs):
        from gmeql.fitters import reference

        return reference.fit(programs, constants, inputs, target, weights, max_steps=max_steps, tolerance=tolerance)
    return fit_arrays(
        codes, lengths, n_free, constants, inputs, target, weights, max_steps=max_steps, tolerance=tolerance,
        n_threads=n_threads,
    )  # fmt: skip


def fit_batches(
    jobs: Sequence[tuple[Any, np.ndarray, np.ndarray, np.ndarray, float]],
    *,
    max_steps: int,
    tolerance: float,
    screen_rows: int | None,
    n_threads: int,
) -> None:
    """Fit several batches of sampled candidates in place, all sharing the threads.

    A job is (batch, inputs, target, weights, hopeless loss); a batch has the arrays of ``gmeql.search.island.Batch``.
    """
    from gmeql.fitters.kernel import fit_many

    calls: list[tuple[Any, ...]] = []
    for batch, inputs, target, weights, hopeless in jobs:
        rows = inputs.shape[1] if screen_rows is None else min(screen_rows, inputs.shape[1])
        arguments = (
            batch.programs, batch.lengths, batch.n_constants, batch.constants, batch.losses, batch.codes, batch.steps,
            inputs, target, weights, rows, max_steps, tolerance, hopeless, False,
        )  # fmt: skip
        n = len(batch.lengths)
        calls += [(i, min(i + CHUNK, n), *arguments) for i in range(0, n, CHUNK)]
    if n_threads == 1 or len(calls) < 2:
        for call in calls:
            fit_many(*call)
    else:
        pool = thread_pool(n_threads)
        for future in [pool.submit(fit_many, *call) for call in calls]:
            future.result()
    for batch, inputs, target, weights, _ in jobs:
        fit_user_operators(batch, inputs, target, weights, max_steps, tolerance)


def fit_user_operators(
    batch: Any, inputs: np.ndarray, target: np.ndarray, weights: np.ndarray, max_steps: int, tolerance: float
) -> None:
    """Candidates that hold an operator registered by the user, which the kernel does not know, take the slow path."""
    unknown = np.flatnonzero((batch.programs[:, 0] >= USER_OPCODE).any(axis=1))
    if not len(unknown):
        return
    from gmeql.fitters import reference

    for b in unknown:
        n = int(batch.n_constants[b])
        code = batch.programs[b][:, : batch.lengths[b]]
        program = Program(code=code, start=batch.constants[b, :n], n_free=n, leaves=tuple(range(n)))
        fitted = reference.fit([program], None, inputs, target, weights, max_steps=max_steps, tolerance=tolerance)
        batch.constants[b, :n] = fitted.constants[0, :n]
        batch.losses[b], batch.codes[b], batch.steps[b] = fitted.losses[0], fitted.codes[0], fitted.steps[0]
