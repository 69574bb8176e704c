"""Tables one by one: test R² and size of each system's formulas, beside ridge regression and a random forest.

    python benchmarks/peers/run.py run --suite blackbox:60 --seeds 3 --out out/blackbox.jsonl
    python benchmarks/peers/by_table.py out/blackbox.jsonl

Every figure is the median over the splits that all systems finished; the last rows are medians over the tables. A
formula that is not finite on a test row has an R² below all others.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

import cells
import execute
import numpy as np
from systems import SYSTEMS

import report

PLAIN = {"ridge": "ridge", "forest": "random forest"}
PENALTIES = np.logspace(-3, 3, 13)


def plain_scores(problem: Any, cell: cells.Cell) -> dict[str, float]:
    """Test R² of ridge regression, its penalty cross-validated, and of 200 trees on the rows of a cell."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y, Xt, yt = cells.table(problem, cell)
    models = {
        "ridge": make_pipeline(StandardScaler(), RidgeCV(PENALTIES)),
        "forest": RandomForestRegressor(200, random_state=0, min_samples_leaf=2),
    }
    return {name: float(model.fit(X, y).score(Xt, yt)) for name, model in models.items()}


def by_table(scored: Sequence[dict[str, Any]], suite: str) -> dict[str, dict[str, tuple[float, float]]]:
    """Table to system to median R² and median size, over the splits that all systems of the records finished."""
    systems = [name for name in SYSTEMS if any(record["system"] == name for record in scored)]
    found = {(r["problem"], r["seed"], r["system"]): r for r in scored if not r.get("error")}
    problems = {problem.name: problem for problem in cells.load(suite)}
    tables: dict[str, dict[str, tuple[float, float]]] = {}
    for name in dict.fromkeys(record["problem"] for record in scored):
        seeds = sorted({seed for problem, seed, _ in found if problem == name})
        seeds = [seed for seed in seeds if all((name, seed, system) in found for system in systems)]
        if not seeds:
            continue
        rows = {s: [found[name, seed, s] for seed in seeds] for s in systems}
        tables[name] = {
            s: (median(-np.inf if r["r2"] is None else r["r2"] for r in of), median(r["size"] or np.inf for r in of))
            for s, of in rows.items()
        }
        drawn = [plain_scores(problems[name], cells.Cell(suite, name, 0.0, seed, "ridge", 0.0)) for seed in seeds]
        tables[name] |= {s: (median(one[s] for one in drawn), np.nan) for s in PLAIN}
    return tables


def markdown(tables: dict[str, dict[str, tuple[float, float]]]) -> str:
    """One row for each table, then the medians over all of them."""
    systems = list(next(iter(tables.values())))
    labels = [SYSTEMS[s].label if s in SYSTEMS else PLAIN[s] for s in systems]
    lines = [f"| table | {' | '.join(labels)} |", "| --- |" + " --- |" * len(systems)]
    for name, row in tables.items():
        lines.append(f"| {name} | {' | '.join(_cell(*row[s]) for s in systems)} |")
    medians = [tuple(median(row[s][k] for row in tables.values()) for k in (0, 1)) for s in systems]
    lines.append(f"| **median** | {' | '.join(_cell(*each) for each in medians)} |")
    return "\n".join(lines) + "\n"


def _cell(r2: float, size: float) -> str:
    return f"{r2:.3f}" if np.isnan(size) else f"{r2:.3f}, {size:.0f}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path)
    parser.add_argument("--suite", default="blackbox", help="`blackbox`, or the cases file of the records")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="sizes counted at a time")
    args = parser.parse_args(arguments)
    latest = {execute.key(record): record for record in execute.read(args.records)}
    scored = report.scored(list(latest.values()), args.records.with_suffix(".scores.jsonl"), workers=args.workers)
    print(markdown(by_table(scored, args.suite)), end="")


if __name__ == "__main__":
    main()
