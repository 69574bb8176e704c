"""Method "paper" on b1-b8: solved share and median best MAE of its presets, and a sweep within Algorithm 1's parameters.

    PYTHONPATH=src python benchmarks/paper_table.py run --out RESULTS        on a GPU; needs jax, numpy, sympy
    PYTHONPATH=src python benchmarks/paper_table.py report RESULTS/records.jsonl

`run` appends one record per training run to RESULTS/records.jsonl piece by piece (a piece is one batch of runs on one
network shape) and skips pieces that are already there, so it can be stopped and started again. `--limit` seconds are
never knowingly overrun: a piece that would not fit is left for the next call.

What a record says of a run, for T*, the best instance Algorithm 1 kept:
- `loss`: its relaxed MAE on the 300 training rows; `hard_loss`: MAE of its hard structure with the same weights.
- `solved`: the rule of the whole evaluation (`gmeql.evaluation.paper.judging.SOLVED_RULE`, which ends in
  `gmeql.evaluation.problems.judge`). `report` judges every record anew, whatever the record itself says.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import platform
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from gmeql.evaluation.paper.cells import Cell, table
from gmeql.evaluation.paper.judging import judge_expression
from gmeql.evaluation.problems import paper_problem
from gmeql.fitters import programs
from gmeql.network.architecture import Architecture, architecture_preset
from gmeql.paper import two_stage
from gmeql.paper.two_stage import TwoStageConfig

CLOSE_MAE = 0.01
SWEEP_SEED = 1000
"""The sweep trains on other seeds than the table, so the chosen setting is judged on fresh data."""
PAPER_SHARES = {"b1": 61, "b2": 70, "b3": 45, "b4": 40, "b5": 53, "b6": 100, "b7": 47, "b8": 100}
GROUPS = {  # problems that share one network shape run side by side
    "powers": (("b1", "b2", "b3", "b4"), "released"),
    "waves": (("b5", "b6"), "general"),
    "products": (("b7", "b8"), "general"),
}
RELEASED_START = dict(logits_scale=0.5, weights_mean=1.0, weights_scale=0.02, gradient_clip=1.0)

SWEEP: dict[str, dict[str, Any]] = {
    "text, all connections": dict(resample_fraction=1.0),
    "text, refresh": dict(refresh_elites=True),
    "text, refresh, half": dict(refresh_elites=True, resample_fraction=0.5),
    "start": RELEASED_START,
    "start, all connections": dict(RELEASED_START, resample_fraction=1.0),
    "start, refresh": dict(RELEASED_START, refresh_elites=True),
    "start, refresh, half": dict(RELEASED_START, refresh_elites=True, resample_fraction=0.5),
    "start, refresh, all connections": dict(RELEASED_START, refresh_elites=True, resample_fraction=1.0),
    "start, refresh, weights 3e-3": dict(RELEASED_START, refresh_elites=True, weights_rate=3e-3),
    "start, refresh, half, weights 3e-3": dict(
        RELEASED_START, refresh_elites=True, resample_fraction=0.5, weights_rate=3e-3
    ),
    "start, refresh, half, weights 1e-2": dict(
        RELEASED_START, refresh_elites=True, resample_fraction=0.5, weights_rate=1e-2
    ),
    "start, refresh, half, logits 3e-3": dict(
        RELEASED_START, refresh_elites=True, resample_fraction=0.5, logits_rate=3e-3
    ),
    "start, refresh, half, offline 3e-4": dict(
        RELEASED_START, refresh_elites=True, resample_fraction=0.5, offline_rate=3e-4
    ),
    "start, refresh, half, offline 3e-3": dict(
        RELEASED_START, refresh_elites=True, resample_fraction=0.5, offline_rate=3e-3
    ),
    "start, refresh, half, temperature 1/3": dict(
        RELEASED_START, refresh_elites=True, resample_fraction=0.5, temperature=1 / 3
    ),
    "start, refresh, half, temperature 1": dict(
        RELEASED_START, refresh_elites=True, resample_fraction=0.5, temperature=1.0
    ),
}


def schedule(scale: float, config: TwoStageConfig) -> TwoStageConfig:
    """The config with its numbers of steps scaled (1: the whole budget) and few, long chunks."""
    return replace(
        config,
        stage1_steps=max(1, round(config.stage1_steps * scale)),
        stage2_steps=max(1, round(config.stage2_steps * scale)),
        chunk_steps=max(1, round(2000 * scale)),
        curve_every=max(1, round(500 * scale)),
    )


def train_piece(
    group: str, runs: list[tuple[str, int, str, TwoStageConfig]], deadline: float
) -> Iterator[dict[str, Any]]:
    """Train all runs (problem, seed, setting, config) of a piece side by side; one record each."""
    problems = {name: paper_problem(name) for name in GROUPS[group][0]}
    tables = [problems[name].train(problems[name].generator(seed, "train")) for name, seed, _, _ in runs]
    X, y = (np.stack(parts) for parts in zip(*tables, strict=True))
    architecture = architecture_preset(GROUPS[group][1], X.shape[2])
    configs = [config for *_, config in runs]
    start = time.perf_counter()
    first_chunk = 0.0
    progress = None
    for progress in two_stage.run(architecture, X, y, seeds=[seed for _, seed, _, _ in runs], config=configs):
        if not first_chunk:
            first_chunk, chunk_steps = time.perf_counter() - start, progress.step
            continue
        rate = (time.perf_counter() - start - first_chunk) / (progress.step - chunk_steps)
        if progress.step % (10 * configs[0].chunk_steps) == 0 or progress.done:
            log(f"  {group}: step {progress.step} of {progress.total_steps}, {1e3 * rate:.3f} ms a step")
        if time.perf_counter() + rate * (progress.total_steps - progress.step) > deadline and not progress.done:
            raise TimeoutError(f"would not finish in time ({1e3 * rate:.3f} ms a step); start again with --done")
    train_seconds = time.perf_counter() - start
    steps = progress.total_steps - chunk_steps
    step_seconds = (train_seconds - first_chunk) / max(steps, 1)
    result = progress.result
    log(f"  {group}: {len(runs)} runs in {train_seconds:.1f} s")
    for i, (name, seed, setting, config) in enumerate(runs):
        yield {
            "problem": name,
            "seed": seed,
            "setting": setting,
            "config": {key: value if value != math.inf else "inf" for key, value in asdict(config).items()},
            "layers": [list(layer) for layer in architecture.layers],
            "loss": float(result.loss[i]),
            "hard_loss": float(result.hard_loss[i]),
            "relative_hard_loss": float(result.hard_loss[i] / np.std(y[i])),
            "found_at": int(result.found_at[i]),
            "choices": result.choices[i].tolist(),
            "weights": [float(w) for w in result.weights[i]],
            "curve_steps": result.curves.steps.tolist(),
            "curve_mean": [float(f"{v:.5g}") for v in result.curves.mean[:, i]],
            "curve_best": [float(f"{v:.5g}") for v in result.curves.best[:, i]],
            "batch": len(runs),
            "ms_per_step": 1e3 * step_seconds,
            "first_chunk_seconds": first_chunk,
            "train_seconds": train_seconds,
        }


def solved(record: dict[str, Any]) -> bool:
    """Whether a run found the truth, by the one rule of the evaluation."""
    problem = paper_problem(record["problem"])
    architecture = Architecture(len(problem.names), tuple(tuple(layer) for layer in record["layers"]))
    (expression,) = programs.expression_from_structure(
        architecture, record["choices"], record["weights"], problem.names
    )
    cell = Cell(record["problem"], "gmeql", seed=record["seed"], budget="full")
    return judge_expression(expression, cell, *table(cell))[0].solved


def judged(records: list[dict[str, Any]], workers: int | None = None) -> list[dict[str, Any]]:
    """The records with `solved` decided, in parallel: a long formula takes a second."""
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(solved, records, chunksize=8))
    return [record | {"solved": bool(s)} for record, s in zip(records, found, strict=True)]


# --- pieces -----------------------------------------------------------------------------------------------------


def pieces(args: argparse.Namespace, records: list[dict[str, Any]]) -> Iterator[tuple[str, str, list[Any]]]:
    """Name, group and runs of each piece, in the order of their worth; `best` looks at the sweep's records."""
    paper = schedule(args.scale, TwoStageConfig.paper())
    released = schedule(args.scale, TwoStageConfig.released())
    chosen_groups = [g for g in GROUPS if not args.groups or g in args.groups.split(",")]

    def runs(group: str, setting: str, config: TwoStageConfig, first: int, count: int) -> list[Any]:
        return [(name, first + s, setting, config) for name in GROUPS[group][0] for s in range(count)]

    if "sweep" in args.phases:
        for group in chosen_groups:
            batch = runs(group, "paper", paper, 0, args.seeds)
            for setting, changes in SWEEP.items():
                batch += runs(group, setting, replace(paper, **changes), SWEEP_SEED, args.sweep_seeds)
            yield f"sweep/{group}", group, batch
    if "best" in args.phases:
        for group in chosen_groups:
            if best := args.best or best_setting(records):
                yield f"best/{group}", group, runs(group, f"best: {best}", replace(paper, **SWEEP[best]), 0, args.seeds)
    if "released" in args.phases:
        for group in chosen_groups:
            yield f"released/{group}", group, runs(group, "released", released, 0, args.seeds)


