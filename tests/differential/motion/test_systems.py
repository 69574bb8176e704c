from __future__ import annotations

from dataclasses import replace

import pytest
from motions import NAMES, hunters_motion, tree

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.systems import (
    SystemFront,
    fit_system,
    n_functions,
    n_poles,
    outlines,
    plain,
    plain_complexity,
    rarity,
    system_complexity,
)
from gmeql.formula.nodes import tree_complexity

TRUTH = (tree("1.2*x - 0.9*x*y"), tree("1.1*x*y - 0.9*y"))


def test_a_term_that_two_equations_share_counts_once():
    alone = [system_complexity([tree(text)]) for text in ("2*x*y + y", "3*x*y - x")]
    assert system_complexity([tree("2*x*y + y"), tree("3*x*y - x")]) < sum(alone)
    assert system_complexity([tree("2*x*y + y"), tree("3*x**2 - x")]) == sum(alone)


def test_systems_that_differ_in_constants_only_have_one_outline():
    assert outlines((tree("1.5*x"),)) == outlines((tree("7*x"),)) != outlines((tree("7*y"),))


def test_the_truth_has_the_shortest_description():
    motion = hunters_motion(0.05)
    truth = fit_system(motion, TRUTH)
    longer = fit_system(motion, (tree("1.2*x - 0.9*x*y + 0.1*x**2"), TRUTH[1]))
    wrong = fit_system(motion, (tree("1.2*x - 0.9*x**2"), TRUTH[1]))
    assert truth.length < longer.length and truth.length < wrong.length
    assert longer.loss <= truth.loss * 1.01 and wrong.loss > 2 * truth.loss


def test_a_front_goes_from_simple_to_accurate():
    motion = hunters_motion(0.05)
    systems = [
        fit_system(motion, (tree(a), TRUTH[1])) for a in ("1.2*x - 0.9*x*y", "0.5*x", "x - 0.9*x*y + 0.1*y**2*x**2")
    ]
    front = SystemFront.of(systems, NAMES)
    losses, sizes = [m.loss for m in front], [m.complexity for m in front]
    assert losses == sorted(losses, reverse=True) and sizes == sorted(sizes)
    assert front.select("accurate") is front[len(front) - 1]
    assert str(front.select("best").equations[0]).count("x*y") == 1
    with pytest.raises(IndexError, match="use 0 to"):
        front[99]


def test_without_any_finite_system_there_is_no_front():
    system = fit_system(hunters_motion(), TRUTH)
    with pytest.raises(ValueError, match="no system of equations stays finite"):
        SystemFront.of([replace(system, length=float("inf"))], NAMES)


def test_sines_exponentials_roots_and_high_powers_cost_more_than_low_powers():
    assert n_functions([tree("x**2 + y/x - x**3/y**2")]) == 0
    assert n_functions([tree("3*sqrt(x) + y**6 + x**2.5")]) == 3
    assert n_functions([tree("sin(x) + exp(y)"), tree("2*sin(x)")]) == 2


@pytest.mark.parametrize(
    "text", ["3.1*x - x**2 - 2.1*x*y", "2*y - x*y - y**2", "0.2*x - 0.2*x*y", "8.9 - x - 4*x*y/(1 + x**2)"]
)
def test_the_complexity_of_a_structure_is_that_of_its_normal_form(text):
    assert plain_complexity(tree(text)) == tree_complexity(plain(tree(text)))


def test_constants_that_are_one_are_told_from_others_that_look_alike():
    apart, shared = (tree("-0.3*x*y"), tree("0.31*x*y")), (tree("-0.3*x*y"), tree("0.3*x*y"))
    assert outlines(apart) != outlines(shared) == outlines((tree("-0.7*x*y"), tree("0.7*x*y")))


def test_a_pole_next_to_the_measured_states_counts_and_one_at_zero_does_not():
    motion = hunters_motion()
    low = motion.rows.X[:, 0].min()
    assert n_poles(motion, (tree(f"y/(x - {0.9 * low})"), tree("x*y"))) == 1
    assert n_poles(motion, (tree("y/x"), tree("x/(0.5 + x)"))) == 0
    clean, poor = (fit_system(motion, (tree(text), TRUTH[1])) for text in ("1.2*x - 0.9*x*y", f"y/(x - {0.9 * low})"))
    assert clean.length < poor.length


def test_products_of_many_columns_and_functions_cost_more_and_shared_ones_once():
    one = rarity([tree("2*x**2*y")])
    assert one > rarity([tree("2*x*y + x**2 + x/(1 + y)")]) == 0.0
    assert rarity([tree("2*x**2*y"), tree("-3*x**2*y")]) == one < rarity([tree("2*x**2*y"), tree("x*y**2")])
    assert rarity([tree("sin(x)")]) == MOTION.system.function_cost
