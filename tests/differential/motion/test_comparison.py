from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
from motions import NAMES, hunters_motion, tree

from gmeql.differential.motion.comparison import Comparison, compare
from gmeql.differential.motion.measured import measure
from gmeql.differential.motion.trajectories import check_trajectories
from gmeql.formula.expression import Expression


def test_under_noise_the_true_terms_are_left():
    comparison = Comparison(hunters_motion(0.05), math.inf)
    system = comparison.take((tree("1.0*x - 0.9*x*y + 0.01*x**2"), tree("1.1*x*y - 0.9*y + 0.01*x")))
    texts = [str(Expression(root, NAMES)) for root in system.equations]
    assert "x**2" not in texts[0] and "x*y" in texts[0] and texts[1].count("x") == 1


def test_a_comparison_past_its_deadline_fits_no_further():
    comparison = Comparison(hunters_motion(0.05), time.monotonic() - 1.0)
    system = comparison.take((tree("1.0*x - 0.9*x*y + 0.01*x**2"), tree("1.1*x*y - 0.9*y")))
    assert len(comparison.known) == 1 and system is comparison.best


def test_a_fit_that_was_led_astray_is_made_good_from_a_better_neighbour():
    comparison = Comparison(hunters_motion(0.05), math.inf)
    truth = (tree("1.2*x - 0.9*x*y"), tree("1.1*x*y - 0.9*y"))
    good = comparison.take(truth)
    key = next(iter(comparison.known))
    comparison.known[key] = replace(good, length=good.length + 1000.0)
    assert comparison.take(truth, good).length < good.length + 1.0


def test_a_missing_term_is_added():
    t = np.linspace(0.0, 8.0, 25)
    grown = 2.0 / (1.0 + 9.0 * np.exp(-t)) * (1.0 + 0.02 * np.random.default_rng(0).standard_normal(25))
    comparison = Comparison(measure(check_trajectories(grown[:, None], t, names=("x",))), math.inf)
    compare(comparison, [[tree("0.3*x", ("x",))]], [[]])
    assert str(Expression(comparison.best.equations[0], ("x",))).endswith("*x**2")


def test_a_system_is_exact_only_where_every_simpler_one_is_far_off():
    comparison = Comparison(hunters_motion(), math.inf)
    truth = comparison.take((tree("1.0*x - 1.0*x*y"), tree("1.0*x*y - 0.8*y")))
    assert comparison.is_exact
    close = replace(truth, complexity=truth.complexity - 1, loss=20.0 * truth.loss, length=truth.length + 1.0)
    comparison.known[(tree("x"),)] = close
    assert not comparison.is_exact
