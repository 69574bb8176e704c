"""Batches padded to a few sizes, computed, and put back in order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gmeql.fitters.device.levenberg_marquardt import fit_padded
from gmeql.fitters.device.tape import families_of
from gmeql.fitters.kernel.arrays import FitData
from gmeql.fitters.opcodes import MAX_CONSTANTS, MAX_NODES
from gmeql.fitters.result import NOT_FINITE, FitResult

PRECISIONS = ("float64", "float32", "mixed")
SIZES = ((8, 4), (16, 8), (32, 16), (MAX_NODES, MAX_CONSTANTS))
"""(nodes, free constants) that programs are padded to; a program takes the first size that holds it."""
BATCHES = tuple(4**k for k in range(2, 9))
"""Candidates that a batch is padded to: 16 to 65,536. Larger ones are cut."""
ROW_BLOCK = 1024
"""Rows that are evaluated at a time; the sums over rows grow block by block."""
DATASETS = (1, 4, 16, 64)
"""Data sets that a batch is padded to."""
SLOT_STEP = 8
"""Input slots are padded to a multiple of this, where a batch has several data sets."""
ROW_STEP = 64
"""Fewer rows than a block are padded to a multiple of this, with weight 0."""
FINISH_STEPS = 2
"""Steps in double precision that end a fit in mixed precision."""
MEMORY_SHARE = 0.2
"""Share of the accelerator's memory that the slots of one batch may take (temporaries double it)."""
CPU_MEMORY = 2**27
"""Bytes that they may take where JAX runs on the processor."""


@lru_cache(maxsize=1)
def available() -> bool:
    """Whether JAX sees an accelerator.

    Call it only where one may be used: the first call starts JAX's backend.
    """
    try:
        return jax.default_backend() in ("gpu", "cuda", "rocm", "tpu")
    except RuntimeError:  # JAX_PLATFORMS names a backend that is not there
        return False


def _memory_limit() -> float:
    """Bytes that the slots of one batch may take."""
    if not available():
        return CPU_MEMORY
    stats = jax.devices()[0].memory_stats() or {}
    return MEMORY_SHARE * stats.get("bytes_limit", 8 * 2**30)


def _batch_size(n: int, n_nodes: int, n_free: int, rows: int, itemsize: int) -> int:
    """The smallest padded batch that holds n candidates, or the largest that fits into memory."""
    each = n_nodes * (1 + n_free) * rows * itemsize
    fitting = [size for size in BATCHES if size * each <= _memory_limit()] or [BATCHES[0]]
    return next((size for size in fitting if size >= n), fitting[-1])


def _blocks(datasets: Sequence[FitData], n_slots: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Blocks of rows: inputs [blocks, D, S + 1, N], target and weights [blocks, D, N].

    Spare rows repeat the last one with weight 0, spare slots and data sets are zeros and never read.
    """
    n = datasets[0].inputs.shape[1]
    rows = ROW_BLOCK if n > ROW_BLOCK else ROW_STEP * -(-n // ROW_STEP)
    spare = -n % rows
    count = next((size for size in DATASETS if size >= len(datasets)), len(datasets))
    columns = np.zeros((count, n_slots + 1, n + spare))
    target, weights = np.zeros((2, count, n + spare))
    columns[:, -1] = 1.0
    for d, data in enumerate(datasets):
        columns[d, : len(data.inputs)] = np.pad(data.inputs, ((0, 0), (0, spare)), mode="edge")
        target[d] = np.pad(data.target, (0, spare), mode="edge")
        weights[d, :n] = data.weights
    blocked = columns.reshape(count, n_slots + 1, -1, rows).transpose(2, 0, 1, 3)
    return blocked, *(a.reshape(count, -1, rows).swapaxes(0, 1) for a in (target, weights))


def fit_datasets(
    codes: np.ndarray,
    lengths: np.ndarray,
    n_free: np.ndarray,
    constants: np.ndarray,
    dataset: np.ndarray,
    hopeless: np.ndarray,
    datasets: Sequence[FitData],
    *,
    max_steps: int,
    tolerance: float,
    forced: bool = False,
    precision: str = "float64",
    families: frozenset[str] | None = None,
) -> FitResult:
    """`fit_arrays` where candidate b is fitted to `datasets[dataset[b]]`; `hopeless` is per candidate, too.

    All data sets have the same number of rows and of slots. `families` compiles operators beyond those that occur.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r}")
    fit_in = partial(
        _fit_in, codes=codes, lengths=lengths, n_free=n_free, dataset=dataset, hopeless=hopeless, datasets=datasets,
        tolerance=tolerance, forced=forced, families=families,
    )  # fmt: skip
    if precision == "mixed":
        first = fit_in(jnp.float32, constants=constants, max_steps=max(max_steps - FINISH_STEPS, 0))
        usable = np.isfinite(first.losses) & np.isfinite(first.constants).all(axis=1)
        middle = np.where(usable[:, None], first.constants, constants)
        last = fit_in(jnp.float64, constants=middle, max_steps=min(max_steps, FINISH_STEPS))
        return last._replace(steps=first.steps + last.steps)
    return fit_in(jnp.float64 if precision == "float64" else jnp.float32, constants=constants, max_steps=max_steps)


