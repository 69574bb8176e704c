"""Laws of motion from trajectories: gmeql beside PySINDy on the systems of a cases file.

    python benchmarks/dynamics/run.py install                          # PySINDy, in an environment of its own
    python benchmarks/dynamics/run.py run CASES.json --out out/dynamics.jsonl
    python benchmarks/dynamics/run.py report out/dynamics.jsonl

A case has `states`, `formulas`, two start values `init`, `t_span` and `n_times`. Each system is fitted on the trajectory
from the first start, with noise in proportion to the values and a share of the points dropped (`--conditions`), and
judged against the exact trajectories: R² of the states from the first start (reconstruction) and from the second, which
nobody saw (generalisation), and whether every equation has the truth's structure (`gmeql.judge`, constants free).
A later run with the same --out goes on where an earlier one ended.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
import venv
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1] / "src"
sys.path.insert(0, str(SOURCE))

METHODS = ("gmeql", "pysindy")
ENVIRONMENT = Path(os.environ.get("GMEQL_PEERS", Path.home() / ".cache" / "gmeql" / "peers")) / "pysindy"
PACKAGES = ("pysindy",)
ENOUGH = 0.9
"""R² from which a trajectory counts as met (d'Ascoli et al. 2024)."""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("install", help="make the environment of PySINDy")
    one = commands.add_parser("run", help="run the cells that --out does not hold")
    one.add_argument("cases", type=Path)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--conditions", default="0:0,0.05:0.5", help="NOISE:DROPPED, comma-separated")
    one.add_argument("--methods", default=",".join(METHODS))
    one.add_argument("--problems", help="only these, comma-separated")
    one.add_argument("--seconds", type=float, default=60.0, help="time of a fit")
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--threads", type=int, default=2, help="cores of one fit")
    one.add_argument("--workers", type=int, default=max((os.cpu_count() or 2) // 2, 1), help="fits at a time")
    one.add_argument("--pysindy", help="a Python that has PySINDy (default: the environment of `install`)")
    two = commands.add_parser("report", help="the table of records")
    two.add_argument("records", type=Path)
    given = parser.parse_args(arguments)
    {"install": install, "run": run, "report": report}[given.command](given)


def install(given: argparse.Namespace) -> None:
    venv.create(ENVIRONMENT, with_pip=True, clear=True)
    subprocess.run([str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)


# --- data -------------------------------------------------------------------------------------------------------------


def follow(formulas: list[str], states: list[str], start: list[float], times: np.ndarray) -> np.ndarray:
    """States [N, S] of a system given as texts; nan from where it runs away."""
    from gmeql.formula.canonical import evaluate
    from gmeql.formula.parsing import parse_formula

    right = [parse_formula(text, states) for text in formulas]
    path = np.full((len(times), len(states)), np.nan)
    calls, late = 0, time.monotonic() + 30.0

    def slope(_: float, z: np.ndarray) -> list[float]:
        nonlocal calls
        calls += 1
        if calls % 1000 == 0 and time.monotonic() > late:
            raise TimeoutError
        return [float(evaluate(side, dict(zip(states, z, strict=True)))) for side in right]

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            solved = solve_ivp(
                slope, (times[0], times[-1]), start, t_eval=times, method="LSODA", rtol=1e-9, atol=1e-10
            )  # fmt: skip
            path[: solved.y.shape[1]] = solved.y.T
        except (ValueError, TypeError, TimeoutError, OverflowError):
            pass
    return path


def training(case: dict, noise: float, dropped: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Times and states that a method sees."""
    times = np.linspace(*case["t_span"], case["n_times"])
    clean = follow(case["formulas"], case["states"], case["init"][0], times)
    rng = np.random.default_rng([seed, *case["name"].encode()])
    kept = np.sort(rng.permutation(len(times))[: round(len(times) * (1 - dropped))])
    return times[kept], (clean * (1 + noise * rng.standard_normal(clean.shape)))[kept]


# --- cells ------------------------------------------------------------------------------------------------------------


def run(given: argparse.Namespace) -> None:
    cases = json.loads(given.cases.read_text(encoding="utf-8"))
    chosen = given.problems.split(",") if given.problems else [case["name"] for case in cases]
    given.out.parent.mkdir(parents=True, exist_ok=True)
    done = set()
    if given.out.exists():
        done = {_key(json.loads(line)) for line in given.out.read_text(encoding="utf-8").splitlines()}
    conditions = [tuple(map(float, text.split(":"))) for text in given.conditions.split(",")]
    cells = [
        (case, noise, dropped, method)
        for method in given.methods.split(",")
        for noise, dropped in conditions
        for case in cases
        if case["name"] in chosen and (case["name"], noise, dropped, method, given.seed) not in done
    ]
    with ThreadPoolExecutor(given.workers) as pool, given.out.open("a", encoding="utf-8") as file:
        for record in pool.map(lambda cell: one(given, *cell), cells):
            file.write(json.dumps(record) + "\n")
            file.flush()
            print(f"{record['problem']} {record['noise']:g} {record['method']}: {record['equations']}", flush=True)


def _key(record: dict) -> tuple:
    return tuple(record[name] for name in ("problem", "noise", "dropped", "method", "seed"))


def one(given: argparse.Namespace, case: dict, noise: float, dropped: float, method: str) -> dict:
    """Fit a system in a process of its own, and judge it."""
    t, X = training(case, noise, dropped, given.seed)
    job = {"t": t.tolist(), "X": X.tolist(), "states": case["states"], "seconds": given.seconds}
    job |= {"threads": given.threads, "seed": given.seed}
    python = sys.executable if method == "gmeql" else given.pysindy or str(ENVIRONMENT / "bin" / "python")
    threads = {f"{name}_NUM_THREADS": str(given.threads) for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    environment = {**os.environ, **threads}
    if method == "gmeql":
        environment["PYTHONPATH"] = os.pathsep.join([str(SOURCE), environment.get("PYTHONPATH", "")])
    begin = time.monotonic()
    answer = subprocess.run(
        [python, str(HERE / f"fit_{method}.py")], input=json.dumps(job), capture_output=True, text=True, env=environment,
        timeout=given.seconds * 5 + 120, check=False,
    )  # fmt: skip
    seconds = time.monotonic() - begin
    record = {"problem": case["name"], "noise": noise, "dropped": dropped, "method": method, "seed": given.seed}
    if answer.returncode:
        last = answer.stderr.strip().splitlines()[-1:] or [""]
        return record | {"seconds": seconds, "equations": [], "error": last[0], **judged(case, [])}
    found = json.loads(answer.stdout.splitlines()[-1])
    return record | found | {"seconds": seconds, **judged(case, found["equations"])}


def judged(case: dict, equations: list[str]) -> dict:
    """Which equations have the truth's structure, and how well both exact trajectories are met."""
    from gmeql.evaluation.problems import Problem, judge
    from gmeql.evaluation.problems.columns import InputColumn
    from gmeql.formula.parsing import parse_formula

    times = np.linspace(*case["t_span"], case["n_times"])
    truth = [follow(case["formulas"], case["states"], start, times) for start in case["init"]]
    ranges = zip(case["states"], np.concatenate(truth).T, strict=True)
    columns = tuple(InputColumn(name, float(values.min()), float(values.max())) for name, values in ranges)
    structure = []
    for text, formula in zip(equations, case["formulas"], strict=False):
        problem = Problem(case["name"], columns, formula, n_train=1, n_test=0)
        try:
            found = parse_formula(text, case["states"])
            structure.append(judge(found, problem, noise_std=math.inf).solved)
        except (ValueError, ArithmeticError):
            structure.append(False)
    scores = []
    for start, exact in zip(case["init"], truth, strict=True):
        path = follow(equations, case["states"], start, times) if equations else np.full_like(exact, np.nan)
        scores.append(r_squared(exact, path))
    return {"structure": structure, "reconstruction": scores[0], "generalisation": scores[1]}


def r_squared(exact: np.ndarray, path: np.ndarray) -> float:
    """R² over all states, each in its own spread; -1e9 where the path runs away."""
    if not np.isfinite(path).all():
        return -1e9
    return float(1 - np.mean(np.mean((path - exact) ** 2, axis=0) / np.var(exact, axis=0)))


# --- the table --------------------------------------------------------------------------------------------------------


def report(given: argparse.Namespace) -> None:
    records = [json.loads(line) for line in given.records.read_text(encoding="utf-8").splitlines()]
    print(
        "| noise | dropped | method | systems | every structure | reconstruction R² > 0.9 | generalisation R² > 0.9 |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for noise, dropped, method in sorted({(r["noise"], r["dropped"], r["method"]) for r in records}):
        cell = [r for r in records if (r["noise"], r["dropped"], r["method"]) == (noise, dropped, method)]
        counts = [
            sum(bool(r["structure"]) and all(r["structure"]) for r in cell),
            sum(r["reconstruction"] > ENOUGH for r in cell),
            sum(r["generalisation"] > ENOUGH for r in cell),
        ]
        print(f"| {noise:g} | {dropped:g} | {method} | {len(cell)} | {' | '.join(map(str, counts))} |")


if __name__ == "__main__":
    main()
