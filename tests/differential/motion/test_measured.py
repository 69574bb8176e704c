from __future__ import annotations

import numpy as np
from motions import hunters, hunters_motion, tree

from gmeql.differential.motion.measured import Columns, measure
from gmeql.differential.motion.trajectories import check_trajectories
from gmeql.formula.nodes import Variable


def test_columns_of_a_second_order_system():
    columns = Columns(("q",), ("u1",), 2, True)
    assert columns.names == ("q", "q_dot", "u1", "t")
    assert columns.whole((tree("q", ("q",)),)) == (Variable(1), Variable(0))
    assert Columns(("t",), (), 1, True).names == ("t", "time")


def test_target_rows_are_the_slopes():
    motion = hunters_motion()
    rows = motion.target_rows(0)
    assert np.abs(rows.targets[:, 0] - (rows.X[:, 0] - rows.X[:, 0] * rows.X[:, 1])).max() < 1e-2
    assert rows.weight is not None and rows.weight[0] < rows.weight[len(rows.weight) // 2]


def test_measured_slopes_are_taken_as_they_are():
    t, X = hunters()
    motion = measure(check_trajectories(X, t, x_dot=np.ones_like(X)))
    assert (motion.target_rows(0).targets == 1.0).all()


def test_noise_is_told_from_none():
    assert hunters_motion().is_exact and not hunters_motion(0.05).is_exact


def test_in_second_order_the_slope_moves():
    t = np.linspace(0.0, 6.0, 60)
    motion = measure(check_trajectories(np.sin(t), t), order=2)
    rows = motion.target_rows(0)
    assert np.abs(rows.targets[4:-4, 0] + rows.X[4:-4, 0]).max() < 1e-3
    assert motion.pieces.starts.shape[1] == 2
