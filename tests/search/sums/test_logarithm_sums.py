"""Sums of logarithms: found where columns run over magnitudes, not where a sum of the columns themselves says as much."""

from __future__ import annotations

import numpy as np

from gmeql import GMEQLRegressor
from gmeql.formula.expression import Expression
from gmeql.network.families import FunctionSet
from gmeql.search.config import SearchConfig
from gmeql.search.sums.logarithm_sums import logarithm_sums

FUNCTIONS = FunctionSet(SearchConfig().functions)


def texts(X: np.ndarray, y: np.ndarray) -> list[str]:
    names = tuple(f"x{k + 1}" for k in range(X.shape[1]))
    return [str(Expression(curve.root, names)) for curve in logarithm_sums(X, y, np.ones(len(y)), FUNCTIONS)]


def test_a_sum_of_two_logarithms_is_chosen_where_few_noisy_rows_follow_it() -> None:
    """`x1*(4.59 + 0.338*x2)/(x1 + 0.518) - 3.23` was, or `19.9*x1**0.0494*x2**0.0261 - 20`."""
    errors = []
    for seed in range(3):
        rng = np.random.default_rng([seed, 3])
        X = np.exp(1.2 * rng.standard_normal((4060, 4)))
        law = np.log(X[:, 0]) + 0.5 * np.log(X[:, 1])
        y = law + 0.5 * rng.standard_normal(4060)
        model = GMEQLRegressor(max_candidates=1000, max_time=None, random_state=0, n_jobs=1).fit(X[:60], y[:60])
        errors.append(float(np.std(model.expression_(X[60:]) - law[60:]) / law.std()))
    assert max(errors) < 0.2, errors


def test_logarithms_stand_beside_columns_and_categories() -> None:
    rng = np.random.default_rng(1)
    kind = np.eye(3)[rng.integers(0, 3, 120)]
    X = np.column_stack([np.exp(rng.standard_normal(120)), rng.standard_normal(120), kind])
    y = 2 * np.log(X[:, 0]) + X[:, 1] + kind @ [0.0, 1.0, 2.0] + 0.1 * rng.standard_normal(120)
    assert all(part in texts(X, y)[-1] for part in ("log(x1)", "*x2", "*x4"))


def test_none_over_columns_of_one_magnitude_or_through_zero_or_without_the_function() -> None:
    rng = np.random.default_rng(2)
    near, through = rng.uniform(5, 9, (80, 3)), rng.standard_normal((80, 3))
    assert texts(near, near.sum(axis=1)) == texts(through, through.sum(axis=1)) == []
    wide = np.exp(2 * rng.standard_normal((80, 2)))
    y = np.log(wide).sum(axis=1)
    assert texts(wide, y)
    without = FunctionSet(("add", "mul", "exp"))
    assert logarithm_sums(wide, y, np.ones(80), without) == []
    sums = [text for text in texts(wide, wide @ [1.0, 2.0] + 0.01 * rng.standard_normal(80)) if text.count("log") > 1]
    assert not sums
