"""What a fitted model shows of itself: figures, and its face in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._repr_html.estimator import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from gmeql.formula.expression import Expression
from gmeql.model.targets import as_list, names_of, one_or_list


class Pictures:
    """The plots of `GMEQLRegressor`, each a plotly figure, or a list of them for several targets."""

    front_: Any
    selected_index_: Any
    history_: Any
    candidates_: int

    def predict(self, X: Any, index: int | Sequence[int] | None = None, groups: Any = None) -> NDArray[np.float64]:
        raise NotImplementedError

    def _expressions(self, index: int | Sequence[int] | None = None) -> list[Expression]:
        raise NotImplementedError

    def plot_front(self) -> Any:
        """Loss against complexity of the front, the chosen formula marked. A plotly figure, as all plots here."""
        from gmeql.model.plots import front_figure

        check_is_fitted(self)
        pairs = zip(as_list(self.front_), as_list(self.selected_index_), strict=True)
        return one_or_list([front_figure(front, k) for front, k in pairs])

    def plot_parity(self, X: Any, y: Any) -> Any:
        """Predicted against observed values."""
        from gmeql.model.plots import parity_figure

        return one_or_list([parity_figure(*pair) for pair in self._observed_and_predicted(X, y)])

    def plot_residuals(self, X: Any, y: Any) -> Any:
        """Residuals against predicted values."""
        from gmeql.model.plots import residuals_figure

        return one_or_list([residuals_figure(*pair) for pair in self._observed_and_predicted(X, y)])

    def plot_history(self) -> Any:
        """The best loss during the search."""
        from gmeql.model.plots import history_figure

        check_is_fitted(self)
        if not hasattr(self, "history_"):
            raise ValueError("a loaded model holds no history of its search; plot it before saving")
        return one_or_list([history_figure(history) for history in as_list(self.history_)])

    def plot_expression(self, index: int | Sequence[int] | None = None) -> Any:
        """The formula as a graph of its operators."""
        from gmeql.model.plots import expression_figure

        return one_or_list([expression_figure(expression) for expression in self._expressions(index)])

    def _observed_and_predicted(self, X: Any, y: Any) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        predicted = self.predict(X)
        predicted = predicted.reshape(len(predicted), -1)
        observed = np.asarray(y, dtype=np.float64).reshape(predicted.shape)
        return [(observed[:, j], predicted[:, j]) for j in range(predicted.shape[1])]

    def _html_repr(self) -> str:
        """What notebooks show: the formula typeset, the front, and scikit-learn's diagram of the parameters."""
        diagram = str(estimator_html_repr(self))
        if not hasattr(self, "front_"):
            return diagram
        parts = []
        picks = as_list(self.selected_index_)
        for name, front, k in zip(names_of(self), as_list(self.front_), picks, strict=True):
            title = f"<p>{escape(name)}</p>" if len(picks) > 1 else ""
            formula = front[k].expression._repr_html_()
            parts.append(
                f'{title}<div style="font-size:1.3em;margin:0.5em 0">{formula}</div>'
                f"<details><summary>front of {len(front)} formulas, {escape(str(self.candidates_))} candidates tried"
                f"</summary>{front.to_html(selected=k)}</details>"
            )
        return f"<div>{''.join(parts)}</div>{diagram}"
