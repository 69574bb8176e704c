"""What outliers, heavy tails and skewed errors do to the chosen formula, with `model.unmoved` and without.

    python benchmarks/outliers.py --seeds 0:3 --out outliers.jsonl
    python benchmarks/outliers.py --report outliers.jsonl

Tables are simulated from known laws, so that errors on fresh rows are known with their noise and without. Records hold the
front as squared errors leave it; the report adds the formula that outliers do not move, and compares what is chosen.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

FRESH_ROWS = 3_000
ROWS = (60, 150, 400)
NOISE = (0.05, 0.15, 0.4)
"""Shares of the law's spread."""
OUTLIER_SIZES = (3.0, 10.0)
"""From, to; in the same unit."""

LAWS: dict[str, tuple[int, Callable[[np.ndarray], np.ndarray]]] = {
    "line": (1, lambda X: 3.2 * X[:, 0] - 4),
    "sum": (4, lambda X: 2 * X[:, 0] - 1.5 * X[:, 2] + 1),
    "product": (3, lambda X: 0.9 * X[:, 0] * X[:, 1]),
    "saturation": (1, lambda X: 8 * X[:, 0] / (X[:, 0] + 2)),
    "ratio": (3, lambda X: 5 * X[:, 0] / X[:, 1]),
    "wave": (2, lambda X: 4 * np.sin(X[:, 0]) + X[:, 1]),
}
"""Columns of a table, and its law."""
ERRORS = ("clean", "two5", "two10", "two20", "one5", "one10", "one20", "t1.5", "t3", "skew", "relative")
"""Normal; outliers to both sides or one, in percent; Student's t; log-normal, added and as factors."""


def table(law: str, errors: str, seed: int) -> tuple[np.ndarray, ...]:
    """Rows to fit (X, y), fresh rows, the law there and what is measured there; the same every time."""
    rng = np.random.default_rng([sorted(LAWS).index(law), ERRORS.index(errors), seed, 17])
    columns, function = LAWS[law]
    rows = int(rng.choice(ROWS))
    X = rng.uniform(1, 9, (rows + FRESH_ROWS, columns))
    truth = function(X)
    spread = truth[:rows].std()
    scale = spread * rng.choice(NOISE)
    noise = scale * rng.standard_normal(len(X))
    if errors in ("t1.5", "t3"):
        noise = scale * rng.standard_t(float(errors[1:]), len(X))
    elif errors == "skew":
        noise = scale * (np.exp(1.5 * rng.standard_normal(len(X))) - np.exp(1.125))
    elif errors == "relative":
        noise = np.abs(truth) * (np.exp(0.8 * rng.standard_normal(len(X)) - 0.32) - 1)
    y = truth + noise
    if errors.startswith(("two", "one")):
        struck = rng.random(len(X)) < int(errors[3:]) / 100
        sizes = spread * rng.uniform(*OUTLIER_SIZES, len(X)) * (rng.choice([-1, 1], len(X)) if errors[0] == "t" else 1)
        y = np.where(struck, y + sizes, y)
    return X[:rows], y[:rows], X[rows:], truth[rows:], y[rows:]


def simulate(path: Path, seeds: range, candidates: int) -> None:
    """Fit every table whose record is not there yet."""
    from gmeql import GMEQLRegressor
    from gmeql.model.fit import fitting

    fitting.with_unmoved = lambda front, *_, **__: front
    done = {(r["law"], r["errors"], r["seed"]) for r in read_records(path)}
    cells = [(law, errors, seed) for seed in seeds for law in LAWS for errors in ERRORS]
    with path.open("a") as file:
        for law, errors, seed in (cell for cell in cells if cell not in done):
            X, y, *_ = table(law, errors, seed)
            model = GMEQLRegressor(max_candidates=candidates, max_time=None, n_jobs=1, device="cpu", random_state=seed)
            record = {"law": law, "errors": errors, "seed": seed, "front": model.fit(X, y).front_.to_dict()}
            file.write(json.dumps(record) + "\n")
            file.flush()


def read_records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def report(records: list[dict[str, Any]]) -> None:
    """Errors on fresh rows over the spread there, medians: of the law itself, and of what is measured."""
    from gmeql.model.choice.unmoved import with_unmoved
    from gmeql.model.pareto.front import Front
    from gmeql.search.config import SearchConfig

    found: dict[str, list[tuple[float, ...]]] = {}
    for record in records:
        X, y, fresh, truth, measured = table(record["law"], record["errors"], record["seed"])
        front = Front.from_dict(record["front"])
        best = [each.select("best") for each in (front, with_unmoved(front, X, y, None, config=SearchConfig()))]
        errors = [np.sqrt(np.mean((m(fresh) - t) ** 2)) / t.std() for t in (truth, measured) for m in best]
        found.setdefault(record["errors"], []).append((*map(float, errors), float(best[1].is_unmoved)))
    print("| errors | tables | chosen | law before | after | measured before | after | worse by 1 % |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for kind, rows in found.items():
        values = np.array(rows)
        medians = " | ".join(f"{m:.3f}" for m in np.median(values[:, :4], axis=0))
        worse = int(np.sum(values[:, 3] > 1.01 * values[:, 2]))
        print(f"| {kind} | {len(rows)} | {int(values[:, 4].sum())} | {medians} | {worse} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:3", help="first and one past the last, such as 0:3")
    parser.add_argument("--candidates", type=int, default=4000)
    parser.add_argument("--out", type=Path, help="fit tables and add records to this file")
    parser.add_argument("--report", type=Path, help="print what the records of this file show")
    args = parser.parse_args()
    first, last = map(int, args.seeds.split(":"))
    if args.out:
        simulate(args.out, range(first, last), args.candidates)
    if args.report:
        report(read_records(args.report))


if __name__ == "__main__":
    main()
