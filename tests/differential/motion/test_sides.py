from __future__ import annotations

import numpy as np
from motions import NAMES, tree

from gmeql.differential.motion.sides import RightSides, is_linear, shared_constants, with_values
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Variable

ROOTS = (tree("2*x**3 + sin(x*y)"), tree("1.5*x*y/(1 + x**2) - y**0.5"))


def test_right_sides_compute_what_the_formulas_compute():
    X = np.random.default_rng(0).uniform(0.5, 2.0, (7, 2))
    sides = RightSides.of(ROOTS, 2)
    for value, root in zip(sides(list(X.T), sides.values), ROOTS, strict=True):
        assert np.allclose(value, Expression(root, NAMES)(X))
    assert sides.counts == (1, 2) and sides.values == (2.0, 1.5, 1.0)


def test_other_values_make_other_formulas_and_the_same_ones_the_same():
    sides = RightSides.of(ROOTS, 2)
    assert with_values(ROOTS, sides.values) == ROOTS
    assert with_values(ROOTS, [5.0, 1.5, 1.0])[0] == tree("5*x**3 + sin(x*y)")


def test_what_compiled_code_does_not_know_has_no_program():
    assert RightSides.of(ROOTS, 2).programs() is not None
    assert RightSides.of([Call("log", (Variable(0),), protected=True)], 1).programs() is None


def test_terms_that_are_equal_up_to_their_sign_share_their_constants():
    flow = [tree("-0.3*x*y + 0.2*x"), tree("0.3*x*y - 0.5*y/(1.5 + x)")]
    made = shared_constants(flow)
    values = np.array(RightSides.of(flow, 2).values)
    assert made.shape == (len(values), len(values) - 1)
    free = np.linalg.lstsq(made, values, rcond=None)[0]
    assert np.allclose(made @ free, values)
    assert np.array_equal(shared_constants([tree("-0.3*x*y"), tree("0.31*x*y"), tree("0.3")]), np.eye(3))


def test_constants_inside_of_terms_are_not_linear():
    texts = ("2*x - 0.3*x*y + 1.5", "x - y", "0.5*y/(1.5 + x)", "2*x - sin(1.1*y)")
    assert [is_linear(tree(text)) for text in texts] == [True, True, False, False]
