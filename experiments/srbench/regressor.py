"""gmeql as an SRBench method (github.com/cavalab/srbench, "How to contribute an SR method"): copy this folder to
`algorithms/gmeql` there.

SRBench reads `est`, `model(est, X)`, `hyper_params`, `eval_kwargs`, `get_population(est)` and
`get_best_solution(est)`; it sets `random_state` and may set `max_time`.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, RegressorMixin

from gmeql import GMEQLRegressor

HOUR = 3_600
SHARE = 0.9
"""Of the time SRBench allows; the rest is for starting, compiled kernels and its own bookkeeping."""
LARGE = 1_000
"""Rows above which SRBench allows ten hours instead of one."""
MAX_POPULATION = 100

est = GMEQLRegressor(max_time=SHARE * HOUR, verbose=0)

hyper_params: list[dict[str, Any]] = [{}]
"""Nothing is tuned: the search learns while it runs which networks pay."""


class Member(RegressorMixin, BaseEstimator):
    """One formula of the front as a regressor of its own, already fitted."""

    def __init__(self, fitted: GMEQLRegressor, index: int) -> None:
        self.fitted = fitted
        self.index = index

    def fit(self, X: Any, y: Any = None) -> Member:
        return self

    def predict(self, X: Any) -> Any:
        return self.fitted.predict(X, index=self.index)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def model(est: Any, X: Any = None) -> str:
    """The formula as a string SymPy reads, in the names of `X`'s columns."""
    import sympy

    fitted, index = (est.fitted, est.index) if isinstance(est, Member) else (est, est.selected_index_)
    formula = fitted.front_[index].expression.sympy()
    if hasattr(X, "columns") and not hasattr(fitted, "feature_names_in_"):  # fitted on a bare array: x1, x2, ...
        names = {f"x{i + 1}": sympy.Symbol(str(name)) for i, name in enumerate(X.columns)}
        formula = formula.xreplace({symbol: names[symbol.name] for symbol in formula.free_symbols})
    return str(formula)


def get_population(est: Any) -> list[Any]:
    """The front, simplest first: at most 100 regressors."""
    if isinstance(est, Member):
        return [est]
    return [Member(est, index) for index in range(len(est.front_))][:MAX_POPULATION]


def get_best_solution(est: Any) -> Any:
    return est


def pre_train_fn(est: Any, X: Any, y: Any) -> None:
    """Ten hours are allowed for large tables; the search ends sooner by itself when a formula is exact."""
    if est.max_time == SHARE * HOUR and len(X) > LARGE:
        est.set_params(max_time=2 * SHARE * HOUR)


eval_kwargs = {
    "pre_train": pre_train_fn,
    "test_params": {"max_time": 10},
    "scale_x": False,  # constants of a law live in the columns' own units
    "scale_y": False,
}