def best_setting(records: list[dict[str, Any]]) -> str | None:
    """The sweep's setting with the most solved runs; of equals, the one with the lowest median relative hard loss."""
    scores = {}
    for setting in SWEEP:
        mine = [r for r in records if r["setting"] == setting]
        if mine:
            solved = np.mean([r["solved"] for r in mine])
            scores[setting] = (-solved, float(np.median([min(r["relative_hard_loss"], 1e9) for r in mine])))
    return min(scores, key=scores.__getitem__) if scores else None


def run_command(args: argparse.Namespace) -> None:
    began = time.perf_counter()
    deadline = began + args.limit
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "records.jsonl"
    records = read_records(path) + (read_records(Path(args.done)) if args.done else [])
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    log(f"{jax.devices()[0]}, jax {jax.__version__}, numpy {np.__version__}, python {platform.python_version()}")
    for name, group, runs in pieces(args, records):
        if any(record["piece"] == name for record in records):
            log(f"{name}: already there")
            continue
        left = deadline - time.perf_counter()
        log(f"{name}: {len(runs)} runs of {runs[0][-1].total_steps} steps; {left:.0f} s left")
        try:
            new = judged(
                [{"piece": name, "device": str(jax.devices()[0])} | r for r in train_piece(group, runs, deadline)]
            )
        except TimeoutError as error:
            log(f"{name}: {error}")
            continue
        records += new
        with path.open("a") as file:
            file.writelines(json.dumps(record) + "\n" for record in new)
        print_table(new)
        if args.phases == ["sweep"]:
            log(f"best so far: {best_setting(records)}")
    log(f"{time.perf_counter() - began:.0f} s in all")
    (out / "table.md").write_text(markdown(records))


