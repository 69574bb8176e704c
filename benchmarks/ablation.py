"""What each part of the fitted search is worth: solved share with one part changed, at a fixed number of candidates.

    python benchmarks/ablation.py --set islands --out islands.jsonl                     # b1-b8, 25 seeds: 200 cells each
    python benchmarks/ablation.py --set whole --out whole.jsonl                         # 40 formulas, 5 seeds
    python benchmarks/ablation.py --set steps --out steps.jsonl                         # 40 formulas, 2 seeds
    python benchmarks/ablation.py --report islands.jsonl

Every variant sees the same problems and seeds, so variants are compared cell by cell (McNemar's exact test, two-sided).
The budget is candidates, not seconds, so the table does not depend on the machine. What changes islands is judged on
islands alone: symmetries and direct methods solve most problems before their parts could tell. Records are JSON lines;
finished cells are skipped, so a broken run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

BASE = "as it is"
ALL = ("add", "sub", "mul", "div", "sqrt", "square", "cube", "pow4", "pow5", "pow6", "sin", "cos", "exp", "log", "tanh",
       "sum", "prod")  # fmt: skip
ISLANDS: dict[str, dict[str, Any]] = {
    BASE: {},
    "logits not learnt": {"island.learning_rate": 0.0},
    "no elites": {"island.fresh_share": 1.0},
    "constants always fresh": {"island.inherit_share": 0.0},
    "constants always inherited": {"island.inherit_share": 1.0},
    "no skip connections": {"skip": False},
    "no crossing of elites": {"island.cross_share": 0.0},
    "target as it is": {"readings": False},
    "no Π": {"functions": tuple(name for name in ALL if name != "prod")},
    "one given architecture": {"architecture": "general"},
    "elites drawn by loss alone": {"island.complexity_classes": 0.0},
    "few islands always": {"islands_per_generation": 14, "stage_ages": (8, 18, 36, 80)},
}
"""Parts of the islands, judged without symmetries and direct methods."""
ROOMS = ("fractions", "going_on", "middle", "powers", "steps", "sums", "waves")
"""Folders of direct methods."""
WHOLE: dict[str, dict[str, Any]] = {
    BASE: {},
    "no symmetries": {"symmetries": False},
    "no direct methods": {"direct": ()},
    "target as it is": {"readings": False},
    "no Π": {"functions": tuple(name for name in ALL if name != "prod")},
} | {f"no methods of {room}": {"without": room} for room in ROOMS}
"""Parts of the whole search."""
STEPS: dict[str, dict[str, Any]] = {
    BASE: {},
    "256 candidates": {"island.candidates_per_step": 256},
    "512 candidates": {"island.candidates_per_step": 512},
}
"""Candidates of an island's step, for generations as accelerators have them."""
SIDE_BY_SIDE = {
    "direct": (), "islands": 56, "few_islands": 56, "islands_per_generation": 56, "island.candidates_per_step": 1024
}  # fmt: skip
"""An early generation on an accelerator."""
SETS = {
    "islands": (ISLANDS, {"symmetries": False, "direct": ()}),
    "whole": (WHOLE, {}),
    "steps": (STEPS, SIDE_BY_SIDE),
}
"""By name: the variants, and what is changed in all of them."""
DEFAULTS: dict[str, dict[str, Any]] = {
    "islands": {"suite": "paper", "seeds": 25, "candidates": 10_000},
    "whole": {"suite": str(Path(__file__).parent / "cases" / "drawn.json"), "seeds": 5, "candidates": 20_000},
    "steps": {"suite": str(Path(__file__).parent / "cases" / "drawn.json"), "seeds": 2, "candidates": 200_000},
}
"""By set: what is run unless it is said."""


def search_config(variant: str, kind: str, candidates: int) -> Any:
    """The configuration of a variant."""
    from gmeql.search.config import IslandConfig, SearchConfig
    from gmeql.search.direct.methods import DIRECT_METHODS

    variants, common = SETS[kind]
    changes = common | variants[variant]
    if room := changes.pop("without", None):
        kept = (name for name, method in DIRECT_METHODS.items() if f".direct.{room}." not in method.__module__)
        changes["direct"] = tuple(kept)
    island = IslandConfig(**{k.removeprefix("island."): v for k, v in changes.items() if k.startswith("island.")})
    others = {k: v for k, v in changes.items() if not k.startswith("island.")}
    return SearchConfig(max_candidates=candidates, n_jobs=1, device="cpu", island=island, **others)


