"""Fractions as people write them: the same value, and no fraction below a line that could stand above it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmeql.formula.customary import customary
from gmeql.formula.expression import Expression
from gmeql.formula.fractions import common_factors, lifted, positive_sums
from gmeql.formula.nodes import Variable
from gmeql.formula.parsing import parse_tree
from gmeql.formula.products import as_product, write_product
from gmeql.formula.simplify import simplify

NAMES = ("x", "y", "z")


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("20 - x - 2*x*y/(x**2 + 2)", "20 - 2*x*y/(x**2 + 2) - x"),
        ("x/(x**2 + 1)", "x/(x**2 + 1)"),
        ("6*x/(x*y + 4)", "6*x/(x*y + 4)"),
        ("3/(z/x + 0.5)", "6*x/(x + 2*z)"),
        ("5/(1 + y/(x*z))", "5*x*z/(x*z + y)"),
        ("y/(x*y + 1)", "y/(x*y + 1)"),
        ("2*x/(1 - 3*x*y)", "2*x/(1 - 3*x*y)"),
        ("x**2/(x**3 + 3)", "x**2/(x**3 + 3)"),
        ("1/(1/x + 1/y)", "1/(1/x + 1/y)"),
        ("z/(y*(x + 1))", "z/(y*(x + 1))"),
        ("x*(1 - y**2)/(1 + z)", "x*(1 - y**2)/(z + 1)"),
        ("-2*x*(y + z)", "-2*x*(y + z)"),
        ("y - y/(x + 1)", "y - y/(x + 1)"),
        ("x/(z/(x + 1) + y)", "x/(z/(x + 1) + y)"),
    ],
)
def test_what_a_person_wrote_is_written_so(formula: str, expected: str) -> None:
    assert str(Expression(customary(simplify(parse_tree(formula, NAMES))), NAMES)) == expected


def test_no_sum_has_nothing_but_minus_signs() -> None:
    for text in ("2*y*(-x**2 - 3)", "2*y/(-x**2 - 3)", "2*y*(-x - z)**3"):
        factor, powers = as_product(parse_tree(text, NAMES))
        flipped = positive_sums(factor, powers)
        assert flipped is not None and flipped[0] == -factor
    for text in ("2/(x - y)", "2*y*(-x - z)**2", "-2*(x - y)"):
        assert positive_sums(*as_product(parse_tree(text, NAMES))) is None


def test_common_factors_stand_before_the_brackets() -> None:
    x, y = Variable(0), Variable(1)
    factor, powers = common_factors(*as_product(parse_tree("3*z/(x**2*y - x*y)", NAMES))) or (0.0, {})
    assert factor == 3.0 and powers[x] == -1.0 and powers[y] == -1.0
    for text in ("(x*y + 1)*z", "(x + y)*z", "sqrt(x*y - x)*z"):
        assert common_factors(*as_product(parse_tree(text, NAMES))) is None


@given(
    st.lists(st.sampled_from([-2.5, -1.0, 0.5, 1.0, 3.0]), min_size=3, max_size=3),
    st.integers(-2, 2),
    st.integers(-2, 2),
)
def test_the_value_stays(factors: list[float], first: int, second: int) -> None:
    a, b, c = factors
    root = parse_tree(f"{a}*y/({b}*x**{first}*z + {c}*y**{second})".replace("**-", "**(-1)**"), NAMES)
    factor, powers = as_product(root)
    for changed in filter(None, (rewrite(factor, powers) for rewrite in (lifted, common_factors, positive_sums))):
        X = np.random.default_rng(0).uniform(0.5, 2.0, (20, 3))
        before, after = (Expression(node, NAMES)(X) for node in (root, write_product(*changed)))
        assert np.allclose(before, after, rtol=1e-12)
