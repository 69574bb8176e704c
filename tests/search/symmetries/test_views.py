"""Views: tables made of the columns of another, and formulas over them."""

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Variable, build
from gmeql.network.families import FunctionSet
from gmeql.search.symmetries.views import View, unitless


def test_whole_exponents_come_before_roots():
    """J/(m r²) and r√m/√J are one column; a law that is short in the first is long in the second."""
    scalings = np.array([[1.0, 1.0, 0.0], [2.0, 0.0, 1.0]])  # J with m, J with the square of r
    plainest, *_ = unitless(View.raw(3), scalings, np.zeros(2), np.zeros(3, bool))
    read = str(Expression(plainest.columns[0], ("J", "m", "r")))
    assert read in ("J/(m*r**2)", "m*r**2/J")


def test_a_view_gives_its_formula_back_in_raw_columns():
    x, y = Variable(0), Variable(1)
    view = View((build("div", x, y),), build("mul", x, x))
    root = view.restore(build("sin", Variable(0)))
    X = np.random.default_rng(0).uniform(1, 2, (20, 2))
    assert np.allclose(Expression(root, ("a", "b"))(X), X[:, 0] ** 2 * np.sin(X[:, 0] / X[:, 1]))
    assert View.from_dict(view.to_dict()) == view and not view.is_raw_of(2)
    assert View.raw(3).is_raw_of(3) and not View.raw(1).is_raw_of(3)  # the first column alone is a smaller table


def test_a_view_holds_only_functions_that_are_allowed():
    functions = FunctionSet(("add", "sin"))
    assert not functions.allows(View((build("mul", Variable(0), Variable(1)),)).operators())
    assert functions.allows(View((build("add", Variable(0), Variable(1)),)).operators())
