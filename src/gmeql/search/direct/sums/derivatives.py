"""Derivatives of small terms: c + a D(φ, x) for every φ of the library and every column x it depends on.

Asked where the user allows `D`. The derivative of a product is a sum of as many terms as it has factors, with constants that
belong together; here all of them are seen at once. D is written out by calculus, so what is proposed is a formula like any
other.

Legend: `N` rows, `M` derivatives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.calculus import expand
from gmeql.formula.nodes import Call, Constant, Node, Variable, build, calls, used_columns
from gmeql.formula.operators import DERIVATIVE
from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.terms.column_functions import LIBRARY
from gmeql.search.direct.terms.library import library

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class DerivativesConfig:
    """Numbers of the method."""

    rows: int = 200  # that terms are compared on
    most_terms: int = 6000
    seconds_per_term: float = 6e-4  # of one idle core: calculus, and the values on all rows
    proposed: int = 8  # formulas, the nearest first


DERIVATIVES = DerivativesConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """The derivatives of single terms that come nearest to the target. Draws nothing at random."""
    count = min(int(effort.seconds / DERIVATIVES.seconds_per_term), DERIVATIVES.most_terms)
    if not functions.derivatives or not functions.allows({"add", "mul"}) or count < 1:
        return
    few = DirectTable(
        table.X[: DERIVATIVES.rows], table.y[: DERIVATIVES.rows], table.weights[: DERIVATIVES.rows], table.unexplained
    )
    terms = library(few.X, functions.allows, numbers=replace(LIBRARY, most_terms=count))
    found: list[tuple[float, int, Node]] = []
    for m in range(len(terms)):
        if effort.out_of_time():
            break
        for column in used_columns(node := terms.node(m)):
            root = expand(Call(DERIVATIVE.name, (node, Variable(column))))
            if functions.allows({call.operator for call in calls(root)}):
                found.append((*_scaled(few, root, len(found)),))
    found.sort(key=lambda one: one[:2])
    for error, _, root in found[: DERIVATIVES.proposed]:
        if error < table.unexplained:
            yield root


def _scaled(table: DirectTable, root: Node, number: int) -> tuple[float, int, Node]:
    """Error of c + a times a formula, in spreads of the target, its number, and the formula with a and c."""
    with np.errstate(all="ignore"):
        values = table.values(root)
        weights = table.weights / table.weights.sum()
        v, y = values - weights @ values, table.y - weights @ table.y
        square = float(weights @ v**2)
    if not (np.isfinite(square) and square > 0):
        return np.inf, number, root
    a = float(weights @ (v * y)) / square
    c = float(weights @ (table.y - a * values))
    error = float(np.sqrt(weights @ (y - a * v) ** 2)) / table.spread
    return error, number, build("add", Constant(c), build("mul", Constant(a), root))
