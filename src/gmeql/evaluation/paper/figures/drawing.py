"""Parts of pictures that several figures share: curves with a band, groups of bars, the note on the budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gmeql.evaluation.paper.methods import METHODS
from gmeql.evaluation.paper.plan import BudgetPlan
from gmeql.evaluation.paper.records import Record


def curve_on(record: Record, grid: np.ndarray) -> np.ndarray:
    """Training MAE of a run at given numbers of candidates: the last value known; nan before the first."""
    x = np.asarray(record["curve"]["candidates"], float)
    y = np.array([math.inf if v is None else v for v in record["curve"]["mae"]], float)
    if len(x) == 0:
        return np.full(len(grid), np.nan)
    place = np.searchsorted(x, grid, side="right") - 1
    return np.where(place >= 0, y[np.maximum(place, 0)], np.nan)


def draw_curves(ax: Any, groups: dict[str, tuple[Sequence[Record], str]]) -> None:
    """Mean over runs with a band of one standard deviation, both axes logarithmic."""
    for label, (records, colour) in groups.items():
        if not records:
            continue
        first = min(r["curve"]["candidates"][0] for r in records if r["curve"]["candidates"])
        last = max(r["curve"]["candidates"][-1] for r in records if r["curve"]["candidates"])
        grid = np.geomspace(max(first, 1), max(last, first + 1), 200)
        values = np.array([curve_on(r, grid) for r in records])
        values[~np.isfinite(values)] = np.nan
        enough = np.isfinite(values).any(axis=0)
        grid, values = grid[enough], values[:, enough]
        mean, std = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
        floor = 1e-17
        ax.plot(grid, np.maximum(mean, floor), color=colour, label=f"{label} (n = {len(records)})", lw=1.6)
        ax.fill_between(
            grid,
            np.maximum(mean - std, np.maximum(mean, floor) * 0.05),
            np.maximum(mean + std, floor),
            color=colour,
            alpha=0.18,
            lw=0,
        )
    ax.set_xlabel("expressions evaluated" + (" (EQL: training steps)" if METHODS["eql"].label in groups else ""))
    ax.set_ylabel("training MAE, mean ± std")
    if ax.has_data():
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.legend(fontsize=7, frameon=False)


def add_note(plan: BudgetPlan, figure: Any) -> None:
    if not plan.is_full:
        note = plan.note.split(":")[0] + ", not the paper's"
        figure.supxlabel(note, fontsize=6.5, color="#666666")


def draw_bars(
    ax: Any, groups: dict[str, list[float]], labels: Sequence[str], colours: dict[str, str], names: dict[str, str]
) -> None:
    width = 0.8 / max(len(groups), 1)
    for number, (key, values) in enumerate(groups.items()):
        ax.bar(
            np.arange(len(labels)) + (number - (len(groups) - 1) / 2) * width,
            values,
            width * 0.92,
            color=colours[key],
            label=names[key],
        )
    ax.set_xticks(np.arange(len(labels)), labels)
    ax.legend(fontsize=7, frameon=False, ncols=3)
