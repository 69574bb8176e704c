"""Whether what is said of a formula holds: stated chances against observed ones, intervals against how often they cover.

    python benchmarks/calibration.py --seeds 0:30 --out calibration.jsonl
    python benchmarks/calibration.py --report calibration.jsonl --picture docs/images/reliability.svg
    python benchmarks/calibration.py --given 1000:2000

Tables are simulated from laws that are known, so that what a formula does on unseen rows is known too. Every record
holds one fit (kind of table, seed, front); the report is a function of the records: it checks the numbers of
`model.evidence.Calibration`, and such as are fitted on tables with even seeds on those with odd seeds. Finished fits
are skipped, so a broken run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

FRESH_ROWS = 5_000
LEAST_ROWS, MOST_ROWS = 50, 500
LAW_COLUMNS = ("x1", "x2")
OUTLIER_SHARE = 0.05
SAME_STRUCTURE = 1e-9
"""Share of the law's spread that the refitted structure may miss it by and still be the law's."""

Law = Any
"""An `Expression` over `LAW_COLUMNS`."""


@dataclass(frozen=True)
class Table:
    """Rows to fit, rows that nobody saw, and the law's values there."""

    X: np.ndarray
    y: np.ndarray
    fresh: np.ndarray
    truth: np.ndarray
    measured: np.ndarray
    law: Law


def linear(rng: np.random.Generator) -> Law:
    a, b, c = rng.uniform(-3, 3, 3).tolist()
    return law(f"{a!r} + {b!r}*x1 + {c!r}*x2")


def power_law(rng: np.random.Generator) -> Law:
    a, p, q = rng.uniform(1.5, 4), rng.choice([1.0, 2.0, 3.0]), rng.choice([-1.0, 0.5, 1.0])
    return law(f"{a!r}*x1**{p}*x2**{q}")


def saturating(rng: np.random.Generator) -> Law:
    a, b = rng.uniform(2, 5), rng.uniform(0.4, 3)
    return law(f"{a!r}*x1/({b!r} + x1)")


def nothing(rng: np.random.Generator) -> Law:
    return law("1.7")


def law(text: str) -> Law:
    """The formula of a law, over the first columns of its table."""
    from gmeql.formula.expression import Expression
    from gmeql.formula.parsing import parse_tree

    return Expression(parse_tree(text, LAW_COLUMNS), LAW_COLUMNS)


KINDS: dict[str, tuple[Callable[[np.random.Generator], Law], tuple[float, float], str]] = {
    "linear": (linear, (0.1, 0.8), "normal"),
    "power law": (power_law, (0.05, 0.5), "normal"),
    "saturating": (saturating, (0.1, 0.8), "normal"),
    "weak": (linear, (2.0, 4.0), "normal"),
    "noise": (nothing, (1.0, 1.0), "normal"),
    "heavy tails": (linear, (0.3, 1.0), "heavy"),
    "outliers": (power_law, (0.05, 0.3), "outliers"),
}
"""Kind of table: its law, the noise's share of the law's spread (from, to), and how the noise is distributed."""
WELL_SPECIFIED = ("linear", "power law", "saturating", "weak")


def law_spread(truth: np.ndarray) -> float:
    """Standard deviation of the law's values; one for a law that is constant (whose own is rounding, not zero)."""
    return float(truth.std()) if np.ptp(truth) > 0 else 1.0


def table(kind: str, seed: int) -> Table:
    """The table of one kind and seed, the same every time."""
    rng = np.random.default_rng([sorted(KINDS).index(kind), seed])
    make, share, noise = KINDS[kind]
    true, rows = make(rng), int(rng.integers(LEAST_ROWS, MOST_ROWS + 1))
    X = rng.uniform(0.5, 4.0, (rows + FRESH_ROWS, int(rng.integers(2, 7))))
    truth = np.asarray(true(X[:, : len(LAW_COLUMNS)]), dtype=float)
    spread = law_spread(truth)
    errors = rng.standard_t(3, len(X)) if noise == "heavy" else rng.standard_normal(len(X))
    if noise == "outliers":
        errors = np.where(rng.random(len(X)) < OUTLIER_SHARE, 10.0 * errors, errors)
    y = truth + spread * rng.uniform(*share) * errors
    return Table(X[:rows], y[:rows], X[rows:], truth[rows:], y[rows:], true)


