from __future__ import annotations

import numpy as np
from motions import NAMES, tree
from scipy.integrate import solve_ivp

from gmeql.differential.motion.measured import measure
from gmeql.differential.motion.proposals import proposed, sums
from gmeql.differential.motion.shapes import scaled_terms
from gmeql.differential.motion.terms import kinds, outline
from gmeql.differential.motion.trajectories import check_trajectories
from gmeql.formula.expression import Expression

X = np.column_stack([np.linspace(0.5, 4.0, 20), np.linspace(-1.0, 2.0, 20)])


def test_every_term_has_a_value_on_the_rows_it_was_made_for():
    terms = scaled_terms(X)
    assert tree("cos(y)/x") in terms
    for term in terms:
        assert np.isfinite(Expression(term, NAMES)(X)).all(), term


def test_no_pole_and_no_logarithm_where_a_column_changes_its_sign():
    terms = {outline(term) for term in scaled_terms(X)}
    assert outline(tree("x/(2 + x)")) in terms and outline(tree("y/(2 + y)")) not in terms
    assert tree("log(x)") in terms and tree("log(y)") not in terms


def test_functions_that_are_not_allowed_are_not_on_offer():
    assert not scaled_terms(X, ["+", "*"])
    names = {call for term in scaled_terms(X, ["+", "*", "/"]) for call in repr(term).split("'")[1::2]}
    assert names <= {"add", "mul", "div", "square"}


def test_terms_that_differ_in_constants_only_are_of_one_kind():
    assert kinds([tree("x/(1 + x)"), tree("y"), tree("x/(3 + x)")]).tolist() == [0, 1, 0]


def test_a_saturating_rate_is_proposed_without_any_search():
    # x' = 1 - 2 x/(0.7 + x), from a start above its resting point
    t = np.linspace(0.0, 6.0, 80)
    solved = solve_ivp(lambda _, x: 1.0 - 2.0 * x / (0.7 + x), (0.0, 6.0), [4.0], t_eval=t, rtol=1e-10, atol=1e-12)
    motion = measure(check_trajectories(solved.y.T, t))
    best = proposed(motion, 0, sums(motion, 0))[0]
    assert np.allclose(Expression(best.root, ("x1",))(np.array([[1.0], [3.0]])), [1 - 2 / 1.7, 1 - 6 / 3.7], atol=1e-4)
