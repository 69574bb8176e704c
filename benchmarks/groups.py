"""Class regression: one law, ten groups with constants of their own, four levels of noise.

    python benchmarks/groups.py --noises 0,0.001,0.01,0.1 --seeds 0:1 --max-time 30 --out groups.jsonl
    python benchmarks/groups.py --report groups.jsonl

The eight laws are those of PhySO's class benchmark (Tenachi et al., Class Symbolic Regression, 2024; there 10 groups,
82.5 / 82.5 / 75 / 62.5 % solved at these noises). Ranges of the first four are those of its repository, the others are
ours. A run is solved where the chosen structure holds the law: its constants, refitted to the targets without noise,
meet them to 1e-6 of their spread, it has no more own constants than the law, and is at most half as long again.
Finished cells are skipped, so a broken run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

GROUPS, ROWS = 10, 100
HOLDS = 1e-6
"""Share of the target's spread that the refitted structure may miss the law by."""
LONGER = 1.5
"""How many times the law's complexity a solution may have."""


@dataclass(frozen=True)
class Law:
    """Columns and own constants with their ranges, and the law over both; `complexity` is that of its plain form."""

    columns: dict[str, tuple[float, float]]
    own: dict[str, tuple[float, float]]
    law: Callable[..., np.ndarray]
    complexity: int


LAWS = {
    "harmonic": Law(
        {"t": (0, 9.42)},
        {"A": (0.6, 1.2), "w": (0.2, 1.5), "p": (0.95, 1.15)},
        lambda t, A, w, p: A * np.cos(w * t + p),
        9,
    ),
    "decay": Law({"t": (0.5, 6)}, {"n": (0.4, 2), "T": (0.9, 1.4)}, lambda t, n, T: n * np.exp(-t / T), 7),
    "fall": Law({"t": (0, 1)}, {"v": (-2, 8), "z": (-3, 3)}, lambda t, v, z: -4.905 * t**2 + v * t + z, 11),
    "damped k": Law(
        {"t": (0, 9.42)},
        {"k": (0.1, 0.5), "p": (0, 0.2)},
        lambda t, k, p: np.exp(-k * t) * np.cos(1.389 * t + p),
        13,
    ),
    "damped w": Law(
        {"t": (0, 9.42)},
        {"w": (0.7, 1.6), "p": (0, 0.2)},
        lambda t, w, p: np.exp(-0.345 * t) * np.cos(w * t + p),
        13,
    ),
    "planck": Law({"v": (0.5, 6)}, {"T": (2, 6)}, lambda v, T: 1 / (np.exp(5.9 * v / T) - 1), 10),
    "gas": Law({"T": (1, 5), "V": (1, 5)}, {"n": (0.5, 3)}, lambda T, V, n: 8.314 * n * T / V, 5),
    "terminal": Law(
        {"m": (1, 5), "A": (1, 5)}, {"r": (0.5, 3)}, lambda m, A, r: np.sqrt(2 * m * 9.807 / (0.47 * r * A)), 7
    ),
}


def table(name: str, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X, labels, targets without noise and with noise of a share of their spread."""
    law, rng = LAWS[name], np.random.default_rng([seed, sorted(LAWS).index(name)])
    own = [rng.uniform(*ends, GROUPS) for ends in law.own.values()]
    codes = np.repeat(np.arange(GROUPS), ROWS)
    X = np.column_stack([rng.uniform(*ends, len(codes)) for ends in law.columns.values()])
    truth = law.law(*X.T, *(values[codes] for values in own))
    return X, codes, truth, truth + noise * truth.std() * rng.standard_normal(len(codes))


def holds_law(model: Any, X: np.ndarray, codes: np.ndarray, truth: np.ndarray) -> tuple[float, int]:
    """Relative error of the chosen structure refitted to the targets without noise, and its number of own constants."""
    from gmeql.search.groups.joint import GroupedTable, fit_jointly
    from gmeql.search.groups.table import own_columns

    own, V = model.group_constants_, X.shape[1]
    formula = own.compact(model.expression_, V)
    used = own_columns(model.expression_.root, V)
    rows = GroupedTable.of(X, truth, np.ones(len(truth)), own.codes(codes))
    free = np.ones(len(formula.constants), dtype=bool)
    fitted = fit_jointly(formula.root, own.values[:, list(used)], rows, free=free, max_steps=200)
    return float(np.sqrt(fitted.loss) / truth.std()), len(used)


def run_cell(name: str, noise: float, seed: int, max_time: float) -> dict[str, Any]:
    """One fit, judged."""
    from gmeql import GMEQLRegressor

    X, codes, truth, y = table(name, noise, seed)
    began = time.process_time()
    columns = list(LAWS[name].columns)
    model = GMEQLRegressor(max_time=max_time, random_state=seed, n_jobs=1)
    import pandas

    model.fit(pandas.DataFrame(X, columns=columns), y, groups=codes)
    error, n_own = holds_law(model, X, codes, truth)
    law = LAWS[name]
    complexity = model.expression_.complexity
    return {
        "law": name,
        "noise": noise,
        "seed": seed,
        "solved": error <= HOLDS and n_own <= len(law.own) and complexity <= LONGER * law.complexity,
        "error": error,
        "own": n_own,
        "complexity": complexity,
        "expression": str(model.expression_),
        "seconds": round(time.process_time() - began, 2),
        "candidates": model.candidates_,
        "reason": model.stop_reason_,
    }


def report(records: list[dict[str, Any]]) -> str:
    """Solved runs by law and noise, as a Markdown table."""
    noises = sorted({r["noise"] for r in records})
    cells: dict[tuple[str, float], list[bool]] = defaultdict(list)
    for r in records:
        cells[r["law"], r["noise"]].append(r["solved"])
    lines = [f"| law | {' | '.join(f'noise {n:g}' for n in noises)} |", "| --- |" + " --- |" * len(noises)]
    for law in LAWS:
        shown = [f"{sum(cells[law, n])}/{len(cells[law, n])}" for n in noises]
        lines.append(f"| {law} | {' | '.join(shown)} |")
    shares = [
        np.mean([solved for (_, n), found in cells.items() if n == noise for solved in found]) for noise in noises
    ]
    lines.append(f"| share | {' | '.join(f'{share:.1%}' for share in shares)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laws", default=",".join(LAWS))
    parser.add_argument("--noises", default="0,0.001,0.01,0.1")
    parser.add_argument("--seeds", default="0:1", help="first:last")
    parser.add_argument("--max-time", type=float, default=30.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", default="groups.jsonl")
    parser.add_argument("--report", help="records to show instead of running")
    options = parser.parse_args()
    if options.report is None:
        out = Path(options.out)
        done = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
        known = {(r["law"], r["noise"], r["seed"]) for r in done}
        first, last = map(int, options.seeds.split(":"))
        cells = [(law, float(noise), seed) for seed in range(first, last) for noise in options.noises.split(",")
                 for law in options.laws.split(",")]  # fmt: skip
        with ProcessPoolExecutor(options.workers) as pool, out.open("a") as file:
            waiting = [pool.submit(run_cell, *cell, options.max_time) for cell in cells if cell not in known]
            for future in as_completed(waiting):
                file.write(json.dumps(future.result()) + "\n")
                file.flush()
                print(future.result())
    print(report([json.loads(line) for line in Path(options.report or options.out).read_text().splitlines()]))


if __name__ == "__main__":
    main()
