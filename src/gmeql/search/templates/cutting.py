"""Solutions of a template cut to shape: functions lose what the rows do not support, constants become short numbers.

Only what stands inside the free functions is cut; the outer form is the user's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from gmeql.formula.nodes import Node
from gmeql.formula.simplify import simplify
from gmeql.search.polish.config import POLISH
from gmeql.search.polish.cutting import reductions
from gmeql.search.polish.recognition import is_recognised, recognised, short_decimals
from gmeql.search.polish.scoring import JudgedRows, Scored, description_length
from gmeql.search.templates.config import TEMPLATES
from gmeql.search.templates.solutions import OpenSolution, Solution, refit_solutions

OutOfTime = Callable[[], bool]


def length_of(solution: Solution, rows: JudgedRows) -> float:
    """Description length of a solution on some rows."""
    if not math.isfinite(solution.loss):
        return math.inf
    return description_length(solution.root, solution.loss, rows)


def scored(solution: Solution, rows: JudgedRows) -> Scored:
    """A solution as the front takes it."""
    return Scored(solution.root, solution.loss, length_of(solution, rows))


def cut(solution: Solution, rows: JudgedRows, out_of_time: OutOfTime) -> list[Solution]:
    """Solutions met while functions are cut as long as the description length falls, the final one first."""
    (current,) = refit_solutions([_tidy(solution)], rows, max_steps=POLISH.refit_steps)
    if not math.isfinite(current.loss):
        return []
    met = [current]
    for _ in range(TEMPLATES.cut_rounds):
        if out_of_time():
            break
        tried = refit_solutions(_shorter(current), rows, max_steps=POLISH.refit_steps)
        met += tried
        best = min(tried, key=lambda s: length_of(s, rows), default=current)
        if not length_of(best, rows) < length_of(current, rows):
            break
        current = _tidy(best)
        met.append(current)
    final = _rounded(current, rows, out_of_time)
    return [final, *(s for s in met if math.isfinite(s.loss))]


def _shorter(solution: Solution) -> list[Solution]:
    """Every solution that one cut of one function makes."""
    found: dict[tuple[Node, ...], Solution] = {}
    for i, tree in enumerate(solution.inner):
        for shorter in dict.fromkeys(reductions(tree)):
            inner = (*solution.inner[:i], shorter, *solution.inner[i + 1 :])
            found.setdefault(inner, replace(solution, inner=inner))
    return list(found.values())


def _tidy(solution: Solution) -> Solution:
    """The same with every function in normal form, where that is no longer."""
    inner = []
    for tree in solution.inner:
        try:
            short = simplify(tree)
        except (ArithmeticError, ValueError):  # a constant that no float holds
            short = tree
        inner.append(short)
    tidy = replace(solution, inner=tuple(inner))
    return tidy if tidy.complexity <= solution.complexity else solution


def _rounded(solution: Solution, rows: JudgedRows, out_of_time: OutOfTime) -> Solution:
    """Constants as numbers people write, one after the other, as long as the description length does not rise.

    A factor that another one makes redundant becomes 1 this way.
    """
    current = solution
    for _ in range(TEMPLATES.rounded):
        opened = OpenSolution.of(current)
        loose = [p for p, value in enumerate(opened.starts) if not is_recognised(value)]
        if not loose or out_of_time():
            break
        kept = [p for p in range(len(opened.starts)) if p not in loose]
        changes = [(p, math.copysign(1.0, opened.starts[p])) for p in loose]
        for p in loose:
            value = opened.starts[p]
            near = recognised(value) if rows.is_exact(current.loss) else tuple(short_decimals(value))
            changes += [(p, number) for number in near]
        tries = [
            opened.closed([number if q == p else v for q, v in enumerate(opened.starts)], math.inf)
            for p, number in changes
        ]
        fixed = [[*kept, p] for p, _ in changes]
        found = refit_solutions(tries, rows, max_steps=POLISH.refit_steps, fixed=fixed)
        best = min(found, key=lambda s: round(length_of(s, rows), 6))  # of equal ones the first: a factor of 1
        if length_of(best, rows) > length_of(current, rows):
            break
        current = best
    tidy = _tidy(current)
    (again,) = refit_solutions([tidy], rows, max_steps=1, fixed=[range(len(OpenSolution.of(tidy).starts))])
    return again if length_of(again, rows) <= length_of(current, rows) else current
