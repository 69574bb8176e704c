"""A race of settings within Algorithm 1's own parameters: many short runs, the better part goes on, few run to the end.

    PYTHONPATH=src python benchmarks/paper_race.py race --out RACE [--limit 400]        on a GPU
    PYTHONPATH=src python benchmarks/paper_race.py final --out FINAL --settings RACE/finalists.json [--limit 400]

`race` is successive halving: rounds of more and more steps with fewer and fewer settings and more seeds, so that every
round is one batch of the same size and nothing is compiled twice. Numbers of a setting are arguments of the compiled
program; only the order of updates is a program of its own. Every setting is scored on all eight problems (`score`), on
seeds from 1000 up; `final` trains the finalists and the presets on seeds 0 to 19, with the paper's budget of instances.

Every training run is one line of records.jsonl: setting, problem, seed, and the structures and weights of T* and of the
mode of the final logits. Lines that are there already are not trained again.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gmeql.evaluation.paper.records import device
from gmeql.evaluation.problems import paper_problem, released_problem
from gmeql.fitters.programs import expression_from_structure
from gmeql.network.architecture import HAND_CHOSEN, PUBLISHED, Architecture, architecture_preset
from gmeql.paper import two_stage
from gmeql.paper.two_stage import TwoStageConfig
from gmeql.search import polish

PAPER_SHARES = {"b1": 0.61, "b2": 0.70, "b3": 0.45, "b4": 0.40, "b5": 0.53, "b6": 1.0, "b7": 0.47, "b8": 1.0}
RACE_SEED = 1000
"""Settings are chosen on seeds from here up, judged on seeds below."""
FULL = (3, 2000, 48_000)
"""The paper's n, m and q: with p = 40 its budget is 2,160,000 sampled instances."""
CHUNK = 500
CURVE_POINTS = 30
ROUNDS = ((1 / 12, 1, 0.25), (1 / 4, 4, 0.5), (1 / 2, 12, 1.0))
"""Of each round: the share of the paper's steps, by how many the settings are fewer and the seeds more than at first, and
the share of all time after which runs are ended where they stand."""
EXACT = 1e-7
"""Relative RMSE of a refitted structure that counts as the truth in the race; the judges are stricter."""
MARKERS = 12
"""Threads that refit; the compiled fit runs beside the interpreter."""
RELEASED_START = dict(logits_scale=0.5, weights_mean=1.0, weights_scale=0.02, gradient_clip=1.0)

SPACE: dict[str, Sequence[Any]] = {
    "resample_fraction": (0.1, 0.2, 0.2, 0.35, 0.5, 1.0),
    "resample_law": ("count", "bernoulli"),
    "draw_law": ("rank", "released"),
    "power_law_exponent": (0.5, 1.5, 1.5, 2.5),
    "temperature": (0.2, 1 / 3, 2 / 3, 2 / 3, 1.0),
    "final_temperature": (None, None, 0.1, 0.3),
    "logits_rate": (3e-4, 1e-3, 1e-3, 3e-3, 1e-2),
    "weights_rate": (3e-4, 1e-3, 1e-3, 3e-3, 1e-2),
    "offline_rate": (1e-4, 3e-4, 1e-3, 3e-3),
    "logits_scale": (0.1, 0.5, 1.0),
    "start": ((0.0, 1.0), (1.0, 0.02), (1.0, 0.02), (1.0, 0.1), (1.0, 0.3)),
    "gradient_clip": (math.inf, 1.0, 0.1),
    "average_choices": (False, True),
    "merge_rounds": (False, True),
    "fill_first": (False, True),
    "refresh_elites": (False, True),
    "use_offline": (True, True, True, False),
    "offline_rule": ("density", "density", "squared_difference"),
}
"""Values that a setting draws from, those of text and released code twice; `start` is mean and scale of the weights."""

ANCHORS: dict[str, dict[str, Any]] = {
    "text": {},
    "text, start": RELEASED_START,
    "start, refresh": dict(RELEASED_START, refresh_elites=True),
    "start, released draw, averaged": dict(RELEASED_START, draw_law="released", average_choices=True),
    "start, all connections": dict(RELEASED_START, resample_fraction=1.0),
}
"""Settings that earlier trials pointed at; the race takes them along."""


@dataclass(frozen=True)
class Group:
    """Problems that train side by side on one network."""

    name: str
    problems: tuple[str, ...]
    layers: tuple[tuple[str, ...], ...]

    @property
    def architecture(self) -> Architecture:
        return Architecture(len(paper_problem(self.problems[0]).names), self.layers)


def groups_of(problems: Iterable[str], layers: str) -> list[Group]:
    """One group for each network: selected by hand ("hand"), "published", or a preset's layers for all problems."""
    tables = {"hand": HAND_CHOSEN, "published": PUBLISHED}
    found: dict[Any, list[str]] = defaultdict(list)
    for problem in problems:
        preset = tables[layers][problem] if layers in tables else layers
        found[preset, len(paper_problem(problem).names)].append(problem)
    return [
        Group(preset, tuple(names), architecture_preset(preset, width).layers)
        for (preset, width), names in found.items()
    ]


