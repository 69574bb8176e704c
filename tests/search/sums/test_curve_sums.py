"""A text-book's curve beside other columns: shifted and scaled by them, and by whole categories."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gmeql import GMEQLRegressor
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import calls, used_columns
from gmeql.network.families import FunctionSet
from gmeql.search.sums.curve_sums import curves_beside_columns
from thinned import thinned

ALL = FunctionSet(None)
LAWS: dict[str, tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], set[int]]] = {
    "cooling towards a room": (lambda x, z: z + (92 - z) * np.exp(-0.3 * x), {0, 1}),
    "saturation beside a column": (lambda x, z: 30 * x / (x + 2) + 0.4 * z, {0, 1}),
    "a logarithm that a column scales": (lambda x, z: (2 + 0.3 * z) * np.log(x) + 5, {0, 1}),
    "a power beside a column": (lambda x, z: 4 * x**0.4 - 0.2 * z, {0, 1}),
}


@pytest.mark.parametrize("case", LAWS.values(), ids=LAWS)
def test_the_curve_and_what_shifts_or_scales_it(
    case: tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], set[int]], rng: np.random.Generator
) -> None:
    law, said = case
    X = np.column_stack([rng.uniform(0.2, 10, 120), rng.choice([18.0, 20, 22, 24, 26], 120), rng.standard_normal(120)])
    truth = law(X[:, 0], X[:, 1])
    y = truth + 0.02 * truth.std() * rng.standard_normal(120)
    found = curves_beside_columns(X, y, np.ones(120), ALL)
    errors = [np.sqrt(np.mean((Expression(curve.root, ("x", "z", "u"))(X) - truth) ** 2)) for curve in found]
    best = found[int(np.argmin(errors))]
    assert min(errors) < 0.02 * truth.std() and set(used_columns(best.root)) == said and best.nats < 10


def test_batches_of_a_dose_response(rng: np.random.Generator) -> None:
    """`89.8*(dose - 0.18*E)**5/(dose + 1)**5 + 5.5` was said of these."""
    dose, batch = np.tile([0.0, 0.5, 1, 2, 4, 8, 16, 32, 64], 6), np.repeat(np.arange(6), 9)
    X = np.column_stack([dose, *(batch == k for k in range(6))]).astype(float)
    truth = 93 - 88 / (1 + (dose / 6.5) ** 1.4) + np.array([0, 0, 6, 0, -5, 0])[batch]
    best, *_ = curves_beside_columns(X, truth + rng.standard_normal(54), np.ones(54), ALL)
    assert set(used_columns(best.root)) == {0, 3, 5}
    assert np.sqrt(np.mean((Expression(best.root, tuple("abcdefg"))(X) - truth) ** 2)) < 0.6


def test_nothing_beside_nothing(rng: np.random.Generator) -> None:
    X, noise = rng.standard_normal((200, 4)), rng.standard_normal(200)
    assert curves_beside_columns(X, noise, np.ones(200), ALL) == []
    assert (
        curves_beside_columns(np.exp(X[:, :1]), np.exp(X[:, 0]), np.ones(200), ALL) == []
    )  # of one column others tell
    y = 3 * np.exp(X[:, 0]) + X[:, 1] + 0.1 * noise
    assert curves_beside_columns(X, y, np.ones(200), ALL)
    assert curves_beside_columns(X, y, np.ones(200), FunctionSet(("add", "mul"))) == []
    assert curves_beside_columns(X[:12], y[:12], np.ones(12), ALL) == []


def test_all_rows_are_fitted_of_a_long_table(rng: np.random.Generator) -> None:
    X = rng.uniform(0.1, 5, (6000, 2))
    y = 3 * X[:, 0] / (X[:, 0] + 1) + 0.4 * X[:, 1] + 0.5 * rng.standard_normal(6000)
    found = curves_beside_columns(X, y, np.ones(6000), ALL)
    assert any(abs(Expression(curve.root, ("a", "b"))(X) - y).mean() < 0.401 for curve in found)


def test_a_fit_says_it(rng: np.random.Generator) -> None:
    """`51.4*exp(6.63/room - 0.043*minute) + room` was chosen."""
    minute, room = np.tile(np.arange(0, 60, 2.5), 5), np.repeat([18.0, 20, 22, 24, 26], 24)
    y = room + (92 - room) * np.exp(-0.043 * minute) + 0.4 * rng.standard_normal(120)
    model = GMEQLRegressor(max_candidates=1000, max_time=None, random_state=0, n_jobs=1)
    model.fit(np.column_stack([minute, room]), y)
    assert {call.operator for call in calls(model.expression_.root)} <= {"add", "sub", "mul", "neg", "exp"}
    truth = lambda t, r: r + (92 - r) * np.exp(-0.043 * t)  # noqa: E731
    np.testing.assert_allclose(model.predict([[30.0, 21.0], [5.0, 25.0]]), [truth(30, 21), truth(5, 25)], atol=0.5)


@pytest.mark.parametrize("seed", thinned(range(6), quick=(0, 5)))
def test_a_power_of_any_exponent_that_a_column_scales_is_found_without_what_made_up_for_the_grid(seed: int) -> None:
    """Curves that bend as they like come closer beside columns alone: `36.4*z + (1.27 - 36.4*z)/(1 + (x/49)**0.749)` was said."""
    rng = np.random.default_rng(seed)
    x, z = np.tile(np.arange(0, 11.0), 6), rng.uniform(1, 5, 66)
    exponent = float(rng.uniform(0.55, 0.9) if seed % 2 else rng.uniform(1.1, 1.9))
    y = 2 * x**exponent * z + 1 + 0.01 * rng.standard_normal(66)
    best = curves_beside_columns(np.column_stack([x, z]), y, np.ones(66), FunctionSet(None))[0]
    found = Expression(best.root, ("x", "z"))
    powers = [call.args[1] for call in calls(best.root) if call.operator == "pow"]
    assert [power.value for power in powers] == pytest.approx([exponent], abs=0.003)
    errors = found(np.column_stack([x, z])) - (2 * x**exponent * z + 1)
    assert np.sqrt(np.mean(errors**2)) < 0.005
