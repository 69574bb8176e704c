"""What a free function must be, seen directly: the values that would make the outer form meet the target.

Beside the other functions and constants of a solution, the outer form F is a function of what the free function gives: at
its value u the target wants u + (y - F)/F', in one Newton step, which is exact where F is linear in it. Rows count by F'².
That is a table like any other, and direct methods see a formula in it at once, where islands would meet it by chance.

Legend: `N` rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, build
from gmeql.network.families import FunctionSet
from gmeql.search.direct.methods import ask
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.polish.scoring import JudgedRows, clean
from gmeql.search.templates.config import TEMPLATES
from gmeql.search.templates.solutions import Solution


def needed(solution: Solution, i: int, rows: JudgedRows) -> DirectTable | None:
    """Arguments of function `i`, the values that it would need on the rows, and how much they count.

    None where the function stands in several places, or too few rows depend on it.
    """
    places = solution.template.arguments_of(i)
    if len(places) != 1:
        return None
    tree, names = solution.inner[i], solution.template.names
    with np.errstate(all="ignore"):
        X = np.column_stack([Expression(argument, names)(rows.X) for argument in places[0]])
        u = Expression(tree, tuple(f"x{k}" for k in range(X.shape[1])))(X)
        step = TEMPLATES.slope_step * (float(np.std(u)) or 1.0)
        below, above = (_values(solution, i, build("add", tree, Constant(h)), rows) for h in (-step, step))
        slope = (above - below) / (2.0 * step)
        wanted = u + (rows.target - 0.5 * (above + below)) / slope
        weights = rows.weights * slope**2
    good = np.isfinite(X).all(axis=1) & np.isfinite(wanted) & np.isfinite(weights)
    good &= weights > TEMPLATES.least_weight * np.max(weights[good], initial=0.0)
    if good.sum() < max(TEMPLATES.least_rows, 0.5 * len(u)):
        return None
    return DirectTable(X[good], wanted[good], weights[good] / weights[good].mean())


def seen(
    solution: Solution, i: int, rows: JudgedRows, functions: FunctionSet, effort: Effort, rng: np.random.Generator
) -> Iterator[Solution]:
    """The solution with formulas in place of function `i` that direct methods see in what it must be, not yet fitted."""
    table = needed(solution, i, rows)
    if table is None:
        return
    own = JudgedRows.of(table.X, table.y, table.weights, [f"x{k}" for k in range(table.n_columns)])
    for name in TEMPLATES.direct_methods:
        proposed = ask(name, table, functions=functions, effort=effort, rng=rng)
        for root in islice(proposed, TEMPLATES.direct_each):
            tree = clean(root, own) or root  # of positive arguments 1/sqrt(1/x) is sqrt(x)
            yield replace(solution, inner=(*solution.inner[:i], tree, *solution.inner[i + 1 :]))


def _values(solution: Solution, i: int, tree: Node, rows: JudgedRows) -> np.ndarray:
    """The whole formula's values [N] with another tree for function `i`."""
    changed = replace(solution, inner=(*solution.inner[:i], tree, *solution.inner[i + 1 :]))
    return Expression(changed.root, rows.names)(rows.X)