@dataclass(frozen=True)
class Setting:
    """Changes to the text's numbers, under a name."""

    name: str
    changes: dict[str, Any]

    def config(self, schedule: tuple[int, int, int], chunk: int) -> TwoStageConfig:
        rounds, first, second = schedule
        steps = dict(stage1_rounds=rounds, stage1_steps=first, stage2_steps=second)
        return TwoStageConfig(**{**self.changes, **steps, "chunk_steps": chunk, "curve_every": chunk})


def drawn_settings(count: int, seed: int, base: Sequence[dict[str, Any]] = ()) -> list[Setting]:
    """Random settings: half of them anchors with a few parameters drawn anew, half drawn whole."""
    rng = random.Random(seed)
    settings = []
    for number in range(count):
        drawn = {name: rng.choice(values) for name, values in SPACE.items()}
        mean, scale = drawn.pop("start")
        drawn |= {"weights_mean": mean, "weights_scale": scale}
        if number % 2 and base:
            kept = rng.choice(base)
            changed = rng.sample(sorted(drawn), 4)
            drawn = {**kept, **{name: drawn[name] for name in changed}}
        settings.append(Setting(f"s{seed}-{number}", drawn))
    return settings


# --- training -----------------------------------------------------------------------------------------------------


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
        group.architecture, X, y, seeds=[seed for *_, seed in runs], config=configs, dtype=options.dtype
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
                "rows": X.shape[1], "steps": progress.step, "loss": float(result.loss[i]),
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


def table(problem: str, seed: int, released_rows: bool) -> tuple[np.ndarray, np.ndarray]:
    """Training rows of a run: Table 1's, or the released code's 500 points on (0, 2.1)."""
    found = released_problem(problem) if released_rows else paper_problem(problem)
    return found.train(found.generator(seed, "train"))


def plain(changes: dict[str, Any]) -> dict[str, Any]:
    return {name: "inf" if value == math.inf else value for name, value in changes.items()}


def setting_of(data: dict[str, Any]) -> Setting:
    return Setting(data["name"], {k: math.inf if v == "inf" else v for k, v in data["changes"].items()})


def short(values: np.ndarray) -> list[float]:
    return [float(f"{value:.7g}") if math.isfinite(value) else 1e30 for value in values]


def log(text: str) -> None:
    print(f"[{time.perf_counter() - START:6.1f} s] {text}", flush=True)


START = time.perf_counter()


# --- score --------------------------------------------------------------------------------------------------------


def mark(lines: list[dict[str, Any]], released_rows: bool = False) -> None:
    """Set `best_fits` and `mode_fits`: whether T*'s structure, and the mode's, fit exactly once refitted."""
    with ThreadPoolExecutor(MARKERS) as pool:
        list(pool.map(lambda line: mark_one(line, released_rows), lines))


def mark_one(line: dict[str, Any], released_rows: bool) -> None:
    names = paper_problem(line["problem"]).names
    network = Architecture(len(names), tuple(tuple(layer) for layer in line["layers"]))
    rows = polish.JudgedRows.of(*table(line["problem"], line["seed"], released_rows), None, names)

    def fits(choices: list[int], weights: list[float]) -> bool:
        (own,) = expression_from_structure(network, choices, weights, names, protected=False)
        roots = [own.root, own.with_constants((1.0,) * len(own.constants)).root]
        with np.errstate(all="ignore"):
            fitted = polish.refit(roots, rows, keep_recognised=False, max_steps=100)
        return any(one.loss < (EXACT * rows.spread) ** 2 for one in fitted)

    line["best_fits"] = fits(line["choices"], line["weights"])
    same = line["best_fits"] and line["mode"] == line["choices"]
    line["mode_fits"] = same or fits(line["mode"], line["mode_weights"])


