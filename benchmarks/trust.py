"""How the chosen formula does on unseen rows of ordinary, messy tables, beside ridge regression and a random forest.

    python benchmarks/trust.py --seconds 8 --seeds 4 --workers 2 --out out/trust.jsonl
    python benchmarks/trust.py --small --seconds 4 --seeds 3

Simulated tables (noise, weak and mild effects, saturation, heavy tails, gross outliers) and those that scikit-learn and
statsmodels bring along, split 75/25; with `--small`, twelve kinds of tables of 10 to 28 rows instead. Errors are relative
to predicting the training mean; one above 1.2 is a disaster.
Needs the extra `experiments`.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy is imported: runs stand side by side

import numpy as np  # noqa: E402

DISASTER = 1.2
AS_GOOD = 1.02
"""A table's median error up to this many times ridge regression's counts as no worse."""
FRESH_ROWS = 10_000
Law = Callable[[np.ndarray, np.ndarray], np.ndarray]
KINDS: dict[str, tuple[int, Law]] = {  # rows, target of columns [N, 6] uniform on -2..2 and standard normal noise [N]
    "noise": (60, lambda X, e: e),
    "weak": (150, lambda X, e: 0.4 * X[:, 1] + e),
    "mild": (250, lambda X, e: X[:, 0] * X[:, 2] + 0.5 * X[:, 1] + e),
    "saturating": (400, lambda X, e: 3 / (1 + np.exp(-2 * X[:, 0])) + 0.4 * e),
    "heavy tails": (300, lambda X, e: np.exp(0.5 * X[:, 0] + 1.4 * e)),
    "skewed noise": (200, lambda X, e: np.exp(1.4 * e)),
    "outliers": (200, lambda X, e: 1.5 * X[:, 0] - 2 + 0.1 * e),
    "many rows": (5000, lambda X, e: X[:, 0] ** 2 + 2 * e),
}
Columns = Callable[[np.random.Generator, int], np.ndarray]
SMALL: dict[str, tuple[int, Columns, Law]] = {  # rows, columns, target of columns and standard normal noise [N]
    "line": (12, lambda r, n: r.uniform(0, 10, (n, 1)), lambda X, e: 2 * X[:, 0] + 3 + e),
    "power law": (
        10,
        lambda r, n: np.exp(r.uniform(0, 4, (n, 1))),
        lambda X, e: 0.7 * X[:, 0] ** 0.75 * np.exp(0.1 * e),
    ),
    "few of noise": (20, lambda r, n: r.standard_normal((n, 3)), lambda X, e: 5 + e),
    "collinear": (
        18,
        lambda r, n: r.standard_normal((n, 1)) + np.column_stack([np.zeros(n), 0.05 * r.standard_normal(n)]),
        lambda X, e: X[:, 0] + X[:, 1] + 0.5 * e,
    ),
    "saturation": (15, lambda r, n: r.uniform(0.1, 10, (n, 1)), lambda X, e: 5 * X[:, 0] / (X[:, 0] + 2) + 0.15 * e),
    "counts": (25, lambda r, n: r.uniform(0, 3, (n, 2)), lambda X, e: np.floor(np.exp(0.3 + 0.6 * X[:, 0]) + abs(e))),
    "yearly": (
        22,
        lambda r, n: 1990.0 + np.sort(r.integers(0, 22, (n, 1)), axis=0),
        lambda X, e: 100 * np.exp(0.03 * (X[:, 0] - 1990) + 0.02 * e),
    ),
    "one outlier": (20, lambda r, n: r.uniform(0, 5, (n, 1)), lambda X, e: 3 * X[:, 0] - 1 + 0.3 * e),
    "many columns": (28, lambda r, n: r.standard_normal((n, 8)), lambda X, e: X[:, 0] + 0.5 * X[:, 1] + 0.7 * e),
    "few of heavy tails": (24, lambda r, n: r.uniform(0, 3, (n, 2)), lambda X, e: np.exp(0.5 * X[:, 0] + 0.8 * e)),
    "law": (14, lambda r, n: r.uniform(1, 5, (n, 2)), lambda X, e: 3.2 * X[:, 0] / X[:, 1] ** 2 * (1 + 0.02 * e)),
    "steps": (16, lambda r, n: r.integers(0, 4, (n, 2)).astype(float), lambda X, e: X[:, 0] + 0.8 * e),
}
OUTLIER_SHARE, OUTLIER_SIZE = 0.1, 15.0


def simulated(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training X, y and fresh X, y; gross errors fall on training targets alone."""
    rng = np.random.default_rng([seed, len(kind)])
    n, law = KINDS[kind]
    X = rng.uniform(-2, 2, (n + FRESH_ROWS, 6))
    y = law(X, rng.standard_normal(len(X)))
    if kind == "outliers":
        wrong = rng.choice(n, int(OUTLIER_SHARE * n), replace=False)
        y[wrong] += OUTLIER_SIZE * rng.choice([-1, 1], len(wrong))
    return X[:n], y[:n], X[n:], y[n:]


