"""Rows far from all others, and what the others say: outliers pull a fit by squares, and whoever is told of them wants to
know at once which formula is left without them.

Every formula of the front, and a line through the middle, is fitted by least absolute errors, which nearly half of the rows
cannot pull. The one that the middle of the rows follows best tells which rows lie far off. Then formulas of the front and
sums of columns are fitted to the other rows by squares, and the shortest description of these is told.

Legend: `N` rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, Variable, build, tree_complexity
from gmeql.formula.products import split_terms
from gmeql.model.member import free_constants
from gmeql.model.rules import stating_nats
from gmeql.network.families import FunctionSet
from gmeql.search.front.choosing import sums_of_columns
from gmeql.search.losses.converging import SQUARES, converged
from gmeql.search.sums.kind_sums import sums_of_kinds
from gmeql.search.losses.losses import LOSSES
from gmeql.search.polish.printable import with_known_digits
from gmeql.search.polish.scoring import length_in_nats
from gmeql.search.losses.robust import LINE_EXPLAINS, least_absolute_line, scale_of
from gmeql.search.judging.soundness import left_out_squares

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gmeql.model.weighing import CountedRows
    from gmeql.tables.read import Training


@dataclass(frozen=True)
class OutlierConfig:
    """From where on a row is an outlier."""

    far: float = 6.0
    """Robust standard deviations beyond which a row lies far from the formula: one normal row in 500 million does."""
    most_far: float = 0.4
    """A larger share of such rows is no share of outliers."""
    robust_share: float = 0.5
    """Outliers matter where the robust standard deviation is below this share of the RMSE."""
    looked_at: int = 2000
    """Rows by which formulas are fitted by absolute errors."""
    longest: int = 30
    """Complexity of formulas beyond which nobody wants to read them in a sentence."""
    rows_per_constant: int = 5
    """Other rows that each constant of what they say must have."""


OUTLIERS = OutlierConfig()
NORMAL_MEDIAN = 1.4826  # standard deviation over median absolute deviation, of a normal distribution


def rows_far_away(residuals: np.ndarray) -> np.ndarray:
    """Which residuals [N] are outliers; none where they are too many for that or do not matter, or most are equal.

    Centre and scale are those of the middle half, `s = 1.4826 median |r - median r|`, which outliers do not move: on one
    side of a fit they pull it towards themselves.
    """
    sizes = np.abs(residuals - np.median(residuals))
    scale = NORMAL_MEDIAN * float(np.median(sizes))
    if not 0 < scale < OUTLIERS.robust_share * math.sqrt(float(np.mean(sizes**2))):
        return np.zeros(len(residuals), bool)
    far = sizes > OUTLIERS.far * scale
    return far if far.sum() < OUTLIERS.most_far * len(residuals) else np.zeros(len(residuals), bool)


@dataclass(frozen=True)
class OtherRows:
    """What the rows say that do not lie far off."""

    expression: Expression
    error: float
    """Root of the mean squared error of these rows."""
    far: int
    """How many rows lie far from it."""
    rest: int
    """How many do not."""


@dataclass(frozen=True, eq=False)
class Outliers:
    """The rows of a table, formulas that were found for it, and what all rows but the outliers say: looked at once."""

    training: Training
    counted: CountedRows
    formulas: tuple[Expression, ...]

    def behind(self, residuals: np.ndarray) -> bool:
        """Whether a line through the middle of the rows tells outliers that the formula, with these residuals, was pulled
        to."""
        y, line = self.training.y, self._line
        if line is None or self.counted.by_the_loss or np.mean(y == np.median(y)) > OUTLIERS.most_far:
            return False
        around = y - line[0] - self.training.X @ line[1:]
        scale = scale_of(around, y)
        if not 0 < scale < LINE_EXPLAINS * scale_of(residuals, y):
            return False
        return 0 < int(np.sum(np.abs(around) > OUTLIERS.far * scale)) < OUTLIERS.most_far * len(y)

    @cached_property
    def others(self) -> OtherRows | None:
        """The formula that describes all rows but the outliers most briefly; None where there are none, or too many, or
        where groups have constants of their own."""
        nearest = None
        if self.training.groups is None:
            nearest = min(self._through_the_middle(), key=lambda found: found[0], default=None)
        rest = None if nearest is None else self._rest(nearest[1])
        if nearest is None or rest is None:
            return None
        best = self._briefest(nearest[1], *self._rows(rest))
        rest = None if best is None else self._rest(best)  # a better formula may tell better which rows lie far off
        if best is None or rest is None:
            return None
        X, y, weights = self._rows(rest)
        fitted, loss = converged(best, X, y, weights, SQUARES)
        expression = with_known_digits(Expression(fitted, tuple(self.training.names)), X, y, weights)
        return OtherRows(expression, math.sqrt(loss), int(np.sum(self.counted.given[~rest] > 0)), len(y))

    def _rest(self, root: Node) -> np.ndarray | None:
        """Which rows [N] count and do not lie far from a formula; None where none does."""
        far = rows_far_away((self.training.y - self._values(root, self.training.X)) * np.sqrt(self.counted.given))
        return ~far & (self.counted.given > 0) if far.any() else None

    def _rows(self, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        weights = self.counted.given[kept]
        return self.training.X[kept], self.training.y[kept], weights / weights.mean()

    def _briefest(self, nearest: Node, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Node | None:
        """The formula that describes rows without outliers most briefly, terms left out that only those had brought."""
        best, length = None, math.inf
        tries = list(self._candidates(nearest, X, y, weights))
        while tries:
            fitted = [(converged(root, X, y, weights, SQUARES)[0], nats) for root, nats in tries]
            lengths = [self._length(root, nats, X, y, weights) for root, nats in fitted]
            least = int(np.argmin(lengths))
            if not lengths[least] < length:
                break
            best, length = fitted[least][0], lengths[least]
            tries = [(root, None) for root in _without_a_term(best)]
        return best

    @cached_property
    def _line(self) -> np.ndarray | None:
        some = self._some
        return least_absolute_line(self.training.X[some], self.training.y[some], self.counted.given[some])

    @property
    def _some(self) -> slice:
        return slice(None, None, max(len(self.training.y) // OUTLIERS.looked_at, 1))

    def _values(self, root: Node, X: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(Expression(root, tuple(self.training.names))(X))

    @cached_property
    def _roots(self) -> list[Node]:
        """Formulas of the front that can be read."""
        return [each.root for each in self.formulas if tree_complexity(each.root) <= OUTLIERS.longest]

    def _through_the_middle(self) -> Iterable[tuple[float, Node]]:
        """Nats of formulas fitted by absolute errors, by the scale of the middle half of what they leave."""
        some = self._some
        X, y, weights = self.training.X[some], self.training.y[some], self.counted.given[some]
        roots = list(self._roots)
        if self._line is not None:
            terms = [build("mul", Constant(float(b)), Variable(k)) for k, b in enumerate(self._line[1:]) if b != 0.0]
            roots.append(build("add", *terms, Constant(float(self._line[0]))))
        for root in roots:
            fitted, mean = converged(root, X, y, weights, LOSSES["absolute"])
            scale = scale_of(y - self._values(fitted, X), y)
            if math.isfinite(mean) and scale > 0:
                yield self._nats(fitted, math.log(scale), len(y), None), fitted

    def _nats(self, root: Node, log_scale: float, rows: int, stated: float | None) -> float:
        fitted = int(free_constants(Expression(root, tuple(self.training.names))).sum())
        stated = stating_nats(root, self.training.X.shape[1]) if stated is None else stated
        return length_in_nats(2.0 * log_scale, fitted, 0, n_rows=rows) + stated

    def _candidates(
        self, nearest: Node, X: np.ndarray, y: np.ndarray, weights: np.ndarray
    ) -> Iterable[tuple[Node, float | None]]:
        """Formulas for the rows without outliers, with the nats that stating them takes, where these are known."""
        yield Constant(float(np.average(y, weights=weights))), None
        yield from ((root, None) for root in (nearest, *self._roots) if not isinstance(root, Constant))
        functions, most = FunctionSet(("add", "mul")), len(y) // OUTLIERS.rows_per_constant
        most = min(most, OUTLIERS.longest // 4)
        yield from ((root, None) for root in sums_of_columns(X, y, weights, functions)[:most])
        yield from ((s.root, s.nats) for s in sums_of_kinds(X, y, weights, most_columns=most, products=True))

    def _length(self, root: Node, stated: float | None, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
        with np.errstate(all="ignore"):
            mean = float(np.average(left_out_squares(root, X, y, weights), weights=weights))
        if not math.isfinite(mean):
            return math.inf
        return self._nats(root, 0.5 * math.log(max(mean, float(np.finfo(float).tiny))), len(y), stated)


def _without_a_term(root: Node) -> list[Node]:
    """A sum with each of its terms left out in turn, and one without a constant with one."""
    terms = [build("mul", Constant(factor), part) for factor, part in split_terms(root)]
    fewer = [build("add", *terms[:k], *terms[k + 1 :]) for k in range(len(terms)) if len(terms) > 1]
    has_constant = any(isinstance(term, Constant) for term in terms)
    return fewer if has_constant else [*fewer, build("add", *terms, Constant(0.1))]
