"""The engine itself: `fit` and `fit_batches` with the contract of `cpu.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gmeql.fitters.cpu import fit_user_operators
from gmeql.fitters.device.batches import SLOT_STEP, fit_datasets
from gmeql.fitters.device.tape import FAMILIES
from gmeql.fitters.jobs import FitJob
from gmeql.fitters.kernel.arrays import FitData
from gmeql.fitters.method import SCREEN_FACTOR, TINY
from gmeql.fitters.opcodes import POWER_WHOLE, USER_OPCODE
from gmeql.fitters.programs import Program, stack, starts
from gmeql.fitters.result import HOPELESS, NOT_FINITE, FitResult


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
    forced: bool = False,
    precision: str = "float64",
) -> FitResult:
    """Fit programs given as arrays, as the sampler writes them; the given `constants` stay as they are.

    `precision` is "float64", "float32", or "mixed": float32 for all but the last `FINISH_STEPS` steps.
    """
    data = FitData(inputs, target, weights)
    return fit_datasets(
        codes, lengths, n_free, constants, np.zeros(len(lengths), np.int32), np.full(len(lengths), hopeless), [data],
        max_steps=max_steps, tolerance=tolerance, forced=forced, precision=precision,
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
    precision: str = "float64",
) -> FitResult:
    """The contract of `cpu.fit` on JAX's device; `n_threads` is the device's own affair."""
    codes, lengths, n_free, own = stack(programs)
    constants = starts(own, start)
    weights = np.ones(inputs.shape[1]) if weights is None else np.asarray(weights, float)
    if any((program.code[0] >= USER_OPCODE).any() for program in programs):
        from gmeql.fitters import reference

        return reference.fit(programs, constants, inputs, target, weights, max_steps=max_steps, tolerance=tolerance)
    return fit_arrays(
        codes, lengths, n_free, constants, inputs, target, weights, max_steps=max_steps, tolerance=tolerance,
        precision=precision,
    )  # fmt: skip


def fit_batches(
    jobs: Sequence[FitJob],
    *,
    max_steps: int,
    tolerance: float,
    screen_rows: int | None,
    precision: str = "float64",
) -> None:
    """The contract of `cpu.fit_batches`: the candidates of all jobs side by side.

    Candidates with an operator registered by the user take the path of `cpu.fit_batches`.
    """
    jobs = [job for job in jobs if len(job.batch.lengths)]
    if not jobs:
        return
    widest = max(len(job.data.inputs) for job in jobs)
    n_slots = widest if len(jobs) == 1 else SLOT_STEP * -(-widest // SLOT_STEP)
    candidates = _joined(jobs, n_slots)
    datasets = [job.data._replace(inputs=_with_slots(job.data.inputs, n_slots)) for job in jobs]
    n_rows = datasets[0].inputs.shape[1]
    options: dict[str, Any] = dict(max_steps=max_steps, tolerance=tolerance, precision=precision)
    chosen = np.flatnonzero(~(candidates.codes[:, 0] >= USER_OPCODE).any(axis=1))
    if screen_rows is not None and screen_rows < n_rows and len(chosen):
        # as in the kernel: the same relative error is another loss where the few rows vary more, or less, than all do
        ratios = np.array([_variance(data, screen_rows) / _variance(data, n_rows) for data in datasets])
        goals = candidates.hopeless * ratios[candidates.dataset]
        _fit_rows(candidates, chosen, datasets, screen_rows, goals, **options)
        losses = candidates.losses[chosen]
        lost = ~(losses < SCREEN_FACTOR * goals[chosen])
        candidates.ended[chosen[lost]] = np.where(np.isfinite(losses[lost]), HOPELESS, NOT_FINITE)
        chosen = chosen[~lost]
    if len(chosen):
        _fit_rows(candidates, chosen, datasets, n_rows, candidates.hopeless, **options)
    low = 0
    for job in jobs:
        batch = job.batch
        mine = slice(low, low + len(batch.lengths))
        batch.constants[:], batch.losses[:] = candidates.constants[mine], candidates.losses[mine]
        batch.codes[:], batch.steps[:] = candidates.ended[mine], candidates.steps[mine]
        low = mine.stop
        fit_user_operators(job, max_steps=max_steps, tolerance=tolerance)


class _Joined(NamedTuple):
    """The candidates of several jobs behind each other; leading axis B."""

    codes: np.ndarray
    lengths: np.ndarray
    n_free: np.ndarray
    constants: np.ndarray
    dataset: np.ndarray
    """The job of each."""
    hopeless: np.ndarray
    losses: np.ndarray
    ended: np.ndarray
    """Result codes."""
    steps: np.ndarray


def _joined(jobs: Sequence[FitJob], n_slots: int) -> _Joined:
    """The candidates of all jobs, as programs over `n_slots` input slots."""
    batches = [job.batch for job in jobs]
    sizes = [len(batch.lengths) for batch in batches]
    n = sum(sizes)
    return _Joined(
        codes=np.concatenate([_moved(job.batch.programs, len(job.data.inputs), n_slots) for job in jobs]),
        lengths=np.concatenate([batch.lengths for batch in batches]),
        n_free=np.concatenate([batch.n_constants for batch in batches]),
        constants=np.concatenate([batch.constants for batch in batches]),
        dataset=np.repeat(np.arange(len(jobs), dtype=np.int32), sizes),
        hopeless=np.repeat([job.hopeless for job in jobs], sizes),
        losses=np.full(n, np.inf),
        ended=np.full(n, NOT_FINITE),
        steps=np.zeros(n, int),
    )


def _fit_rows(
    candidates: _Joined,
    chosen: np.ndarray,
    datasets: Sequence[FitData],
    n_rows: int,
    hopeless: np.ndarray,
    **options: Any,
) -> None:
    """Fit the chosen candidates to the first `n_rows` rows, in place."""
    few = [FitData(data.inputs[:, :n_rows], data.target[:n_rows], data.weights[:n_rows]) for data in datasets]
    codes, lengths, n_free, constants, dataset = (array[chosen] for array in candidates[:5])
    result = fit_datasets(
        codes, lengths, n_free, constants, dataset, hopeless[chosen], few, families=frozenset(FAMILIES), **options
    )
    candidates.constants[chosen], candidates.losses[chosen] = result.constants, result.losses
    candidates.ended[chosen], candidates.steps[chosen] = result.codes, result.steps


def _variance(data: FitData, n: int) -> float:
    """Weighted variance of the first n targets, plus a tiny number."""
    target, weights = data.target[:n], data.weights[:n]
    return float(np.average((target - np.average(target, weights=weights)) ** 2, weights=weights)) + TINY


def _with_slots(inputs: np.ndarray, n_slots: int) -> np.ndarray:
    """Inputs [n_slots, N], filled with zeros that nothing reads."""
    return inputs if len(inputs) == n_slots else np.pad(inputs, ((0, n_slots - len(inputs)), (0, 0)))


def _moved(programs: np.ndarray, n_slots: int, new_slots: int) -> np.ndarray:
    """Programs [B, 5, T] over `n_slots` input slots, as programs over `new_slots`."""
    if n_slots == new_slots:
        return programs
    moved = programs.copy()
    slots = moved[:, 1:3]
    slots[slots >= n_slots] += new_slots - n_slots
    whole = moved[:, 0] == POWER_WHOLE  # here the right slot is an exponent
    moved[:, 2][whole] = programs[:, 2][whole]
    return moved
