"""The engine itself: `fit`, `fit_arrays` and `fit_batches` with the contract of `cpu.py`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gmeql.fitters.cpu import fit_by, fit_user_operators
from gmeql.fitters.cuda import driver as accelerators
from gmeql.fitters.cuda.driver import Driver
from gmeql.fitters.cuda.launch import launch_fit, send_data
from gmeql.fitters.cuda.source import BATCH, SIZES, size_of
from gmeql.fitters.jobs import FitJob
from gmeql.fitters.kernel.arrays import FitData
from gmeql.fitters.programs import Program
from gmeql.fitters.result import FitResult

LARGEST_BATCH = 1 << 18
"""Candidates that are sent together at most."""


class Joined(NamedTuple):
    """Candidates behind each other, as they are sent; leading axis B."""

    codes: np.ndarray
    """[B, 5, T] int16"""
    lengths: np.ndarray
    n_free: np.ndarray
    n_constants: np.ndarray
    constants: np.ndarray
    """[B, P]"""
    dataset: np.ndarray
    """Which data each is fitted to."""
    hopeless: np.ndarray

    def take(self, rows: Any) -> Joined:
        """Some of them."""
        return Joined(*(array[rows] for array in self))


def fit_joined(
    candidates: Joined,
    datasets: Sequence[FitData],
    *,
    max_steps: int,
    tolerance: float,
    screen_rows: int | None = None,
    forced: bool = False,
    drivers: Sequence[Driver] | None = None,
) -> FitResult:
    """Fit every candidate to its data, all accelerators side by side. Data sets may differ in slots and rows."""
    drivers = accelerators.drivers() if drivers is None else drivers
    n = len(candidates.lengths)
    share = max(1, min(LARGEST_BATCH, -(-n // len(drivers))))
    sent = []
    data = [send_data(driver, datasets, screen_rows) for driver in drivers]
    for number, low in enumerate(range(0, n, share)):
        rows = slice(low, min(low + share, n))
        which = number % len(drivers)
        limits = (max_steps, int(forced), tolerance)
        sent.append(
            (rows, drivers[which], launch_candidates(drivers[which], candidates.take(rows), data[which][0], limits))
        )
    constants = np.zeros(candidates.constants.shape)
    result = FitResult(constants, np.full(n, np.inf), np.zeros(n, np.int64), np.zeros(n, np.int64))
    for rows, driver, arrays in sent:  # only now wait
        fitted, losses, ended, steps = (driver.get(arrays[name]) for name in ("constants", "losses", "ended", "steps"))
        constants[rows, : fitted.shape[1]] = fitted
        result.losses[rows], result.codes[rows], result.steps[rows] = losses, ended, steps
    return result


def launch_candidates(
    driver: Driver, candidates: Joined, datasets: Any, limits: tuple[int, int, float]
) -> dict[str, Any]:
    """Send candidates and start their fits; returns the arrays there."""
    n = len(candidates.lengths)
    width, n_wide = int(candidates.lengths.max()), max(int(candidates.n_constants.max()), 1)
    arrays = {
        "codes": candidates.codes[:, :, :width],
        "lengths": candidates.lengths.astype(np.int32),
        "n_free": candidates.n_free.astype(np.int32),
        "n_constants": candidates.n_constants.astype(np.int32),
        "dataset": candidates.dataset.astype(np.int32),
        "hopeless": candidates.hopeless.astype(np.float64),
        "constants": candidates.constants[:, :n_wide].astype(np.float64),
        "losses": np.empty(n),
        "ended": np.empty(n, np.int32),
        "steps": np.empty(n, np.int32),
    }
    there = {name: driver.put(array) for name, array in arrays.items()}
    batch = np.zeros(1, BATCH)
    for name, array in there.items():
        batch[name] = driver.pointer(array)
    batch["width"], batch["n_wide"], batch["limits"] = width, n_wide, limits
    there["batch"] = driver.put(batch)
    sizes = size_of(candidates.lengths, candidates.n_constants)
    for number in np.unique(sizes):
        chosen = np.flatnonzero(sizes == number).astype(np.int32)
        counts = np.array([len(chosen), 0], np.int32)
        own = [driver.put(array) for array in (chosen, counts[:1], counts[1:])]
        launch_fit(driver, SIZES[number], there["batch"], datasets, *own, most=len(chosen))
        there[f"of size {number}"] = own
    return there


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
    n_constants: np.ndarray | None = None,
    drivers: Sequence[Driver] | None = None,
) -> FitResult:
    """`cpu.fit_arrays` on the accelerators; the given `constants` stay as they are.

    `n_constants` counts free and fixed constants of each program, where some are fixed.
    """
    n = len(lengths)
    n_constants = n_free if n_constants is None else n_constants
    dataset = np.zeros(n, np.int32)
    candidates = Joined(codes, lengths, n_free, n_constants, constants, dataset, np.full(n, hopeless))
    return fit_joined(
        candidates, [FitData(inputs, target, weights)], max_steps=max_steps, tolerance=tolerance,
        screen_rows=screen_rows, forced=forced, drivers=drivers,
    )  # fmt: skip


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
    drivers: Sequence[Driver] | None = None,
) -> FitResult:
    """The contract of `cpu.fit`; `n_threads` is the accelerator's own affair."""
    n_constants = np.array([len(program.start) for program in programs])
    engine = partial(fit_arrays, n_constants=n_constants, drivers=drivers)
    return fit_by(engine, programs, start, inputs, target, weights, max_steps=max_steps, tolerance=tolerance)


def fit_batches(
    jobs: Sequence[FitJob],
    *,
    max_steps: int,
    tolerance: float,
    screen_rows: int | None,
    drivers: Sequence[Driver] | None = None,
) -> None:
    """The contract of `cpu.fit_batches`: the candidates of all jobs side by side, in place."""
    jobs = [job for job in jobs if len(job.batch.lengths)]
    if not jobs:
        return
    batches = [job.batch for job in jobs]
    sizes = [len(batch.lengths) for batch in batches]
    width = max(int(batch.lengths.max()) for batch in batches)
    candidates = Joined(
        codes=np.concatenate([batch.programs[:, :, :width] for batch in batches]),
        lengths=np.concatenate([batch.lengths for batch in batches]),
        n_free=np.concatenate([batch.n_constants for batch in batches]),
        n_constants=np.concatenate([batch.n_constants for batch in batches]),
        constants=np.concatenate([batch.constants for batch in batches]),
        dataset=np.repeat(np.arange(len(jobs), dtype=np.int32), sizes),
        hopeless=np.repeat([job.hopeless for job in jobs], sizes),
    )
    result = fit_joined(
        candidates, [job.data for job in jobs], max_steps=max_steps, tolerance=tolerance, screen_rows=screen_rows,
        drivers=drivers,
    )  # fmt: skip
    low = 0
    for job in jobs:
        batch, mine = job.batch, slice(low, low + len(job.batch.lengths))
        batch.constants[:], batch.losses[:] = result.constants[mine], result.losses[mine]
        batch.codes[:], batch.steps[:] = result.codes[mine], result.steps[mine]
        low = mine.stop
        fit_user_operators(job, max_steps=max_steps, tolerance=tolerance)
