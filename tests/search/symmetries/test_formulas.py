"""Symmetries of a formula: tables in which what it says is short, whether or not it is the law."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant
from gmeql.formula.parsing import parse_tree
from gmeql.search.symmetries.config import SYMMETRIES
from gmeql.search.symmetries.formulas import views_of_formula

X = np.random.default_rng(0).uniform(1.0, 4.0, (300, 5))


def columns(text: str, names: str) -> list[tuple[set[str], str]]:
    """Columns and factor of every view of a formula."""
    own = tuple(names.split())
    root = parse_tree(text, own)
    views = [
        view for slack in SYMMETRIES.formula_slacks for view in views_of_formula(root, X[:, : len(own)], slack=slack)
    ]
    return [({str(Expression(c, own)) for c in view.columns}, str(Expression(view.factor, own))) for view in views]


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("1.19*n*m*B/sqrt(k**2*T**2.15/m**2 + 1.29*B**2)", "n m B k T", ({"B*m/(k*T)"}, "n*m")),
        ("0.997*a*(r - s)/(a + 1.05*b) + s", "a b r s", ({"b/a", "s/r"}, "r")),
        ("1.6/((t**2 - 0.2*t**3)/(m*c**2) + 1.57/E)", "E m c t", ({"m*c**2/E", "t"}, "E")),
        ("0.03*d*(a**3 - 9.7*a**2)*(0.24*(t - u)**2 + 1)**2", "d a t u", ({"a", "t - u"}, "d")),
    ],
)
def test_a_stand_in_reads_the_columns_as_the_law_does(text: str, names: str, expected: tuple[set[str], str]) -> None:
    found = columns(text, names)
    assert expected in found


def test_every_view_holds_all_that_the_formula_says() -> None:
    """Rows that a view cannot tell apart have the same quotient of the formula and the factor."""
    names = ("a", "b", "r", "s")
    root = parse_tree("a*(r - s)/(a + b) + s", names)
    for view in views_of_formula(root, X[:, :4]):
        scaled = X[:, :4] * np.array([3.0, 3.0, 0.5, 0.5])  # what the law's units are does not matter
        np.testing.assert_allclose(view.table(scaled), view.table(X[:, :4]), rtol=1e-9)
        ratios = [Expression(root, names)(rows) / view.factors(rows) for rows in (scaled, X[:, :4])]
        np.testing.assert_allclose(*ratios, rtol=1e-9)


def test_what_has_no_symmetry_has_no_view() -> None:
    assert columns("exp(a) + sin(3*a*b) + b", "a b") == []
    assert views_of_formula(Constant(2.0), X) == []
    assert views_of_formula(parse_tree("log(x - 3)", ("x", "y")), X[:, :2]) == []  # no value on some rows


def test_functions_before_the_rest_are_asked_for_as_long_as_there_is_time() -> None:
    root = parse_tree("exp(a)*(b*c + log(b + c**2))", ("a", "b", "c"))
    (view,) = views_of_formula(root, X[:, :3])
    assert str(Expression(view.factor, ("a", "b", "c"))) == "exp(a)"
    assert views_of_formula(root, X[:, :3], out_of_time=lambda: True) == []
