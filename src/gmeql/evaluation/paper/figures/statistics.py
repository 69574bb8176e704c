"""Numbers of groups of records, and what may be said about two groups.

Tests of significance: Mann-Whitney U, two-sided, on the test MAE of the final expressions and, where the paper shows
curves, on the training MAE at their end; Fisher's exact test, two-sided, on counts of solved runs; all at 0.05, without
correction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gmeql.evaluation.paper.records import Record

LEVEL = 0.05
"""Probability below which a difference counts as significant."""
ENOUGH = 5
"""With fewer runs than this nothing is tested and nothing is judged: no outcome could tell two groups apart."""
TOO_FEW = "too few runs"
"""The verdict on groups of fewer runs than `ENOUGH`."""


def test_errors(records: Sequence[Record]) -> np.ndarray:
    """Test MAE of final expressions; inf where one is not finite on some test row."""
    return np.array([math.inf if r["test_mae"] is None else r["test_mae"] for r in records], float)


test_errors.__test__ = False  # type: ignore[attr-defined]


def final_errors(records: Sequence[Record]) -> np.ndarray:
    """Training MAE at the end of the curves: for GMEQL that of the best relaxed instance, which the paper draws."""
    return np.array(
        [
            math.inf if not r["curve"]["mae"] or r["curve"]["mae"][-1] is None else r["curve"]["mae"][-1]
            for r in records
        ],
        float,
    )


def summary(records: Sequence[Record]) -> dict[str, Any]:
    """One row of the machine-readable table."""
    errors = test_errors(records)
    finite = errors[np.isfinite(errors)]
    return {
        **counts(records),
        "median_test_mae": number_or_none(np.median(errors)) if len(errors) else None,
        "mean_test_mae": number_or_none(np.mean(finite)) if len(finite) else None,
        "std_test_mae": number_or_none(np.std(finite)) if len(finite) else None,
        "median_training_mae": number_or_none(np.median(final_errors(records))) if records else None,
        "not_finite": int(len(errors) - len(finite)),
        "seconds_per_run": number_or_none(np.mean([r["seconds"] for r in records])) if records else None,
        "candidates": number_or_none(np.median([r["candidates"] for r in records])) if records else None,
    }


def counts(records: Sequence[Record]) -> dict[str, Any]:
    """Both counts of a group: strictly solved runs, and runs with the truth's structure, of T* and of the mode."""
    solved = sum(bool(r["solved"]) for r in records)
    structure = sum(bool(r["solved"] or r.get("structure")) for r in records)
    modes = [r["structure_mode"] for r in records if r.get("structure_mode") is not None]
    return {
        "runs": len(records),
        "solved": solved,
        "solved_share": solved / len(records) if records else None,
        "structure": structure,
        "structure_share": structure / len(records) if records else None,
        "structure_best": sum(bool(r["solved"] or r.get("structure_best")) for r in records),
        "structure_mode": sum(modes) if modes else None,
    }


def interval(count: int, runs: int) -> tuple[float, float]:
    """The exact (Clopper and Pearson) 95 % interval of a share; (0, 1) without runs."""
    from scipy.stats import binomtest

    if not runs:
        return 0.0, 1.0
    found = binomtest(count, runs).proportion_ci(1 - LEVEL, method="exact")
    return float(found.low), float(found.high)


def number_or_none(value: Any) -> float | None:
    """JSON has no nan and no infinity: what is not finite is null."""
    return float(value) if math.isfinite(value) else None


def tested(other: str, p: float, verdict: str) -> dict[str, Any]:
    """What a row of the table says about its comparison."""
    return {"compared_with": other, "p_value": number_or_none(p), "test": "Mann-Whitney U", "verdict": verdict}


def mann_whitney(a: Sequence[Record], b: Sequence[Record], errors: Callable[..., np.ndarray] = test_errors) -> float:
    """Two-sided p-value that two groups' errors come from one distribution; nan for fewer runs than `ENOUGH`."""
    from scipy.stats import mannwhitneyu

    if min(len(a), len(b)) < ENOUGH:
        return math.nan
    left, right = (np.minimum(errors(g), 1e300) for g in (a, b))
    if np.ptp(np.concatenate([left, right])) == 0:
        return 1.0
    return float(mannwhitneyu(left, right, alternative="two-sided").pvalue)


def fisher(solved_a: int, runs_a: int, solved_b: int, runs_b: int) -> float:
    """Two-sided p-value of Fisher's exact test on two counts of solved runs; nan for fewer runs than `ENOUGH`."""
    from scipy.stats import fisher_exact

    if min(runs_a, runs_b) < ENOUGH:
        return math.nan
    return float(fisher_exact([[solved_a, runs_a - solved_a], [solved_b, runs_b - solved_b]]).pvalue)


def median_error(records: Sequence[Record], errors: Callable[..., np.ndarray] = test_errors) -> float:
    """Median error of a group; nan without runs."""
    return float(np.median(errors(records))) if records else math.nan


def said(value: float) -> str:
    """An error as a sentence gives it."""
    return "not finite" if not math.isfinite(value) else f"{value:.3g}"


def compare(
    better: Sequence[Record],
    worse: Sequence[Record],
    names: tuple[str, str],
    claim: str = "<",
    *,
    errors: Callable[..., np.ndarray] = test_errors,
) -> tuple[str, str, float]:
    """Verdict, sentence and p-value for the claim that the first group's error is smaller ("<") or alike ("=")."""
    if not better or not worse:
        return "not measured", f"{names[0]} against {names[1]}: not measured yet.", math.nan
    a, b = median_error(better, errors), median_error(worse, errors)
    p = mann_whitney(better, worse, errors)
    if math.isnan(p):
        counts = f"{len(better)} and {len(worse)} runs"
        return TOO_FEW, f"Median {_kind(errors)}: {names[0]} {said(a)}, {names[1]} {said(b)} ({counts}).", p
    relation = "equals" if a == b else "is below" if a < b else "is above"
    sentence = (
        f"The median {_kind(errors)} of {names[0]} ({said(a)}) {relation} that of {names[1]} ({said(b)}), "
        f"p = {p:.2g} (Mann-Whitney U, n = {len(better)} and {len(worse)})."
    )
    if claim == "=":
        return ("agrees" if p >= LEVEL else "differs"), sentence, p
    if p >= LEVEL:
        return "undecided", sentence + " The difference is not significant.", p
    return ("agrees" if a < b else "differs"), sentence, p


def _kind(errors: Callable[..., np.ndarray]) -> str:
    return "test MAE" if errors is test_errors else "training MAE at the end of the curve"


def overall(verdicts: Sequence[str]) -> str:
    """One word for several verdicts; what could not be judged does not count beside what could."""
    known = [v for v in verdicts if v not in ("not measured", TOO_FEW)]
    if not known:
        return TOO_FEW if TOO_FEW in verdicts else "not measured"
    if len(set(known)) == 1:
        return known[0]
    return "partly" if "agrees" in known else "differs" if "differs" in known else "undecided"
