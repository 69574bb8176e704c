"""The one definition of "solved"."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gmeql.evaluation.problems.problem import Problem, root_mean_square, standard_deviation
from gmeql.formula.canonical import Undecided, active_part, canonical, evaluate

if TYPE_CHECKING:
    import sympy

JUDGE_POINTS = 10_000
MAX_ERROR = 1e-8
"""Largest error on fresh points, in units of std(y)."""
SAME_FUNCTION = 1e-10
"""Where the canonical forms cannot decide, two formulas are one function within this error (units of std(y))."""
NEGLIGIBLE = 1e-6
"""A term whose removal changes the formula by less than this (units of std(y)) is ballast."""
BALLAST_POINTS = 500
FAMILY_POINTS = 400
"""Of the fresh points, as many tell ballast, and the truth's family: each asks for many evaluations."""
NOISE_SHARE = 0.5
"""Under noise the formula's RMSE against the truth must be below this share of the noise's standard deviation."""


@dataclass(frozen=True)
class Verdict:
    """Whether a formula solves a problem, and why. Errors are in units of std(y) on fresh noise-free points."""

    solved: bool
    reason: str
    max_error: float = math.inf
    relative_rmse: float = math.inf


def judge(found: Any, problem: Problem, *, noise_std: float = 0.0, seed: int = 0) -> Verdict:
    """Decide whether `found` solves `problem`. `found`: a SymPy object, or anything with `.sympy()` (and callable).

    Without noise, all of:

    1. on 10,000 fresh points of the domain, max |error| <= 1e-8 std(y), for the formula as printed and as predicted;
    2. no longer than needed: at most factor x the truth's operations + extra (`problem.allowed_length`); and no
       ballast: no term anywhere whose removal changes nothing (unless the truth itself has such terms);
    3. the difference to the truth vanishes with constants at four significant digits: both have one canonical form;
       or, where the canonical forms differ or grow too large to tell, the error stays below 1e-10 std(y).

    With noise on the training targets (`noise_std`, or rows that scatter around the truth) constants cannot be exact.
    Then: its RMSE against the truth is below half the noise; it is no longer than needed; and it is a member of the
    truth's family: one skeleton (constants free), or the truth's constants refitted give this function.

    Guards of protected operators that no fresh point reaches do not count as part of the formula.
    Every step is bounded in time, so it may run in threads and worker processes.
    """
    truth = problem.formula
    if truth is None:
        return Verdict(False, "the truth is unknown")
    import sympy

    formula = found if isinstance(found, sympy.Basic) else found.sympy()
    formula = _with_names(formula, problem.names)
    X, y = problem.sample(problem.generator(seed, "judge"), JUDGE_POINTS)
    scale = standard_deviation(y) or float(np.max(np.abs(y))) or 1.0
    columns = dict(zip(problem.names, X.T))

    def error_of(values: Any) -> np.ndarray:
        error = np.abs(np.broadcast_to(np.asarray(values, dtype=np.float64).squeeze(), y.shape) - y) / scale
        return np.where(np.isnan(error), math.inf, error)

    error = error_of(evaluate(formula, columns))
    if callable(found) and not isinstance(found, sympy.Basic):
        error = np.maximum(error, error_of(found(X)))
    worst, rmse = float(error.max()), root_mean_square(error)
    formula, truth = active_part(formula, columns), active_part(truth, columns)

    needed, length = int(sympy.count_ops(truth)), int(sympy.count_ops(formula))
    factor, extra = problem.allowed_length
    if noise := noise_std or problem.noise_in_rows:
        is_near, error_text = rmse * scale <= NOISE_SHARE * noise, f"{rmse:.1e} std(y) is not explained by the noise"
    else:
        is_near, error_text = worst <= MAX_ERROR, f"{worst:.1e} std(y) on fresh points"
    if not is_near:
        solved, reason = False, f"error {error_text}"
    elif length > factor * needed + extra:
        solved, reason = False, f"longer than needed: {length} operations, the truth has {needed}"
    elif noise:
        solved, reason = _has_structure(formula, truth, columns)
    else:
        solved, reason = _is_truth(formula, truth, columns, scale, worst)
    return Verdict(solved, reason, worst, rmse)


def _has_structure(formula: sympy.Expr, truth: sympy.Expr, columns: Mapping[str, np.ndarray]) -> tuple[bool, str]:
    """Whether a formula near the truth has its structure, constants free, and why."""
    if _same(formula, truth, skeleton=True):
        return True, "the truth's structure"
    if _in_family(formula, truth, {name: column[:FAMILY_POINTS] for name, column in columns.items()}):
        return True, "a member of the truth's family"
    return False, "another structure"


