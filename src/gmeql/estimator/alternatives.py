"""Formulas beside the chosen one, as methods: listed, averaged, and as the start of another search."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from gmeql.estimator.searching import Searching
from gmeql.formula.expression import Expression
from gmeql.model.certainty.alternatives import Alternative, alternatives, averaged
from gmeql.model.fit.inputs import check_rows
from gmeql.model.targets import one_or_list

FloatArray = NDArray[np.float64]


class Alternatives(Searching):
    """An estimator that knows more formulas than the one it chose."""

    def alternatives(self, n: int = 10) -> Any:
        """The `n` distinct formulas that describe the data best, each with its share of the evidence, the best first.

        They come from the front and, right after `fit`, from all formulas that were on it for a while (a file keeps the
        front alone). A tuple of `Alternative`; a list of tuples when `y` has several columns.
        """
        check_is_fitted(self)
        return one_or_list([alternatives(front, n) for front in self._fronts()])

    def average(self, X: Any, n: int = 10, level: float = 0.95, groups: Any = None) -> Any:
        """Predictions averaged over the `n` best formulas by their evidence: mean, low and high, each [N].

        Low and high hold the target with probability `level`, what is not known of the structure included. A list of
        them when `y` has several columns.
        """
        check_is_fitted(self)
        X, groups = self._without_group_column(X, groups)
        X = check_rows(self, X)
        results = []
        for front, seen in zip(self._fronts(), self._extended(X, groups), strict=True):
            found = alternatives(front, n)
            results.append(averaged(found, [seen] * len(found), level))
        return one_or_list(results)

    def refine(self, expression: Expression | Alternative | str, X: Any, y: Any, **changes: Any) -> Self:
        """A new estimator, fitted to the same rows with `expression` as its first elite: the search goes on from there.

        `expression` is a formula of this model (or text in its columns); `changes` are parameters of the new search, such
        as `max_time=60`.
        """
        check_is_fitted(self)
        formula = expression.expression if isinstance(expression, Alternative) else expression
        text = formula if isinstance(formula, str) else formula.exact()
        again: Self = clone(self).set_params(**{"guesses": [text], **changes})
        return again.fit(X, y)  # type: ignore[no-any-return]  # every estimator of this kind has it
