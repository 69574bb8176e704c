"""Curves of text-books: found with their constants, and only where the rows speak for them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from gmeql import GMEQLRegressor
from gmeql.formula.expression import Expression
from gmeql.network.families import FunctionSet
from gmeql.search.sums.textbook import few_rows, textbook_curves

ALL = FunctionSet(None)
LAWS = {
    "saturation": lambda x: 8 * x / (x + 1.2),
    "rise": lambda x: 5 * (1 - np.exp(-0.7 * x)),
    "growth": lambda x: 0.5 * np.exp(0.3 * x),
    "decay to a level": lambda x: 20 * np.exp(-0.6 * x) + 3,
    "power": lambda x: 2 * x**0.75,
    "logistic": lambda x: 1 / (1 + np.exp(1.1 * (5 - x))),
    "to both sides": lambda x: 2.2 * np.tanh(0.4 * x),
    "titration": lambda x: 3 + 7 / (1 + np.exp(2.5 * (6 - x))),
    "inhibition": lambda x: 9 - 6 / (1 + np.exp(1.2 * (4 - x))),
    "logarithm": lambda x: 2 * np.log(x) + 1,
    "parabola": lambda x: 0.5 * x**2 - 4 * x + 1,
    "saturation above a level": lambda x: 3 + 8 * x / (x + 1.2),
    "cooperation": lambda x: 6 / (1 + (3 / x) ** 2.7),
    "inhibition with cooperation": lambda x: 6 / (1 + (x / 4) ** 1.8),
    "response to a dose": lambda x: 5 + 90 / (1 + (2 / x) ** 1.6),
    "Gompertz": lambda x: 7 * np.exp(-np.exp(0.6 * (4 - x))),
    "a dose taken in and lost": lambda x: 9 * x * np.exp(-0.6 * x),
    "peak": lambda x: 5 * np.exp(-(((x - 4) / 1.5) ** 2)),
    "peak above a level": lambda x: 2 + 5 * np.exp(-(((x - 6) / 1.2) ** 2)),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_every_curve_is_found_among_columns_of_no_use(law: object, rng: np.random.Generator) -> None:
    X = np.column_stack([rng.standard_normal(60), rng.uniform(0.2, 10, 60)])
    truth = law(X[:, 1])  # type: ignore[operator]
    y = truth + 0.02 * truth.std() * rng.standard_normal(60)
    best, *_ = textbook_curves(X, y, np.ones(60), ALL)
    expression = Expression(best.root, ("a", "b"))
    assert expression.variables == (1,) and best.nats < 4
    assert np.sqrt(np.mean((expression(X) - truth) ** 2)) < 0.01 * truth.std()


def test_a_dose_of_nothing_is_a_dose(rng: np.random.Generator) -> None:
    """Controls have dose 0: no curve with cooperation was tried beside them."""
    X = np.tile([0.0, 0.5, 1, 2, 4, 8, 16, 32, 64], 8)[:, None]
    for law in (lambda x: 93 - 88 / (1 + (x / 6.5) ** 1.4), lambda x: 60 / (1 + (x / 5) ** 2.2)):
        y = law(X[:, 0]) + 0.5 * rng.standard_normal(len(X))
        best, *_ = textbook_curves(X, y, np.ones(len(X)), ALL)
        np.testing.assert_allclose(Expression(best.root, ("dose",))(X), law(X[:, 0]), atol=0.6)


def test_sorted_tables_are_looked_at_from_end_to_end(rng: np.random.Generator) -> None:
    """Of 3,000 rows in the order of their column the first 300 show a straight line."""
    X = np.sort(rng.uniform(0, 10, 3000))[:, None]
    truth = 8 * X[:, 0] / (X[:, 0] + 4)
    best, *_ = textbook_curves(X, truth + 0.1 * rng.standard_normal(3000), np.ones(3000), ALL)
    np.testing.assert_allclose(Expression(best.root, ("x",))(X), truth, atol=0.05)
    rows = few_rows(3000)
    assert len(rows) > 250 and np.diff(rows).max() < 25 and len(set(rows % 24)) == 24
    assert few_rows(20).tolist() == list(range(20))


def test_the_rate_of_a_reaction_is_one_over_a_temperature(rng: np.random.Generator) -> None:
    for low, is_temperature in ((280.0, True), (4.0, False)):
        X = rng.uniform(low, 400, (50, 1))
        y = 3e9 * np.exp(-20 * low / X[:, 0])
        found = [str(Expression(curve.root)) for curve in textbook_curves(X, y, np.ones(50), ALL)]
        assert any("exp(-" in text and text.endswith("/x1)") for text in found) == is_temperature, found


def test_functions_that_are_not_allowed_and_codes_have_no_curves(rng: np.random.Generator) -> None:
    X = rng.uniform(1, 5, (50, 1))
    assert all(
        "exp" not in str(Expression(c.root))
        for c in textbook_curves(X, X[:, 0], np.ones(50), FunctionSet(("add", "div")))
    )
    assert textbook_curves(np.rint(X), X[:, 0], np.ones(50), ALL) == []
    assert textbook_curves(X[:3], X[:3, 0], np.ones(3), ALL) == []


def test_twenty_rows_of_saturation_are_written_as_people_write_it() -> None:
    hits = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.uniform(0.2, 10, (20, 1))
        y = 8 * X[:, 0] / (X[:, 0] + 1.2) + 0.3 * rng.standard_normal(20)
        model = GMEQLRegressor(max_candidates=1000, max_time=None, random_state=seed, n_jobs=1).fit(X, y)
        hits += "/(x1 + " in str(model.expression_) and len(model.expression_.constants) == 2
    assert hits >= 2


def test_forty_rows_of_a_titration_are_a_step_between_two_levels() -> None:
    """`2.82 - 5.4e-06*x1**5 + 0.000151*x1**4` was chosen."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 25, (40, 1))
    truth = 3 + 7 / (1 + np.exp(1.5 * (14 - X[:, 0])))
    y = truth + 0.1 * rng.standard_normal(40)
    model = GMEQLRegressor(max_candidates=500, max_time=None, random_state=0, n_jobs=1).fit(X, y)
    assert np.sqrt(np.mean((model.predict(X) - truth) ** 2)) < 0.1


@pytest.mark.parametrize(("shift", "scale"), [(100.0, 1.0), (0.0, 1e200), (0.0, 1e308)])
def test_numbers_beyond_all_range_are_no_curve_and_no_warning(
    shift: float, scale: float, rng: np.random.Generator
) -> None:
    X = shift + rng.normal(size=(100, 1))
    y = scale * rng.uniform(-1, 1, 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for curve in textbook_curves(X, y, np.ones(100), ALL):
            assert np.isfinite(Expression(curve.root, ("x",))(X)).all()