def _fit_in(
    dtype: Any,
    *,
    codes: np.ndarray,
    lengths: np.ndarray,
    n_free: np.ndarray,
    constants: np.ndarray,
    dataset: np.ndarray,
    hopeless: np.ndarray,
    datasets: Sequence[FitData],
    max_steps: int,
    tolerance: float,
    forced: bool,
    families: frozenset[str] | None,
) -> FitResult:
    """Fit in one precision: sort by size, pad, compute, put back in order."""
    n = len(lengths)
    lengths, n_free = np.asarray(lengths, np.int32), np.asarray(n_free, np.int32)
    fitted, losses = np.zeros_like(constants, float), np.full(n, np.inf)
    result_codes, steps = np.full(n, NOT_FINITE, np.int64), np.zeros(n, np.int64)
    size_of = np.maximum(
        np.searchsorted([nodes for nodes, _ in SIZES], lengths), np.searchsorted([free for _, free in SIZES], n_free)
    )
    pending = []
    devices = len(jax.devices())
    with jax.enable_x64(True):
        blocks = tuple(jnp.asarray(a, dtype) for a in _blocks(datasets, len(datasets[0].inputs)))
        for size in np.unique(size_of):
            n_nodes, n_free_max = SIZES[size]
            mine = np.flatnonzero(size_of == size)
            if np.ptp(lengths[mine]):  # a batch takes as many steps as its longest tape
                mine = mine[np.argsort(lengths[mine], kind="stable")]
            share = -(-len(mine) // devices)
            batch = devices * _batch_size(share, n_nodes, n_free_max, blocks[0].shape[3], jnp.dtype(dtype).itemsize)
            short = codes[:, :, :n_nodes]
            for low in range(0, len(mine), batch):
                chunk = _as_slice(mine[low : low + batch])
                n_real = min(batch, len(mine) - low)
                padded = chunk if n_real == batch else np.pad(mine[low:], (0, batch - n_real), mode="edge")
                code = np.ascontiguousarray(short[padded])
                width = MAX_CONSTANTS if code[:, 3:].max() >= n_free_max else n_free_max  # fixed constants come last
                result = fit_padded(
                    jnp.asarray(code), jnp.asarray(lengths[padded]), jnp.asarray(n_free[padded]),
                    jnp.asarray(np.arange(batch) < n_real), jnp.asarray(dataset[padded]),
                    jnp.asarray(hopeless[padded], dtype), jnp.asarray(_width(constants, padded, width), dtype), *blocks,
                    jnp.int32(max_steps), jnp.asarray(tolerance, dtype), n_devices=devices, n_free_max=n_free_max,
                    families=families_of(code[:, 0]) | (families or frozenset()), forced=forced,
                )  # fmt: skip
                pending.append((chunk, n_real, result))
    for chunk, n_real, result in pending:  # only now wait for the device
        new, loss, ended, taken = (np.asarray(array)[:n_real] for array in result)
        width = min(new.shape[1], fitted.shape[1])
        fitted[chunk, :width] = new[:, :width]
        losses[chunk], result_codes[chunk], steps[chunk] = loss, ended, taken
    return FitResult(fitted, losses, result_codes, steps)


def _as_slice(rows: np.ndarray) -> np.ndarray | slice:
    """Consecutive rows as a slice, which is read without a copy."""
    first, last = int(rows[0]), int(rows[-1])
    whole = last - first + 1 == len(rows) and bool((np.diff(rows) == 1).all())
    return slice(first, last + 1) if whole else rows


def _width(constants: np.ndarray, rows: np.ndarray | slice, width: int) -> np.ndarray:
    """Constants [B, width] of some candidates, cut or filled with zeros."""
    cut = constants[:, :width][rows]
    return cut if cut.shape[1] == width else np.pad(cut, ((0, 0), (0, width - cut.shape[1])))