def small(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The same of a table of few rows."""
    rng = np.random.default_rng([seed, len(kind), 1])
    n, columns, law = SMALL[kind]
    X = columns(rng, n + FRESH_ROWS)
    order = rng.permutation(len(X))  # years come sorted
    X = X[order]
    y = law(X, rng.standard_normal(len(X)))
    if kind == "one outlier":
        y[int(rng.integers(n))] += 40.0
    return X[:n], y[:n], X[n:], y[n:]


def brought_along(seed: int) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """The tables of scikit-learn and statsmodels with at least 40 rows, split by the seed."""
    import sys

    sys.path.insert(0, str(Path(__file__).parent / "peers"))
    from cells import black_box_cases

    found = {}
    for case in black_box_cases():
        rows = np.array(case["data"]["rows"], dtype=float)
        if len(rows) >= 40:
            rows = rows[np.random.default_rng(seed).permutation(len(rows))]
            m = round(0.75 * len(rows))
            found[case["name"]] = (rows[:m, :-1], rows[:m, -1], rows[m:, :-1], rows[m:, -1])
    return found


def run(job: tuple[str, int, float, Any]) -> dict[str, Any]:
    """One fit, and the errors of its formula and of the two others on unseen rows."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from gmeql import GMEQLRegressor

    warnings.simplefilter("ignore")
    name, seed, seconds, (X, y, Xt, yt) = job
    model = GMEQLRegressor(max_time=seconds, random_state=seed, n_jobs=1).fit(X, y)
    others = {
        "ridge": make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13))).fit(X, y),
        "forest": RandomForestRegressor(200, min_samples_leaf=2, random_state=0).fit(X, y),
    }
    size = float(np.sqrt(np.mean((yt - y.mean()) ** 2)))

    def error(predicted: np.ndarray) -> float:
        return float(np.sqrt(np.mean((predicted - yt) ** 2))) / size

    errors = {"gmeql": error(model.predict(Xt))} | {key: error(other.predict(Xt)) for key, other in others.items()}
    return {"table": name, "seed": seed, "formula": str(model.expression_), **errors}


def report(records: list[dict[str, Any]]) -> None:
    """Medians of every table, disasters in all, and on how many tables the formula is no worse than ridge regression."""
    tables = list(dict.fromkeys(record["table"] for record in records))
    no_worse = 0
    for table in tables:
        mine = [record for record in records if record["table"] == table]
        medians = {key: float(np.median([record[key] for record in mine])) for key in ("gmeql", "ridge", "forest")}
        no_worse += medians["gmeql"] <= AS_GOOD * medians["ridge"]
        disasters = sum(not record["gmeql"] < DISASTER for record in mine)
        figures = "  ".join(f"{key} {value:.3f}" for key, value in medians.items())
        print(f"{table:24s} {len(mine):3d} fits  {disasters} disasters  {figures}  e.g. {mine[0]['formula'][:60]}")
    disasters = sum(not record["gmeql"] < DISASTER for record in records)
    print(f"disasters {disasters} of {len(records)}; no worse than ridge on {no_worse} of {len(tables)} tables")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument(
        "--seeds", type=int, default=4, help="of simulated tables; those brought along have three splits"
    )
    parser.add_argument("--small", action="store_true", help="tables of 10 to 28 rows, and no others")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, help="records, one JSON line a fit")
    options = parser.parse_args()
    seconds, seeds = options.seconds, range(options.seeds)
    if options.small:
        jobs = [(kind, seed, seconds, small(kind, seed)) for kind in SMALL for seed in seeds]
    else:
        jobs = [(kind, seed, seconds, simulated(kind, seed)) for kind in KINDS for seed in seeds]
        jobs += [(name, s, seconds, rows) for s in range(3) for name, rows in brought_along(s).items()]
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        records = list(pool.map(run, jobs))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text("".join(json.dumps(record) + "\n" for record in records))
    report(records)


if __name__ == "__main__":
    main()
