"""The formula that outliers do not move, chosen if squared errors have nothing against it.

A few rows far off make up most of the sum of squares. Formulas that give way to them, or fall short in order to state less,
lose hardly anything by it: a line through the other rows loses to `0.378*x**2`. Squared errors ask for the mean. If errors go
to both sides they average out, so the formula of the other rows (`outliers.py`) *is* that mean, and far better known. If they
go to one side they raise the mean; then the level is that of all rows, and everything else follows the other rows.

Skewed errors are not outliers: in costs or incomes the few large ones are what the mean is made of. So the formula is chosen
only if

- the other rows lie to both sides of it alike,
- the rows far off are not large factors, nor errors that grow with the prediction,
- its squared errors over all rows are not above those of the formula chosen so far,
- it describes all rows more briefly, with the rows far off named one by one and stated as numbers anywhere in the target's
  range: among few rows some can always be left out so that the others follow a line.

Rows further off than any tail reaches (`far_rows.py`) are outliers beside skewed errors too. Then the level is that of all
rows, and squared errors may lie further above, since that is what such rows have against the formula.

Legend: `N` rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.constants import free_constants
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, build
from gmeql.formula.products import split_terms
from gmeql.model.choice.evidence import left_out_errors
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.model.pareto.rules import stating_nats
from gmeql.model.rows.far_rows import grow_with_size
from gmeql.model.rows.outliers import OtherRows, Outliers
from gmeql.network.families import FunctionSet
from gmeql.search.config import SearchConfig
from gmeql.search.direct.table import Effort, worked
from gmeql.search.judging.outlook import freedom_factor, mean_and_error, outlooks
from gmeql.search.polish.printable import with_known_digits
from gmeql.search.polish.scoring import length_in_nats

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class UnmovedConfig:
    """From where on errors have a side."""

    least_rows: int = 12
    """Rows below which nothing is told about sides."""
    briefer: float = 12.0
    """Nats by which a formula with the rows far off named must describe all rows more briefly than the one chosen so far. Of
    264 simulated tables of 12 to 25 rows those that it made worse lay below that, but for three."""
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
    worse_gross: float = 2.0
    """... and the same where rows are further off than any tail reaches: `k` of them to one side make it the root of `k`."""
    leaves: float = 2.0
    """Multiple of its error on the rows that it may promise on others: beyond that it has a pole beside them, or leaves their
    range."""


UNMOVED = UnmovedConfig()


def with_unmoved(
    front: Front,
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray | None,
    *,
    config: SearchConfig,
    aside: Sequence[Expression] = (),
) -> Front:
    """The front with the formula that outliers do not move, where there are some and it is to be chosen.

    `aside` are formulas that were searched for without them (`without_outliers.py`), the best first. The same front where the
    user knows of the form, or asked for another loss than squares.
    """
    best = front.select("best")
    seconds = config.outlier_seconds
    if not seconds > 0 or not front.has_outlooks or best.loss <= front.exact_level:
        return front
    if not is_asked(X, y):
        return front
    weights = np.ones(len(y)) if weights is None else weights / weights.mean()
    names = best.expression.names
    effort = Effort(math.inf) if math.isinf(seconds) else Effort.timed(seconds, until=worked() + seconds)
    functions = FunctionSet(config.functions)
    formulas = (*aside, *(member.expression for member in sorted(front, key=front.description_length)))
    others = Outliers(X, y, weights, formulas, names, functions=functions, effort=effort).others
    if others is None or _shortening(others, front, best, y) < UNMOVED.briefer:
        return front
    found = _of_all_rows(others, best, X, y, weights)
    if found is None or found[0].complexity > config.max_complexity:
        return front
    expression, levelled = found
    with np.errstate(all="ignore"):
        loss = math.sqrt(float(np.average((expression(X) - y) ** 2, weights=weights)))
    if not loss < front[0].loss and not (others.gross and expression.variables):
        return front
    known = [member.expression.root for member in front]
    (outlook,) = outlooks([expression.root], X, y, weights, rivals=known)
    if outlook.doubtful_pole or not outlook.left_out < UNMOVED.leaves * loss:
        return front
    outlook = replace(outlook, outliers=others.far, levelled=levelled, searched_without=bool(aside))
    joined = front.joined(FrontMember(expression, loss, expression.complexity, 0.0, -1, outlook))
    rest = X[others.kept], y[others.kept], weights[others.kept]
    return replace(joined, members=tuple(_with_rest_loss(member, *rest) for member in joined))


def is_asked(X: FloatArray, y: FloatArray) -> bool:
    """Whether outliers of a table are looked for: of few rows nothing is told, of very many they do not matter, and values must
    have squares."""
    if not UNMOVED.least_rows <= len(y) <= UNMOVED.most_rows:
        return False
    sizes = [float(np.abs(values).max()) for values in (X, y)]
    return 1 / UNMOVED.largest < sizes[1] and max(sizes) < UNMOVED.largest


def _with_rest_loss(member: FrontMember, X: FloatArray, y: FloatArray, weights: FloatArray) -> FrontMember:
    """The member with its error over the rows that are no outliers."""
    assert member.outlook is not None
    with np.errstate(all="ignore"):
        rest = math.sqrt(float(np.average((member.expression(X) - y) ** 2, weights=weights)))
    return replace(member, outlook=replace(member.outlook, rest_loss=rest if math.isfinite(rest) else None))


def _shortening(others: OtherRows, front: Front, best: FrontMember, y: FloatArray) -> float:
    """Nats that the other rows' formula saves, with the rows far off named and told within the target's range, beside the
    formula chosen so far.

    Each row that follows a formula takes `log σ + 1/2 log 2πe`, each other one `log range`, and naming `k` of `N` rows
    `log C(N, k)`.
    """
    expression, n_rows = others.expression, len(y)
    fitted = int(free_constants(expression).sum())
    if not others.error > 0 or fitted >= others.rest:
        return math.inf if fitted < others.rest else -math.inf
    unseen = others.error * math.sqrt(freedom_factor(fitted, others.rest))
    length = others.rest * math.log(unseen) - fitted + length_in_nats(0.0, fitted, 0, n_rows=n_rows)
    length += stating_nats(expression.root, len(expression.names))
    named = math.lgamma(n_rows + 1) - math.lgamma(others.far + 1) - math.lgamma(n_rows - others.far + 1)
    told = others.far * (math.log(float(np.ptp(y))) - 0.5 * math.log(2.0 * math.pi * math.e))
    return front.description_length(best) - length - named - told


def _of_all_rows(
    others: OtherRows, best: FrontMember, X: FloatArray, y: FloatArray, weights: FloatArray
) -> tuple[Expression, bool] | None:
    """What the other rows say as a formula of all, and whether its level is that of all; None where it is none."""
    expression = others.expression
    with np.errstate(all="ignore"):
        residuals = y - expression(X)
    if not np.isfinite(residuals).all():
        return None
    if grow_with_size(y - residuals, y, residuals * np.sqrt(weights), ~others.kept):
        return None
    rest = residuals[others.kept]
    side = (2.0 * float(np.mean(rest > 0)) - 1.0) * math.sqrt(len(rest))
    mean, error = mean_and_error(residuals, weights)
    is_skewed = abs(side) > UNMOVED.one_sided
    if not others.gross:  # what lies far off may be a tail, by which a skewed error is told from its other side
        is_skewed |= side * mean < 0 and min(abs(side), abs(mean) / error) > UNMOVED.skewed
        if is_skewed:
            return None
    levelled = is_skewed or not expression.variables or abs(mean) > UNMOVED.one_sided * error
    if levelled:
        expression = _raised(expression, mean, X, y, weights)
        with np.errstate(all="ignore"):
            residuals = y - expression(X)
    fitted = int(free_constants(expression).sum())
    squares = residuals**2 * freedom_factor(fitted, len(rest))
    difference, error = mean_and_error(squares - left_out_errors(best, X, y, weights), weights)
    most = UNMOVED.worse_gross if others.gross else UNMOVED.worse
    return (expression, levelled) if difference <= most * error else None


def _raised(expression: Expression, by: float, X: FloatArray, y: FloatArray, weights: FloatArray) -> Expression:
    """A formula with another level, in the form that it has."""
    terms = split_terms(expression.root)
    level = by + sum(factor * part.value for factor, part in terms if isinstance(part, Constant))
    kept = [build("mul", Constant(factor), part) for factor, part in terms if not isinstance(part, Constant)]
    root = build("add", *kept, Constant(level)) if kept else Constant(level)
    return with_known_digits(Expression(root, expression.names), X, y, weights)
