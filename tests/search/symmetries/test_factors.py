"""Factors of one column, read off slopes."""

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Variable, build
from gmeql.search.symmetries.factors import factors_of_column, put
from gmeql.search.symmetries.smaller import find_views

FACTORS = {
    "a root": (lambda x: np.sqrt(x), lambda x: 0.5 / np.sqrt(x)),
    "a cosine": (np.cos, lambda x: -np.sin(x)),
    "a squared sine over a square": (
        lambda x: (np.sin(x / 2) / x) ** 2,
        lambda x: np.sin(x / 2) * np.cos(x / 2) / x**2 - 2 * np.sin(x / 2) ** 2 / x**3,
    ),
    "an exponential times a power": (lambda x: x**3 * np.exp(-x), lambda x: (3 * x**2 - x**3) * np.exp(-x)),
    "a bell around 1": (lambda x: np.exp(-((x - 1) ** 2)), lambda x: -2 * (x - 1) * np.exp(-((x - 1) ** 2))),
    "a bell around 0": (lambda x: np.exp(-(x**2) / 2), lambda x: -x * np.exp(-(x**2) / 2)),
}


@pytest.mark.parametrize("name", FACTORS)
def test_a_factor_is_read_off_exact_slopes(name):
    rng = np.random.default_rng(0)
    x, rest = rng.uniform(1, 3, 300), rng.uniform(1, 2, 300)
    g, derivative = FACTORS[name]
    found = sorted(factors_of_column(x, derivative(x) * rest, g(x) * rest), key=lambda one: one[0])
    ratio = Expression(found[0][1], ("x",))(x[:, None]) / g(x)
    assert np.ptp(ratio) < 1e-9 * abs(ratio[0])


def test_two_functions_must_be_far_better_than_one():
    rng = np.random.default_rng(0)
    x, rest = rng.uniform(1, 3, 300), rng.uniform(1, 2, 300)
    found = list(factors_of_column(x, 2 * x * rest, x**2 * rest))
    best = min(found, key=lambda one: one[0])
    assert str(Expression(best[1], ("x",))) == "x**2"
    assert all(misfit > 0.02 or len(str(Expression(node, ("x",)))) < 8 for misfit, node in found)


def test_a_formula_takes_the_place_of_the_column():
    factor = build("sin", Variable(0))
    assert str(Expression(put(factor, build("mul", Variable(1), Variable(2))), ("a", "b", "c"))) == "sin(b*c)"


def test_a_bell_before_a_fraction_loses_its_column():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.3, 4, (500, 2))
    y = np.exp(-((X[:, 0] - 1) ** 2)) / (1.2 + (X[:, 1] - 2.5) ** 2)
    smallest = find_views(X, y)[0]
    assert smallest.columns == (Variable(1),)
    ratio = smallest.factors(X) / np.exp(-((X[:, 0] - 1) ** 2))
    assert np.ptp(ratio) < 1e-9 * abs(ratio[0])


def test_slits_lose_the_column_of_the_single_slit():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.uniform(1, 3, 500), rng.uniform(1, 3, 500), rng.uniform(1, 2, 500)])
    a, d, n = X.T
    y = (np.sin(a / 2) / a * np.sin(n * d / 2) / np.sin(d / 2)) ** 2
    smallest = find_views(X, y)[0]
    assert [str(Expression(c, ("a", "d", "n"))) for c in smallest.columns] == ["d", "n"]
    assert str(Expression(smallest.factor, ("a", "d", "n"))) == "sin(0.5*a)**2/a**2"
