from __future__ import annotations

import numpy as np

from gmeql.differential.motion.moves import cut_systems, merged, sharing_systems, shorter_systems, tidied
from gmeql.differential.motion.systems import fit_system
from gmeql.formula.expression import Expression
from gmeql.formula.products import split_terms
from motions import NAMES, hunters_motion, tree

SECOND = tree("1.1*x*y - 0.9*y")


def texts(equations):
    return [str(Expression(root, NAMES)) for root in equations]


def test_the_least_certain_term_is_left_out_first():
    system = fit_system(hunters_motion(0.05), (tree("1.3*x - 0.9*x*y + 0.001*x**2"), SECOND))
    firsts = [texts(equations)[0] for equations in shorter_systems(system)]
    assert any("x**2" not in text for text in firsts)


def test_a_factor_near_one_is_left_out():
    system = fit_system(hunters_motion(0.0), (tree("1.2*x - 0.9*x*y"), SECOND))
    found = [equations for equations in shorter_systems(system) if "x - " in texts(equations)[0][:4]]
    assert found and tree("x") in [term for _, term in split_terms(found[0][0])]


def test_equal_terms_become_one_and_factors_of_one_go():
    X = np.random.default_rng(0).normal(size=(9, 2))
    root = tree("2*x + y + x")
    assert len(split_terms(merged(root))) == 2
    assert np.allclose(Expression(merged(root), NAMES)(X), Expression(root, NAMES)(X))
    assert tidied(tree("1*x*y")) == tree("x*y")


def test_cuts_reach_inside_of_equations():
    system = fit_system(hunters_motion(0.05), (tree("x*(1.1 - 0.9*y)"), SECOND))
    assert any("y" not in texts(equations)[0] for equations in cut_systems(system))


def test_constants_of_a_term_that_two_equations_share_are_made_equal_where_they_may_be():
    motion = hunters_motion(0.05)
    system = fit_system(motion, (tree("1.1*x - 0.9*x*y"), SECOND))
    (shared,) = sharing_systems(system)
    fitted = fit_system(motion, shared)
    (one,) = [c for c, term in split_terms(fitted.equations[0]) if term == tree("x*y")]
    (two,) = [c for c, term in split_terms(fitted.equations[1]) if term == tree("x*y")]
    assert one == -two and fitted.length < system.length
    assert sharing_systems(fitted) == []
    other = fit_system(motion, (tree("1.1*x - 0.9*x*y"), tree("1.1*x*y - 0.9*x")))
    assert sharing_systems(fit_system(hunters_motion(), other.equations)) == []
