"""Customary forms: the same value, at most a unit longer, and what people expect to read."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import random_trees
from gmeql.formula.customary import LARGEST_FACTOR, MOST_ADDED, customary
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Variable, tree_complexity
from gmeql.formula.parsing import parse_tree
from gmeql.formula.simplify import simplify
from random_trees import call
from thinned import examples

X = random_trees.rows()
NAMES = ("x", "y", "z")
x = Variable(0)


def text(formula: str) -> str:
    return str(Expression(customary(simplify(parse_tree(formula, NAMES))), NAMES))


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("3.25/(1/x + 0.5)", "6.5*x/(x + 2)"),
        ("3/(2/x + 0.5)", "6*x/(x + 4)"),
        ("1/(2 + 4/x)", "0.5*x/(x + 2)"),
        ("3*y/(1/x + 0.5)", "6*x*y/(x + 2)"),
        ("1 + 3/(2/x + 0.5)", "6*x/(x + 4) + 1"),
        ("-1826/(1 - 558600/x)", "1826*x/(558600 - x)"),
        ("-3/(1 - x)", "3/(x - 1)"),
        ("y - 3/(1 - x)", "3/(x - 1) + y"),
        ("-3/(1 + x)", "-3/(x + 1)"),
        ("3.2/(2.5/x**2 + 1)", "3.2*x**2/(x**2 + 2.5)"),
        ("2/(3/x**3 + 0.5) + y", "4*x**3/(x**3 + 6) + y"),
        ("3.9/(1/sqrt(x) + 0.78)", "5*sqrt(x)/(sqrt(x) + 1.2821)"),
        ("5/(1 + 2*exp(-3*x))", "5/(2*exp(-3*x) + 1)"),
        ("5*exp(-3*x)", "5*exp(-3*x)"),
        ("exp(-(x - 1)**2)/(y + 2)", "exp(-(x - 1)**2)/(y + 2)"),
        ("3*exp(-0.5*((x - 2)/0.1)**2) + y", "3*exp(-50*(x - 2)**2) + y"),
        ("exp(-2*(x + 3)**2)", "exp(-2*(x + 3)**2)"),
        ("2*exp(x**2 - x)", "2*exp(x**2 - x)"),
        ("y*exp(0.8*x - 0.32*x**2)", "y*exp(0.8*x - 0.32*x**2)"),
        ("2*y*exp(0.8*x - 0.32*x**2)", "3.2974*y*exp(-0.32*(x - 1.25)**2)"),
        ("exp(-(x - 1)**2 - 2)*y", "0.13534*y*exp(-(x - 1)**2)"),
        ("2*exp(-x**2)", "2*exp(-x**2)"),
        ("2*sin(3*x)", "2*sin(3*x)"),
        ("sin(x*(-y - z))", "-sin(x*(y + z))"),
        ("y + 3*tanh(x*(-y - z))", "y - 3*tanh(x*(y + z))"),
        ("cos(x*(-y - z))", "cos(x*(y + z))"),
        ("cos(abs(x))", "cos(x)"),
        ("abs(3*x) - y", "3*abs(x) - y"),
        ("abs(-3*x*y)", "3*abs(x*y)"),
        ("abs(abs(2/y))", "2*abs(1/y)"),
        ("abs(x - 2)**2", "(x - 2)**2"),
        ("y*abs(x)**4/abs(z)**2", "x**4*y/z**2"),
        ("abs(x)**3", "abs(x)**3"),
        ("-2*sin(3*x)", "-2*sin(3*x)"),
        ("3*cos(0.5*x)*sin(0.5*x) + y", "1.5*sin(x) + y"),
        ("x*sin(2*y + 1)*cos(2*y + 1)", "0.5*x*sin(4*y + 2)"),
        ("(sin(3*x)*cos(3*x))**2", "0.25*sin(6*x)**2"),
        ("sin(x)*cos(y)", "sin(x)*cos(y)"),
        ("sin(x)**2*cos(x)", "cos(x)*sin(x)**2"),
        ("0.6*sin(x - y) + 0.6*sin(x + y)", "1.2*sin(x)*cos(y)"),
        ("0.6*sin(x + y) - 0.6*sin(x - y)", "1.2*cos(x)*sin(y)"),
        ("3*cos(x - 2*y) + 3*cos(x + 2*y) + z", "6*cos(x)*cos(2*y) + z"),
        ("3*cos(x - 2*y) - 3*cos(x + 2*y)", "6*sin(x)*sin(2*y)"),
        ("z*sin(3*x - y) + z*sin(3*x + y)", "2*z*sin(3*x)*cos(y)"),
        ("(0.6*sin(x - y) + 0.6*sin(x + y))*z", "1.2*z*sin(x)*cos(y)"),
        ("sin(3*x) + sin(x)", "sin(3*x) + sin(x)"),
        ("2*cos(3*x/y + 2.5)*cos(3*x/y) + 1", "cos(6*x/y + 2.5) + 0.19886"),
        ("2*cos(3*x/y + 2.5)*cos(3*x/y) + 0.8011436155469337", "cos(6*x/y + 2.5)"),
        ("3 - 4*sin(3*x*y)*sin(3*x*y - 0.5)", "1.2448 - 2*cos(6*x*y + 2.6416)"),
        ("3 + 4*sin(3*x*y + 0.5)*cos(3*x*y + 0.1)", "2*sin(6*x*y + 0.6) + 3.7788"),
        ("sin(x + 1)*sin(x)", "sin(x + 1)*sin(x)"),
        ("0.6*sin(x - y) + 0.5*sin(x + y)", "0.6*sin(x - y) + 0.5*sin(x + y)"),
        ("6.2832*x**1.5/(sqrt(y)*sqrt(z))", "6.2832*x**1.5/sqrt(y*z)"),
        ("1.4142135623730951*sqrt(x)*sqrt(y)/sqrt(z)", "sqrt(2*x*y/z)"),
        ("-sqrt(7.5)*sqrt(x)", "-sqrt(7.5*x)"),
        ("x*sqrt(y)/sqrt(z + 1)", "x*sqrt(y/(z + 1))"),
        ("2*sqrt(x)", "2*sqrt(x)"),
        ("1.2345e-200*sqrt(x)", "1.2345e-200*sqrt(x)"),  # whose square is 0 or no number
        ("1.2345e+200*sqrt(x)", "1.2345e+200*sqrt(x)"),
        ("1.4142135623730951e-10*sqrt(x)", "1.4142e-10*sqrt(x)"),
        ("1.2345*sqrt(x)*y", "1.2345*y*sqrt(x)"),
        ("sqrt(2)*x", "1.4142*x"),
        ("exp(z*(log(x) - log(y)))", "(x/y)**z"),
        ("1 - exp(-exp(z*log(x) - z*log(y)))", "1 - exp(-(x/y)**z)"),
        ("exp(-log(x)**2)", "exp(-log(x)**2)"),
        ("y/(cos(2*x) - 4*cos(x) + 3)", "0.5*y/(cos(x) - 1)**2"),
        ("3*cos(2*x*y) + 8*sin(x*y) + z - 5.6666666666666667", "z - 6*(sin(x*y) - 0.66667)**2"),
        ("cos(2*x) - 4*cos(x) + 2", "cos(2*x) - 4*cos(x) + 2"),
        ("3*x*(log(z) - log(y))", "3*x*log(z/y)"),
        ("2*log(x + 1) - 2*log(y) + z", "2*log((x + 1)/y) + z"),
        ("log(x) + log(y)", "log(x) + log(y)"),
        ("2*log(x) - log(y)", "2*log(x) - log(y)"),
        ("x*log(x) - y*log(y)", "x*log(x) - y*log(y)"),
        ("log(3*x) - log(x)", "1.0986"),
        ("sqrt(x**2 - 2*x*y + y**2 + z**2)", "sqrt((x - y)**2 + z**2)"),
        ("4*x**2 + 4*x*y + y**2 + z", "(2*x + y)**2 + z"),
        ("-x**2 + 2*x*y*z - y**2*z**2", "-(x - y*z)**2"),
        ("x**2 + x*y + y**2", "x*(x + y) + y**2"),
        ("x**2 - 2*x*y - y**2", "x*(x - 2*y) - y**2"),
        ("x**2 - 6*x + 14", "(x - 3)**2 + 5"),
        ("10/(x**2 - 6*x + y**2 - 6*y + z**2 + 2*z + 24)", "10/((x - 3)**2 + (y - 3)**2 + (z + 1)**2 + 5)"),
        ("x**2*z - 6*x*z + 9*z + y", "z*(x - 3)**2 + y"),
        ("x**4 + 2*x**2 + 1 + y", "(x**2 + 1)**2 + y"),
        ("2*x**2 - 4*x", "2*x*(x - 2)"),
        ("x**2 + x + 1", "x**2 + x + 1"),
        ("2.31*x**2 - 4.7*x + 3", "2.31*x**2 - 4.7*x + 3"),
        ("6.7e-11*x*y/z**2", "6.7e-11*x*y/z**2"),
        ("5.67e-8*x**4", "5.67e-08*x**4"),
        ("1e-18*x**6", "(x/1000)**6"),
        ("1e18/x**6", "(1000/x)**6"),
        ("1e-20*x", "1e-20*x"),
        ("1e-14*x**1.5", "1e-14*x**1.5"),
        ("2.3*(x + 0.312)**2", "2.3*(x + 0.312)**2"),
        ("6.1e8*(1 - 4.3e-7*x)**2 + y", "0.000112789*(x - 2.3256e+06)**2 + y"),
        ("6e8/(1 - 4e-7*x)**2", "6e+08/(1 - 4e-07*x)**2"),
        ("1e-9*(3.21e5*x + 1)**2", "103.04*(x + 3.1153e-06)**2"),
        ("3.7*sqrt(x)/(2.5*y - 4)**2", "0.592*sqrt(x)/(y - 1.6)**2"),
        ("2.3*exp(x)*(1 - 0.41*x)", "2.3*(1 - 0.41*x)*exp(x)"),
        ("2.3/(3.21*x + 1)", "2.3/(3.21*x + 1)"),
        ("1.06e-05*(5786.8*x - 1.56e+08/z - (x/y)**2)*x", "0.06134*x*(x - 0.00017281*x**2/y**2 - 26958/z)"),
    ],
)
def test_known_forms(formula: str, expected: str) -> None:
    assert text(formula) == expected


@pytest.mark.parametrize("formula", ["3/(2/x**1.7 + 1)", "12/(1/x + 2)**2"])
def test_a_form_that_is_two_units_longer_is_not_taken(formula: str) -> None:
    assert customary(parse_tree(formula, NAMES)) == parse_tree(formula, NAMES)


@pytest.mark.parametrize("wave", ["sin", "cos"])
@pytest.mark.parametrize("amplitude", [2.0, -2.0])
@pytest.mark.parametrize("phase", [0.5, 3.0, -3.0, 3.5, 9.0, -40.0, 1000.0])
def test_waves_have_a_positive_amplitude_and_a_phase_within_half_a_turn(
    wave: str, amplitude: float, phase: float
) -> None:
    root = call("mul", amplitude, call(wave, call("add", call("mul", 3.0, x), phase)))
    form = Expression(customary(root), NAMES)
    first, _, turned = form.constants
    assert first == 2.0 and -math.pi <= turned <= math.pi
    assert form.complexity == tree_complexity(root)
    np.testing.assert_allclose(form(X), Expression(root, NAMES)(X), atol=1e-11)


def test_a_huge_factor_goes_into_the_exponential() -> None:
    root = call("mul", -1e130, call("exp", call("mul", -3.0, x)))
    form = Expression(customary(root), NAMES)
    assert max(map(abs, form.constants)) < 300 and form.complexity <= tree_complexity(root) + MOST_ADDED
    there = np.full((1, 3), 99.0)
    np.testing.assert_allclose(form(there), Expression(root, NAMES)(there), rtol=1e-12)
    arrhenius = parse_tree("1e11*exp(-5000/x)", NAMES)
    assert LARGEST_FACTOR > 1e11 and customary(arrhenius) == arrhenius


@given(
    st.floats(-10, 10).map(lambda e: 10.0**e),
    st.floats(-10, 10).map(lambda e: 10.0**e),
    st.sampled_from([-1.0, 1.0]),
    st.sampled_from([-3, -2, 2, 3, 4]),
)
def test_a_power_of_a_distance_has_no_wilder_constants_than_it_could(
    factor: float, slope: float, sign: float, power: int
) -> None:
    """a*(1 + b*x)**n has one more way to be written, a*b**n*(x + 1/b)**n: the shorter, unless its constants are wild."""

    def decades(value: float) -> float:
        return abs(math.log10(abs(value)))

    root = simplify(parse_tree(f"{factor!r}*(1 + {sign * slope!r}*x)**{power}", NAMES))
    written = Expression(customary(root), NAMES)
    wildest = max(map(decades, written.constants))
    forms = max(decades(factor), decades(slope)), max(decades(factor * slope**power), decades(slope))
    assert wildest <= min(forms) + 2.0 + 1e-6
    rows = np.linspace(0.1, 3, 7)[:, None] * np.ones(3) / slope
    with np.errstate(all="ignore"):
        exact = factor * (1 + sign * slope * rows[:, 0]) ** power
        assert written(rows) == pytest.approx(exact, rel=1e-6, abs=1e-9 * factor)


def test_protected_parts_stay() -> None:
    root = call("div", 3.0, call("add", call("inv", x), 0.5), protected=True)
    assert customary(root) == root


@examples(200)
@given(random_trees.expressions())
def test_the_value_stays_and_the_complexity_grows_by_a_unit_at_most(expression: Expression) -> None:
    try:
        normal = expression.with_root(simplify(expression.root))
    except ArithmeticError:
        assume(False)
        raise
    form = normal.with_root(customary(normal.root))
    assert form.complexity <= normal.complexity + MOST_ADDED
    rows = random_trees.comparable(normal, X) & random_trees.all_parts_finite(normal, X)
    rows &= random_trees.comparable(form, X)
    np.testing.assert_allclose(form(X)[rows], normal(X)[rows], rtol=1e-9)


@examples(100)
@given(random_trees.expressions(constants=random_trees.plain_constants, protected=False))
def test_a_second_time_changes_nothing_but_digits(expression: Expression) -> None:
    try:
        once = customary(simplify(expression.root))
    except ArithmeticError:
        assume(False)
        raise
    twice = customary(once)
    assert tree_complexity(twice) <= tree_complexity(once) + MOST_ADDED
    rows = random_trees.comparable(expression.with_root(once), X)
    rows &= random_trees.all_parts_finite(expression.with_root(once), X)
    rows &= random_trees.comparable(expression.with_root(twice), X)
    np.testing.assert_allclose(expression.with_root(twice)(X)[rows], expression.with_root(once)(X)[rows], rtol=1e-9)


def test_a_factor_of_zero_before_a_square_is_no_division() -> None:
    x = Variable(0)
    root = call("add", call("mul", Constant(0.0), call("square", x)), call("mul", Constant(3.0), x), Constant(1.0))
    assert Expression(customary(root))(np.array([[2.0]])) == pytest.approx(7.0)


def test_factors_that_are_zero_are_kept_as_they_are() -> None:
    """A fit may end with one, before it is tidied up."""
    assert customary(parse_tree("(0*x*y + 0*x)*z", NAMES)) is not None
