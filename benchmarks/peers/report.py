"""Table and figures of the records: pure functions of them."""

from __future__ import annotations

import json
import math
import multiprocessing
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import execute
import metrics
import numpy as np
from systems import SYSTEMS

COLOURS = {"gmeql": "#c1272d", "operon": "#0072b2", "rils_rols": "#009e73", "bingo": "#e69f00", "gplearn": "#7f7f7f"}
TITLES = {"paper": "b1-b8", "feynman-dev": "Feynman", "classics-dev": "classics", "strogatz-dev": "Strogatz"}
TITLES |= {"real-dev": "measured data", "blackbox": "black box"}
PUBLISHED = {
    # Symbolic solution rate in % on SRBench's Feynman problems at noise 0 / 0.01 / 0.1.
    "AI Feynman 2": ("55.8", "13.1", "0.7", "SRBench, hours a problem"),
    "DSR (of DSO)": ("19.7", "19.0", "16.8", "SRBench, hours a problem"),
    "uDSR": ("69.8", "28.6", "11.7", "as published, Feynman and Strogatz together"),
    "PhySO": ("58.4", "57.9", "53.4", "as published, given the units"),
    "Operon": ("16.6", "2.1", "0.1", "SRBench, hours a problem"),
    "gplearn": ("16.3", "16.9", "16.6", "SRBench, hours a problem"),
}
"""Published figures of systems that were not run here (and of two that were), for orientation. PySR has none of this kind: its
SRBench 2025 figure is a median R² of 0.54 at size 13 on black-box data."""


def scored(records: Sequence[dict[str, Any]], path: Path | None = None, *, workers: int = 1) -> list[dict[str, Any]]:
    """Records with their scores. Scores are kept in `path`, so that a comparison is made once."""
    known = {_identity(entry): entry["scores"] for entry in (execute.read(path) if path else [])}
    missing = [record for record in records if _identity(record) not in known]
    if missing:  # in processes, not threads: each also reads and evaluates formulas itself
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(max(1, workers), context) as pool:
            for record, scores in zip(missing, pool.map(metrics.score, missing)):
                known[_identity(record)] = scores
                if path:
                    with open(path, "a", encoding="utf-8") as file:
                        entry = {**{name: record[name] for name in _IDENTITY}, "scores": scores}
                        file.write(json.dumps(entry) + "\n")
    return [{**record, **known[_identity(record)]} for record in records]


_IDENTITY = ("suite", "problem", "noise", "seed", "system", "max_time", "threads", "rows", "formula")


def _identity(record: dict[str, Any]) -> tuple:
    return tuple(record[name] for name in _IDENTITY)


def solution_seconds(record: dict[str, Any]) -> float:
    """Seconds until the returned formula was there: the system's own figure, or the whole fit."""
    found = record.get("found")
    return float(record["seconds"] if found is None else min(found, record["seconds"]))


# ---------------------------------------------------------------------------------------------------------------- table


def markdown(records: Sequence[dict[str, Any]]) -> str:
    """All tables of the report."""
    parts = [_by_problem(_of(records, suite="paper", noise=0.0)), _by_suite(records), _times(records), _published()]
    return "\n\n".join(part for part in parts if part) + "\n"


def _of(records: Iterable[dict[str, Any]], **wanted: Any) -> list[dict[str, Any]]:
    return [record for record in records if all(record[name] == value for name, value in wanted.items())]


def _systems(records: Iterable[dict[str, Any]]) -> list[str]:
    present = {record["system"] for record in records}
    return [name for name in SYSTEMS if name in present]


def _values(records: Iterable[dict[str, Any]], name: str) -> list[Any]:
    return list(dict.fromkeys(record[name] for record in records))


def _row(*cells: Any) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _middle(values: Iterable[float | None], digits: str = ".3g") -> str:
    present = [value for value in values if value is not None]
    return format(median(present), digits) if present else "-"


def _by_problem(records: Sequence[dict[str, Any]]) -> str:
    """b1-b8: solved of runs, and the median seconds to a solution."""
    if not records:
        return ""
    problems = sorted(_values(records, "problem"))
    lines = [_row("solved, median s to solution", *problems, "all"), _row(*["---"] * (len(problems) + 2))]
    for system in _systems(records):
        mine = _of(records, system=system)
        cells = [_solved(_of(mine, problem=problem)) for problem in problems]
        lines.append(_row(SYSTEMS[system].label, *cells, _solved(mine)))
    return "\n".join(lines)


def _solved(records: Sequence[dict[str, Any]]) -> str:
    if not records:
        return ""
    times = [solution_seconds(record) for record in records if record["symbolic"]]
    text = f"{len(times)}/{len(records)}"
    return f"{text}, {_middle(times, '.2g')}" if times else text


def _by_suite(records: Sequence[dict[str, Any]]) -> str:
    head = ["suite", "noise", "limit, s", "system", "runs", "symbolic", "R² > 0.999", "median R²", "median size"]
    head += ["median s to solution", "failed"]
    lines = [_row(*head), _row(*["---"] * len(head))]
    for suite in _values(records, "suite"):
        for noise in sorted(_values(_of(records, suite=suite), "noise")):
            for limit in sorted(_values(_of(records, suite=suite, noise=noise), "max_time")):
                group = _of(records, suite=suite, noise=noise, max_time=limit)
                for system in _systems(group):
                    mine = _of(group, system=system)
                    lines.append(_row(*_suite_cells(suite, noise, limit, system, mine)))
    return "\n".join(lines) if len(lines) > 2 else ""


