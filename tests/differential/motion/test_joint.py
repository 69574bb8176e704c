from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import NAMES, hunters_motion, tree

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.joint import Offers, equal_sizes, joint_systems, longer_systems, offers, usual_units
from gmeql.differential.motion.shooting import Shooting
from gmeql.differential.motion.systems import fit_system, rarity
from gmeql.formula.products import split_terms
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import tree_complexity

SECOND = tree("1.1*x*y - 0.9*y")


def terms(root):
    return {str(Expression(term, NAMES)) for _, term in split_terms(root)}


@pytest.fixture(scope="module")
def wrong():
    """A system that has one equation right and one all wrong, and what it offers."""
    motion = hunters_motion(0.05)
    return offers(motion, fit_system(motion, (tree("0.3*y + 0.1"), SECOND)), [[], []])


def test_the_term_that_is_missing_is_asked_for():
    motion = hunters_motion(0.05)
    offered = offers(motion, fit_system(motion, (tree("0.3*x"), SECOND)), [[], []])
    assert any("x*y" in terms(equations[0]) for equations in longer_systems(offered)[:4])


def test_wrong_terms_are_exchanged_for_the_true_ones_at_once(wrong):
    first = joint_systems(hunters_motion(0.05), wrong)[0]
    assert terms(first[0]) == {"x", "x*y"} and terms(first[1]) == {"y", "x*y"}


def test_slopes_are_those_of_the_residuals():
    motion = hunters_motion(0.05)
    system = fit_system(motion, (tree("1.2*x - 0.9*x*y"), SECOND))
    offered = offers(motion, system, [[], []])
    texts = [str(Expression(term, NAMES)) for term in offered.terms]
    place = next(c for c, text in enumerate(texts) if text == "x**2" and offered.equation[c] == 1)
    starts = system.fitted.starts

    def residual(coefficient):
        roots = (system.equations[0], tree(f"{Expression(system.equations[1], NAMES).exact()} + {coefficient}*x**2"))
        shooting = Shooting(motion.pieces, roots, starts)
        found, own = shooting.linearised()
        weight = shooting.row_weights(np.sqrt(system.fitted.misfit))
        basis, _ = np.linalg.qr((own * weight[:, None])[:, shooting.K :])
        return found * weight, basis

    (ahead, basis), (behind, _) = residual(1e-4), residual(-1e-4)
    slope = (ahead - behind) / 2e-4
    assert np.allclose(slope - basis @ (basis.T @ slope), offered.slopes[:, place], rtol=1e-2, atol=1e-2)


def made(values, slopes):
    """Offers of x and y in two equations whose best coefficients are `values`, on rows with a little noise."""
    noise = 0.01 * np.random.default_rng(1).standard_normal(len(slopes))
    columns = (tree("x"), tree("y"), tree("x"), tree("y"))
    return Offers(
        None, np.array([0, 0, 1, 1]), columns, np.zeros(4), slopes, -(slopes @ np.array(values) + noise), np.zeros(4), len(slopes)
    )  # fmt: skip


def test_a_term_that_equations_share_is_cheaper_the_second_time():
    slopes = np.linalg.qr(np.random.default_rng(0).standard_normal((50, 4)))[0]
    offered = replace(made([2.0, 2.0, 2.0, 2.0], slopes), slopes=np.tile(slopes[:, :1], 4))
    long, other = tree("x*y**2"), tree("y*x**2")
    shared, different = (
        replace(offered, terms=(long, tree("y"), second, tree("y"))).lengths(np.array([[0, 2]]))[0]
        for second in (long, other)
    )
    price = MOTION.system.node_cost * (tree_complexity(other) - 1) + rarity([other])
    assert different - shared == pytest.approx(price)


def test_coefficients_that_may_be_one_are_and_the_others_adapt():
    values, covariance = np.array([[1.05, -2.0]]), np.array([[[0.01, 0.009], [0.009, 0.01]]])
    found, _, saved = usual_units(values, covariance, 4.0)
    assert found[0, 0] == 1.0 and found[0, 1] == pytest.approx(-2.0 - 0.9 * 0.05) and saved[0] > 3.0
    same, _, nothing = usual_units(np.array([[1.5, -2.0]]), 1e-6 * covariance, 4.0)
    assert same.tolist() == [[1.5, -2.0]] and nothing[0] == 0.0


def test_an_equation_without_a_term_is_no_system():
    slopes = np.linalg.qr(np.random.default_rng(0).standard_normal((50, 4)))[0]
    offered = made([2.0, 3.0, 4.0, 5.0], slopes)
    assert offered.equations((0, 1), 2) is None
    found = offered.equations((1, 2), 2)
    assert found is not None and terms(found[0]) == {"y"} and terms(found[1]) == {"x"}


def test_coefficients_that_may_be_equal_up_to_their_sign_are_and_the_others_adapt():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 3))
    b = A @ [0.5, -0.5, 2.0] + 0.3 * rng.standard_normal(200)
    covariance = np.linalg.inv(A.T @ A) * 0.09
    values = covariance @ A.T @ b / 0.09
    same = np.zeros((1, 3, 3), dtype=bool)
    same[0, 0, 1] = True
    found, saved = equal_sizes(values[None], covariance[None], same, 4.0)
    assert found[0, 0] == -found[0, 1] and saved[0] > 1.0
    together = np.column_stack([A[:, 0] - A[:, 1], A[:, 2]])
    assert np.allclose(found[0, [0, 2]], np.linalg.lstsq(together, b, rcond=None)[0])
    apart, nothing = equal_sizes(np.array([[0.5, -0.9, 2.0]]), 1e-6 * covariance[None], same, 4.0)
    assert apart.tolist() == [[0.5, -0.9, 2.0]] and nothing[0] == 0.0
