"""What intervals are made of: covariances under every loss against simulations, and under errors of inputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.model.certainty.intervals import PredictionBasis, constant_intervals
from gmeql.model.certainty.linearised import linearised_by_loss
from gmeql.search.losses.converging import converged
from gmeql.search.losses.effective import InputErrors, least_effective
from gmeql.search.losses.losses import find_loss
from thinned import thinned

ROWS, RUNS = 120, 60


def noisy(noise: Callable[[np.random.Generator, np.ndarray], np.ndarray]) -> Callable[[np.random.Generator], tuple]:
    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x = rng.uniform(0, 3, ROWS)
        return x[:, None], noise(rng, 1.5 * x + 2.7)

    return draw


SIMULATED = {
    "absolute": noisy(lambda rng, f: f + rng.laplace(0, 0.5, ROWS)),
    "log-cosh": noisy(lambda rng, f: f + rng.laplace(0, 0.5, ROWS)),
    "quantile:0.5": noisy(lambda rng, f: f + rng.normal(0, 0.5, ROWS)),
    "poisson": noisy(lambda rng, f: rng.poisson(f).astype(float)),
    "relative": noisy(lambda rng, f: f * (1 + rng.normal(0, 0.02, ROWS))),
    "logistic": noisy(lambda rng, f: (rng.uniform(size=ROWS) < 1 / (1 + np.exp(4 - f))).astype(float)),
}


@pytest.mark.parametrize("loss", thinned(SIMULATED, quick=(0, 4)))
def test_standard_errors_are_what_simulations_show(loss: str) -> None:
    rng, entry = np.random.default_rng(5), find_loss(loss)
    slopes, claimed = [], []
    for _ in range(RUNS):
        X, y = SIMULATED[loss](rng)
        root, _ = converged(parse_tree("1.4*x + 0.5", ["x"]), X, y, np.ones(ROWS), entry)
        expression = Expression(root, ("x",))
        slopes.append(expression.constants[0])
        claimed.append(constant_intervals(expression, X, y, loss=loss)[0].standard_error)
    # a standard deviation of 60 draws is known to a tenth
    assert np.mean(claimed) == pytest.approx(np.std(slopes), rel=0.35)


def test_the_bootstrap_agrees_under_a_loss() -> None:
    X, y = SIMULATED["absolute"](np.random.default_rng(0))
    root, _ = converged(parse_tree("1.4*x + 2.8", ["x"]), X, y, np.ones(ROWS), find_loss("absolute"))
    expression = Expression(root, ("x",))
    by_slopes = constant_intervals(expression, X, y, loss="absolute")
    drawn = constant_intervals(expression, X, y, loss="absolute", method="bootstrap", resamples=60)
    for one, other in zip(by_slopes, drawn, strict=True):
        assert other.standard_error == pytest.approx(one.standard_error, rel=0.5)


def test_errors_of_inputs_widen_intervals_and_do_not_move_them_to_least_squares() -> None:
    rng = np.random.default_rng(3)
    slopes, claimed, held = [], [], 0
    errors = InputErrors(np.full((ROWS, 1), 0.4), np.full(ROWS, 0.2))
    for _ in range(RUNS):
        t = rng.uniform(0, 3, ROWS)
        X, y = (t + 0.4 * rng.standard_normal(ROWS))[:, None], 1.5 * t + 0.7 + 0.2 * rng.standard_normal(ROWS)
        root = least_effective(parse_tree("1.2*x + 0.8", ["x"]), X, y, np.ones(ROWS), errors)
        (slope, _) = constant_intervals(Expression(root, ("x",)), X, y, errors=errors)
        slopes.append(slope.value)
        claimed.append(slope.standard_error)
        held += slope.low < 1.5 < slope.high
    assert held >= 0.85 * RUNS
    assert np.mean(claimed) == pytest.approx(np.std(slopes), rel=0.35)


def test_a_constant_that_the_rows_do_not_determine_has_no_error() -> None:
    X, y = SIMULATED["absolute"](np.random.default_rng(1))
    expression = Expression(parse_tree("1.5*x + 2.7 + 0*exp(0.3*x)", ["x"]), ("x",))
    fitted = linearised_by_loss(expression, np.array([0, 3]), X, y, np.ones(ROWS), find_loss("log-cosh"))
    assert fitted.undetermined.tolist() == [False, True]


@pytest.mark.parametrize(("loss", "has"), [("absolute", True), ("poisson", False), ("quantile:0.9", False)])
def test_prediction_intervals_only_where_errors_are_of_one_size(loss: str, has: bool) -> None:
    X, y = SIMULATED["absolute"](np.random.default_rng(2))
    basis = PredictionBasis.or_reason(Expression(parse_tree("1.5*x + 2.7", ["x"]), ("x",)), X, np.abs(y), None, loss)
    assert isinstance(basis, PredictionBasis) == has
    if isinstance(basis, PredictionBasis):
        low, high = basis.interval(X)
        assert 0.8 < np.mean((low < y) & (y < high)) < 1
