"""The data of one search, and which rows are seen by whom.

Candidates are fitted on few rows, formulas are cut to shape on more, and the front is judged on all in the end. Rows are
taken in one random order, so that fewer rows are always the first of more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node
from gmeql.knowledge.knowledge import Knowledge
from gmeql.knowledge.of_groups import GroupsKnowledge
from gmeql.search.config import SearchConfig
from gmeql.search.losses.effective import InputErrors
from gmeql.search.groups.config import GROUPS
from gmeql.search.groups.table import Grouping
from gmeql.search.polish.scoring import JudgedRows
from gmeql.search.losses.losses import find_loss, is_reweighed, working
from gmeql.search.losses.robust import LINE_EXPLAINS, WEIGHTS, least_absolute_line, scale_of
from gmeql.search.judging.between import points_between

FloatArray = NDArray[np.float64]
LARGEST_TARGET = 1e150
"""Size of a target, by its weight, up to which losses are numbers, and one over the least."""


@dataclass(frozen=True, eq=False)
class SearchRows:
    """X [N, V], y [N] and weights [N] of mean 1, and how many of the rows candidates are fitted on.

    `y` and `weights` differ from the given ones under a loss that is not the squared error. A new value is
    made where rows or weights change.
    """

    config: SearchConfig
    names: tuple[str, ...]
    X: FloatArray
    y: FloatArray
    given_y: FloatArray
    given_weights: FloatArray
    weights: FloatArray
    order: NDArray[np.int64]
    n_fitted: int
    n_judged: int
    """Rows that formulas are cut to shape on, and that the front is ranked by: few while the search goes on, then all."""
    groups: Grouping | None = None
    """Which group each row belongs to, where groups have constants of their own."""
    first_own: int | None = None
    """Where such constants stand as columns behind those of the table, the first of them."""
    errors: InputErrors | None = None
    """Errors of the columns, where they were measured with some."""
    knowledge: Knowledge | None = None
    """What the user knows, asked of every group where own constants stand as columns."""

    @classmethod
    def of(
        cls,
        X: FloatArray,
        y: FloatArray,
        *,
        sample_weight: FloatArray | None = None,
        names: tuple[str, ...] | None = None,
        config: SearchConfig,
        seed: int = 0,
        groups: Grouping | None = None,
        errors: InputErrors | None = None,
    ) -> SearchRows:
        """A table as a search first sees it; names default to x1, x2, ..."""
        X = np.ascontiguousarray(X, dtype=float)
        y = np.ascontiguousarray(y, dtype=float)
        if X.ndim != 2 or y.shape != (len(X),) or len(y) == 0:
            raise ValueError(f"X must be [rows, columns] and y [rows], got {X.shape} and {y.shape}")
        if not np.isfinite(X).all() or not np.isfinite(y).all():
            raise ValueError("X and y must be finite; drop or fill missing values first")
        names = tuple(names) if names is not None else tuple(f"x{i + 1}" for i in range(X.shape[1]))
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
        weights = weights / weights.mean()
        largest = float((np.sqrt(weights) * np.abs(y)).max())
        if largest > LARGEST_TARGET or 0 < largest < 1.0 / LARGEST_TARGET:
            raise ValueError(
                f"y reaches {largest:.3g}, and losses are squares, which no number holds beyond {LARGEST_TARGET:g} or below "
                f"{1 / LARGEST_TARGET:g}; divide y by a power of ten, as GMEQLRegressor does by itself"
            )
        # a generator of its own: the search's draws are the same whatever is drawn here
        order = np.random.default_rng(seed + 1).permutation(len(y))
        n_fitted, n_judged = min(config.search_rows, len(y)), min(config.polish_rows, len(y))
        if groups is not None:
            order, n_fitted = _order_of_groups(order, groups.codes, n_fitted)
            n_judged = len(y)
        rows = cls(config, names, X, y, y, weights, weights, order, n_fitted, n_judged, groups)
        rows = replace(rows, errors=errors, knowledge=config.knowledge)
        loss = find_loss(config.loss)
        if not loss.domain(y):
            raise ValueError(f"loss={config.loss!r} needs a target that is {loss.needs}")
        if config.loss in WEIGHTS and (line := rows._line()) is not None:
            return rows._around(line, explained=True, least=config.least_reweighing)
        return rows.reweighted(Constant(float(np.median(y)) if loss.link is None else 0.0))

    @property
    def judged_y(self) -> FloatArray:
        """What formulas are judged by [N]: the target as given, or the classes that its chances stand for."""
        return (self.given_y > 0.5).astype(np.float64) if self.config.has_classes else self.given_y

    @property
    def is_reweighed(self) -> bool:
        """Whether rows weigh by the formula found so far."""
        return self.errors is not None or is_reweighed(self.config.loss)

    @property
    def n_variables(self) -> int:
        """Columns of X."""
        return int(self.X.shape[1])

    @property
    def fitted(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """X, y and weights of the rows that candidates are fitted on."""
        rows = self.order[: self.n_fitted]
        return self.X[rows], self.y[rows], self.weights[rows]

    @property
    def fitted_groups(self) -> NDArray[np.int64] | None:
        """Group numbers of the same rows."""
        return None if self.groups is None else self.groups.codes[self.order[: self.n_fitted]]

    def extended(self, own: FloatArray | None) -> SearchRows:
        """The rows as a formula with own constants [G, K] sees them: each row's are columns behind the table's."""
        if own is None or self.groups is None:
            return self
        names = (*self.names, *(f"k{k + 1}" for k in range(own.shape[1])))
        known, X = self.config.knowledge, np.hstack([self.X, own[self.groups.codes]])
        asked = None if known is None else GroupsKnowledge.of(known, self.n_variables, own)
        return replace(self, X=X, names=names, first_own=self.n_variables, knowledge=asked)

    @cached_property
    def polished(self) -> JudgedRows:
        """Rows that formulas are cut to shape on, and that the front is ranked by."""
        return self._first(self.n_judged)

    @cached_property
    def between(self) -> FloatArray:
        """Rows that could have been, [S, V], between those that formulas are cut to shape on."""
        if self.first_own is not None:
            return np.empty((0, self.n_variables))  # a row between two groups belongs to none
        rng = np.random.default_rng(self.config.front.points_seed)
        rows = self.order[: self.config.polish_rows]
        return points_between(self.X[rows], rng, self.config.front.points_between)

    @cached_property
    def light(self) -> JudgedRows:
        """Rows that a first few cuts are judged on."""
        return self._first(self.config.search_rows) if self.groups is None else self.polished

    @property
    def is_sampled(self) -> bool:
        """Whether there are more rows than the front is ranked by."""
        return len(self.y) > self.n_judged

    def whole(self) -> SearchRows:
        """The same with the front ranked by every row, as it is in the end."""
        return replace(self, n_judged=len(self.y)) if self.is_sampled else self

    def grown(self) -> SearchRows:
        """More rows for candidates, as long as there are some."""
        most = min(len(self.y), self.config.max_search_rows)
        if self.n_fitted >= most:
            return self
        return replace(self, n_fitted=min(self.config.row_growth * self.n_fitted, most))

    def reweighted(self, closest: Node, own: FloatArray | None = None, *, least: float | None = None) -> SearchRows:
        """Target and weights that stand for the loss around a formula; the same rows where they hardly change.

        `own` [G, K] are its groups' own constants, where it has some. `least` is the mean change that counts,
        `config.least_reweighing` where it is None.
        """
        if not self.is_reweighed:
            return self
        with np.errstate(all="ignore"):
            seen = self.extended(own)
            values = Expression(closest, seen.names)(seen.X)
        shares = None if self.errors is None else self.errors.shares(closest, seen.X)
        least = self.config.least_reweighing if least is None else least
        return self._around(values, shares, explained=not isinstance(closest, Constant), least=least)

    def _around(
        self, values: FloatArray, shares: FloatArray | None = None, *, explained: bool, least: float
    ) -> SearchRows:
        """Target and weights, times `shares`, that stand for the loss around `values` [N]; the same rows where they change
        by no more than `least`."""
        with np.errstate(all="ignore"):
            y, weights = working(self.config.loss, values, self.given_y, explained=explained)
        if shares is not None:
            weights = weights * shares
        weights = self.given_weights * weights
        weights = weights / weights.mean()
        changed = float(np.mean(np.abs(weights - self.weights)))
        return self if changed < least else replace(self, y=y, weights=weights)

    def _line(self) -> FloatArray | None:
        """Values [N] of the sum of columns that outliers do not move, where it explains much; else None.

        Weights around the middle of the target alone never let go of a third of the rows on one side.
        """
        rows = self.order[: self.n_judged]
        line = least_absolute_line(self.X[rows], self.y[rows], self.given_weights[rows])
        if line is None:
            return None
        values = line[0] + self.X @ line[1:]
        left, whole = (scale_of(self.y - f, self.y) for f in (values, float(np.median(self.y))))
        return values if left < LINE_EXPLAINS * whole else None

    def _first(self, n: int) -> JudgedRows:
        """The first `n` rows of the order, to judge formulas on."""
        rows = self.order[:n]
        groups: dict[str, Any] = {}
        if self.groups is not None:
            own: dict[str, Any] = {"groups": self.groups.codes[rows]}
            groups = own if self.first_own is None else {"first_own": self.first_own}
            groups |= {"n_groups": len(self.groups.labels)}
        data = self.X[rows], self.y[rows], self.weights[rows]
        return JudgedRows.of(*data, self.names, self.config.n_threads, self.knowledge, **groups)


def _order_of_groups(
    order: NDArray[np.int64], groups: NDArray[np.int64], n_fitted: int
) -> tuple[NDArray[np.int64], int]:
    """Rows in turns, one of each of the largest groups, then those of the others; and how many to fit candidates on."""
    sizes = np.bincount(groups)
    leading = np.argsort(-sizes, kind="stable")[: GROUPS.searched]
    codes = groups[order]
    by_group = np.argsort(codes, kind="stable")
    turn = np.empty(len(codes), np.int64)
    turn[by_group] = np.arange(len(codes)) - np.searchsorted(codes[by_group], codes[by_group])
    late = ~np.isin(codes, leading)
    each = max(GROUPS.rows_each, n_fitted // len(leading))
    n_fitted = int((~late & (turn < each)).sum())
    return order[np.lexsort((turn, late))], n_fitted
