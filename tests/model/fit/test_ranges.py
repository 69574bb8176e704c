"""Ranges of the columns of a fit, and rows outside them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gmeql
from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.model.fit.ranges import RangeWarning, column_ranges, rows_outside

RANGES = np.array([[0.0, 1.0], [10.0, 20.0], [-1.0, 1.0]])


def test_rows_are_counted_once_and_columns_named_that_the_formula_uses():
    X = np.array([[0.5, 15.0, 99.0], [2.0, 25.0, 0.0], [0.0, 20.0, 0.0], [0.5, np.nan, 0.0]])
    outside = rows_outside(X, RANGES, [1, 0])
    assert outside is not None and (outside.count, outside.columns) == (1, (0, 1))
    assert outside.text(["a", "b", "c"]) == (
        "1 of 4 rows lies outside what the formula was fitted to: a (0 to 1), b (10 to 20)"
    )
    assert rows_outside(X[[0, 2, 3]], RANGES, [0, 1]) is None  # only an unused column leaves its range
    assert rows_outside(X, None, [0, 1]) is None and rows_outside(X, RANGES, []) is None


@pytest.mark.parametrize(
    ("formula", "expected"), [("a/b", 2), ("a*b", 0), ("a/(b - 12)", 0), ("a/sqrt(25 - b)", 0), ("1/(5 - b)", 3)]
)
def test_rows_beside_a_pole_or_beyond_it_are_counted(formula: str, expected: int) -> None:
    """`x1/x2` of 200 rows: of 10,000 fresh ones 95 to 415 lie outside, and 7 to 16 beside the pole make 99 % of the squares."""
    X = np.array([[0.5, 9.0, 0.0], [0.5, -0.5, 0.0], [0.5, 0.1, 0.0], [0.5, 7.0, 0.0], [0.5, 12.0, 0.0]])
    outside = rows_outside(X, RANGES, [0, 1], [Expression(parse_tree(formula, ("a", "b", "c")), ("a", "b", "c"))])
    assert outside is not None and (outside.count, outside.at_poles) == (4, expected)
    assert (f"; on {expected} of these it divides by" in outside.text(["a", "b", "c"])) is (expected > 0)


def test_many_columns_are_counted():
    outside = rows_outside(np.full((1, 9), 5.0), np.zeros((9, 2)), range(9))
    assert outside is not None
    assert outside.text([f"c{j}" for j in range(9)]).endswith("c4 (0 to 0) and 4 more")


@pytest.fixture(scope="module")
def fitted():
    X = np.random.default_rng(3).uniform(1, 3, (40, 3))
    model = gmeql.GMEQLRegressor(max_candidates=300, max_time=None, random_state=0).fit(X, 2 * X[:, 0] * X[:, 1])
    assert model.expression_.variables == (0, 1)
    return model, X


def test_predict_warns_outside_the_training_rows_and_not_on_them(fitted, tmp_path):
    model, X = fitted
    np.testing.assert_array_equal(model.feature_ranges_, column_ranges(X))
    model.save(tmp_path / "m.json")
    for one in (model, gmeql.GMEQLRegressor.load(tmp_path / "m.json")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            one.predict(X)
            one.predict([[2.0, 2.0, 1e9]])  # the formula does not use the third
        with pytest.warns(gmeql.RangeWarning, match=r"1 of 2 rows lies outside .*: x2 \(1\.\d+ to 2\.\d+\)$"):
            one.predict([[2.0, 9.0, 2.0], [2.0, 2.0, 2.0]])
    assert RangeWarning is gmeql.RangeWarning


def test_cross_validation_does_not_warn_of_its_own_folds(fitted):
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV, cross_val_score

    model, X = fitted
    quick = clone(model).set_params(max_candidates=100)
    search = GridSearchCV(quick, {"max_complexity": [9]}, cv=2, scoring="neg_mean_squared_error")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RangeWarning)
        search.fit(X, 2 * X[:, 0] * X[:, 1])
        cross_val_score(quick, X, 2 * X[:, 0] * X[:, 1], cv=2)
    with pytest.warns(RangeWarning):
        search.predict([[9.0, 9.0, 2.0]])
