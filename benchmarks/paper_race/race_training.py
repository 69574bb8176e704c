"""Training of the race's runs: batches side by side, one line of records.jsonl each, marked by what their structures are."""

from __future__ import annotations

import argparse
import json
import math
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from race_scoring import mark, table
from race_settings import Group, Setting, plain

from gmeql.evaluation.paper.records import device
from gmeql.paper import two_stage

CURVE_POINTS = 30
START = time.perf_counter()


class Records:
    """Lines of one file, appended as runs end; safe for several threads."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self.lock = folder / "records.jsonl", threading.Lock()
        self.lines = read(self.path)

    def add(self, lines: list[dict[str, Any]]) -> None:
        with self.lock, self.path.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
            self.lines += lines

    def missing(self, runs: Sequence[tuple[Setting, str, int]], budget: str) -> list[tuple[Setting, str, int]]:
        there = {(line["setting"], line["problem"], line["seed"]) for line in self.lines if line["budget"] == budget}
        return [run for run in runs if (run[0].name, run[1], run[2]) not in there]


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()] if path.exists() else []


def train(
    group: Group,
    runs: Sequence[tuple[Setting, str, int]],
    schedule: tuple[int, int, int],
    options: argparse.Namespace,
    deadline: float,
    budget: str,
) -> list[dict[str, Any]]:
    """Train runs (setting, problem, seed) of one group side by side; a line each. Where time ends, so do the runs."""
    tables = [table(problem, seed, options.released_rows) for _, problem, seed in runs]
    X, y = (np.stack(parts) for parts in zip(*tables, strict=True))
    configs = [setting.config(schedule, options.chunk) for setting, _, _ in runs]
    started = time.perf_counter()
    first: tuple[float, int] | None = None
    progress = None
    events = two_stage.run(
        group.architecture,
        X,
        y,
        seeds=[seed for *_, seed in runs],
        config=configs,
        dtype=options.dtype,
        engine=options.engine,
    )
    for progress in events:
        now = time.perf_counter()
        first = first or (now, progress.step)
        rate = (now - first[0]) / max(progress.step - first[1], 1)
        if not progress.done and now + rate * options.chunk > deadline:
            log(
                f"{budget} {group.name}: ended at {progress.step} of {progress.total_steps}, {1e3 * rate:.2f} ms a step"
            )
            break
    assert progress is not None and first is not None
    seconds = time.perf_counter() - started
    log(f"{budget} {group.name}: {len(runs)} runs, {seconds:.0f} s, {first[0] - started:.0f} s of it the first chunk")
    result = progress.result
    points = np.unique(np.linspace(0, len(result.curves.steps) - 1, CURVE_POINTS).round().astype(int))
    lines = []
    for i, (setting, problem, seed) in enumerate(runs):
        lines.append(
            {
                "setting": setting.name, "changes": plain(setting.changes), "budget": budget, "problem": problem,
                "seed": seed, "noise": 0.0, "layers": [list(layer) for layer in group.layers],
                "dtype": options.dtype, "device": device(),
                "rows": X.shape[1], "steps": progress.step, "ended": progress.done, "loss": float(result.loss[i]),
                "hard_loss": float(result.hard_loss[i]),
                "relative": float(result.hard_loss[i] / np.std(y[i])), "found_at": int(result.found_at[i]),
                "choices": result.choices[i].tolist(), "weights": short(result.weights[i]),
                "mode": result.mode[i].tolist(), "mode_weights": short(result.mode_weights[i]),
                "curve_steps": result.curves.steps[points].tolist(),
                "curve": short(result.curves.best[points, i]),
                "batch": len(runs),
                "samples_per_step": configs[i].samples_per_step,
                "seconds": seconds / len(runs),
            }
        )  # fmt: skip
    return lines


def short(values: np.ndarray) -> list[float]:
    return [float(f"{value:.7g}") if math.isfinite(value) else 1e30 for value in values]


def log(text: str) -> None:
    print(f"[{time.perf_counter() - START:6.1f} s] {text}", flush=True)


def run_all(
    jobs: list[tuple[Group, list[tuple[Setting, str, int]]]],
    schedule: tuple[int, int, int],
    options: argparse.Namespace,
    deadline: float,
    budget: str,
    records: Records,
) -> list[dict[str, Any]]:
    """Train batches in a few threads, so that one compiles while another trains; mark their lines and keep them."""

    def one(job: tuple[Group, list[tuple[Setting, str, int]]]) -> None:
        group, runs = job
        runs = records.missing(runs, budget)
        starts = range(0, len(runs), options.batch)
        for number, begin in enumerate(starts):
            now = time.perf_counter()
            if now > deadline:
                log(f"{budget} {group.name}: no time left for {len(runs) - begin} runs")
                return
            ends = now + (deadline - now) / (
                len(starts) - number
            )  # every batch has the same time: none is judged by less
            try:
                lines = train(group, runs[begin : begin + options.batch], schedule, options, ends, budget)
            except Exception as error:  # noqa: BLE001  # one batch must not end the others
                log(f"{budget} {group.name}: {type(error).__name__}: {str(error)[:300]}")
                return
            mark(lines, options.released_rows)
            records.add(lines)

    with ThreadPoolExecutor(options.threads) as pool:
        list(pool.map(one, jobs))
    wanted = {(s.name, p, seed) for _, runs in jobs for s, p, seed in runs}
    return [
        line
        for line in records.lines
        if line["budget"] == budget and (line["setting"], line["problem"], line["seed"]) in wanted
    ]
