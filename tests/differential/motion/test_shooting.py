from __future__ import annotations

import numpy as np
import pytest
from motions import NAMES, hunters_motion, tree

from gmeql.differential.motion.measured import measure
from gmeql.differential.motion.shooting import Shooting
from gmeql.differential.motion.sides import RightSides
from gmeql.differential.motion.systems import fit_system
from gmeql.differential.motion.trajectories import check_trajectories
from gmeql.formula.expression import Expression

TRUTH = (tree("1.2*x - 0.9*x*y"), tree("1.1*x*y - 0.9*y"))


def test_compiled_and_plain_integration_agree():
    roots = (tree("1.2*x - 0.9*x*y + 0.1*sin(3*x)"), tree("1.1*x*y/(1 + x**2) - 0.9*y**0.5"))
    shooting = Shooting(hunters_motion().pieces, roots)
    starts = np.repeat(shooting.starts.T[:, :, None], 3, axis=2)
    values = np.array(shooting.sides.values)[:, None, None] * np.array([1.0, 1.1, 0.9])
    compiled, plain = shooting.integrate(starts, values), shooting._integrate_plainly(starts, list(values))
    assert np.allclose(compiled, plain, rtol=1e-11)


def test_slopes_are_those_of_the_residuals():
    shooting = Shooting(hunters_motion().pieces, TRUTH)
    vector = np.concatenate([shooting.sides.values, shooting.starts.ravel()])
    slopes = shooting.jacobian(vector, 3.0)
    for k in (0, 3, shooting.K, shooting.K + 5, len(vector) - 1):
        step = np.zeros(len(vector))
        step[k] = 1e-5
        difference = (shooting.residual(vector + step, 3.0) - shooting.residual(vector - step, 3.0)) / 2e-5
        assert np.allclose(slopes[:, k], difference, rtol=1e-3, atol=1e-4 * np.abs(difference).max())


def test_constants_of_exact_trajectories_are_found_to_many_digits():
    fitted = Shooting(hunters_motion().pieces, TRUTH).fit(loose_steps=8, tight_steps=25)
    values = [c for root in fitted.roots for c in Expression(root, NAMES).constants]
    assert np.allclose(np.abs(values), [1.0, 1.0, 1.0, 0.8], atol=1e-7)
    assert (fitted.certainty > 1e4).all()


def test_constants_of_a_shared_term_stay_equal_and_are_more_certain():
    pieces = hunters_motion(0.05).pieces
    apart, shared = (
        Shooting(pieces, (tree("x - 0.9*x*y"), tree(f"{second}*x*y - 0.8*y"))).fit(loose_steps=8, tight_steps=25)
        for second in (0.95, 0.9)
    )
    assert apart.free == 3 and shared.free == 2 and len(shared.certainty) == 3
    values = RightSides.of(shared.roots, 2).values
    assert values[0] == values[1] and abs(values[1] - 1.0) < 0.03
    assert shared.certainty[0] == shared.certainty[1] > max(apart.certainty[:2])


def test_constants_of_noisy_trajectories_are_near():
    fitted = Shooting(hunters_motion(0.05).pieces, TRUTH).fit(loose_steps=8, tight_steps=25)
    values = [c for root in fitted.roots for c in Expression(root, NAMES).constants]
    assert np.allclose(np.abs(values), [1.0, 1.0, 1.0, 0.8], atol=0.06)
    assert np.all((fitted.misfit > 0.5) & (fitted.misfit < 2.0))


def test_a_system_that_runs_away_is_bad_and_raises_nothing():
    fitted = Shooting(hunters_motion().pieces, (tree("50*x**3"), tree("50*y**3"))).fit(loose_steps=3, tight_steps=3)
    assert (fitted.distance > 1e-2).all()


def test_inputs_and_time_reach_the_equations():
    t = np.linspace(0.0, 5.0, 40)
    x = np.exp(-t) + t - 1.0 + 0.5 * t**2  # x' = -x + t + u with u = t**2/2
    checked = check_trajectories(x, t, u=0.5 * t**2)
    motion = measure(checked, with_time=True)
    assert motion.columns.names == ("x1", "u1", "t")
    fitted = Shooting(motion.pieces, (tree("-2*x1 + 0.5*u1 + 2*t", ("x1", "u1", "t")),)).fit(
        loose_steps=8, tight_steps=25
    )
    assert Expression(fitted.roots[0], motion.columns.names).constants == pytest.approx([-1.0, 1.0, 2.0], abs=0.02)


def test_a_fast_part_takes_finer_steps_and_is_not_taken_for_one_that_runs_away():
    # y follows sin(x) within 1/200 of a time unit: steps of 0.2 would blow up
    t = np.linspace(0.0, 6.0, 31)
    X = np.column_stack([t, np.sin(t)]) * (1.0 + 0.01 * np.random.default_rng(0).standard_normal((31, 2)))
    motion = measure(check_trajectories(X, t, names=NAMES))
    system = fit_system(motion, (tree("1.0"), tree("200*sin(x) - 200*y")))
    assert system.loss < 0.05
