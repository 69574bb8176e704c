"""Symmetries of a formula: the smaller tables that it would fit in, whether or not it is the law.

Under noise a surrogate hardly shows which symmetries the data have. A formula that the search found and that fits well is a
surrogate without noise. n m B/sqrt((kT/m)**2 + B**2) may stand in for n m tanh(m B/(k T)): it is wrong, but it reads the columns
in the same products, and in that table of one column the law is short.

Legend: `N` rows, `V` raw columns, `D` columns of a view.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gmeql.formula.calculus import row_slopes
from gmeql.formula.nodes import Constant, Node
from gmeql.search.symmetries.config import SYMMETRIES
from gmeql.search.symmetries.surrogate import typical
from gmeql.search.symmetries.smaller import smaller_views
from gmeql.search.symmetries.views import FittedView, View


def views_of_formula(
    root: Node,
    X: np.ndarray,
    *,
    slack: float = SYMMETRIES.formula_slacks[0],
    out_of_time: Callable[[], bool] = lambda: False,
) -> list[View]:
    """Smaller tables that hold all that a formula says, the smallest first; empty where it has no symmetry.

    X [N, V] are rows on which it is looked at, `slack` the share of its slopes that a table may not explain. Once it is
    `out_of_time`, no column is asked for a function before the rest, which takes longest.
    """
    if isinstance(root, Constant) or not 2 <= X.shape[1] <= SYMMETRIES.max_variables:
        return []
    X = X[: SYMMETRIES.formula_rows]
    found: list[View] = []
    with np.errstate(all="ignore"):
        values, slopes = _slopes(root, X)
        if not (np.isfinite(values).all() and np.isfinite(slopes).all()):
            return []
        whole = View.raw(X.shape[1])

        def fit(view: View) -> FittedView | None:
            if view == whole:  # tells all, by the formula's own slopes
                return FittedView(view, X, values, 0.0, slopes)
            return _fitted(view, X, values, slopes)

        # what a rough formula reads together need not be what the law does: a (1 - b cos(c)) says less of b and c than an orbit
        steps = smaller_views(whole, fit, negligible=slack, out_of_time=out_of_time, are_joined=False)
        for views in steps:
            found = views + found
    return found[: SYMMETRIES.max_views]


def _fitted(view: View, X: np.ndarray, values: np.ndarray, slopes: np.ndarray) -> FittedView | None:
    """A view with the slopes of values/factor by its columns, which exist where the view tells all about the values.

    The gradient of values/factor must be a sum of those of the columns; what is left of it is the view's error.
    """
    table, factors = view.table(X), view.factors(X)
    target = values / factors
    gradient = (slopes - target[:, None] * _slopes(view.factor, X)[1]) / factors[:, None]
    columns = np.stack([_slopes(column, X)[1] for column in view.columns], axis=2)
    size = np.sqrt(np.mean((gradient * X) ** 2, axis=0)) + np.sqrt(np.mean(target**2))
    if not all(np.isfinite(part).all() for part in (table, target, gradient, columns)):
        return None
    scaled, wanted = columns * X[:, :, None], gradient * X  # by relative changes, so that rows and columns are alike
    own = np.einsum("ndv,nv->nd", np.linalg.pinv(scaled), wanted)
    left = wanted - np.einsum("nvd,nd->nv", scaled, own)
    return FittedView(view, table, target, typical((left / size).ravel()), own)


def _slopes(root: Node, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values [N] of a formula and its slopes by all columns [N, V]."""
    values, _, slopes = row_slopes(root, X, range(X.shape[1]))
    return values, slopes