def _suite_cells(suite: str, noise: float, limit: float, system: str, mine: list[dict[str, Any]]) -> list[str]:
    judged = [record for record in mine if record["symbolic"] is not None]
    solved = [record for record in judged if record["symbolic"]]
    share = f"{len(solved)}/{len(judged)} ({100 * len(solved) / len(judged):.0f} %)" if judged else "-"
    accurate = sum(record["accurate"] for record in mine)
    # A formula that is not finite on test rows has no R²; for the median it counts as the worst.
    r2 = [-math.inf if record["r2"] is None else record["r2"] for record in mine]
    return [
        TITLES.get(suite, suite),
        f"{noise:g}",
        f"{limit:g}",
        SYSTEMS[system].label,
        str(len(mine)),
        share,
        f"{accurate} ({100 * accurate / len(mine):.0f} %)",
        _middle(r2, ".4f"),
        _middle((record["size"] for record in mine), ".0f"),
        _middle((solution_seconds(record) for record in solved), ".2g"),
        str(sum(bool(record["error"]) for record in mine)),
    ]


def _times(records: Sequence[dict[str, Any]]) -> str:
    lines = [_row("system", "settings", "what its seconds are"), _row("---", "---", "---")]
    for name in _systems(records):
        lines.append(_row(SYSTEMS[name].label, SYSTEMS[name].settings, SYSTEMS[name].seconds))
    machines = "; ".join(_values(records, "machine"))
    threads = "/".join(str(value) for value in _values(records, "threads"))
    return "\n".join(lines) + f"\n\nMachine: {machines}; cores a run: {threads}."


def _published() -> str:
    head = ["published, not run here: Feynman, symbolic %", "noise 0", "0.01", "0.1", "where"]
    lines = [_row(*head), _row(*["---"] * len(head))]
    lines += [_row(name, *values) for name, values in PUBLISHED.items()]
    return "\n".join(lines)


# -------------------------------------------------------------------------------------------------------------- figures


def figures(records: Sequence[dict[str, Any]], folder: Path) -> list[Path]:
    """Both figures as PNG files."""
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    return [
        _saved(solved_against_seconds(records), folder / "peers-solved.png"),
        _saved(accuracy_against_size(records), folder / "peers-size.png"),
    ]


def _saved(figure: Any, path: Path) -> Path:
    import matplotlib.pyplot as plt

    figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)
    return path


def solved_against_seconds(records: Sequence[dict[str, Any]]) -> Any:
    """Share of runs solved symbolically within so many seconds, one curve a system, one panel a suite; no noise."""
    import matplotlib.pyplot as plt

    clean = [record for record in records if record["noise"] == 0 and record["symbolic"] is not None]
    suites = [suite for suite in ("paper", "feynman-dev") if any(r["suite"] == suite for r in clean)]
    suites = suites or _values(clean, "suite")[:2]
    figure, panels = plt.subplots(1, max(1, len(suites)), figsize=(4.6 * max(1, len(suites)), 3.4), squeeze=False)
    for panel, suite in zip(panels[0], suites):
        group = _of(clean, suite=suite)
        limit = max(record["max_time"] for record in group)
        for system in _systems(group):
            mine = _of(group, system=system)
            times = sorted(max(solution_seconds(record), 0.01) for record in mine if record["symbolic"])
            steps = np.arange(len(times) + 1) / len(mine)
            x = [0.01, *times, max(limit, *times)] if times else [0.01, limit]
            panel.step(
                x, [*steps, steps[-1]] if times else [0, 0], where="post", color=COLOURS.get(system), lw=2,
                label=f"{SYSTEMS[system].label} {len(times)}/{len(mine)}",
            )  # fmt: skip
        panel.set(xscale="log", ylim=(-0.02, 1.02), xlim=(0.01, limit * 1.3), xlabel="seconds, one core")
        panel.set_title(f"{TITLES.get(suite, suite)}, {limit:g} s a run")
        panel.grid(alpha=0.25)
        panel.legend(fontsize=8, loc="upper left")
    panels[0][0].set_ylabel("share of runs solved")
    return figure


def accuracy_against_size(records: Sequence[dict[str, Any]]) -> Any:
    """Median test R² against median size: one dot a system and panel, bars from quartile to quartile."""
    import matplotlib.pyplot as plt

    usable = [record for record in records if record["size"] is not None]
    groups = {
        "black box and measured data": [r for r in usable if r["suite"] in ("blackbox", "real-dev")],
        "Feynman, 10 % noise": [r for r in usable if r["suite"] == "feynman-dev" and r["noise"] == 0.1],
    }
    groups = {title: group for title, group in groups.items() if group} or {"all runs": usable}
    figure, panels = plt.subplots(1, len(groups), figsize=(4.6 * len(groups), 3.4), squeeze=False)
    for panel, (title, group) in zip(panels[0], groups.items()):
        for system in _systems(group):
            mine = _of(group, system=system)
            sizes = np.percentile([record["size"] for record in mine], [25, 50, 75])
            r2 = np.percentile([max(0.0, record["r2"] or 0.0) for record in mine], [25, 50, 75])
            panel.errorbar(
                sizes[1], r2[1], xerr=[[sizes[1] - sizes[0]], [sizes[2] - sizes[1]]],
                yerr=[[r2[1] - r2[0]], [r2[2] - r2[1]]], fmt="o", ms=8, capsize=3, lw=1.2,
                color=COLOURS.get(system), label=SYSTEMS[system].label,
            )  # fmt: skip
        panel.set(xscale="log", xlabel="size (nodes)", title=title)
        panel.set_xticks([5, 10, 20, 50, 100], labels=["5", "10", "20", "50", "100"])
        panel.minorticks_off()
        panel.grid(alpha=0.25)
        panel.legend(fontsize=8, loc="best")
    panels[0][0].set_ylabel("test R² (below 0 as 0)")
    return figure