# --- report -----------------------------------------------------------------------------------------------------


def read_records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()] if path.exists() else []


def cell(records: list[dict[str, Any]]) -> dict[str, float]:
    """Summary of one setting on one problem."""
    relative = np.array([min(r["relative_hard_loss"], 1e30) for r in records])
    return {
        "runs": len(records),
        "solved": float(np.mean([r["solved"] for r in records])),
        "close": float(np.mean(relative <= CLOSE_MAE)),
        "median_mae": float(np.median([r["loss"] for r in records])),
        "median_hard_mae": float(np.median([r["hard_loss"] for r in records])),
    }


def print_table(records: list[dict[str, Any]]) -> None:
    for setting in dict.fromkeys(r["setting"] for r in records):
        cells = []
        for problem in PAPER_SHARES:
            mine = [r for r in records if r["setting"] == setting and r["problem"] == problem]
            if mine:
                c = cell(mine)
                cells.append(
                    f"{problem} {100 * c['solved']:3.0f}% mae {c['median_mae']:.2g} hard {c['median_hard_mae']:.2g}"
                )
        log(f"    {setting:42s} " + " | ".join(cells))


def markdown(records: list[dict[str, Any]]) -> str:
    """Tables of all records: solved share and median best MAE (relaxed / hard) for each setting and problem."""
    problems = [p for p in PAPER_SHARES if any(r["problem"] == p for r in records)]
    lines = ["| setting | runs | " + " | ".join(problems) + " | mean |", "| --- " * (len(problems) + 3) + "|"]
    shares = [PAPER_SHARES[p] for p in problems]
    lines.append(
        "| the paper's claim | 20 | " + " | ".join(f"{s} %" for s in shares) + f" | {np.mean(shares or [0]):.0f} % |"
    )
    details = ["", "Median best MAE, relaxed / hard:", "", *lines[:2]]
    for setting in dict.fromkeys(r["setting"] for r in records):
        cells = [
            cell([r for r in records if r["setting"] == setting and r["problem"] == p] or [_BLANK]) for p in problems
        ]
        runs = int(max(c["runs"] for c in cells))
        solved = [100 * c["solved"] for c in cells]
        lines.append(
            f"| {setting} | {runs} | " + " | ".join(f"{s:.0f} %" for s in solved) + f" | {np.mean(solved):.0f} % |"
        )
        maes = [f"{c['median_mae']:.2g} / {c['median_hard_mae']:.2g}" for c in cells]
        details.append(f"| {setting} | {runs} | " + " | ".join(maes) + " | |")
    speeds = [
        "",
        "| piece | runs side by side | ms a step | first chunk, compilation included, s | all, s |",
        "| --- " * 5 + "|",
    ]
    for piece in dict.fromkeys(r["piece"] for r in records):
        r = next(r for r in records if r["piece"] == piece)
        numbers = f"{r['ms_per_step']:.3f} | {r['first_chunk_seconds']:.1f} | {r['train_seconds']:.1f}"
        speeds.append(f"| {piece} | {r['batch']} | {numbers} |")
    return "\n".join([*lines, *details, *speeds, ""])


