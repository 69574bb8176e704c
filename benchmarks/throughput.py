"""Candidates per second of the fitted search: two source trees side by side in one run.

    git worktree add ../before COMMIT
    PYTHONPATH=src python benchmarks/throughput.py --old ../before [--rounds 3] [--threads 2] [--json FILE]

Each problem is searched with a fixed number of candidates, by the old tree and by this one in turn (A B A B ...), each
time in a process of its own whose compiled code is warm. Problems are chosen so that no search ends before its
candidates are spent; what a search does once at its end (polishing the front) is left out. Wall time tells what a user
sees; on a machine that does other things only the ratio of neighbouring runs counts, and processor time (of all
threads) is steadier than wall time. `--profile` says where the wall time of this tree goes.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
NOISE = 0.05
# name: formula, columns, range, noise (share of the target's root mean square)
PROBLEMS: dict[str, tuple[str, tuple[str, ...], tuple[float, float], float]] = {
    "sum of powers": ("x**6 + x**5 + x**4 + x**3 + x**2 + x + y", ("x", "y"), (-1.0, 1.0), NOISE),
    "b5 noisy": ("1.5*sin(x1) + 1.3*sin(x2**2)", ("x1", "x2"), (0.0, 10.0), NOISE),
    "b7 noisy": ("1.1*x1 + 0.9*x2 + 2.1*x1*x2*cos(1.2*x3)", ("x1", "x2", "x3"), (0.0, 10.0), NOISE),
    "five columns": ("a*cos(t)*(-r + d**3/r**2*(g - 1)/(g + 2))", ("a", "t", "r", "d", "g"), (1.0, 5.0), 0.0),
    "six columns": (
        "p*a*t/h*sin((w - v)*t/2)**2/((w - v)*t/2)**2", ("p", "a", "t", "h", "w", "v"), (1.0, 5.0), 0.0,
    ),
}  # fmt: skip
PARTS = {
    "search.execution.execution": ("Executor.draw_and_fit",),
    "search.search": ("polish_island", "offer_elites", "Search._prepare_next_stage"),
    "search.islands.island": ("Island.draw", "Island.absorb"),
}
"""What `--profile` times besides the end of a search."""


def search_once(name: str, candidates: int, threads: int, seed: int, profile: bool) -> dict[str, Any]:
    """One search in this process; the first, tiny one is not timed: it loads the compiled code."""
    import numpy as np

    from gmeql.evaluation.problems import InputColumn, Problem
    from gmeql.search.config import SearchConfig
    from gmeql.search.search import Search

    formula, names, (low, high), noise = PROBLEMS[name]
    problem = Problem(name, tuple(InputColumn(n, low, high) for n in names), formula, 1000, 1000)
    X, y = problem.train(np.random.default_rng(seed), noise=noise)

    def search(budget: int) -> Any:
        config = SearchConfig(max_candidates=budget, n_jobs=threads)
        found = Search(X, y, names=names, config=config, seed=seed)
        for _ in found.run():
            pass
        return found

    search(200)
    seconds: dict[str, float] = {}
    for module, parts in (PARTS if profile else {}).items():
        for part in parts:
            _time_part(module, part, seconds)
    _time_part("search.search", "Search._end", seconds)
    wall, processor = time.perf_counter(), time.process_time()
    done = search(candidates)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    best = done.progress().best
    return {
        "problem": name, "candidates": done.candidates, "reason": done.reason, "whole": wall,
        "wall": wall - seconds.get("_end", 0.0), "processor": processor - seconds.get("_end processor", 0.0),
        "loss": best.loss, "formula": str(best.expression), "parts": seconds,
    }  # fmt: skip


def _time_part(module: str, part: str, seconds: dict[str, float]) -> None:
    """Add up the time spent in a function, or in a method of a class, of one of gmeql's modules."""
    owner: Any = importlib.import_module(f"gmeql.{module}")
    *classes, name = part.split(".")
    for each in classes:
        owner = getattr(owner, each)
    plain: Callable[..., Any] = getattr(owner, name)

    def timed(*args: Any, **options: Any) -> Any:
        begin, processor = time.perf_counter(), time.process_time()
        try:
            return plain(*args, **options)
        finally:
            seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - begin
            if name == "_end":
                seconds["_end processor"] = time.process_time() - processor

    setattr(owner, name, timed)


def run(tree: Path, name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """One search in a process of its own, with the sources of `tree`."""
    options = ["--one", name, "--candidates", str(arguments.candidates), "--threads", str(arguments.threads)]
    options += ["--profile"] if arguments.profile else []
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "PYTHONHASHSEED": "0"}
    command = [sys.executable, str(HERE), *options]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = [line for line in finished.stdout.splitlines() if line.startswith("{")]
    if finished.returncode or not lines:
        raise SystemExit(f"{tree}: {name} failed\n{finished.stderr[-2000:]}")
    record: dict[str, Any] = json.loads(lines[-1])
    return record


def compare(old: Path, new: Path, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Old and new in turn; each pair gives one ratio."""
    records = []
    print(f"{'problem':16} {'old /s':>9} {'new /s':>9} {'ratio':>7} {'from':>6} {'to':>6} {'by processor time':>18}")
    for name in arguments.problems or PROBLEMS:
        pairs = []
        for _ in range(arguments.rounds):
            before, after = run(old, name, arguments), run(new, name, arguments)
            pairs.append((before, after))
            records += [before | {"tree": "old"}, after | {"tree": "new"}]

        def rate(record: dict[str, Any], clock: str) -> float:
            return record["candidates"] / record[clock]

        wall = [rate(b, "wall") / rate(a, "wall") for a, b in pairs]
        processor = [rate(b, "processor") / rate(a, "processor") for a, b in pairs]
        rates = [statistics.median(rate(pair[i], "wall") for pair in pairs) for i in (0, 1)]
        print(
            f"{name:16} {rates[0]:9,.0f} {rates[1]:9,.0f} {statistics.median(wall):7.2f} {min(wall):6.2f} {max(wall):6.2f} "
            f"{statistics.median(processor):8.2f} ({min(processor):.2f} to {max(processor):.2f})",
            flush=True,
        )
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path, help="root of the source tree to compare with")
    parser.add_argument("--new", type=Path, default=HERE.parents[1], help="root of the other one; this one")
    parser.add_argument("--candidates", type=int, default=20_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--problems", type=lambda text: text.split(","), help=", ".join(PROBLEMS))
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--json", help="write the records to this file")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(search_once(arguments.one, arguments.candidates, arguments.threads, 1, arguments.profile)))
        return
    records: list[dict[str, Any]] = []
    if arguments.old is not None:
        records = compare(arguments.old.resolve(), arguments.new, arguments)
    for name in (arguments.problems or PROBLEMS) if arguments.old is None else ():
        record = run(arguments.new, name, arguments)
        records.append(record)
        print(f"{name:16} {record['candidates'] / record['wall']:,.0f} candidates/s", flush=True)
        for part, seconds in sorted(record["parts"].items(), key=lambda item: -item[1]):
            print(f"    {part:18} {seconds:8.3f} s {100 * seconds / record['whole']:5.1f} % of the whole")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(records, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
