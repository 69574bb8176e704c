"""Values of one column against the theory of its distribution."""

import numpy as np
import pytest

from gmeql.evaluation.problems import InputColumn

ROWS = 20_000


def test_uniform_in_the_logarithm(rng: np.random.Generator) -> None:
    values = InputColumn("x", 1e-11, 1e-5, "log").draw(rng, ROWS)
    assert 1e-11 <= values.min() and values.max() <= 1e-5
    exponents = np.log10(values)
    assert exponents.mean() == pytest.approx(-8.0, abs=0.05)  # the mean's standard error is 0.012
    assert exponents.var() == pytest.approx(6**2 / 12, rel=0.03)


def test_whole_numbers_with_both_ends(rng: np.random.Generator) -> None:
    values, counts = np.unique(InputColumn("n", 1, 4, "integer").draw(rng, ROWS), return_counts=True)
    assert values.tolist() == [1.0, 2.0, 3.0, 4.0]
    np.testing.assert_allclose(counts / ROWS, 0.25, atol=0.015)  # five standard errors


def test_half_of_the_signed_values_are_negative_whatever_their_size(rng: np.random.Generator) -> None:
    for dist in ("uniform", "log", "integer"):
        values = InputColumn("x", 1, 9, dist, signed=True).draw(rng, ROWS)
        assert np.abs(values).min() >= 1 and np.abs(values).max() <= 9
        for part in (np.abs(values) < 3, np.abs(values) >= 3):
            assert (values[part] < 0).mean() == pytest.approx(0.5, abs=0.03)


def test_unsigned_uniform_values_are_those_they_always_were() -> None:
    drawn = InputColumn("x", -1, 3).draw(np.random.default_rng(5), 7)
    np.testing.assert_array_equal(drawn, np.random.default_rng(5).uniform(-1, 3, 7))


def test_a_grid_holds_its_ends() -> None:
    np.testing.assert_array_equal(InputColumn("x", 0, 2, "grid", 5).grid(), [0, 0.5, 1, 1.5, 2])