def score(lines: Sequence[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """Of each setting: the mean over problems of its share of true structures, in units of the paper's share and at most
    1; of equals, the lower mean log of the relative error goes ahead."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        found[line["setting"]][line["problem"]].append(line)
    scores = {}
    for setting, by_problem in found.items():
        shares, errors = [], []
        for problem, mine in by_problem.items():
            share = np.mean([line["best_fits"] or line["mode_fits"] for line in mine])
            shares.append(min(1.0, share / PAPER_SHARES[problem]))
            errors.append(np.mean([math.log10(min(max(line["relative"], 1e-6), 1e3)) for line in mine]))
        scores[setting] = (float(np.mean(shares)), -float(np.mean(errors)))
    return scores


def show(lines: Sequence[dict[str, Any]], order: Sequence[str], limit: int = 15) -> None:
    """Share of true structures (T* or mode / T* alone) of the first settings, problem by problem."""
    problems = sorted({line["problem"] for line in lines})
    for setting in order[:limit]:
        cells = []
        for problem in problems:
            mine = [line for line in lines if line["setting"] == setting and line["problem"] == problem]
            either = sum(line["best_fits"] or line["mode_fits"] for line in mine)
            cells.append(f"{problem} {either}({sum(line['best_fits'] for line in mine)})/{len(mine)}")
        log(f"   {setting:32s} " + "  ".join(cells))


# --- commands -----------------------------------------------------------------------------------------------------


def schedule_of(share: float, chunk: int) -> tuple[int, int, int]:
    """The paper's schedule times a share, in whole chunks; the short ones have shorter rounds, not fewer."""
    rounds, first, second = FULL

    def whole(steps: int) -> int:
        return max(chunk, round(steps * share / chunk) * chunk)

    return rounds, whole(first), whole(second)


def race(options: argparse.Namespace) -> None:
    records = Records(Path(options.out))
    anchors = [Setting(name, changes) for name, changes in ANCHORS.items()]
    bases = [anchor.changes for anchor in anchors]
    if options.settings:
        anchors += [setting_of(data) for data in json.loads(Path(options.settings).read_text())]
        bases = [anchor.changes for anchor in anchors[len(ANCHORS) :]]
    alive = []
    for order in options.orders:
        drawn = [*anchors, *drawn_settings(options.count - len(anchors), options.draw_seed, bases)][: options.count]
        tail = "" if order == "together" else ", in turn"
        alive += [Setting(s.name + tail, {**s.changes, "update_order": order}) for s in drawn]
    groups = groups_of(options.problems, options.layers)
    for number, (share, fewer, time_share) in enumerate(ROUNDS):
        keep = max(1, options.count // fewer)
        per_order = {o: [s for s in alive if s.changes["update_order"] == o][:keep] for o in options.orders}
        alive = [setting for settings in per_order.values() for setting in settings]
        seeds = range(RACE_SEED + 100 * number, RACE_SEED + 100 * number + options.seeds * fewer)
        budget = f"race{number}"
        jobs = [
            (group, [(s, p, seed) for s in settings for p in group.problems for seed in seeds])
            for group in groups
            for settings in per_order.values()
        ]
        ends = START + time_share * options.limit
        lines = run_all(jobs, schedule_of(share, options.chunk), options, ends, budget, records)
        scores = score(lines)
        alive = sorted((s for s in alive if s.name in scores), key=lambda s: scores[s.name], reverse=True)
        log(f"{budget}: {len(lines)} runs, {len(alive)} settings")
        show(lines, [s.name for s in alive])
        if alive:
            finalists = [{"name": s.name, "changes": plain(s.changes), "score": scores[s.name]} for s in alive[:20]]
            (Path(options.out) / "finalists.json").write_text(json.dumps(finalists, indent=1))


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
        for begin in range(0, len(runs), options.batch):
            try:
                lines = train(group, runs[begin : begin + options.batch], schedule, options, deadline, budget)
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


def final(options: argparse.Namespace) -> None:
    records = Records(Path(options.out))
    settings = [setting_of(data) for data in json.loads(Path(options.settings).read_text())][: options.count]
    deadline = START + options.limit
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    budget = f"final {options.layers}"
    for setting in settings:
        names = ("stage1_rounds", "stage1_steps", "stage2_steps")
        rounds, first, second = (setting.changes.get(name, text) for name, text in zip(names, FULL, strict=True))
        jobs = [
            (group, [(setting, p, seed) for p in group.problems for seed in seeds])
            for group in groups_of(options.problems, options.layers)
        ]
        lines = run_all(jobs, (rounds, first, second), options, deadline, budget, records)
        show(lines, [setting.name])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("race", "final"))
    parser.add_argument("--out", required=True, help="folder of the records")
    parser.add_argument("--settings", help="finalists.json: where the race starts from, or what `final` trains")
    parser.add_argument("--problems", default=",".join(PAPER_SHARES), type=lambda text: text.split(","))
    parser.add_argument("--layers", default="hand", help='"hand" (selected by hand for each problem) or a preset')
    parser.add_argument("--count", type=int, default=96, help="settings at the start, for each order of updates")
    parser.add_argument("--seeds", type=int, help="of a setting and problem: 2 at the start of a race, 20 in `final`")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--orders", default="together", type=lambda text: text.split(","))
    parser.add_argument("--draw-seed", type=int, default=1, help="of the random settings")
    parser.add_argument("--released-rows", action="store_true", help="500 points on (0, 2.1), b1-b4 only")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--batch", type=int, default=1000, help="most runs side by side")
    parser.add_argument("--chunk", type=int, default=CHUNK)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--limit", type=float, default=400.0, help="seconds that are never knowingly overrun")
    options = parser.parse_args()
    options.seeds = options.seeds or {"race": 2, "final": 20}[options.command]
    {"race": race, "final": final}[options.command](options)


if __name__ == "__main__":
    main()