def fit(kind: str, seed: int, candidates: int) -> dict[str, Any]:
    from gmeql import GMEQLRegressor

    given = table(kind, seed)
    model = GMEQLRegressor(max_candidates=candidates, max_time=None, n_jobs=1, device="cpu", random_state=seed)
    model.fit(given.X, given.y)
    return {"kind": kind, "seed": seed, "candidates": candidates, "front": model.front_.to_dict()}


def read_records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def simulate(path: Path, seeds: range, candidates: int, jobs: int) -> None:
    done = {(r["kind"], r["seed"], r["candidates"]) for r in read_records(path)}
    cells = [(kind, seed, candidates) for seed in seeds for kind in KINDS if (kind, seed, candidates) not in done]
    with ProcessPoolExecutor(jobs) as pool, path.open("a") as file:
        for finished in as_completed([pool.submit(fit, *cell) for cell in cells]):
            file.write(json.dumps(finished.result()) + "\n")
            file.flush()


@dataclass(frozen=True)
class Comparison:
    """The best formula of one front beside one rival, and which of them was better on fresh rows."""

    seed: int
    z: float
    longer: bool
    better: bool


def fresh_loss(expression: Any, given: Table) -> float:
    """Mean squared distance from the law on fresh rows: what unseen rows cost beyond their noise."""
    with np.errstate(all="ignore"):
        loss = float(np.mean((expression(given.fresh) - given.truth) ** 2))
    return loss if np.isfinite(loss) else math.inf


def comparisons(record: dict[str, Any], calibration: Any) -> list[Comparison]:
    """The best formula of a record beside each of its rivals, the hardest to beat first."""
    from gmeql.model.choice.evidence import rivals
    from gmeql.model.pareto.front import Front

    given, front = table(record["kind"], record["seed"]), Front.from_dict(record["front"])
    own = fresh_loss(front.select("best").expression, given)
    return [
        Comparison(record["seed"], rival.z, rival.longer, own < fresh_loss(front[rival.index].expression, given))
        for rival in rivals(front, given.X, given.y, calibration=calibration)
    ]


def fitted_calibration(pairs: list[list[Comparison]], start: Any) -> Any:
    """`Calibration` by maximum likelihood, Φ(offset + slope z) times its most; each table weighs one, however many rivals."""
    from scipy.optimize import minimize
    from scipy.special import ndtr

    found = {}
    for longer, name in ((False, "simpler"), (True, "longer")):
        rows = [(p.z, p.better, 1 / len(one)) for one in pairs for p in one if p.longer == longer]
        z, better, weight = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
        z = np.clip(z, -start.largest_z, start.largest_z)

        def cost(at: np.ndarray, z: Any = z, better: Any = better, weight: Any = weight) -> float:
            chance = np.clip(at[2] * ndtr(at[0] + at[1] * z), 1e-9, 1 - 1e-9)
            return -float(np.sum(weight * np.log(np.where(better > 0, chance, 1 - chance))))

        most = (0.5, 1.0) if longer else (1.0, 1.0)
        offset, slope, most = minimize(cost, [0.0, 0.3, 1.0], bounds=[(-5, 5), (0, 5), most]).x
        found |= {f"{name}_offset": round(float(offset), 2), f"{name}_slope": round(float(slope), 2)}
        found |= {"longer_most": round(float(most), 3)} if longer else {}
    return replace(start, **found, tables=len(pairs))


