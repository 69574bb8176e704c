"""What each part of the fitted search is worth: solved share with one part changed, at a fixed number of candidates.

    python benchmarks/ablation.py --suite cases/feynman-dev.json --candidates 40000 --out ablation.jsonl
    python benchmarks/ablation.py --report ablation.jsonl

Every variant sees the same problems and seeds. The budget is candidates, not seconds, so the table does not depend on
the machine. Records are JSON lines; finished cells are skipped, so a broken run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

VARIANTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "logits not learnt": {"island.learning_rate": 0.0},
    "no elites": {"island.fresh_share": 1.0},
    "constants always fresh": {"island.inherit_share": 0.0},
    "constants always inherited": {"island.inherit_share": 1.0},
    "no skip connections": {"skip": False},
    "one given architecture": {"architecture": "general"},
    "target as it is": {"readings": False},
    "no crossing of elites": {"island.cross_share": 0.0},
    "elites drawn by loss alone": {"island.complexity_classes": 0.0},
    "no output offset": {"island.with_offset": False},
    "more changes per candidate": {"island.mean_changes": 3.0},
    "rank exponent 1.5": {"island.power_law_exponent": 1.5},
    "64 elites": {"island.capacity": 64},
    "6 fit steps": {"island.max_steps": 6, "island.tolerance": 1e-3},
    "no symmetries": {"symmetries": False},
    "few islands always": {"islands_per_generation": 14, "stage_ages": (8, 18, 36, 80)},
    "no Π": {"functions": ("add", "sub", "mul", "div", "sqrt", "square", "cube", "pow4", "pow5", "pow6", "sin", "cos",
                           "exp", "log", "tanh", "sum")},
    "tanh left out": {"functions": ("add", "sub", "mul", "div", "sqrt", "square", "cube", "pow4", "pow5", "pow6", "sin",
                                    "cos", "exp", "log", "sum", "prod")},
}  # fmt: skip


def run_cell(suite: str, problem_name: str, variant: str, seed: int, candidates: int, rows: int, noise: float) -> dict:
    from gmeql.evaluation.problems import judge, load_suite
    from gmeql.search.config import IslandConfig
    from gmeql.search.config import SearchConfig
    from gmeql.search.search import Search

    changes = VARIANTS[variant]
    island = IslandConfig(**{k.removeprefix("island."): v for k, v in changes.items() if k.startswith("island.")})
    config = SearchConfig(
        max_candidates=candidates,
        n_jobs=1,
        island=island,
        **{k: v for k, v in changes.items() if not k.startswith("island.")},
    )
    (problem,) = load_suite(suite, [problem_name])
    rng = problem.generator(seed, "train")
    X, y = problem.sample(rng, rows)
    sigma = noise * math.sqrt(float((y**2).mean()))
    started = time.perf_counter()
    search = Search(X, y + sigma * rng.standard_normal(len(y)), names=problem.names, config=config, seed=seed)
    for progress in search.run():
        pass
    seconds = time.perf_counter() - started
    verdict = judge(progress.best.expression, problem, noise_std=sigma)
    return {
        "problem": problem_name, "variant": variant, "seed": seed, "solved": bool(verdict.solved),
        "relative_rmse": float(verdict.relative_rmse), "candidates": progress.candidates, "seconds": seconds,
        "reason": verdict.reason, "expression": str(progress.best.expression), "noise": noise,
    }  # fmt: skip


def run(args: argparse.Namespace) -> None:
    from gmeql.evaluation.problems import load_suite

    out = Path(args.out)
    done = {(r["problem"], r["variant"], r["seed"]) for r in read(out)}
    names = (
        args.problems.split(",") if args.problems else [p.name for p in load_suite(args.suite) if p.formula is not None]
    )
    variants = args.variants.split(",") if args.variants else list(VARIANTS)
    cells = [(p, v, s) for s in range(args.seeds) for p in names for v in variants if (p, v, s) not in done]
    deadline = time.monotonic() + args.limit
    with ProcessPoolExecutor(args.workers) as pool, out.open("a") as file:
        waiting = iter(cells)
        running = set()
        count = 0
        while True:
            while len(running) < args.workers and time.monotonic() < deadline and (cell := next(waiting, None)):
                p, v, s = cell
                running.add(pool.submit(run_cell, args.suite, p, v, s, args.candidates, args.rows, args.noise))
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
    """Solved share of each variant over the cells that every variant finished."""
    records = read(path)
    by_variant: dict[str, dict] = defaultdict(dict)
    for record in records:
        by_variant[record["variant"]][record["problem"], record["seed"]] = record
    shared = set.intersection(*(set(cells) for cells in by_variant.values())) if by_variant else set()
    print(f"| variant | solved of {len(shared)} | median candidates when solved |\n| --- | --- | --- |")
    for variant in [v for v in VARIANTS if v in by_variant]:
        cells = [by_variant[variant][key] for key in shared]
        solved = sorted(cell["candidates"] for cell in cells if cell["solved"])
        median = solved[len(solved) // 2] if solved else "-"
        print(f"| {variant} | {len(solved)} | {median} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default="paper", help="'paper' or a case file")
    parser.add_argument("--problems", help="comma-separated names")
    parser.add_argument("--variants", help="comma-separated names of variants")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--candidates", type=int, default=40_000)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--noise", type=float, default=0.0, help="relative to the target's root mean square")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds after which no new cell starts")
    parser.add_argument("--out", default="ablation.jsonl")
    parser.add_argument("--report", help="print the table of these records and end")
    args = parser.parse_args()
    if args.report:
        report(Path(args.report))
    else:
        run(args)


if __name__ == "__main__":
    main()