def run_cell(args: argparse.Namespace, problem_name: str, variant: str, seed: int) -> dict[str, Any]:
    """One search: solved or not, and after how many candidates it ended."""
    from gmeql.evaluation.problems import judge, load_suite
    from gmeql.search.search import Search

    config = search_config(variant, args.set, args.candidates)
    (problem,) = load_suite(args.suite, [problem_name])
    rng = problem.generator(seed, "train")
    X, y = problem.sample(rng, args.rows)
    sigma = args.noise * math.sqrt(float((y**2).mean()))
    started = time.perf_counter()
    search = Search(X, y + sigma * rng.standard_normal(len(y)), names=problem.names, config=config, seed=seed)
    for progress in search.run():
        pass
    seconds = time.perf_counter() - started
    verdict = judge(progress.best.expression, problem, noise_std=sigma)
    return {
        "problem": problem_name, "variant": variant, "seed": seed, "solved": bool(verdict.solved),
        "relative_rmse": float(verdict.relative_rmse), "candidates": progress.candidates, "seconds": seconds,
        "reason": verdict.reason, "expression": str(progress.best.expression), "noise": args.noise,
    }  # fmt: skip


def run(args: argparse.Namespace) -> None:
    """Run the cells that have no record yet, seed by seed: whatever is finished when time is up has all variants."""
    from gmeql.evaluation.problems import load_suite

    out = Path(args.out)
    done = {(r["problem"], r["variant"], r["seed"]) for r in read(out)}
    names = (
        args.problems.split(",") if args.problems else [p.name for p in load_suite(args.suite) if p.formula is not None]
    )
    variants = args.variants.split(",") if args.variants else list(SETS[args.set][0])
    cells = [(p, v, s) for s in range(args.seeds) for p in names for v in variants if (p, v, s) not in done]
    deadline = time.monotonic() + args.limit
    with ProcessPoolExecutor(args.workers) as pool, out.open("a") as file:
        waiting = iter(cells)
        running = set()
        count = 0
        while True:
            while len(running) < args.workers and time.monotonic() < deadline and (cell := next(waiting, None)):
                p, v, s = cell
                running.add(pool.submit(run_cell, args, p, v, s))
            if not running:
                break
            finished = next(as_completed(running))
            running.remove(finished)
            file.write(json.dumps(finished.result()) + "\n")
            file.flush()
            count += 1
            print(f"\r{count} of {len(cells)} cells", end="", file=sys.stderr)
    print(file=sys.stderr)
    report(out)


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def report(path: Path) -> None:
    """What each variant solved of the cells that it shares with the search as it is, and how likely that is chance."""
    by_variant: dict[str, dict[tuple[str, int], dict[str, Any]]] = defaultdict(dict)
    for record in read(path):
        by_variant[record["variant"]][record["problem"], record["seed"]] = record
    base = by_variant[BASE]
    print("| variant | cells | solved | as it is | solved by one alone | p | median candidates, both solved |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for variant, cells in by_variant.items():
        shared = sorted(set(cells) & set(base))
        pairs = [(cells[key], base[key]) for key in shared]
        mine = sum(one["solved"] for one, _ in pairs)
        gained = sum(one["solved"] and not other["solved"] for one, other in pairs)
        lost = sum(other["solved"] and not one["solved"] for one, other in pairs)
        both = [(one["candidates"], other["candidates"]) for one, other in pairs if one["solved"] and other["solved"]]
        medians = " / ".join(f"{statistics.median(column):.0f}" for column in zip(*both, strict=True)) or "-"
        print(
            f"| {variant} | {len(shared)} | {mine} | {mine - gained + lost} | +{gained} -{lost} | {mcnemar(gained, lost):.2g} "
            f"| {medians} |"
        )


def mcnemar(gained: int, lost: int) -> float:
    """Chance of so uneven a split of the cells that only one of two variants solved, were both equally good."""
    from scipy.stats import binomtest

    return float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--suite", help="'paper' or a case file; by the set: the paper's problems or benchmarks/cases/drawn.json"
    )
    parser.add_argument("--problems", help="comma-separated names")
    parser.add_argument("--variants", help="comma-separated names of variants")
    parser.add_argument("--set", choices=SETS, default="islands", help="which variants")
    parser.add_argument("--seeds", type=int, help="25 for islands, 5 for the whole search, 2 for steps")
    parser.add_argument(
        "--candidates", type=int, help="10,000 for islands, 20,000 for the whole search, 200,000 for steps"
    )
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--noise", type=float, default=0.0, help="relative to the target's root mean square")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds after which no new cell starts")
    parser.add_argument("--out", default="ablation.jsonl")
    parser.add_argument("--report", help="print the table of these records and end")
    args = parser.parse_args()
    for name, value in DEFAULTS[args.set].items():
        setattr(args, name, value if getattr(args, name) is None else getattr(args, name))
    if args.report:
        report(Path(args.report))
    else:
        run(args)


if __name__ == "__main__":
    main()
