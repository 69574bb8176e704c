"""What a run of the race is worth: whether its structures are the truth once refitted, and how settings compare."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from gmeql.evaluation.problems import paper_problem, released_problem
from gmeql.fitters.programs import expression_from_structure
from gmeql.network.architecture import Architecture
from gmeql.search import polish

PAPER_SHARES = {"b1": 0.61, "b2": 0.70, "b3": 0.45, "b4": 0.40, "b5": 0.53, "b6": 1.0, "b7": 0.47, "b8": 1.0}
EXACT = 1e-7
"""Relative RMSE of a refitted structure that counts as the truth in the race; the judges are stricter."""
NEAR = 0.07
"""Relative MAE of T* as it was trained that counts as near the data; the judges ask for an RMSE of 0.1."""
MARKERS = 12
"""Threads that refit; the compiled fit runs beside the interpreter."""
FAILURES, FITS = 4, -1
"""How often a structure is refitted in vain before it counts as wrong; the mark of one that fits."""
KNOWN: dict[Any, int] = defaultdict(int)
"""Of each structure that was looked at: `FITS`, or how often it was refitted in vain."""


def table(problem: str, seed: int, released_rows: bool) -> tuple[np.ndarray, np.ndarray]:
    """Training rows of a run: Table 1's, or the released code's 500 points on (0, 2.1)."""
    found = released_problem(problem) if released_rows else paper_problem(problem)
    return found.train(found.generator(seed, "train"))


def mark(lines: list[dict[str, Any]], released_rows: bool = False) -> None:
    """Set `best_fits` and `mode_fits`: whether T*'s structure, and the mode's, fit exactly once refitted."""
    with ThreadPoolExecutor(MARKERS) as pool:
        list(pool.map(lambda line: mark_one(line, released_rows), lines))


def mark_one(line: dict[str, Any], released_rows: bool) -> None:
    line["best_fits"] = _fits(line, "choices", "weights", released_rows)
    line["mode_fits"] = _fits(line, "mode", "mode_weights", released_rows)


def _fits(line: dict[str, Any], choices: str, weights: str, released_rows: bool) -> bool:
    """Whether a structure fits exactly once refitted. Whether constants exist that make it the truth does not depend on
    the seed: a structure that did fit is not fitted again, and one that did not only a few times."""
    key = (line["problem"], tuple(map(tuple, line["layers"])), tuple(line[choices]), released_rows)
    if KNOWN[key] in (FITS, FAILURES):
        return KNOWN[key] == FITS
    names = paper_problem(line["problem"]).names
    network = Architecture(len(names), tuple(tuple(layer) for layer in line["layers"]))
    rows = polish.JudgedRows.of(*table(line["problem"], line["seed"], released_rows), None, names)
    (own,) = expression_from_structure(network, line[choices], line[weights], names, protected=False)
    roots = [own.root, own.with_constants((1.0,) * len(own.constants)).root]
    with np.errstate(all="ignore"):
        fitted = polish.refit(roots, rows, keep_recognised=False, max_steps=100)
    fits = any(one.loss < (EXACT * rows.spread) ** 2 for one in fitted)
    KNOWN[key] = FITS if fits else min(KNOWN[key] + 1, FAILURES)
    return fits


def score(lines: Sequence[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """Of each setting: the mean over problems of its shares of true structures and of strict ones, T* being true and near
    the data as it was trained, each in units of the paper's share and at most 1; of equals, the lower mean log of the
    relative error goes ahead."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        found[line["setting"]][line["problem"]].append(line)
    scores = {}
    for setting, by_problem in found.items():
        shares, errors = [], []
        for problem, mine in by_problem.items():
            either = np.mean([line["best_fits"] or line["mode_fits"] for line in mine])
            strict = np.mean([is_strict(line) for line in mine])
            shares += [min(1.0, share / PAPER_SHARES[problem]) for share in (either, strict)]
            errors.append(np.mean([math.log10(min(max(line["relative"], 1e-6), 1e3)) for line in mine]))
        scores[setting] = (float(np.mean(shares)), -float(np.mean(errors)))
    return scores


def is_strict(line: dict[str, Any]) -> bool:
    """Whether T* is the truth and near the data with its own weights."""
    return bool(line["best_fits"]) and line["relative"] < NEAR


def shown(lines: Sequence[dict[str, Any]], setting: str) -> str:
    """True structures (T* or mode) and in brackets strict ones of a setting, problem by problem."""
    cells = []
    for problem in sorted({line["problem"] for line in lines}):
        mine = [line for line in lines if line["setting"] == setting and line["problem"] == problem]
        either = sum(line["best_fits"] or line["mode_fits"] for line in mine)
        cells.append(f"{problem} {either}({sum(map(is_strict, mine))})/{len(mine)}")
    return f"{setting:32s} " + "  ".join(cells)
