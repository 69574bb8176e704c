"""What an estimator does with groups: rows extended by their group's own constants, new groups fitted from few rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from gmeql.estimator.formulas import Formulas
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, leaves
from gmeql.model.fit.inputs import check_rows, column_names, input_errors, split_groups, weight_of_errors
from gmeql.model.fit.ranges import RangeWarning, rows_are_held_out, rows_outside
from gmeql.model.targets import as_list, one_or_list
from gmeql.search.groups.joint import GroupedTable, fit_jointly
from gmeql.search.groups.table import OwnConstants, group_labels, own_columns, with_own_columns

FloatArray = NDArray[np.float64]


class Groups(Formulas):
    """Formulas whose constants are shared by all groups of rows, or each group's own."""

    def _own(self) -> list[OwnConstants] | None:
        """For each target the groups' own constants; None where `fit` had no groups."""
        tables = getattr(self, "group_constants_", None)
        return None if tables is None else as_list(tables)

    def _without_group_column(self, X: Any, groups: Any) -> tuple[Any, Any]:
        """The table without the column of its groups, and the label of each row (None where the fit had no groups)."""
        own = self._own()
        if own is None:
            if groups is not None:
                raise ValueError("groups were given, but the model was fitted without; leave them out")
            return X, None
        column = own[0].column
        if groups is None and column in list(getattr(X, "columns", [])):
            groups = column
        if groups is None:
            raise ValueError(
                f"the model has constants of each {column}'s own: give groups=, a label for each row"
                f" (or a data frame with the column {column!r})"
            )
        X, groups, _ = split_groups(X, groups)
        return X, groups

    def _extended(self, X: FloatArray, labels: Any) -> list[FloatArray]:
        """The rows as each target's formulas see them: with their group's own constants behind the columns."""
        own = self._own()
        if own is None:
            return [X] * len(self._fronts())
        if len(labels) != len(X):
            raise ValueError(f"groups has {len(labels)} labels for {len(X)} rows; give one for each row")
        return [table.extended(X, table.codes(labels)) for table in own]

    def _written_out(
        self, X: FloatArray, labels: Any, index: int | Sequence[int] | None = None
    ) -> list[tuple[Expression, FloatArray]]:
        """Each target's formula with all its fitted constants in it, own ones included, and the rows as it sees them."""
        expressions, own = self._expressions(index), self._own()
        if own is None:
            return [(expression, X) for expression in expressions]
        return [
            (table.written_out(expression, X.shape[1]), table.indicators(X, table.codes(labels)))
            for table, expression in zip(own, expressions, strict=True)
        ]

    def _used_columns(self, expressions: Sequence[Expression]) -> set[int]:
        """Columns of the user's table that the formulas use."""
        return {column for e in expressions for column in e.variables if column < self.n_features_in_}

    def _rows_for(self, expressions: Sequence[Expression], X: Any) -> FloatArray:
        """Rows of the user's table, checked for what the formulas use; those outside the ranges of `fit` are a warning."""
        used = self._used_columns(expressions)
        rows: FloatArray = check_rows(self, X, used)
        outside = rows_outside(rows, getattr(self, "feature_ranges_", None), used, expressions)
        if outside is not None and not rows_are_held_out():
            warnings.warn(outside.text(column_names(self)), RangeWarning, stacklevel=3)
        return rows

    def group_table(self, index: int | None = None) -> Any:
        """The own constants of the chosen formula, or of another `index`: a data frame with a row for each group."""
        from gmeql.model.pareto.listing import data_frame

        check_is_fitted(self)
        own = self._own()
        if own is None:
            raise ValueError("the model was fitted without groups; give fit(X, y, groups=...)")
        tables = []
        for table, expression in zip(own, self._expressions(index), strict=True):
            columns = table.of_formula(expression.root, self.n_features_in_)
            tables.append(data_frame({table.column: list(table.labels), **columns}, table.column))
        return one_or_list(tables)

    def refit_group(
        self,
        X: Any,
        y: ArrayLike,
        group: Any,
        sample_weight: ArrayLike | None = None,
        y_error: ArrayLike | None = None,
        x_error: Any = None,
    ) -> Any:
        """Fit the own constants of one group, new or known, to rows of its own; shared constants stay as they are.

        A few rows are enough: as many as a formula has own constants determine them, and where there are fewer they stay
        near those of the known groups. `sample_weight`, `y_error` and `x_error` are those of `fit`. The group is known to
        `predict` afterwards. Returns the estimator.
        """
        check_is_fitted(self)
        own = self._own()
        if own is None:
            raise ValueError("the model was fitted without groups; give fit(X, y, groups=...)")
        column = own[0].column
        if column in list(getattr(X, "columns", [])):
            X = split_groups(X, column)[0]
        X = check_rows(self, X)
        targets = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
        if targets.shape[1] != len(own):
            raise ValueError(f"y has {targets.shape[1]} columns, the model {len(own)} targets; give one for each")
        sample_weight = weight_of_errors(y_error, sample_weight)
        weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        errors = input_errors(x_error, y_error, column_names(self), len(X))
        (label,), one_group = group_labels([group]), np.zeros(len(X), dtype=np.int64)
        tables = []
        for j, (table, front) in enumerate(zip(own, self._fronts(), strict=True)):
            values = np.median(table.values, axis=0)
            for member in front:
                used = own_columns(member.expression.root, X.shape[1])
                if used:
                    values[list(used)] = _own_constants(
                        member.expression, table, GroupedTable.of(X, targets[:, j], weight, one_group, errors)
                    )
            tables.append(table.with_group(label, values))
        self.group_constants_ = one_or_list(tables)
        return self


def _own_constants(expression: Expression, table: OwnConstants, rows: GroupedTable) -> FloatArray:
    """A formula's own constants [K] for the rows of one group: the best of fits that start from each known group."""
    used = own_columns(expression.root, rows.X.shape[1])
    root = with_own_columns(expression.root, rows.X.shape[1], range(len(used)))
    held = np.zeros(sum(isinstance(leaf, Constant) for leaf in leaves(root)), dtype=bool)
    known = table.values[:, list(used)]
    starts = np.unique(np.vstack([np.median(known, axis=0), known]), axis=0)
    fits = [fit_jointly(root, start[None], rows, free=held) for start in starts]
    best = min(fits, key=lambda fit: fit.loss)
    if not np.isfinite(best.loss):
        raise ValueError("the formula has no value on these rows, so nothing can be fitted; give rows of its domain")
    found: FloatArray = best.own[0]
    return found
