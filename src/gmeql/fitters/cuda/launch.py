"""Starting the fit: a batch and its data as the kernel reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gmeql.fitters.cuda.driver import Driver
from gmeql.fitters.cuda.source import DATA, FITS_PER_WARP, Size, source, work_bytes
from gmeql.fitters.kernel.arrays import FitData
from gmeql.fitters.method import TINY

WARPS_AT_ONCE = 32
"""Blocks that a multiprocessor can hold: of few candidates no warp takes a second one while others have none."""


def launch_fit(
    driver: Driver,
    size: Size,
    batch: Any,
    datasets: Any,
    chosen: Any,
    n_chosen: Any,
    taken: Any,
    *,
    most: int,
    queue: int = 0,
) -> None:
    """Start the fits of the candidates of one size. All are arrays there; `taken` is 0, `most` bounds their number.

    Blocks that find no candidate left end at once.
    """
    blocks = min(most, max(-(-most // FITS_PER_WARP), WARPS_AT_ONCE * driver.processors))
    driver.launch(
        source(size), "fit", blocks=blocks, threads=32, shared=work_bytes(size),
        arguments=(batch, datasets, chosen, n_chosen, taken), queue=queue,
    )  # fmt: skip


def send_data(driver: Driver, datasets: Sequence[FitData], screen_rows: int | None) -> tuple[Any, list[Any]]:
    """The table of data sets there; and the arrays that it points to, which must live as long."""
    records = np.zeros(len(datasets), DATA)
    kept = []
    for record, data in zip(records, datasets, strict=True):
        arrays = [driver.put(np.asarray(array, float)) for array in (data.inputs, data.target, np.sqrt(data.weights))]
        kept += arrays
        n_slots, n_rows = data.inputs.shape
        few = n_rows if screen_rows is None else min(screen_rows, n_rows)
        # the same relative error is another loss where the few rows vary more, or less, than all do
        ratio = _variance(data, few) / _variance(data, n_rows)
        masses = (float(data.weights.sum()), float(data.weights[:few].sum()))
        values = (*(driver.pointer(array) for array in arrays), n_slots, n_rows, few, *masses, ratio)
        for name, value in zip(DATA.names or (), values, strict=True):
            record[name] = value
    return driver.put(records), kept


def _variance(data: FitData, n: int) -> float:
    """Weighted variance of the first n targets, plus a tiny number."""
    target, weights = data.target[:n], data.weights[:n]
    mass = weights.sum()
    if not mass > 0:
        return TINY
    mean = (weights * target).sum() / mass
    return float((weights * (target - mean) ** 2).sum() / mass) + TINY
