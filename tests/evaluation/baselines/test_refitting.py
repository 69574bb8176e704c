"""Constants of final expressions in double precision."""

import math

import numpy as np

from gmeql.evaluation.baselines import mean_absolute_error, refit
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from sampled_tables import uniform_table


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
