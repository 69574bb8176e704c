"""Constants of final expressions in double precision."""

import math
import warnings

import numpy as np
import pytest

from gmeql.evaluation.baselines import mean_absolute_error, refit
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from sampled_tables import uniform_table


X0 = Variable(0)
SUM = Call("add", (Constant(1.0), Call("add", (Constant(1.0), Call("mul", (Constant(1.0), X0))))))
TWICE = Call("mul", (Constant(1.0), Call("mul", (Constant(1.0), X0))))
CANCELLING = Call("mul", (Constant(1e200), Call("mul", (Constant(1e-200), X0))))


def test_refit_reaches_double_precision_and_never_makes_worse():
    X = uniform_table(1, 1, 50, 0, 5)
    wave = Expression(Call("mul", (Constant(1.19), Call("sin", (Call("mul", (Constant(1.12), Variable(0))),)))), ("t",))
    y = 1.2 * np.sin(1.1 * X[:, 0])
    assert mean_absolute_error(refit(wave, X, y), X, y) < 1e-12
    exact = wave.with_constants((1.2, 1.1))
    assert refit(exact, X, y).constants == exact.constants
    outside = Expression(Call("log", (Call("sub", (Variable(0), Constant(9.0))),)), ("t",))
    assert mean_absolute_error(outside, X, y) == math.inf


def test_refit_moves_every_constant_along_its_own_slope():
    """Columns of the finite differences in the order of the constants: a mixed-up one would not arrive here."""
    X = uniform_table(2, 2, 80, 0.5, 2)
    a, b = Variable(0), Variable(1)
    root = Call(
        "add",
        (
            Call("mul", (Constant(0.9), Call("square", (a,)))),
            Call("div", (Constant(2.2), Call("add", (b, Constant(0.8))))),
            Call("mul", (Constant(-0.4), Call("cos", (Call("mul", (Constant(2.9), b)),)))),
        ),
    )
    rough = Expression(root, ("a", "b"))
    truth = rough.with_constants((1.1, 2.0, 1.0, -0.5, 3.0))
    np.testing.assert_allclose(refit(rough, X, truth(X)).constants, truth.constants, rtol=1e-10)


@pytest.mark.parametrize("root", [SUM, TWICE], ids=["sum", "product"])
def test_refit_arrives_where_constants_stand_for_each_other(root):
    """Networks and grammars write such formulas; half way to their constants they would count as not found."""
    X = uniform_table(3, 1, 30, 0.1, 2)
    y = 2.0 * X[:, 0] + (3.0 if root is SUM else 0.0)
    assert mean_absolute_error(refit(Expression(root, ("x",)), X, y), X, y) < 1e-9


def test_constants_that_overflow_warn_of_nothing():
    X = uniform_table(3, 1, 30, 0.1, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isfinite(mean_absolute_error(refit(Expression(CANCELLING, ("x",)), X, X[:, 0]), X, X[:, 0]))