def _is_truth(
    formula: sympy.Expr, truth: sympy.Expr, columns: Mapping[str, np.ndarray], scale: float, worst: float
) -> tuple[bool, str]:
    """Whether a formula that is the truth within `worst` on every point is the same formula, and why."""
    some = {name: column[:BALLAST_POINTS] for name, column in columns.items()}
    ballast = _ballast(formula, some, scale)
    if ballast is not None and _ballast(truth, some, scale) is None:
        return False, f"ballast: without the term {ballast} it computes the same"
    if _same(formula, truth, skeleton=False):
        return True, "equal to the truth"
    if worst <= SAME_FUNCTION:
        return True, "equal to the truth in numbers"
    return False, "close to the truth, but another formula"


def _with_names(formula: sympy.Expr, names: Sequence[str]) -> sympy.Expr:
    """Symbols named as the problem's columns; a formula learnt without names calls them x1, x2, ... or x0, x1, ..."""
    import sympy

    used = {symbol.name for symbol in formula.free_symbols}
    if used <= set(names):
        return formula
    places = {f"x{i}": name for i, name in enumerate(names, start=0 if "x0" in used else 1)}
    if not used <= set(places):
        raise ValueError(f"the formula names {sorted(used - set(names))}; the columns are {', '.join(names)}")
    return formula.xreplace({s: sympy.Symbol(places[s.name], real=True) for s in formula.free_symbols})


def _same(a: sympy.Expr, b: sympy.Expr, *, skeleton: bool) -> bool:
    try:
        return canonical(a, skeleton=skeleton) == canonical(b, skeleton=skeleton)
    except Undecided:
        return False


def _ballast(formula: sympy.Expr, columns: Mapping[str, np.ndarray], scale: float) -> sympy.Expr | None:
    """A term of a sum, at any depth, that can go without changing the formula's numbers; None if there is none."""
    import sympy

    values = evaluate(formula, columns)
    for total in formula.atoms(sympy.Add):
        for term in total.args:
            without = evaluate(formula.xreplace({total: total - term}), columns)
            change = np.max(np.abs(without - values))
            if change <= NEGLIGIBLE * scale:  # nan compares false: the term is needed
                return term
    return None


def _in_family(formula: sympy.Expr, truth: sympy.Expr, columns: Mapping[str, np.ndarray]) -> bool:
    """Whether the truth with its constants refitted computes `formula`'s numbers, and needs all of its terms for that.

    A fraction whose factor is refitted to 0 is not found: the formula lacks it.
    """
    import sympy
    from scipy.optimize import least_squares

    start: list[float] = []
    family = _free_constants(truth, start)
    target = evaluate(formula, columns)
    scale = standard_deviation(target) or 1.0
    if not start or not np.isfinite(target).all():
        return False

    def residual(constants: np.ndarray) -> np.ndarray:
        values = evaluate(family, {**columns, **{f"c{i}#": value for i, value in enumerate(constants)}})
        error: np.ndarray = np.nan_to_num((values - target) / scale, nan=1e6, posinf=1e6, neginf=-1e6)
        return error

    fit = least_squares(residual, np.array(start), x_scale=np.abs(start), max_nfev=200, xtol=1e-15, ftol=1e-15)
    if np.max(np.abs(fit.fun)) > NEGLIGIBLE:
        return False
    refitted = family.xreplace(
        {sympy.Symbol(f"c{i}#", real=True): sympy.Float(v) for i, v in enumerate(fit.x.tolist())}
    )
    return _ballast(refitted, columns, scale) is None or _ballast(truth, columns, scale) is not None


def _free_constants(e: sympy.Expr, start: list[float]) -> sympy.Expr:
    """`e` with a symbol in place of each constant, whose value is appended to `start`. Plain exponents stay."""
    import sympy

    def free(value: sympy.Expr) -> sympy.Expr:
        start.append(float(evaluate(value, {})))
        return sympy.Symbol(f"c{len(start) - 1}#", real=True)

    if not e.free_symbols:
        return free(e)
    if e.is_Add or e.is_Mul:
        fixed = [a for a in e.args if not a.free_symbols]
        parts = [_free_constants(a, start) for a in e.args if a.free_symbols]
        return e.func(*parts, *([free(e.func(*fixed))] if fixed else []))
    if e.is_Pow and e.exp.is_Rational:
        return _free_constants(e.base, start) ** e.exp
    return e.func(*(_free_constants(a, start) for a in e.args)) if e.args else e
