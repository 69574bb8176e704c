"""Rows far from all others, and which formula the others follow.

Outliers pull a fit by squares, and whoever is told of them wants to know at once which formula is left without them.

Every formula of the front, and a line through the middle, is fitted by least absolute errors, which up to half of the rows
cannot pull. The one that the middle half of the rows follows best tells which rows lie far off. Then formulas of the front and
sums of columns are fitted to the other rows by squares, and the shortest description of these rows is returned.

Legend: `N` rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gmeql.formula.constants import free_constants
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, Variable, build, tree_complexity
from gmeql.formula.products import split_terms
from gmeql.model.pareto.rules import stating_nats
from gmeql.model.rows.far_rows import FAR, are_gross, behind_gaps, grow_with_size, lie_alone, rows_far_away
from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.front.choosing import sums_of_columns
from gmeql.search.judging.soundness import left_out_squares
from gmeql.search.losses.converging import SQUARES, converged
from gmeql.search.losses.losses import LOSSES
from gmeql.search.losses.robust import LINE_EXPLAINS, least_absolute_line, scale_of
from gmeql.search.polish.printable import with_known_digits
from gmeql.search.polish.scoring import length_in_nats
from gmeql.search.sums.kind_sums import sums_of_kinds
from gmeql.search.sums.textbook import textbook_curves

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class OutlierConfig:
    """What is looked at beside rows far off."""

    looked_at: int = 2000
    """Rows by which formulas are fitted by absolute errors."""
    longest: int = 30
    """Complexity of formulas beyond which nobody wants to read them in a sentence."""
    rows_per_constant: int = 5
    """Other rows that each constant of what they say must have."""
    curved: int = 2
    """Columns over which curves of text-books are fitted to the other rows, those that correlate most."""
    seconds: float = 0.4
    """Of one core, for pairs of small formulas that the other rows may follow."""
    shortened: int = 2
    """Formulas, the first, that are looked at without one of their terms too: it may be there for one row far off."""
    in_any_case: int = 3
    """Formulas that are fitted however short the time is."""


OUTLIERS = OutlierConfig()
_Try = tuple[Node, float | None]
"""A formula, and the nats that stating it takes where these are known."""


@dataclass(frozen=True, eq=False)
class OtherRows:
    """What the rows say that do not lie far off."""

    expression: Expression
    error: float
    """Root of the mean squared error of these rows."""
    far: int
    """How many rows lie far from it."""
    rest: int
    """How many do not."""
    kept: np.ndarray
    """[N], which these are."""
    gross: bool
    """Whether the rows far off lie further away than a heavy tail of the errors reaches (`far_rows.py`)."""


@dataclass(frozen=True, eq=False)
class Outliers:
    """The rows of a table, formulas that were found for it, and what all rows but the outliers say: looked at once."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    """[N], of mean one: those that the user gave."""
    formulas: tuple[Expression, ...]
    names: tuple[str, ...]
    by_group: bool = False
    """Whether groups have constants of their own, so that no one formula tells what the others follow."""
    functions: FunctionSet = field(default_factory=FunctionSet)
    """Functions that formulas may be made of."""
    effort: Effort = field(default_factory=lambda: Effort(math.inf))
    """How long may be looked: what was fitted until then counts, the line through the middle and the simplest in any case."""

    def behind(self, residuals: np.ndarray) -> bool:
        """Whether a line through the middle of the rows tells outliers that the formula, with these residuals, was pulled
        to."""
        y, line = self.y, self._line
        if line is None or np.mean(y == np.median(y)) > FAR.most_far:
            return False
        around = y - line[0] - self.X @ line[1:]
        scale = scale_of(around, y)
        if not 0 < scale < LINE_EXPLAINS * scale_of(residuals, y):
            return False
        return 0 < int(np.sum(np.abs(around) > FAR.far * scale)) < FAR.most_far * len(y)

    @cached_property
    def seen_at_once(self) -> np.ndarray | None:
        """Which rows [N] are none of those that lie far off, each by itself and behind a gap or further than any tail of errors
        reaches, by no more than the formulas and the line; None where none lies so."""
        nearest = min(self._through_the_middle(), key=lambda each: each[0], default=None)
        rest = None if nearest is None else self._rest(nearest[1])
        if nearest is None or rest is None:
            return None
        numbers = np.flatnonzero(self.weights > 0)
        X, far = self.X[numbers], ~rest[numbers]
        predicted = self._values(nearest[1], X)
        residuals = (self.y[numbers] - predicted) * np.sqrt(self.weights[numbers])
        if grow_with_size(predicted, self.y[numbers], residuals, far):
            return None
        thinkable = [*([far] if are_gross(residuals, far) else []), *behind_gaps(residuals, far)]
        alone = next((each for each in thinkable if lie_alone(X, residuals, each)), None)
        return None if alone is None else np.isin(np.arange(len(self.y)), numbers[~alone])

    @cached_property
    def others(self) -> OtherRows | None:
        """The formula that describes all rows but the outliers most briefly; None where there are none, or too many, or
        where groups have constants of their own."""
        found = () if self.by_group else self._through_the_middle()
        nearest = min(found, key=lambda each: each[0], default=None)
        rest = None if nearest is None else self._rest(nearest[1])
        if nearest is None or rest is None:
            return None
        best = self._briefest(nearest[1], *self._rows(self._few(rest)))
        rest = None if best is None else self._rest(best)  # a better formula may tell better which rows lie far off
        if best is None or rest is None:
            return None
        X, y, weights = self._rows(rest)
        fitted, loss = converged(best, X, y, weights, SQUARES)
        expression = with_known_digits(Expression(fitted, self.names), X, y, weights)
        far = ~rest[self.weights > 0]
        residuals = ((self.y - self._values(expression.root, self.X)) * np.sqrt(self.weights))[self.weights > 0]
        return OtherRows(expression, math.sqrt(loss), int(far.sum()), len(y), rest, are_gross(residuals, far))

    def _rest(self, root: Node) -> np.ndarray | None:
        """Which rows [N] count and do not lie far from a formula; None where none does."""
        far = rows_far_away((self.y - self._values(root, self.X)) * np.sqrt(self.weights))
        return ~far & (self.weights > 0) if far.any() else None

    def _few(self, kept: np.ndarray) -> np.ndarray:
        """As many of the kept rows as formulas are looked at by."""
        numbers = np.flatnonzero(kept)
        return numbers[:: max(len(numbers) // OUTLIERS.looked_at, 1)]

    def _rows(self, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        weights = self.weights[kept]
        return self.X[kept], self.y[kept], weights / weights.mean()

    def _briefest(self, nearest: Node, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Node | None:
        """The formula that describes rows without outliers most briefly, terms left out that only those had brought."""
        best, length = None, math.inf
        tries = self._candidates(nearest, X, y, weights)
        while True:
            fitted = [(converged(root, X, y, weights, SQUARES)[0], nats) for root, nats in self._in_time(tries)]
            lengths = [self._length(root, nats, X, y, weights) for root, nats in fitted]
            least = int(np.argmin(lengths)) if lengths else -1
            if not lengths or not lengths[least] < length:
                return best
            best, length = fitted[least][0], lengths[least]
            tries = ((root, None) for root in _without_a_term(best))

    def _in_time(self, tries: Iterable[_Try]) -> Iterable[_Try]:
        """The first few, and the others as long as there is time."""
        for place, each in enumerate(tries):
            if place >= OUTLIERS.in_any_case and self.effort.out_of_time():
                return
            yield each

    @cached_property
    def _line(self) -> np.ndarray | None:
        some = self._some
        return least_absolute_line(self.X[some], self.y[some], self.weights[some])

    @property
    def _some(self) -> slice:
        return slice(None, None, max(len(self.y) // OUTLIERS.looked_at, 1))

    def _values(self, root: Node, X: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(Expression(root, self.names)(X))

    @cached_property
    def _roots(self) -> list[Node]:
        """Formulas of the front that can be read."""
        return [each.root for each in self.formulas if tree_complexity(each.root) <= OUTLIERS.longest]

    def _through_the_middle(self) -> Iterable[tuple[float, Node]]:
        """Nats of formulas fitted by absolute errors, by the scale of the middle half of what they leave."""
        some = self._some
        X, y, weights = self.X[some], self.y[some], self.weights[some]
        shorter = [root for first in self._roots[: OUTLIERS.shortened] for root in _without_a_term(first)]
        roots: list[_Try] = [(root, None) for root in dict.fromkeys([*self._roots, *shorter])]
        if self._line is not None:
            terms = [build("mul", Constant(float(b)), Variable(k)) for k, b in enumerate(self._line[1:]) if b != 0.0]
            roots.insert(0, (build("add", *terms, Constant(float(self._line[0]))), None))
        for root, _ in self._in_time(roots):
            fitted, mean = converged(root, X, y, weights, LOSSES["absolute"])
            scale = scale_of(y - self._values(fitted, X), y)
            if math.isfinite(mean) and scale > 0:
                yield self._nats(fitted, math.log(scale), len(y), None), fitted

    def _nats(self, root: Node, log_scale: float, rows: int, stated: float | None) -> float:
        fitted = int(free_constants(Expression(root, self.names)).sum())
        stated = stating_nats(root, self.X.shape[1]) if stated is None else stated
        return length_in_nats(2.0 * log_scale, fitted, 0, n_rows=rows) + stated

    def _candidates(self, nearest: Node, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Iterable[_Try]:
        """Formulas for the rows without outliers, with the nats that stating them takes, where these are known."""
        yield Constant(float(np.average(y, weights=weights))), None
        yield from ((root, None) for root in (nearest, *self._roots) if not isinstance(root, Constant))
        functions = self.functions
        most = min(len(y) // OUTLIERS.rows_per_constant, OUTLIERS.longest // 4)
        if functions.allows({"add", "mul"}):
            yield from ((root, None) for root in sums_of_columns(X, y, weights, functions)[:most])
            yield from ((s.root, s.nats) for s in sums_of_kinds(X, y, weights, most_columns=most, products=True))
        leading, more = _leading_columns(X, y)
        curves = textbook_curves(np.where(leading, X, 0.0), y, weights, functions)
        yield from ((curve.root, curve.nats + more) for curve in curves)
        effort = replace(self.effort, seconds=min(OUTLIERS.seconds, self.effort.seconds))
        from gmeql.search.direct.middle import pairs  # brings Numba, half of the import of the estimator

        table = DirectTable(X, y, weights)
        found = pairs.propose(table, functions=functions, effort=effort, rng=np.random.default_rng(0))
        yield from ((root, None) for root in found if tree_complexity(root) <= OUTLIERS.longest)

    def _length(self, root: Node, stated: float | None, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
        with np.errstate(all="ignore"):
            mean = float(np.average(left_out_squares(root, X, y, weights), weights=weights))
        if not math.isfinite(mean) or not np.isfinite(self._values(root, self.X[self.weights > 0])).all():
            return math.inf  # no row lies far from a formula that has no value there
        return self._nats(root, 0.5 * math.log(max(mean, float(np.finfo(float).tiny))), len(y), stated)


def _leading_columns(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Which columns [V] correlate most with the target, and the nats that this choice is worth."""
    centred = X - X.mean(axis=0)
    sizes = np.sqrt(np.sum(centred**2, axis=0))
    correlation = np.abs(centred.T @ (y - y.mean())) / np.where(sizes > 0, sizes, np.inf)
    few = np.argsort(-correlation, kind="stable")[: OUTLIERS.curved]
    return np.isin(np.arange(X.shape[1]), few), math.log(X.shape[1] / len(few))


def _without_a_term(root: Node) -> list[Node]:
    """A sum with each of its terms left out in turn, and one without a constant with one."""
    terms = [build("mul", Constant(factor), part) for factor, part in split_terms(root)]
    fewer = [build("add", *terms[:k], *terms[k + 1 :]) for k in range(len(terms)) if len(terms) > 1]
    has_constant = any(isinstance(term, Constant) for term in terms)
    return fewer if has_constant else [*fewer, build("add", *terms, Constant(0.1))]
