"""Whether the final expression of a run is the truth: one rule for every method."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from gmeql.evaluation.baselines import refit
from gmeql.evaluation.paper.cells import Cell, test_table
from gmeql.evaluation.problems import Verdict, judge, paper_problem
from gmeql.formula.expression import Expression

MAX_JUDGED_CONSTANTS = 40
"""An expression with more constants than this is not the truth of any of the eight problems."""
NEAR = 0.1
"""A run counts only if its own final expression came this near: RMSE on the training rows in units of std(y), the
noise not counted."""
EXACT = 1e-9
"""RMSE, in units of std(y), that the refitted expression must reach on noise-free training rows."""
HOPELESS = 1e-6
"""RMSE on the noise-free test rows, in units of std(y), beyond which no cutting makes a refitted expression the truth;
under noise, the noise itself: a formula that holds the truth ends well below it."""
SOLVED_RULE = (
    "solved: the final expression has an RMSE below a tenth of the standard deviation on the training rows; with its "
    "constants refitted in double precision, and nothing else changed, it fits them exactly; and without terms that "
    "carry nothing it equals the truth on 10,000 fresh points to 1e-8 of the standard deviation and is no longer than "
    "needed (with noise: it has the truth's structure). The same rule for every method."
)
STRUCTURE_RULE = (
    "structure: the same without the first condition: the wiring alone is asked, and its constants are refitted to "
    "convergence from where they ended and from 1. For GMEQL it counts if T* or the mode of the final logits has it."
)
REFIT_STEPS = 300
"""Levenberg-Marquardt steps of a structure's refit: far beyond what any of the eight truths needs to converge."""


def judge_expression(expression: Expression, cell: Cell, X: np.ndarray, y: np.ndarray) -> tuple[Verdict, Expression]:
    """Decide `SOLVED_RULE` for an expression: refit, cut what carries nothing, compare with the truth."""
    if len(expression.constants) > MAX_JUDGED_CONSTANTS:
        return _unsolved(f"{len(expression.constants)} constants", expression, cell), expression
    with np.errstate(all="ignore"):
        distance = float(np.sqrt(np.mean((expression(X) - y) ** 2)) / np.std(y))
    if not distance < NEAR + cell.noise / float(np.std(y)):
        return _unsolved(f"the run ended {distance:.2g} std(y) from the data", expression, cell), expression
    return _judge_fitted(refit(expression, X, y), cell, X, y)


def judge_structure(expression: Expression, cell: Cell, X: np.ndarray, y: np.ndarray) -> tuple[Verdict, Expression]:
    """Decide `STRUCTURE_RULE` for an expression: whether constants exist that make it the truth."""
    if len(expression.constants) > MAX_JUDGED_CONSTANTS:
        return _unsolved(f"{len(expression.constants)} constants", expression, cell), expression
    first: tuple[Verdict, Expression] | None = None
    for start in (expression, expression.with_constants((1.0,) * len(expression.constants))):
        judged = _judge_fitted(_converged(start, X, y), cell, X, y)
        if judged[0].solved:
            return judged
        first = first or judged
    assert first is not None  # two starts were judged
    return first


def _converged(expression: Expression, X: np.ndarray, y: np.ndarray) -> Expression:
    """The expression with its constants fitted until nothing moves, in its natural form where that fits at all."""
    from gmeql.search import polish

    rows = polish.JudgedRows.of(X, y, None, expression.names)
    fitted = polish.refit([expression.natural().root], rows, keep_recognised=False, max_steps=REFIT_STEPS)
    if fitted and fitted[0].loss < (NEAR * float(np.std(y))) ** 2:
        return refit(Expression(fitted[0].root, expression.names), X, y)
    return refit(expression, X, y)


def _judge_fitted(fitted: Expression, cell: Cell, X: np.ndarray, y: np.ndarray) -> tuple[Verdict, Expression]:
    """Judge an expression whose constants are final: without ballast, is it the truth?"""
    problem = paper_problem(cell.problem)
    natural = _natural(fitted, X, y)
    if natural is None:
        return _unsolved("a protected function acts outside its domain", fitted, cell), fitted
    fitted = natural
    loss = _mean_square(fitted, X, y)
    verdict = _unsolved("the refitted expression is not the truth", fitted, cell)
    if not verdict.relative_rmse < (cell.noise / float(np.std(y)) if cell.noise else HOPELESS):
        return verdict, fitted  # and a long expression is spared minutes of algebra
    if not cell.noise and not math.sqrt(loss) < EXACT * float(np.std(y)):
        return judge(fitted, problem), fitted
    first: tuple[Verdict, Expression] | None = None
    for candidate in (fitted, *_without_ballast(fitted, loss, X, y)):
        verdict = judge(candidate, problem, noise_std=cell.noise)
        if verdict.solved:
            return verdict, candidate
        first = first or (verdict, candidate)
    assert first is not None  # the fitted expression itself was judged
    return first


def _natural(fitted: Expression, X: np.ndarray, y: np.ndarray) -> Expression | None:
    """The expression without guards, where no guard acts on these rows; None where one does.

    Terms that carry nothing go first: a guard that acts only inside ballast says nothing about the formula.
    """
    from gmeql.search import polish

    rows = polish.JudgedRows.of(X, y, None, fitted.names)
    for form in (fitted, Expression(polish.without_dead_terms(fitted.root, rows), fitted.names)):
        if not form.is_protected:
            return form
        with np.errstate(all="ignore"):
            if np.allclose(form.natural()(X), form(X), rtol=1e-9, atol=1e-9):
                return form.natural()
    return None


def _unsolved(reason: str, expression: Expression, cell: Cell) -> Verdict:
    """The verdict on an expression that cannot be the truth, with its error on the test rows."""
    X, y = test_table(cell)
    with np.errstate(all="ignore"):
        error = (expression(X) - y) / float(np.std(y))
        return Verdict(False, reason, float(np.max(np.abs(error))), float(np.sqrt(np.mean(error**2))))


def _mean_square(expression: Expression, X: np.ndarray, y: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        loss = float(np.mean((expression(X) - y) ** 2))
    return loss if math.isfinite(loss) else math.inf


def _without_ballast(fitted: Expression, loss: float, X: np.ndarray, y: np.ndarray) -> Iterator[Expression]:
    """Shorter forms of a fitted expression. Cutting cannot improve a fit: what fits better has become another formula,
    found by the cutting and not by the method, and is left out."""
    from gmeql.search import polish

    rows = polish.JudgedRows.of(X, y, None, fitted.names)
    least = 0.99 * loss if loss > rows.floor else 0.0
    found = [scored for scored in polish.prune(fitted.root, rows) if scored.loss >= least]
    for scored in sorted(found, key=lambda s: s.length)[:3]:
        yield Expression(scored.root, fitted.names)
