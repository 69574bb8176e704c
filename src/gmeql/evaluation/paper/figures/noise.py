"""Appendix C: noise on the targets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gmeql.evaluation.paper.cells import Cell
from gmeql.evaluation.paper.figures.drawing import add_note
from gmeql.evaluation.paper.figures.figure import Figure, Finding, Records
from gmeql.evaluation.paper.figures.statistics import (
    LEVEL,
    TOO_FEW,
    counts,
    mann_whitney,
    median_error,
    number_or_none,
    overall,
    said,
    summary,
)
from gmeql.evaluation.paper.methods import METHODS
from gmeql.evaluation.paper.plan import NOISE_LEVELS, BudgetPlan, cells_for, noise_levels
from gmeql.evaluation.paper.records import Record, select

PAPER_NOISE_SUCCESS = {0.0: 70, 0.1: 65, 0.2: 35, 0.5: 32}
"""GMEQL's success rates on b2 by the noise's standard deviation, percent (appendix C)."""


def noise() -> Figure:
    def group(plan: BudgetPlan, records: Records, problem: str, method: str, noise: float) -> list[Record]:
        return select(records, cells_for(plan, [problem], [method], noise=noise))

    def cells(plan: BudgetPlan) -> list[Cell]:
        return [
            cell
            for problem in plan.noise_problems
            for noise in noise_levels(problem)
            for cell in cells_for(plan, [problem], plan.noise_methods, noise=noise)
        ]

    def measure(plan: BudgetPlan, records: Records) -> Finding:
        rows, words, verdicts = [], [], []
        for problem in plan.noise_problems:
            for method in plan.noise_methods:
                clean = group(plan, records, problem, method, 0.0)
                for noise in noise_levels(problem):
                    mine = group(plan, records, problem, method, noise)
                    row = {"problem": problem, "method": method, "noise": noise, **summary(mine)}
                    if noise and mine and clean:
                        p = mann_whitney(clean, mine)
                        row |= {"compared_with": "noise 0", "p_value": number_or_none(p), "test": "Mann-Whitney U"}
                        if (problem, method) == ("b2", "gmeql") and noise in (0.1, 0.5):
                            worse = p < LEVEL and median_error(mine) > median_error(clean)
                            as_said = p >= LEVEL if noise == 0.1 else worse
                            verdicts.append(TOO_FEW if math.isnan(p) else "agrees" if as_said else "differs")
                            row["verdict"] = verdicts[-1]
                    if problem == "b2" and method == "gmeql":
                        row["paper_share"] = PAPER_NOISE_SUCCESS[noise] / 100
                    rows.append(row)
                words += _noise_words(
                    problem, method, {n: group(plan, records, problem, method, n) for n in noise_levels(problem)}
                )
        return Finding(rows, words, overall(verdicts))

    def draw(plan: BudgetPlan, records: Records, figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        for method in plan.noise_methods:
            groups = [group(plan, records, "b2", method, n) for n in NOISE_LEVELS]
            if not any(groups):
                continue
            look: dict[str, Any] = {"color": METHODS[method].colour, "label": METHODS[method].label}
            left.plot(NOISE_LEVELS, [median_error(g) for g in groups], "o-", **look)
            shares = [100 * counts(g)["structure_share"] if g else math.nan for g in groups]
            right.plot(NOISE_LEVELS, shares, "o-", **look)
        right.plot(
            list(PAPER_NOISE_SUCCESS),
            list(PAPER_NOISE_SUCCESS.values()),
            "s--",
            color="#b9d7e5",
            label="GMEQL, the paper",
        )
        if any(np.isfinite(line.get_ydata()).any() for line in left.lines):
            left.set_yscale("log")
        left.set_ylabel("median MAE on noise-free test points")
        right.set_ylabel("true structure, % of runs")
        for ax in (left, right):
            ax.set_xlabel("standard deviation of the noise on y")
            if ax.lines:
                ax.legend(fontsize=7, frameon=False)
        figure.suptitle("Noise on b2", fontsize=9)
        add_note(plan, figure)

    return Figure(
        "noise",
        "Appendix C: noise on b2, and on the other problems",
        "At noise 0.1 the accuracy is that of noise-free data; at 0.5 the difference is noticeable. The "
        "truth is found in 70, 65, 35 and 32 percent of the runs at 0, 0.1, 0.2 and 0.5.",
        cells,
        measure,
        draw,
        size=(9.0, 3.6),
    )


def _noise_words(problem: str, method: str, groups: dict[float, list[Record]]) -> list[str]:
    """One sentence on a method under the noise levels of a problem; none where only noise-free runs are there."""
    clean = groups[0.0]
    if not any(mine for noise, mine in groups.items() if noise):
        return []
    parts = []
    for noise, mine in groups.items():
        if not mine:
            parts.append(f"{noise:g}: not measured")
            continue
        both = counts(mine)
        p = mann_whitney(clean, mine) if noise else math.nan
        chance = "" if math.isnan(p) else f", p = {p:.2g}"
        whose = (
            "" if both["structure_mode"] is None else f" (T* {both['structure_best']}, mode {both['structure_mode']})"
        )
        found = f"true structure {both['structure']}{whose}, strict {both['solved']} of {len(mine)}"
        parts.append(f"{noise:g}: {said(median_error(mine))}{chance}, {found}")
    text = f"{METHODS[method].label} on {problem}, median test MAE at noise " + "; ".join(parts)
    if (problem, method) == ("b2", "gmeql"):
        text += f" (the paper solves {', '.join(f'{v} %' for v in PAPER_NOISE_SUCCESS.values())})"
    return [text + (". p: Mann-Whitney U against noise 0." if any("p = " in part for part in parts) else ".")]
