from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gmeql.differential.motion.trajectories import check_trajectories

T = np.linspace(0.0, 1.0, 12)
X = np.column_stack([np.sin(T), np.cos(T)])


def test_one_trajectory_and_the_step_as_a_number():
    checked = check_trajectories(X, 0.5)
    assert checked.states == ("x1", "x2") and len(checked.pieces) == 1
    assert np.allclose(checked.pieces[0].t, 0.5 * np.arange(12))


def test_a_list_of_trajectories_of_unequal_lengths_with_inputs():
    checked = check_trajectories([X, X[:8]], [T, T[:8]], u=[T, T[:8]])
    assert [len(piece) for piece in checked] == [12, 8]
    assert checked.inputs == ("u1",) and checked.points == 20


def test_rows_as_lists_are_one_trajectory():
    assert len(check_trajectories(X.tolist(), T.tolist()).pieces) == 1


def test_a_frame_brings_its_names():
    frame = pd.DataFrame(X, columns=["hare", "lynx"])
    assert check_trajectories(frame, T).states == ("hare", "lynx")
    assert check_trajectories(frame, T, names=["a", "b"]).states == ("a", "b")


def test_a_gap_takes_the_trajectory_apart_and_even_spacing_on_a_log_scale_does_not():
    late = np.concatenate([T[:6], T[6:] + 100.0])
    assert [len(piece) for piece in check_trajectories(X, late)] == [6, 6]
    assert len(check_trajectories(X, np.geomspace(0.01, 1000.0, 12)).pieces) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, T[::-1]), "times do not increase: t\\[0\\]=1 is followed by"),
        ((X[:1], T[:1]), "X has 1 point; at least 6"),
        ((np.column_stack([T, np.ones(12)]), T), "state 'x2' is constant"),
        (
            (np.where(np.arange(24).reshape(12, 2) == 7, np.nan, X), T),
            "X holds nan in row 3, column 1; leave such rows",
        ),
        ((X, None), "t is missing"),
        ((X, T[:-1]), "t has shape \\(11,\\) for 12 points"),
        ((X, -1.0), "t=-1.0 is the step between points"),
        ((X, T, X[:, :1]), "x_dot has shape \\(12, 1\\), X has \\(12, 2\\)"),
        ((X, T, None, T[:3]), "u has 3 rows, X has 12"),
        (([X, X[:, :1]], [T, T]), "trajectory 2 has 1 states, the first has 2"),
        (([X, X], T), "t has one array for 2 trajectories"),
        (([["a", "b"]] * 12, T), "X holds something that is not a number"),
        ((X[:8], [0, 1, 2, 3, 100, 101, 102, 103]), "the longest stretch without a gap has 4 points"),
    ],
)
def test_what_is_wrong_is_one_clear_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        check_trajectories(*arguments)


def test_names_must_be_as_many_and_different():
    with pytest.raises(ValueError, match="feature_names has 1 names for 2 states"):
        check_trajectories(X, T, names=["a"])
    with pytest.raises(ValueError, match="two columns are called 'a'"):
        check_trajectories(X, T, names=["a", "a"])
