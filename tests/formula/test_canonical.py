"""SymPy objects are evaluated as NumPy would, and compared by canonical form."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from gmeql.formula.canonical import Undecided, canonical, compared_digits, evaluate
from gmeql.formula.parsing import parse_formula

NAMES = ["x1", "x2", "gamma", "I", "E_n"]


def read(text: str) -> sympy.Expr:
    return parse_formula(text, NAMES)


def test_harmonic_is_the_sum_at_whole_numbers() -> None:
    n = np.arange(1.0, 20.0)
    np.testing.assert_allclose(evaluate(read("harmonic(x1)"), {"x1": n}), np.cumsum(1 / n), rtol=1e-13)


EQUAL = [
    ("sqrt(1.3 + 1.2*x2/x1)", "(1.3*x1 + 1.2*x2)**0.5 * x1**(-1/2)"),
    ("1.2*sin(1.1*x1)*cos(0.9*x2)", "-1.2*sin(1.1*x1)*sin(0.9*x2 - pi/2)"),
    ("x1**2 + 2*x1 + 1", "(x1 + 1)**2"),
    ("exp(x1 + 2)", "exp(x1)*7.38905609893065"),
    ("exp(-x1)*exp(2*x2)", "exp(2*x2 - x1)"),
    ("log(2*x1)", "log(x1) + 0.693147180559945"),
    ("1/(1 + x1**(-4))", "x1**4/(x1**4 + 1)"),
    ("acos(x1)", "pi/2 - asin(x1)"),
    ("2**x1", "exp(0.693147180559945*x1)"),
    ("1/(x1 - x2)", "-1/(x2 - x1)"),
    ("sin(x1 - x2)", "-sin(x2 - x1)"),
    ("tanh(-x1*x2)", "-tanh(x2*x1)"),
    ("abs(-2*x1)", "2*abs(x1)"),
    ("x1/64", "0.01562500001*x1"),  # a tie at four digits
    ("2*x2*(x1 - 0.5) + 1.0000000001*x2", "2*x1*x2"),  # cancels at four digits
]


DIFFERENT = [
    ("x1 + 1e-9*x2", "x1"),
    ("x1/(1 + x1)", "x1/(1.01 + x1)"),
    ("0.8*x1**3", "0.801*x1**3"),
    ("sin(x1)", "cos(x1)"),
    ("sin(1.1*x1)", "sin(1.2*x1)"),
    ("sqrt(x1 + x2)", "sqrt(x1 - x2)"),
    ("x1**2.9", "x1**3"),
    ("exp(x1*x2)", "exp(x1 + x2)"),
    ("log(x1 + x2)", "log(x1) + log(x2)"),
    ("x1**x2", "x2**x1"),
    ("1/(x1 - x2)", "1/(x2 - x1)"),
]


@pytest.mark.parametrize("left, right", EQUAL)
def test_equal_formulas_share_a_form(left: str, right: str) -> None:
    assert canonical(read(left)) == canonical(read(right))


@pytest.mark.parametrize("left, right", DIFFERENT)
def test_different_formulas_do_not(left: str, right: str) -> None:
    assert canonical(read(left)) != canonical(read(right))


@pytest.mark.parametrize(
    "left, right, same",
    [
        ("0.8*x1**3 + 0.9*x2", "0.77*x1**3 + 0.95*x2", True),
        ("0.8*x1**3 + 0.9*x2", "0.77*x1**3 + 0.95*x2 + 0.01", False),
        ("0.8*x1**3", "0.77*x1**2.98", False),
        ("0.7689*x1**3.86", "0.8*x1**3.7", True),
        ("exp(-0.17*x1)/(0.01*x1 + 0.005)", "1.1*exp(-0.2*x1)/(0.02*x1 + 0.004)", True),
        ("sin(1.1*x1)", "sin(1.11*x1 + 0.02)", False),
        ("sqrt(1.3 + 1.2*x2/x1)", "sqrt(1.2 + 1.3*x2/x1)", True),
    ],
)
def test_skeletons_leave_constants_out(left: str, right: str, same: bool) -> None:
    assert (canonical(read(left), skeleton=True) == canonical(read(right), skeleton=True)) is same


def test_growth_is_given_up_not_waited_for() -> None:
    with pytest.raises(Undecided):
        canonical(read("*".join(f"(x1**{i} + x2**{i} + I**{i} + gamma + {i})**7" for i in range(1, 9))))


def test_walks_piecewise_like_sympy() -> None:
    x = sympy.Symbol("x1")
    formula = sympy.Piecewise((x**2, (x > 1) & (x < 3)), (sympy.Max(-x, 0.5), x < 1), (7, True))
    points = np.array([-2.0, 0.0, 1.0, 2.0, 3.0])
    expected = [float(formula.subs(x, value)) for value in points]
    np.testing.assert_allclose(evaluate(formula, {"x1": points}), expected)


@given(st.floats(1e-6, 1e6), st.floats(-1e-8, 1e-8))
def test_rounding_ignores_fitting_errors_at_short_decimals(value: float, error: float) -> None:
    short = float(f"{value:.3e}")
    assert compared_digits(short * (1 + error)) == short


numbers = st.integers(1, 9).map(lambda n: sympy.Float(n / 4))


leaves = st.one_of(numbers, st.sampled_from(sympy.symbols("x1 x2", real=True)))


trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda ab: ab[0] + ab[1]),
        st.tuples(inner, inner).map(lambda ab: ab[0] * ab[1]),
        inner.map(sympy.sin),
        inner.map(lambda a: a**2),
    ),
    max_leaves=6,
)


@given(trees, trees)
def test_multiplying_out_never_changes_the_form(a: sympy.Expr, b: sympy.Expr) -> None:
    product = a * (b + 1)
    assert canonical(product) == canonical(sympy.expand(product))
