"""The scan and the fit of a wave's frequency against plain least squares; terms that are not needed are dropped."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gmeql.formula.nodes import Variable
from gmeql.search.data.readings import PLAIN
from gmeql.search.direct.terms.term_sums import beside
from gmeql.search.direct.waves.modulated import _polynomials
from gmeql.search.direct.waves.projection import determined, fits, refined, shares_of


def test_the_scan_is_least_squares_at_every_frequency() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 3, (80, 2))
    terms = _polynomials(X, 1)
    assert terms is not None
    y = rng.standard_normal((80, 2))
    turns = np.array([0.4, 1.7, 9.0])
    left = beside(terms.beside_basis, y)
    shares = shares_of(X[:, 1], terms, left, turns)
    for w, turn in enumerate(turns):
        angle = 2 * np.pi * turn * X[:, 1] / np.ptp(X[:, 1])
        waves = [terms.before_values * wave(angle)[:, None] for wave in (np.cos, np.sin)]
        columns = np.hstack([terms.beside_values, *waves])
        rest = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
        expected = 1 - (rest**2).sum(axis=0) / (left**2).sum(axis=0)
        np.testing.assert_allclose(shares[w], expected, rtol=1e-6 if turn > 1 else 1e-2)  # slow: nearly a polynomial


def test_a_fit_ends_at_the_frequency_that_leaves_least() -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 10, (200, 1))
    y = X[:, 0] * np.cos(1.3 * X[:, 0] + 0.5) + 0.3 * rng.standard_normal(200)
    y /= math.sqrt(float(y @ y))
    terms = _polynomials(X, 1)
    assert terms is not None

    def squares(frequency: float) -> float:
        waves = [terms.before_values * wave(frequency * X) for wave in (np.cos, np.sin)]
        columns = np.hstack([terms.beside_values, *waves])
        rest = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
        return float(rest @ rest)

    fit = refined(terms, "identity", Variable(0), X[:, 0], y, 1.25, 1.0)
    near = fit.frequency + np.linspace(-0.05, 0.05, 201)
    assert fit.squares == pytest.approx(squares(fit.frequency), rel=1e-9)
    assert fit.squares <= min(map(squares, near)) * (1 + 1e-4)


def test_a_scan_ends_with_the_time_before_the_last_angle() -> None:
    X = np.random.default_rng(1).uniform(0, 10, (200, 2))
    y = X[:, 0] * np.cos(1.3 * X[:, 1])
    terms, turns = _polynomials(X, 1), np.arange(0.2, 16.0, 0.2)
    assert terms is not None
    angles = [(Variable(j), X[:, j]) for j in range(2)]
    asked = iter([False, True])
    assert not list(fits(terms, angles, {PLAIN: y}, turns, lambda: next(asked)))
    assert any(fit.is_exact for fit in fits(terms, angles, {PLAIN: y}, turns, lambda: False))


def test_what_stands_beside_a_wave_is_spanned_once() -> None:
    terms = _polynomials(np.random.default_rng(1).uniform(0, 10, (200, 2)), 1)
    assert terms is not None
    assert terms.without(terms.before[0]).beside_basis is terms.beside_basis


def test_terms_that_stand_in_for_a_change_of_the_frequency_are_dropped() -> None:
    """With x**2 before the wave too, x sin(wx) shifts its frequency at no cost: the fit is flat until it is gone."""
    X = np.random.default_rng(2).uniform(0, 10, (200, 1))
    y = 1.5 + X[:, 0] * np.cos(1.3 * X[:, 0] + 0.5)
    y /= math.sqrt(float(y @ y))
    terms = _polynomials(X, 2)
    assert terms is not None
    fit = determined(refined(terms, "identity", Variable(0), X[:, 0], y, 1.31, 1.0), y)
    assert fit.terms.before == [Variable(0)]
    assert fit.is_exact and fit.frequency == pytest.approx(1.3, rel=1e-10)
    assert math.remainder(fit.phase - 0.5, math.pi) == pytest.approx(0.0, abs=1e-9)