_BLANK = {"relative_hard_loss": math.nan, "solved": math.nan, "loss": math.nan, "hard_loss": math.nan}


def log(message: str) -> None:
    print(message, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="train and write records")
    run.add_argument("--out", required=True, help="folder for records.jsonl and table.md")
    run.add_argument("--done", help="records.jsonl of an earlier call, to go on from")
    run.add_argument("--phases", default="sweep,best,released", type=lambda text: text.split(","))
    run.add_argument("--groups", default="", help=f"of {','.join(GROUPS)}")
    run.add_argument("--seeds", type=int, default=20)
    run.add_argument("--sweep-seeds", type=int, default=5)
    run.add_argument("--best", choices=list(SWEEP), help="instead of the sweep's winner")
    run.add_argument("--scale", type=float, default=1.0, help="share of the whole budget of steps")
    run.add_argument("--limit", type=float, default=520.0, help="seconds after which no piece may still run")
    report = commands.add_parser("report", help="print the tables of a records file")
    report.add_argument("records", nargs="+")
    report.add_argument("--workers", type=int, help="processes that judge; one per core by default")
    args = parser.parse_args()
    if args.command == "run":
        run_command(args)
    else:
        records = [record for path in args.records for record in read_records(Path(path)) if "layers" in record]
        print(markdown(judged(records, args.workers)))


if __name__ == "__main__":
    main()
