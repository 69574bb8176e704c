"""Readings of the target: inverses undo them, slopes are derivatives, unfit targets are left out."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Variable
from gmeql.search.data.readings import PLAIN, READINGS, read_target

SIGNS = {"square", "inv_square", "log", "sqrt"}
"""Readings that lose the target's sign."""


def targets(name: str) -> list[np.ndarray]:
    """Targets that a reading applies to."""
    y = np.linspace(0.2, 1.4, 40)
    return [y, -y] if name != "cos" else [y, y + 1.5]


@pytest.mark.parametrize("name", READINGS)
def test_inverting_undoes_reading(name: str) -> None:
    for y in targets(name):
        reading = READINGS[name]
        assert reading.name == name and reading.applies(y)
        g = reading.forward(y)
        formula = Expression(reading.invert(Variable(0), np.sign(y[0])), ("g",))
        np.testing.assert_allclose(formula(g[:, None]), y, rtol=1e-12)
        wrong = Expression(reading.invert(Variable(0), -np.sign(y[0])), ("g",))(g[:, None])
        assert np.allclose(wrong, y) == (name not in SIGNS)


@pytest.mark.parametrize("name", READINGS)
def test_slopes_are_derivatives(name: str) -> None:
    """Up to the sign: only their squares are used."""
    reading, step = READINGS[name], 1e-6
    for y in targets(name):
        slope = (reading.forward(y + step) - reading.forward(y - step)) / (2 * step)
        np.testing.assert_allclose(np.abs(reading.slope(y)), np.abs(slope), rtol=1e-6)


def test_small_errors_of_a_reading_are_errors_of_the_target() -> None:
    """What the weights are for: Σ w (δ g)² = Σ (δ y)² to first order."""
    y = np.linspace(0.5, 1.5, 30)
    error = 1e-5 * np.random.default_rng(0).standard_normal(30)
    for name, (target, weights) in read_target(y, np.ones(30)).items():
        moved = READINGS[name].forward(y + error)
        np.testing.assert_allclose(np.sum(weights * (moved - target) ** 2), np.sum(error**2), rtol=1e-3, err_msg=name)


def test_a_positive_target_is_read_in_every_way() -> None:
    assert set(read_target(np.linspace(0.5, 1.5, 30), np.ones(30))) == set(READINGS)
    assert set(read_target(np.linspace(0.5, 1.5, 30), np.ones(30), ["log", "sin"])) == {"log", "sin"}


@pytest.mark.parametrize(
    ("y", "names"),
    [
        (np.linspace(-0.5, 0.6, 30), {PLAIN, "inv", "sin"}),  # both signs
        (np.array([0.0, 1.0, 2.0]), {PLAIN}),  # zero, and beyond a quarter turn
        (np.linspace(5.0, 6.0, 30), {PLAIN, "square", "inv", "inv_square", "log", "sqrt"}),  # no angle
        (np.linspace(0.5, 0.55, 30), {PLAIN, "square", "inv", "inv_square", "log", "sqrt"}),  # too narrow for one
        (np.full(5, 2.0), {PLAIN}),  # constant
        (np.geomspace(1e-9, 1.0, 40), {PLAIN, "sqrt", "sin"}),  # under others a few rows would decide everything
    ],
)
def test_which_readings_a_target_allows(y: np.ndarray, names: set[str]) -> None:
    assert set(read_target(y, np.ones(len(y)))) == names


def test_readings_under_which_no_row_counts_are_left_out() -> None:
    assert "inv" not in read_target(np.linspace(1e-120, 2e-120, 40), np.ones(40))
