from __future__ import annotations

from dataclasses import replace

import numpy as np
from motions import hunters_motion, tree
from scipy.integrate import solve_ivp

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.comparison import Comparison
from gmeql.differential.motion.measured import measure
from gmeql.differential.motion.outlook import lost_alone, other_starts, outlook_cost, share_running_away
from gmeql.differential.motion.systems import fit_system, outlines
from gmeql.differential.motion.trajectories import check_trajectories

TRUE = (tree("x - x*y"), tree("x*y - 0.8*y"))


def test_starts_lie_around_the_measured_states_and_keep_their_sign():
    motion = hunters_motion()
    starts = other_starts(motion)
    assert starts.shape[:2] == (2, 1) and (starts >= 0).all()
    assert starts[0].max() > motion.rows.X[:, 0].max()
    assert np.array_equal(starts, other_starts(motion))


def test_hunters_and_prey_stay_bounded_and_a_quadratic_growth_does_not():
    motion = hunters_motion()
    assert share_running_away(motion, TRUE) == 0.0
    assert share_running_away(motion, (tree("x**2"), tree("-y"))) > 0.5


def test_of_systems_about_as_good_the_bounded_one_is_preferred_and_not_hidden_on_the_front():
    motion = hunters_motion(0.05)
    comparison = Comparison(motion, np.inf)
    true = comparison.take(TRUE)
    wild = fit_system(motion, (tree("x**2"), tree("-y")))
    wild = replace(wild, length=true.length - 1.0, complexity=true.complexity - 1, loss=0.9 * true.loss)
    comparison.known[outlines(wild.equations)] = comparison.best = wild
    comparison.settle()
    assert comparison.best.equations == true.equations
    assert outlines(wild.equations) not in comparison.known


def test_a_system_that_is_held_to_the_measurements_by_its_pieces_alone_pays_for_it():
    motion = hunters_motion(0.05)
    true = fit_system(motion, TRUE)
    assert abs(lost_alone(motion, true)) < 5.0
    drifting = replace(true, equations=(TRUE[0], tree("x*y - y")))  # every piece starts anew, one run does not
    assert lost_alone(motion, drifting) > 20.0
    assert outlook_cost(motion, drifting) == MOTION.system.lost_alone_cost


def test_near_a_saddle_the_start_is_fitted_before_a_run_is_judged():
    t = np.linspace(0.0, 8.0, 60)
    solved = solve_ivp(lambda _, z: [z[0], -z[1]], (0.0, 8.0), (1e-3, 2.0), t_eval=t, rtol=1e-10, atol=1e-12)
    X = solved.y.T * (1.0 + 0.05 * np.random.default_rng(0).standard_normal(solved.y.T.shape))
    motion = measure(check_trajectories(X, t, names=("x", "y")))
    system = fit_system(motion, (tree("0.98*x"), tree("-y")))
    off = replace(system, fitted=replace(system.fitted, starts=1.3 * system.fitted.starts))
    assert lost_alone(motion, off) < 5.0


def test_a_state_that_was_never_negative_must_not_become_so():
    motion = hunters_motion()
    assert share_running_away(motion, (tree("-y"), tree("0.1*y"))) > 0.5
    assert share_running_away(motion, (tree("-x*y"), tree("0.1*y"))) == 0.0
