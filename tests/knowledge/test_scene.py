"""Where constraints are looked at."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import pytest

from gmeql.formula.parsing import parse_tree
from gmeql.knowledge.scene import POINTS, Scene, range_text, scene_from_dict

SCENE = Scene(("x", "t"), ((0.0, 2.0), (-1.0, 1.0)), 3.0)


def test_points_lie_in_the_ranges_with_their_corners_and_stay_the_same() -> None:
    X = SCENE.points()
    assert X.shape == (POINTS, 2) and np.array_equal(X, SCENE.points())
    assert X.min(axis=0).tolist() == [0.0, -1.0] and X.max(axis=0).tolist() == [2.0, 1.0]
    assert {tuple(corner) for corner in X[:4]} == {(0, -1), (0, 1), (2, -1), (2, 1)}
    assert SCENE.points({"t": (5.0, 5.0)})[:, 1].tolist() == [5.0] * POINTS


def test_open_ends_stay_where_the_data_end() -> None:
    assert SCENE.ranges_with({"x": (0.5, math.inf)}).tolist() == [[0.5, 2.0], [-1.0, 1.0]]


def test_bounds_over_ranges() -> None:
    found = SCENE.bounds(parse_tree("x + t", SCENE.names), {"t": (10.0, 20.0)})
    assert found.low == pytest.approx(10) and found.high == pytest.approx(22)


def test_formulas_of_a_scaled_table_speak_of_the_users_numbers() -> None:
    scaled = Scene(("x",), ((0.0, 2.0**80),), 1.0, (80,), 70)
    root = scaled.in_users_units(parse_tree("3*x", ["x"]))
    assert scaled.values(root, np.array([[2.0**80]]))[0] == 3 * 2.0**70
    assert SCENE.in_users_units(root) is root


def test_plain_data_and_text() -> None:
    assert scene_from_dict(asdict(SCENE)) == SCENE
    assert range_text("x", 0, 1) == "0 <= x <= 1" and range_text("x", -math.inf, 1) == "x <= 1"
    assert range_text("x", 2, math.inf) == "x >= 2"
