"""The plots and the notebook face of a fitted model, with one target and with several."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from gmeql import GMEQLRegressor

X = np.random.default_rng(0).uniform(1, 3, (30, 2))
Y = np.column_stack([X[:, 0] + X[:, 1], X[:, 0] * X[:, 1]])
OPTIONS = {"max_candidates": 400, "max_time": None, "random_state": 0}


@pytest.fixture(scope="module")
def one() -> GMEQLRegressor:
    return GMEQLRegressor(**OPTIONS).fit(X, Y[:, 0])


@pytest.fixture(scope="module")
def two() -> GMEQLRegressor:
    return GMEQLRegressor(**OPTIONS).fit(X, Y)


def plots(model: GMEQLRegressor, y: np.ndarray) -> list:
    return [
        model.plot_front(),
        model.plot_parity(X, y),
        model.plot_residuals(X, y),
        model.plot_history(),
        model.plot_expression(),
    ]


def test_several_targets_have_a_figure_each(one, two) -> None:
    for single, several in zip(plots(one, Y[:, 0]), plots(two, Y), strict=True):
        assert isinstance(several, list) and len(several) == 2
        assert {type(figure) for figure in several} == {type(single)}
    np.testing.assert_array_equal(two.plot_parity(X, Y)[1].data[1].x, Y[:, 1])


def test_what_is_not_fitted_or_was_loaded_says_so(one, tmp_path) -> None:
    for call in (GMEQLRegressor().plot_front, GMEQLRegressor().plot_history, GMEQLRegressor().plot_expression):
        with pytest.raises(NotFittedError):
            call()
    one.save(tmp_path / "m.json")
    with pytest.raises(ValueError, match="no history"):
        GMEQLRegressor.load(tmp_path / "m.json").plot_history()


def test_notebooks_show_each_targets_formula(one, two) -> None:
    assert one._html_repr().count("<summary>front of") == 1 and "<p>y" not in one._html_repr()
    assert two._html_repr().count("<summary>front of") == 2 and "<p>y2</p>" in two._html_repr()
    assert "<summary>front of" not in GMEQLRegressor()._html_repr()
