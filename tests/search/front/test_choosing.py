"""Sums of columns judged with their choice: against folds written out, and on columns of noise and of weak signals."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.nodes import Constant, Variable, build
from gmeql.formula.parsing import parse_tree
from gmeql.network.families import FunctionSet
from gmeql.search.front.choosing import CHOOSING, costs_by_length, errors_chosen_anew, measured, sums_of_columns
from gmeql.search.losses.losses import LOSSES, sigmoid
from gmeql.search.judging.outlook import outlooks

LOGISTIC = LOSSES["logistic"]
FUNCTIONS = FunctionSet(None)


def table(weak: float, columns: int, n: int = 150, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Chances whose logit is as many columns, each times `weak`."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, columns))
    chance = 1 / (1 + np.exp(-weak * X.sum(axis=1)))
    return X, (rng.uniform(size=n) < chance).astype(float) * 0.98 + 0.01


def test_each_row_is_judged_by_a_sum_that_neither_chose_nor_fitted_it() -> None:
    """One column: a logistic regression in each fold by Newton's steps, written out."""
    X, y = table(1.0, 1)
    found = costs_by_length(X, y, np.ones(150), LOGISTIC, FUNCTIONS, most_columns=3)
    assert set(found) == {1}
    fold = np.random.default_rng(CHOOSING.seed).permutation(150) % CHOOSING.folds
    A, expected = np.column_stack([np.ones(150), X]), np.zeros(150)
    for number in range(CHOOSING.folds):
        kept, theta = fold != number, np.zeros(2)
        for _ in range(30):
            p = sigmoid(A[kept] @ theta)
            theta -= np.linalg.solve((A[kept] * (p * (1 - p))[:, None]).T @ A[kept], A[kept].T @ (p - y[kept]))
        z = A[~kept] @ theta
        expected[~kept] = np.log1p(np.exp(z)) - y[~kept] * z
    np.testing.assert_allclose(found[1], expected, rtol=1e-5)


def test_many_weak_columns_are_worth_their_place_and_lucky_ones_are_not() -> None:
    X, y = table(0.7, 10)
    weights = np.ones(len(y))
    signal = costs_by_length(X, y, weights, LOGISTIC, FUNCTIONS, most_columns=10)
    assert np.mean(signal[10]) < np.mean(signal[3]) - 0.05
    noise = costs_by_length(X, np.roll(y, 40), weights, LOGISTIC, FUNCTIONS, most_columns=10)
    assert np.mean(noise[10]) > np.mean(noise[1]) + 0.02


def test_outlooks_of_sums_take_what_was_measured_and_others_stay() -> None:
    X, y = table(0.7, 10)
    weights = np.ones(len(y))
    line = sums_of_columns(X, y, weights, FUNCTIONS)[3]
    bent = parse_tree("0.5*x1**2 + 0.2", [f"x{i + 1}" for i in range(10)])
    without = build("add", *(build("mul", Constant(0.5), Variable(i)) for i in range(4)))
    roots = [bent, without, line]
    found = outlooks(roots, X, y, weights, loss=LOGISTIC)
    costs = costs_by_length(X, y, weights, LOGISTIC, FUNCTIONS, most_columns=4)
    first, second, third = measured(found, roots, costs, weights)
    assert (first, second) == found[:2]
    assert third.error == pytest.approx(max(np.mean(costs[4]), found[2].left_out))
    assert third.left_out == pytest.approx(found[2].left_out) and third.luck < found[2].luck


def test_too_many_or_too_few_rows_are_left_to_the_bound() -> None:
    X, y = table(1.0, 2, n=CHOOSING.most_rows + 1)
    for n in (8, len(y)):
        assert costs_by_length(X[:n], y[:n], np.ones(n), LOGISTIC, FUNCTIONS, most_columns=2) == {}


@pytest.mark.parametrize(("law", "n_columns"), [("few", 40), ("all", 60)])
def test_columns_chosen_anew_tell_few_strong_columns_from_the_luckiest_of_many(law: str, n_columns: int) -> None:
    """Three columns of sixty leave less on rows left out one by one whatever is true; chosen anew, only where they are."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((40, n_columns))
    factors = rng.normal(0.0, 0.5, n_columns) if law == "all" else np.where(np.arange(n_columns) < 3, 1.0, 0.0)
    found = errors_chosen_anew(X, X @ factors + rng.standard_normal(40), np.ones(40), most_columns=n_columns)
    assert len(found) == min(14, 32 // 2 - 1)
    assert found[2] < 0.9 if law == "few" else found[2] > 1.1


def test_too_few_rows_choose_nothing_anew() -> None:
    X = np.random.default_rng(0).standard_normal((9, 3))
    assert errors_chosen_anew(X, X[:, 0], np.ones(9), most_columns=3) == ()
