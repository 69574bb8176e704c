"""Constants at the minimum of the loss itself: known answers for medians, quantiles, counts and logits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from gmeql.formula.nodes import Constant, leaves
from gmeql.formula.parsing import parse_tree
from gmeql.search.losses.converging import converged, mean_loss
from gmeql.search.losses.losses import find_loss


def constants(root) -> list[float]:
    return [leaf.value for leaf in leaves(root) if isinstance(leaf, Constant)]


@pytest.mark.parametrize(
    ("loss", "answer"), [("absolute", np.median), ("quantile:0.9", lambda y: np.quantile(y, 0.9)), ("poisson", np.mean)]
)
def test_a_constant_is_the_median_the_quantile_the_mean(loss: str, answer) -> None:
    y = np.random.default_rng(0).poisson(30, 401).astype(float) + np.random.default_rng(1).uniform(0, 1, 401)
    root, least = converged(parse_tree("20.5", ["x"]), y[:, None], y, np.ones(401), find_loss(loss))
    assert constants(root)[0] == pytest.approx(answer(y), abs=0.1)
    assert least == pytest.approx(mean_loss(np.full(401, answer(y)), y, np.ones(401), find_loss(loss)), rel=1e-3)


def test_a_line_of_logits_is_logistic_regression() -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(-2, 2, (300, 2))
    y = (rng.uniform(size=300) < 1 / (1 + np.exp(-(1.5 * X[:, 0] - X[:, 1] + 0.3)))).astype(float)
    weights = rng.uniform(0.5, 1.5, 300)
    root, _ = converged(parse_tree("0.1*a + 0.1*b + 0.1", ["a", "b"]), X, y, weights, find_loss("logistic"))
    theirs = LogisticRegression(C=1e8, tol=1e-10, max_iter=1000).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(constants(root), [*theirs.coef_[0], theirs.intercept_[0]], rtol=1e-3)


def test_whole_exponents_are_structure_and_a_formula_without_value_stays() -> None:
    x = np.linspace(1, 2, 50)
    root, least = converged(parse_tree("1.1*x**2", ["x"]), x[:, None], 3 * x**2, np.ones(50), find_loss("relative"))
    assert constants(root) == pytest.approx([3.0, 2.0])
    assert least < 1e-12
    lost = parse_tree("1.1*log(x - 5)", ["x"])
    assert converged(lost, x[:, None], x, np.ones(50), find_loss("absolute")) == (lost, np.inf)
