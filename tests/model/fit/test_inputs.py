"""What `fit` and `predict` are given: numbers come through, text is named, rows are split the same way every time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gmeql import GMEQLRegressor
from gmeql.model.fit.inputs import (
    TrainingRows,
    check_rows,
    check_training,
    column_names,
    repeated_names,
    weight_of_errors,
)

X = np.arange(24.0).reshape(12, 2)
Y = np.arange(12.0)


def test_arrays_come_through_with_the_shape_of_the_target() -> None:
    rows, columns = check_training(GMEQLRegressor(), X, Y, None)
    np.testing.assert_array_equal(rows.X, X)
    assert rows.targets.shape == (12, 1) and rows.weight is None and columns is None
    rows, columns = check_training(GMEQLRegressor(), X.tolist(), np.column_stack([Y, Y]), np.ones(12))
    assert rows.targets.shape == (12, 2) and rows.weight.shape == (12,) and columns == 2


def test_columns_are_named_as_they_were_or_by_position() -> None:
    model = GMEQLRegressor()
    check_training(model, X, Y, None)
    assert column_names(model) == ("x1", "x2")
    check_training(model, pd.DataFrame(X, columns=["a", "b"]), Y, None)
    assert column_names(model) == ("a", "b")


def test_a_name_given_twice_is_kept_and_held_against_later_frames() -> None:
    model, frame = GMEQLRegressor(), pd.DataFrame(X, columns=["a", "a"])
    check_training(model, frame, Y, None)
    assert column_names(model) == ("a", "a") and repeated_names(frame).tolist() == ["a", "a"]
    np.testing.assert_array_equal(check_rows(model, frame), X)
    with pytest.raises(ValueError, match="feature names"):
        check_rows(model, pd.DataFrame(X, columns=["b", "b"]))
    assert repeated_names(X) is None and repeated_names(pd.DataFrame(X, columns=["a", "b"])) is None


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_target_beyond_the_doubles_is_refused() -> None:
    with pytest.raises(ValueError, match="beyond what float64"):
        check_training(GMEQLRegressor(), X, np.full(12, np.longdouble("1e4000")), None)


@pytest.mark.parametrize(
    ("given", "named"), [({"a": Y, "b c": ["x"] * 12}, "'b c'"), ({"a": ["1"] * 11 + ["?"]}, "'a'")]
)
def test_a_column_of_text_is_named(given, named) -> None:
    with pytest.raises(ValueError, match=f"column {named} of X holds text"):
        check_training(GMEQLRegressor(), pd.DataFrame(given), Y, None)


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(ValueError, match="NaN"):
        check_training(GMEQLRegressor(), np.full((12, 2), np.nan), Y, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        check_training(GMEQLRegressor(), X, Y[:5], None)


def test_rows_kept_for_judging_are_a_quarter_and_always_the_same() -> None:
    rows = TrainingRows(X, Y[:, None], np.arange(12.0))
    searched, held_out = rows.split()
    assert len(searched.X) == 9 and len(held_out.X) == 3
    np.testing.assert_array_equal(np.sort(np.r_[searched.weight, held_out.weight]), rows.weight)
    np.testing.assert_array_equal(held_out.X[:, 0], 2 * held_out.targets[:, 0])
    np.testing.assert_array_equal(rows.split()[1].X, held_out.X)
    with pytest.raises(ValueError, match="at least 8 rows"):
        rows.take(np.arange(5)).split()


@pytest.fixture(scope="module")
def model() -> GMEQLRegressor:
    """2*b*d, fitted to a frame of a, b, c and d."""
    X = pd.DataFrame(np.random.default_rng(3).uniform(1, 3, (40, 4)), columns=list("abcd"))
    model = GMEQLRegressor(max_candidates=300, max_time=None, random_state=0).fit(X, 2 * X["b"] * X["d"])
    assert model.expression_.variables == (1, 3)
    return model


class TestFramesThatLackColumns:
    """Only the columns that a formula uses are needed, where names tell them."""

    @pytest.mark.parametrize("columns", [list("bd"), list("abd"), list("bcd")])
    def test_unused_columns_may_be_missing(self, model, columns):
        X = pd.DataFrame({"a": [0.0, 0.0], "b": [2.0, 1.5], "c": [0.0, 0.0], "d": [2.75, 2.5]})[columns]
        np.testing.assert_allclose(model.predict(X), [11.0, 7.5])
        np.testing.assert_allclose(model.predict(pl.from_pandas(X)), [11.0, 7.5])

    def test_exactly_the_missing_ones_that_are_used_are_named(self, model):
        with pytest.raises(ValueError, match=r"uses, yet now missing:\n- b\n$"):
            model.predict(pd.DataFrame({"d": [1.0]}))
        with pytest.raises(ValueError, match=r"uses, yet now missing:\n- b\n- d\n$"):
            model.predict(pd.DataFrame({"c": [1.0]}))

    def test_other_names_another_order_and_narrow_arrays_are_refused(self, model):
        with pytest.raises(ValueError, match="unseen at fit time"):
            model.predict(pd.DataFrame({"b": [1.0], "d": [1.0], "z": [1.0]}))
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(pd.DataFrame({"d": [1.0], "b": [1.0]}))
        with pytest.raises(ValueError, match="expecting 4 features"):
            model.predict(np.ones((1, 2)))

    def test_a_missing_value_is_refused_as_ever(self, model):
        with pytest.raises(ValueError, match="NaN"):
            model.predict(pd.DataFrame({"b": [1.0], "d": [np.nan]}))


class TestErrorsOfTargets:
    def test_a_row_weighs_by_the_inverse_square_of_its_error(self) -> None:
        weights = weight_of_errors([0.1, 0.2, 0.1], None)
        np.testing.assert_allclose(weights, [4.0, 1.0, 4.0])
        np.testing.assert_allclose(weight_of_errors([0.1, 0.2, 0.1], [1, 1, 0]), [4.0, 1.0, 0.0])
        assert weight_of_errors(None, None) is None

    @pytest.mark.parametrize("errors", [[0.0, 1.0], [-1.0, 1.0], [np.nan, 1.0], [[1.0], [1.0]]])
    def test_errors_that_are_none_are_refused(self, errors) -> None:
        with pytest.raises(ValueError, match="y_error must be"):
            weight_of_errors(errors, None)

    def test_a_fit_takes_them(self) -> None:
        x = np.linspace(1, 3, 40)
        y = 2.0 * x
        y[::4] += 5.0
        errors = np.where(np.arange(40) % 4 == 0, 50.0, 0.01)
        model = GMEQLRegressor(max_candidates=300, max_time=None, random_state=0)
        model.fit(x[:, None], y, y_error=errors)
        np.testing.assert_allclose(model.predict([[2.0]]), 4.0, rtol=1e-3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"b": [np.nan, 1.0, np.nan]}, r"column 'b' of X contains NaN: 2 of 3 values, the first in row 0"),
        (
            {"b": pd.array([1, None, 3], dtype="Int64")},
            r"column 'b' of X contains NaN: 1 of 3 values, the first in row 1",
        ),
        ({"b": [1.0, pd.NA, 3.0]}, r"column 'b' of X contains NaN: 1 of 3 values, the first in row 1"),
        ({"b": [1.0, 2.0, pd.NaT]}, r"column 'b' of X contains NaN: 1 of 3 values, the first in row 2"),
        ({"b": [1.0, -np.inf, 2.0]}, r"column 'b' of X contains infinity: 1 of 3 values, the first in row 1"),
        ({"b": pd.to_datetime(["2024-01-01"] * 3)}, "column 'b' of X holds dates or times"),
    ],
)
def test_what_is_no_number_is_named_with_its_column(change, words) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]} | change)
    with pytest.raises(ValueError, match=words):
        check_training(GMEQLRegressor(), frame, [1.0, 2.0, 3.0], None)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([1.0, 2.0, np.nan], "y contains NaN: 1 of 3 values, the first in row 2"),
        (pd.Series([1, pd.NA, 3]), "y contains NaN: 1 of 3 values, the first in row 1"),
        (pd.Series(pd.array([1, None, 3], dtype="Int64")), "y contains NaN: 1 of 3 values, the first in row 1"),
        (pd.Series(pd.date_range("2024-01-01", periods=3)), "y holds dates or times"),
        (np.array([1, 2, 10**400], dtype=object), "a whole number beyond what float64 can hold"),
    ],
)
def test_what_is_no_number_among_the_targets_is_refused(y, words) -> None:
    with pytest.raises(ValueError, match=words):
        check_training(GMEQLRegressor(), np.arange(3.0)[:, None], y, None)