def constants_covered(record: dict[str, Any]) -> list[bool] | None:
    """Whether each 95 % interval of the best formula's constants holds the true value; None for another structure.

    The structure is the law's where its constants can be refitted to the law itself; those are the true values.
    """
    from scipy.optimize import least_squares

    from gmeql.model.certainty.deciding import intervals_of
    from gmeql.model.pareto.front import Front

    given = table(record["kind"], record["seed"])
    best = Front.from_dict(record["front"]).select("best")
    expression = best.expression
    found = intervals_of(best, expression, given.X, given.y)
    if not found:
        return None
    constants, free = np.array(expression.constants), [item.position for item in found]

    def misses(theta: np.ndarray) -> np.ndarray:
        full = constants.copy()
        full[free] = theta
        with np.errstate(all="ignore"):
            return np.nan_to_num(expression.with_constants(tuple(full))(given.fresh) - given.truth, nan=1e6)

    refitted = least_squares(misses, constants[free], xtol=1e-14, ftol=1e-14, gtol=1e-14)
    if math.sqrt(float(np.mean(misses(refitted.x) ** 2))) > SAME_STRUCTURE * law_spread(given.truth):
        return None
    return [item.low <= value <= item.high for item, value in zip(found, refitted.x, strict=True)]


def covered_beforehand(record: dict[str, Any]) -> list[bool]:
    """The same of the law's own structure, which nobody had to find: what intervals without a search do on these rows."""
    from gmeql.model.certainty.intervals import constant_intervals
    from gmeql.search.polish.scoring import JudgedRows, refit

    given = table(record["kind"], record["seed"])
    X = given.X[:, : len(LAW_COLUMNS)]
    (fitted,) = refit([given.law.root], JudgedRows.of(X, given.y, None, LAW_COLUMNS), keep_recognised=False)
    found = constant_intervals(given.law.with_root(fitted.root), X, given.y)
    return [item.low <= given.law.constants[item.position] <= item.high for item in found]


def covered_without_outliers(record: dict[str, Any]) -> list[bool]:
    """The same where rows far off do not decide, as where a formula is chosen that they do not move; none are told of
    tables that have no such rows."""
    from gmeql.model.certainty.intervals import constant_intervals
    from gmeql.model.rows.far_rows import rows_far_away
    from gmeql.search.losses.converging import SQUARES, converged
    from gmeql.search.losses.losses import LOSSES

    given = table(record["kind"], record["seed"])
    X, y = given.X[:, : len(LAW_COLUMNS)], given.y
    middle, _ = converged(given.law.root, X, y, np.ones(len(y)), LOSSES["absolute"])
    kept = ~rows_far_away(y - given.law.with_root(middle)(X))
    if kept.all():
        return []
    fitted, _ = converged(given.law.root, X[kept], y[kept], np.ones(int(kept.sum())), SQUARES)
    found = constant_intervals(given.law.with_root(fitted), X[kept], y[kept])
    return [item.low <= given.law.constants[item.position] <= item.high for item in found]


def rows_covered(record: dict[str, Any]) -> float:
    """The share of fresh measurements inside their 95 % prediction intervals."""
    from gmeql.model.certainty.deciding import basis_of
    from gmeql.model.pareto.front import Front

    given = table(record["kind"], record["seed"])
    best = Front.from_dict(record["front"]).select("best")
    basis = basis_of(best, best.expression, given.X, given.y, None, "squared")
    if isinstance(basis, str):
        raise ValueError(basis)
    low, high = basis.interval(given.fresh)
    return float(np.mean((low <= given.measured) & (given.measured <= high)))


BINS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def reliability(pairs: list[list[Comparison]], calibration: Any) -> list[tuple[float, float, int]]:
    """Stated and observed chance and number of statements, for each bin of stated chances.

    One statement is made of a front: that on the rival which is hardest to beat.
    """
    stated, observed = [], []
    for one in pairs:
        chances = [calibration.chance(p.z, longer=p.longer) for p in one]
        hardest = int(np.argmin(chances))
        stated.append(chances[hardest])
        observed.append(one[hardest].better)
    place = np.digitize(stated, BINS[1:-1])
    return [
        (float(np.mean(np.array(stated)[place == k])), float(np.mean(np.array(observed)[place == k])), int(n))
        for k in range(len(BINS) - 1)
        if (n := np.sum(place == k))
    ]


