"""A race of settings within Algorithm 1's own parameters: many short runs, the better part goes on, few run to the end.

    PYTHONPATH=src python benchmarks/paper_race/race.py race --out RACE [--limit 400]        on a GPU
    PYTHONPATH=src python benchmarks/paper_race/race.py around --out AROUND --settings RACE/finalists.json
    PYTHONPATH=src python benchmarks/paper_race/race.py final --out FINAL --settings RACE/finalists.json [--limit 400]

`race` is successive halving: rounds of more and more steps with fewer and fewer settings and more seeds, so that every
round is one batch of the same size and nothing is compiled twice. Numbers of a setting are arguments of the compiled
program; only the order of updates is a program of its own. Every setting is scored on all eight problems (`score`), on
seeds from 1000 up; all near those of `--settings` where some are given. `around` trains the first finalist with one number
of its schedule or batches changed (n, m, p, r, elites and their weights, mini-batches; float64 with `--dtype`), on further
seeds. `final` trains finalists on seeds 0 to 19 with the paper's budget of instances.

Every training run is one line of records.jsonl: setting, problem, seed, and the structures and weights of T* and of the
mode of the final logits. Lines that are there already are not trained again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from race_scoring import PAPER_SHARES, score, shown
from race_settings import ANCHORS, AROUND, FULL, Setting, drawn_settings, given_settings, groups_of, plain, schedule_of
from race_training import START, Records, log, run_all

RACE_SEED, AROUND_SEED = 1000, 2000
"""Settings are chosen on seeds from here up, judged on seeds below."""
CHUNK = 2000
ROUNDS = ((1 / 8, 1, 0.3), (1 / 3, 4, 0.6), (1.0, 12, 1.0))
"""Of each round: the share of the paper's steps, by how many the settings are fewer and the seeds more than at first, and
the share of all time after which runs are ended where they stand."""


def race(options: argparse.Namespace) -> None:
    records = Records(Path(options.out))
    if options.settings:
        anchors, near = given_settings(options.settings), 1.0
    else:
        anchors, near = [Setting(name, changes) for name, changes in ANCHORS.items()], 0.5
    bases = [anchor.changes for anchor in anchors]
    drawn = [*anchors, *drawn_settings(options.count - len(anchors), options.draw_seed, bases, near=near)]
    alive = []
    for order in options.orders:
        tail = "" if order == "together" else ", in turn"
        alive += [
            Setting(s.name + tail, {**s.changes, **options.always, "update_order": order})
            for s in drawn[: options.count]
        ]
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
        for setting in alive[:15]:
            log("   " + shown(lines, setting.name))
        if alive:
            write_finalists(Path(options.out), alive, scores)


def write_finalists(folder: Path, settings: Sequence[Setting], scores: dict[str, tuple[float, float]]) -> None:
    """The best 20 settings, best first."""
    finalists = [{"name": s.name, "changes": plain(s.changes), "score": scores[s.name]} for s in settings[:20]]
    (folder / "finalists.json").write_text(json.dumps(finalists, indent=1))


def around(options: argparse.Namespace) -> None:
    """The first finalist with one number changed, float64 among them, on seeds that no race has seen."""
    records = Records(Path(options.out))
    first = given_settings(options.settings)[0]
    seeds = range(AROUND_SEED, AROUND_SEED + options.seeds)
    variants = {name: AROUND[name] for name in options.variants or AROUND}
    settings = [Setting(name, {**first.changes, **changes}) for name, changes in variants.items()]
    lines = [line for line in trained(settings, seeds, f"around {options.dtype}", options, records) if line["ended"]]
    for name in variants:
        log("   " + shown(lines, name))
    scores = score(lines)
    ended = sorted((s for s in settings if s.name in scores), key=lambda s: scores[s.name], reverse=True)
    write_finalists(Path(options.out), ended, scores)


def final(options: argparse.Namespace) -> None:
    """Finalists on the seeds that are judged."""
    records = Records(Path(options.out))
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for setting in given_settings(options.settings)[: options.count]:
        lines = trained([setting], seeds, f"final {options.layers}", options, records)
        log("   " + shown(lines, setting.name))


def trained(
    settings: Sequence[Setting], seeds: range, budget: str, options: argparse.Namespace, records: Records
) -> list[dict[str, Any]]:
    """Settings' lines with the paper's schedule, or their own where they have one."""
    jobs = [
        (group, [(setting, problem, seed) for problem in group.problems for seed in seeds])
        for setting in settings
        for group in groups_of(options.problems, options.layers)
    ]
    return run_all(jobs, FULL, options, START + options.limit, budget, records)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("race", "around", "final"))
    parser.add_argument("--out", required=True, help="folder of the records")
    parser.add_argument("--settings", help="finalists.json or presets: what a race starts near, or `final` trains")
    parser.add_argument("--problems", default=",".join(PAPER_SHARES), type=lambda text: text.split(","))
    parser.add_argument("--layers", default="hand", help='"hand" (selected by hand for each problem) or a preset')
    parser.add_argument("--count", type=int, default=96, help="settings at the start, for each order of updates")
    parser.add_argument(
        "--seeds", type=int, help="of a setting and problem: 2 at the start of a race, 8 in `around`, 20 in `final`"
    )
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--orders", default="together", type=lambda text: text.split(","))
    parser.add_argument("--always", default={}, type=json.loads, help="what every setting of a race has, as JSON")
    parser.add_argument("--variants", type=lambda text: text.split(";"), help="of `around`; all by default")
    parser.add_argument("--draw-seed", type=int, default=1, help="of the random settings")
    parser.add_argument("--released-rows", action="store_true", help="500 points on (0, 2.1), b1-b4 only")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--engine", default="auto", help="what trains: auto, jax or cuda")
    parser.add_argument("--batch", type=int, default=1000, help="most runs side by side")
    parser.add_argument("--chunk", type=int, default=CHUNK)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--limit", type=float, default=400.0, help="seconds that are never knowingly overrun")
    options = parser.parse_args()
    options.seeds = options.seeds or {"race": 2, "around": 8, "final": 20}[options.command]
    {"race": race, "around": around, "final": final}[options.command](options)


if __name__ == "__main__":
    main()
