"""Polished formulas: dead terms go, constants become what people write, noise is not fitted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Variable, build
from gmeql.search.polish.polishing import polish
from gmeql.search.polish.recognition import all_recognised
from gmeql.search.polish.scoring import JudgedRows, description_length
from judged_rows import NAMES, rows, show, x, y, z
from random_trees import call


def off(c: float) -> float:
    """A constant as an unfinished fit leaves it."""
    return c * (1 + 3e-4)


def test_ballast_is_cut_and_constants_are_snapped() -> None:
    data = rows(lambda X: 1.2 * X[:, 0] ** 2 + 0.5 * np.sin(2 * X[:, 1]))
    ballast = call(
        "add", call("mul", off(1.2), call("square", x)), call("mul", off(0.5), call("sin", call("mul", off(2.0), y))),
        call("mul", 3e-5, z), call("mul", -2e-4, call("cos", x)), 1e-4,
    )  # fmt: skip
    best = polish(ballast, data)[0]
    assert show(best.root) in ("1.2*x**2 + 0.5*sin(2*y)", "0.5*sin(2*y) + 1.2*x**2")
    assert best.loss < 1e-25


def test_terms_that_cancel_each_other_go() -> None:
    data = rows(lambda X: X[:, 0] + 2.0)
    twins = call("add", x, call("mul", 3.001, y), call("mul", -3.0, y), 1.0, 1.001)
    assert show(polish(twins, data)[0].root) == "x + 2"


def test_a_factor_that_does_nothing_goes() -> None:
    data = rows(lambda X: 2.5 * X[:, 0] / X[:, 1])
    root = call("mul", 2.4, x, call("pow", y, -1.01), call("pow", z, 0.003))
    assert show(polish(root, data)[0].root) == "2.5*x/y"


def test_a_phase_becomes_a_cosine() -> None:
    data = rows(lambda X: np.cos(1.5 * X[:, 0]))
    root = call("sin", call("add", call("mul", 1.5, x), math.pi / 2 + 1e-3))
    assert show(polish(root, data)[0].root) == "cos(1.5*x)"


@pytest.mark.parametrize("value", [math.pi, 2 * math.pi, math.pi / 4, 4 * math.pi / 3, 1 / math.pi])
def test_multiples_of_pi_are_recognised(value: float) -> None:
    data = rows(lambda X: value * X[:, 0])
    best = polish(call("mul", value * (1 + 1e-4), x), data)[0]
    (constant,) = Expression(best.root, NAMES).constants
    assert constant == pytest.approx(value, rel=1e-15) and all_recognised(best.root)


def test_exact_data_keep_digits_that_matter() -> None:
    """1.2345678 is no number that 1.2 can stand for when the data are exact."""
    data = rows(lambda X: 1.2345678 * X[:, 0])
    best = polish(call("mul", 1.2, x), data)[0]
    assert Expression(best.root, NAMES).constants[0] == pytest.approx(1.2345678, rel=1e-9)


def test_terms_that_fit_only_noise_are_cut_and_real_ones_stay() -> None:
    data = rows(lambda X: 1.5 * X[:, 0] ** 2 + 0.8 * X[:, 1], noise=0.1, n=300, seed=3)
    root = call(
        "add", call("mul", 1.5, call("square", x)), call("mul", 0.8, y), call("mul", 0.01, call("sin", z)),
        call("mul", 0.01, call("cube", y)), 0.01,
    )  # fmt: skip
    best = polish(root, data)[0]
    used = Expression(best.root, NAMES).variables
    assert set(used) == {0, 1}
    assert best.loss == pytest.approx(0.01, rel=0.2)
    assert "sin" not in show(best.root) and "x**2" in show(best.root)


def test_every_formula_met_is_scored_with_its_own_constants() -> None:
    data = rows(lambda X: X[:, 0] * X[:, 1] + 0.3 * X[:, 2])
    for met in polish(call("add", call("mul", 1.1, x, y), call("mul", 0.4, z), 0.2), data):
        residual = Expression(met.root, NAMES)(data.X) - data.target
        assert np.mean(residual**2) == pytest.approx(met.loss, rel=1e-6, abs=1e-24)
        assert met.length >= description_length(met.root, met.loss, data) - 1e-9  # a free constant is never cheaper


def test_nested_fractions_become_one():
    """What hides a ratio of two sums is written as that ratio."""
    a, b, c = Variable(0), Variable(1), Variable(2)
    nested = build("add", build("div", build("sub", a, b), build("add", build("div", c, b), Constant(1.0))), b)
    X = np.random.default_rng(0).uniform(1, 3, (100, 3))
    y = Expression(nested, ("a", "b", "c"))(X)
    best = polish(nested, JudgedRows.of(X, y, None, ("a", "b", "c")))[0]
    assert str(Expression(best.root, ("a", "b", "c"))) == "b*(a + c)/(b + c)"
    assert np.allclose(Expression(best.root, ("a", "b", "c"))(X), y)


def test_the_cleanest_comes_first() -> None:
    data = rows(lambda X: 2 * X[:, 0] + X[:, 1], noise=0.05)
    met = polish(call("add", call("mul", 1.9, x), y, call("mul", 0.01, z)), data)
    assert met[0].length == min(one.length for one in met)
