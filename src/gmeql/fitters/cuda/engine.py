"""The engine itself: `fit`, `fit_arrays` and `fit_batches` with the contract of `cpu.py`."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gmeql.fitters.cpu import fit_by, fit_user_operators
from gmeql.fitters.cuda import driver as accelerators
from gmeql.fitters.cuda.driver import Driver
from gmeql.fitters.cuda.launch import launch_fit, send_data
from gmeql.fitters.cuda.packing import Joined, Packed, packed, view_of
from gmeql.fitters.cuda.source import BATCH, SIZES
from gmeql.fitters.jobs import FitJob
from gmeql.fitters.kernel.arrays import FitData
from gmeql.fitters.programs import Program
from gmeql.fitters.result import FitResult

PIECE = 1 << 14
"""Candidates that are sent together at most: while some are fitted, others are packed,"""
PACKERS = 4
"""... by so many threads."""


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
    share = max(1, min(PIECE, -(-n // len(drivers))))
    pieces = [slice(low, min(low + share, n)) for low in range(0, n, share)]
    data = [send_data(driver, datasets, screen_rows) for driver in drivers]
    limits, sent = (max_steps, int(forced), tolerance), []
    with ThreadPoolExecutor(PACKERS) as pool:  # whose threads begin when there is something to do
        all_packed = (pool.map if len(pieces) > 1 else map)(lambda rows: packed(candidates.take(rows)), pieces)
        for number, (rows, piece) in enumerate(zip(pieces, all_packed, strict=True)):
            driver, its_data = drivers[number % len(drivers)], data[number % len(drivers)][0]
            sent.append((rows, driver, launch_packed(driver, piece, its_data, limits)))
    constants = np.zeros(candidates.constants.shape)
    result = FitResult(constants, np.full(n, np.inf), np.zeros(n, np.int64), np.zeros(n, np.int64))
    for rows, driver, launched in sent:  # only now wait
        fitted = launched.fetched(driver)
        constants[rows, : fitted["constants"].shape[1]] = fitted["constants"]
        result.losses[rows], result.codes[rows], result.steps[rows] = (
            fitted[name] for name in ("losses", "ended", "steps")
        )
    return result


class Launched(NamedTuple):
    """Fits that were started: what is there."""

    packed: Packed
    there: Any
    batch: Any
    of_size: dict[int, list[Any]]
    """By the number of a size: who is fitted, how many, how many were taken."""

    def fetched(self, driver: Driver) -> dict[str, np.ndarray]:
        """Wait, and what has become of the candidates."""
        places = self.packed.places
        first = places["constants"][0]
        back = driver.get(self.there[first:])
        return {
            name: view_of(back, places[name][0] - first, *places[name][1:])
            for name in ("constants", "losses", "ended", "steps")
        }


def launch_packed(driver: Driver, packed: Packed, datasets: Any, limits: tuple[int, int, float]) -> Launched:
    """Send candidates and start their fits."""
    there, batch = driver.put(packed.whole), np.zeros(1, BATCH)
    for name, (start, *_) in packed.places.items():
        batch[name] = driver.pointer(there) + start
    batch["width"], batch["n_wide"] = packed.places["codes"][2][2], packed.places["constants"][2][1]
    batch["limits"] = limits
    launched = Launched(packed, there, driver.put(batch), {})
    for number in np.flatnonzero(np.bincount(packed.sizes)).tolist():
        chosen = np.flatnonzero(packed.sizes == number).astype(np.int32)
        counts = np.array([len(chosen), 0], np.int32)
        launched.of_size[number] = own = [driver.put(array) for array in (chosen, counts[:1], counts[1:])]
        launch_fit(driver, SIZES[number], launched.batch, datasets, *own, most=len(chosen))
    return launched


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