def report(records: list[dict[str, Any]], picture: Path | None) -> None:
    from gmeql.model.choice.evidence import CALIBRATION

    found = [pairs for record in records if (pairs := comparisons(record, CALIBRATION))]
    even, odd = ([pairs for pairs in found if pairs[0].seed % 2 == rest] for rest in (0, 1))
    fitted = fitted_calibration(even, CALIBRATION)
    print(f"{len(records)} tables, {len(found)} with rivals; fitted on even seeds: {fitted}")
    print(f"fitted on all: {fitted_calibration(found, CALIBRATION)}\nstated by the library: {CALIBRATION}\n")
    plain = replace(CALIBRATION, simpler_offset=0.0, simpler_slope=1.0, longer_offset=0.0, longer_slope=1.0)
    plain = replace(plain, longer_most=1.0, tables=10**9)
    checks = {
        "as the library states it": (found, CALIBRATION),
        "fitted on even seeds, checked on odd ones": (odd, fitted),
        "plain Φ(z)": (found, plain),
    }
    for title, (pairs, calibration) in checks.items():
        print(f"{title}\n\n| stated | observed | fronts |\n| --- | --- | --- |")
        for stated, observed, n in reliability(pairs, calibration):
            print(f"| {stated:.2f} | {observed:.2f} | {n} |")
        print()
    print(
        "| kind | tables | structure found | constants covered | law given beforehand | fresh rows covered |\n"
        "| --- | --- | --- | --- | --- | --- |"
    )
    sums: list[tuple[list[bool], list[bool], list[float]]] = []
    for kind in KINDS:
        chosen = [record for record in records if record["kind"] == kind]
        covered = [c for record in chosen if (c := constants_covered(record)) is not None]
        inside, flat = [rows_covered(record) for record in chosen], [one for c in covered for one in c]
        before = [one for record in chosen for one in covered_beforehand(record)]
        print(f"| {kind} | {len(chosen)} | {len(covered)} | {share(flat)} | {share(before)} | {np.mean(inside):.3f} |")
        if kind in WELL_SPECIFIED:
            sums.append((flat, before, inside))
    flat, before = ([one for each in sums for one in each[place]] for place in (0, 1))
    inside = [one for each in sums for one in each[2]]
    print(
        f"\nwell specified: constants {share(flat)}, law given beforehand {share(before)}, fresh rows {np.mean(inside):.4f}"
    )
    if picture:
        draw({title: reliability(*check) for title, check in checks.items()}, picture)


def report_given(seeds: range) -> None:
    """Coverage of the constants of laws that nobody had to find: what is short on few tables may be luck of these."""
    for kind in KINDS:
        held = [one for seed in seeds for one in covered_beforehand({"kind": kind, "seed": seed})]
        print(f"{kind}: {share(held)}", flush=True)
    held = [one for seed in seeds for one in covered_without_outliers({"kind": "outliers", "seed": seed})]
    print(f"outliers, without rows far off: {share(held)}", flush=True)


def share(held: list[bool]) -> str:
    return f"{np.mean(held):.3f} of {len(held)}" if held else "-"


def draw(curves: dict[str, list[tuple[float, float, int]]], path: Path) -> None:
    """Observed against stated chance, with the standard errors of what was observed."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "calibration"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    for marker, (title, points) in zip("os^", curves.items(), strict=True):
        stated, observed, n = (np.array(column) for column in zip(*points, strict=True))
        # with one success and one failure added, so that a bin where all agree has an error too
        share = (observed * n + 1) / (n + 2)
        axes.errorbar(stated, observed, np.sqrt(share * (1 - share) / n), marker=marker, capsize=2, label=title)
    axes.set(xlabel="stated chance", ylabel="observed share", xlim=(0.1, 1.02), ylim=(0.0, 1.05))
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:30", help="first and one past the last, such as 0:30")
    parser.add_argument("--candidates", type=int, default=4000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="fit tables and add records to this file")
    parser.add_argument("--report", type=Path, help="print what the records of this file show")
    parser.add_argument(
        "--given", help="seeds of tables whose law is given beforehand: coverage of its constants, no search"
    )
    parser.add_argument("--picture", type=Path, help="draw stated against observed chances into this file")
    args = parser.parse_args()
    first, last = map(int, args.seeds.split(":"))
    if args.out:
        simulate(args.out, range(first, last), args.candidates, args.jobs)
    if args.given:
        report_given(range(*map(int, args.given.split(":"))))
    if args.report:
        report(read_records(args.report), args.picture)


if __name__ == "__main__":
    main()
