"""The formula that outliers do not move, as the choice where squared errors have nothing against it.

A few rows far off make most of the sum of squares. Formulas that give way to them, or fall short so as to state less,
lose hardly anything by it, and a line through the others is passed over for `0.378*x**2`. Squared errors ask for the mean.
Errors to both sides average out, so that the formula of the other rows (`outliers.py`) is that mean, and far better known
from them. Errors to one side raise the mean; then the level is that of all rows, and all else follows the others.

Skewed errors are no outliers: in costs or incomes the few large ones are what the mean is made of. So the formula is
chosen only where the other rows lie to both sides of it alike, where the rows far off are no large factors, and where
its squared errors over all rows are not above those of the formula chosen so far.

Legend: `N` rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.constants import free_constants
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, build
from gmeql.formula.products import split_terms
from gmeql.model.evidence import left_out_errors
from gmeql.model.front import Front
from gmeql.model.member import FrontMember
from gmeql.model.far_rows import varies_by_factors
from gmeql.model.outliers import OtherRows, Outliers
from gmeql.network.families import FunctionSet
from gmeql.search.config import SearchConfig
from gmeql.search.direct.table import Effort, worked
from gmeql.search.judging.outlook import freedom_factor, mean_and_error, outlooks
from gmeql.search.polish.printable import with_known_digits

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class UnmovedConfig:
    """From where on errors have a side."""

    least_rows: int = 30
    """Rows below which nothing is told about sides."""
    largest: float = 1e100
    """Values from which on squares come near the end of the numbers."""
    most_rows: int = 20_000
    """Beyond so many rows the mean is well known, outliers or not."""
    one_sided: float = 2.0
    """Standard errors of the mean residual, or of the share of other rows above the formula, that count as a side."""
    skewed: float = 1.0
    """The same of both where they have opposite signs: most rows below a formula and the mean above it is a skewed error."""
    worse: float = 1.0
    """Standard errors of the paired difference by which squared errors over all rows may lie above those of the formula
    chosen so far."""


UNMOVED = UnmovedConfig()


def with_unmoved(
    front: Front, X: FloatArray, y: FloatArray, weights: FloatArray | None, *, config: SearchConfig
) -> Front:
    """The front with the formula that outliers do not move, where there are some and it is to be chosen.

    The same front where the user knows of the form, or asked for another loss than squares.
    """
    best = front.select("best")
    seconds = config.outlier_seconds
    if not seconds > 0 or not front.has_outlooks or best.loss <= front.exact_level:
        return front
    if not UNMOVED.least_rows <= len(y) <= UNMOVED.most_rows:
        return front
    sizes = [float(np.abs(values).max()) for values in (X, y)]
    if not 1 / UNMOVED.largest < sizes[1] or not max(sizes) < UNMOVED.largest:
        return front
    weights = np.ones(len(y)) if weights is None else weights / weights.mean()
    names = best.expression.names
    effort = Effort(math.inf) if math.isinf(seconds) else Effort.timed(seconds, until=worked() + seconds)
    functions = FunctionSet(config.functions)
    formulas = tuple(member.expression for member in front)
    others = Outliers(X, y, weights, formulas, names, functions=functions, effort=effort).others
    found = None if others is None else _of_all_rows(others, best, X, y, weights)
    if others is None or found is None or found[0].complexity > config.max_complexity:
        return front
    expression, levelled = found
    with np.errstate(all="ignore"):
        loss = math.sqrt(float(np.average((expression(X) - y) ** 2, weights=weights)))
    if not loss < front[0].loss:
        return front
    known = [member.expression.root for member in front]
    (outlook,) = outlooks([expression.root], X, y, weights, rivals=known)
    outlook = replace(outlook, outliers=others.far, levelled=levelled)
    joined = front.joined(FrontMember(expression, loss, expression.complexity, 0.0, -1, outlook))
    rest = X[others.kept], y[others.kept], weights[others.kept]
    return replace(joined, members=tuple(_with_rest_loss(member, *rest) for member in joined))


def _with_rest_loss(member: FrontMember, X: FloatArray, y: FloatArray, weights: FloatArray) -> FrontMember:
    """The member with its error over the rows that are no outliers."""
    assert member.outlook is not None
    with np.errstate(all="ignore"):
        rest = math.sqrt(float(np.average((member.expression(X) - y) ** 2, weights=weights)))
    return replace(member, outlook=replace(member.outlook, rest_loss=rest if math.isfinite(rest) else None))


def _of_all_rows(
    others: OtherRows, best: FrontMember, X: FloatArray, y: FloatArray, weights: FloatArray
) -> tuple[Expression, bool] | None:
    """What the other rows say as a formula of all, and whether its level is that of all; None where it is none."""
    expression = others.expression
    with np.errstate(all="ignore"):
        residuals = y - expression(X)
    if not np.isfinite(residuals).all() or varies_by_factors(y - residuals, y, ~others.kept):
        return None
    rest = residuals[others.kept]
    side = (2.0 * float(np.mean(rest > 0)) - 1.0) * math.sqrt(len(rest))
    mean, error = mean_and_error(residuals, weights)
    is_skewed = side * mean < 0 and min(abs(side), abs(mean) / error) > UNMOVED.skewed
    if is_skewed or abs(side) > UNMOVED.one_sided:
        return None
    levelled = not expression.variables or abs(mean) > UNMOVED.one_sided * error
    if levelled:
        expression = _raised(expression, mean, X, y, weights)
        with np.errstate(all="ignore"):
            residuals = y - expression(X)
    fitted = int(free_constants(expression).sum())
    squares = residuals**2 * freedom_factor(fitted, len(rest))
    difference, error = mean_and_error(squares - left_out_errors(best, X, y, weights), weights)
    return (expression, levelled) if difference <= UNMOVED.worse * error else None


def _raised(expression: Expression, by: float, X: FloatArray, y: FloatArray, weights: FloatArray) -> Expression:
    """A formula with another level, in the form that it has."""
    terms = split_terms(expression.root)
    level = by + sum(factor * part.value for factor, part in terms if isinstance(part, Constant))
    kept = [build("mul", Constant(factor), part) for factor, part in terms if not isinstance(part, Constant)]
    root = build("add", *kept, Constant(level)) if kept else Constant(level)
    return with_known_digits(Expression(root, expression.names), X, y, weights)
