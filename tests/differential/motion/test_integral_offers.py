from __future__ import annotations

import numpy as np
from motions import NAMES, hunters_motion, tree

from gmeql.differential.motion.integral_offers import offers_in_integral_form
from gmeql.differential.motion.joint import joint_systems
from gmeql.differential.motion.sides import shared_terms
from gmeql.differential.motion.systems import fit_system
from gmeql.formula.expression import Expression
from gmeql.formula.products import split_terms

WRONG = (tree("0.3*y + 0.1"), tree("-0.2*x"))


def test_from_a_system_that_is_all_wrong_the_true_terms_come_first_and_share_their_constants():
    motion = hunters_motion(0.05)
    first = joint_systems(motion, offers_in_integral_form(motion, fit_system(motion, WRONG), [[], []]))[0]
    terms = [{str(Expression(term, NAMES)) for _, term in split_terms(root)} for root in first]
    assert terms == [{"x", "x*y"}, {"y", "x*y"}]
    assert shared_terms(first) == {tree("x*y")}


def test_columns_stand_in_blocks_and_the_truth_leaves_nothing_over():
    motion = hunters_motion()
    truth = fit_system(motion, (tree("x - x*y"), tree("x*y - 0.8*y")))
    offered = offers_in_integral_form(motion, truth, [[tree("sin(2.5*x)")], []])
    R = len(motion.rows.left)
    for c in range(len(offered.terms)):
        other = slice(R, None) if offered.equation[c] == 0 else slice(0, R)
        assert not offered.slopes[other, c].any()
    assert np.abs(offered.residual).max() < 1e-2 * np.abs(offered.target).max()
    own = [offered.equation[c] for c, term in enumerate(offered.terms) if term == tree("sin(2.5*x)")]
    assert own == [0, 1]  # of the first proposals every equation has the terms


def test_terms_with_a_pole_next_to_the_measurements_are_not_on_offer():
    motion = hunters_motion()
    pole = tree(f"y/(x - {0.9 * motion.rows.X[:, 0].min()})")
    offered = offers_in_integral_form(motion, fit_system(motion, WRONG), [[pole], []])
    assert pole not in offered.terms
