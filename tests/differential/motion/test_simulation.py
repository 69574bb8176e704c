from __future__ import annotations

import numpy as np
import pytest
from motions import hunters, tree

from gmeql.differential.motion.measured import Columns
from gmeql.differential.motion.simulation import DivergedWarning, simulate

PLAIN = Columns(("x", "y"), (), 1, False)
TRUTH = [tree("x - x*y"), tree("x*y - 0.8*y")]


def test_the_truth_gives_the_measured_trajectory():
    t, X = hunters()
    assert np.allclose(simulate(PLAIN, TRUTH, X[0], t), X, atol=1e-5)


def test_second_order_inputs_and_time():
    t = np.linspace(0.0, 3.0, 20)
    columns = Columns(("q",), ("u1",), 2, True)
    path = simulate(columns, [tree("u1 - t", columns.names)], [1.0, 0.0], t, u=lambda moment: [2.0])
    assert np.allclose(path[:, 0], 1.0 + t**2 - t**3 / 6, atol=1e-6)
    again = simulate(columns, [tree("u1 - t", columns.names)], [1.0, 0.0], t, u=np.full(20, 2.0))
    assert np.allclose(path, again, atol=1e-6)


def test_what_runs_away_ends_in_nan_with_a_warning():
    column = Columns(("x",), (), 1, False)
    with pytest.warns(DivergedWarning, match="the states run away"):
        path = simulate(column, [tree("x**2", ("x",))], [1.0], np.linspace(0.0, 2.0, 21))
    assert np.isfinite(path[:9]).all() and np.isnan(path[-1]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [0.0, 1.0]), "x0 must be 2 finite numbers, one for each of x, y"),
        (([1.0, 1.0], [1.0, 0.0]), "increasing times"),
        (([1.0, 1.0], [0.0, 1.0], [[1.0], [1.0]]), "fitted without inputs"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        simulate(PLAIN, TRUTH, *arguments)


def test_inputs_must_be_given():
    columns = Columns(("x",), ("u1",), 1, False)
    with pytest.raises(ValueError, match="u is missing"):
        simulate(columns, [tree("u1", columns.names)], [1.0], [0.0, 1.0])
    with pytest.raises(ValueError, match="u must hold 1 finite values at each of the 2 times"):
        simulate(columns, [tree("u1", columns.names)], [1.0], [0.0, 1.0], [1.0, 2.0, 3.0])
