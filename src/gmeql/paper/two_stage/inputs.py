"""What a run is given, checked before anything is compiled: seeds, configs, tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gmeql.paper.two_stage.config import SCHEDULE, SHAPING, TwoStageConfig

Array = Any
SMALLEST_SAMPLE = 2
"""Rows below which there is nothing to learn from."""


def checked_seeds(seeds: Sequence[int]) -> list[int]:
    seeds = [int(seed) for seed in seeds]
    if not seeds or min(seeds) < 0 or max(seeds) >= 2**32:
        raise ValueError(f"seeds must be one or more whole numbers in [0, 2**32), got {seeds!r}")
    return seeds


def checked_configs(config: TwoStageConfig | Sequence[TwoStageConfig] | None, count: int) -> list[TwoStageConfig]:
    if config is None or isinstance(config, TwoStageConfig):
        return [config or TwoStageConfig()] * count
    configs = list(config)
    if len(configs) != count:
        raise ValueError(f"config must be one TwoStageConfig or one per seed ({count}), got {len(configs)}")
    for name in (*SCHEDULE, *SHAPING):
        if len({getattr(each, name) for each in configs}) > 1:
            raise ValueError(f"{name} must be the same for all seeds of one run; start one run per value")
    return configs


def checked_data(X: Array, y: Array, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns [S, V, N] and targets [S, n_outputs, N] from X [N, V] or [S, N, V]; ValueError for data no run can use."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    if X.ndim not in (2, 3):
        raise ValueError(f"X must have shape [rows, variables] or [seeds, rows, variables], got {X.shape}")
    if X.ndim == 2:
        X, y = np.broadcast_to(X, (count, *X.shape)), np.broadcast_to(y, (count, *y.shape))
    if len(X) != count or len(y) != count:
        raise ValueError(f"X and y must hold one table for each of the {count} seeds, got {len(X)} and {len(y)}")
    if y.ndim == 2:
        y = y[:, :, None]
    if y.ndim != 3 or y.shape[1] != X.shape[1]:
        raise ValueError(f"y must have one row for each of the {X.shape[1]} rows of X, got shape {y.shape[1:]}")
    if X.shape[1] < SMALLEST_SAMPLE:
        raise ValueError(f"X must have at least {SMALLEST_SAMPLE} rows, got {X.shape[1]}")
    if X.shape[2] < 1 or y.shape[2] < 1:
        raise ValueError(f"X and y must have at least one column, got {X.shape[2]} and {y.shape[2]}")
    for name, values in (("X", X), ("y", y)):
        bad = np.argwhere(~np.isfinite(values))
        if len(bad):
            _, row, column = bad[0]
            raise ValueError(
                f"{name} must be finite, got {values[tuple(bad[0])]} in row {row}, column {column}; "
                "drop or fill such rows first"
            )
    if np.any(np.ptp(y, axis=1) == 0):
        raise ValueError("y is constant: there is nothing to learn; its formula is that constant")
    return np.swapaxes(X, 1, 2), np.swapaxes(y, 1, 2)


def check_range(columns: np.ndarray, targets: np.ndarray, dtype: str) -> None:
    largest = max(np.abs(columns).max(), np.abs(targets).max())
    if largest > np.finfo(dtype).max:
        raise ValueError(f"X and y must fit into {dtype}, got a magnitude of {largest:.3g}; scale the data first")
