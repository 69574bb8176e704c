"""Numerical solutions as tables: what a search for closed forms sees, and who judges its formulas.

Legend: `N` rows, `V` columns, `F` unknown functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gmeql.differential.solving.config import NUMERICAL, SOLVE
from gmeql.differential.solving.hints import Hints
from gmeql.differential.solving.numerical import NumericalSolution, numerical_solutions, sample_points
from gmeql.differential.solving.problem import FloatArray, Problem
from gmeql.differential.solving.proof import Judge


@dataclass(frozen=True)
class SolutionTable:
    """A numerical solution as the search sees it: rows [N, V] and values [N, F], and who judges formulas for them."""

    solution: NumericalSolution
    X: FloatArray
    Y: FloatArray
    judge: Judge
    hints: Hints

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.hints.names


def solution_tables(problem: Problem) -> Iterator[SolutionTable]:
    """Numerical solutions as tables; those that were filled and end early come last."""
    if problem.parameters:
        yield _parameter_table(problem)
        return
    short: list[SolutionTable] = []
    for solution in numerical_solutions(problem):
        table = _table(problem, solution)
        if solution.filled and solution.problem.box != problem.box:
            short.append(table)
        else:
            yield table
    yield from short


def _table(problem: Problem, solution: NumericalSolution) -> SolutionTable:
    count = SOLVE.points if solution.problem.is_ordinary else SOLVE.points_of_many
    X = sample_points(solution.problem.box, count)
    Y = solution.values(X).T
    return SolutionTable(solution, X, Y, Judge(solution.problem, X), Hints.of(problem))


def _parameter_table(problem: Problem) -> SolutionTable:
    """One table for a family: numerical solutions for a few values of the parameters, which are columns."""
    values = sample_points(problem.parameter_box, NUMERICAL.parameter_values)
    rows, targets = [], []
    box = problem.box
    for value in values:
        exact = {s: _short_number(v) for s, v in zip(problem.parameters, value, strict=True)}
        solution = next(iter(numerical_solutions(problem.with_numbers(exact))))
        box = solution.problem.box if _is_inside(solution.problem.box, box) else box
        X = sample_points(solution.problem.box, SOLVE.points_of_many // len(values))
        numbers = [float(exact[s]) for s in problem.parameters]
        rows.append(np.hstack([X, np.broadcast_to(numbers, (len(X), len(numbers)))]))
        targets.append(solution.values(X).T)
    X, Y = np.concatenate(rows), np.concatenate(targets)
    shorter = replace(problem, box=box)
    inside = np.all([(X[:, k] >= low) & (X[:, k] <= high) for k, (low, high) in enumerate(box)], axis=0)
    X, Y = X[inside], Y[inside]
    family = NumericalSolution(shorter, solution.source, solution.error)
    return SolutionTable(family, X, Y, Judge(shorter, X), Hints.of(problem))


def _short_number(value: float) -> Any:
    import sympy

    return sympy.Rational(f"{value:.4g}")


def _is_inside(inner: Any, outer: Any) -> bool:
    return all(a[0] >= b[0] and a[1] <= b[1] for a, b in zip(inner, outer, strict=True))
