"""Functions inside a template lose what the rows do not support; the outer form stays."""

from __future__ import annotations

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.knowledge.templates import read_template
from gmeql.search.polish.scoring import JudgedRows
from gmeql.search.templates.cutting import cut, length_of, scored
from gmeql.search.templates.solutions import Solution

NAMES = ("x", "y")


def test_ballast_goes_and_redundant_factors_become_one() -> None:
    X = np.random.default_rng(0).uniform(0.5, 2, (100, 2))
    y = 2.5 * np.exp(-0.7 * X[:, 0] ** 2) + X[:, 1]
    template = read_template("a*exp(-b*f(x)) + g(y)", NAMES)
    ballast = Solution(
        template,
        (parse_tree("0.9*u**2 + 0.001*u + 0.002", ["u"]), parse_tree("1.1*u + 0.01*sin(u)", ["u"])),
        (2.4, 0.75),
    )
    rows = JudgedRows.of(X, y, None, NAMES)
    met = cut(ballast, rows, lambda: False)
    final = met[0]
    assert str(Expression(final.root, NAMES)) == "2.5*exp(-0.7*x**2) + y"
    assert all(length_of(final, rows) <= length_of(other, rows) for other in met)
    assert scored(final, rows).loss == final.loss and rows.is_exact(final.loss)


def test_what_cannot_be_fitted_gives_nothing() -> None:
    rows = JudgedRows.of(np.ones((9, 2)), np.ones(9), None, NAMES)
    assert (
        cut(Solution(read_template("log(f(x) - 9)", NAMES), (parse_tree("u", ["u"]),), ()), rows, lambda: False) == []
    )
