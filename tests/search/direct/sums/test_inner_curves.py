"""Slopes of curves against differences, trees against values."""

import numpy as np
import pytest

from gmeql.formula.nodes import Variable, row_values
from gmeql.search.direct.sums.inner_curves import CURVES


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("number", [0.7, 1.6])
def test_slopes(name, number):
    curve, z, step = CURVES[name], np.linspace(1.2, 4.0, 30), 1e-6
    by_sum, by_number = curve.slopes(z, number)
    expected = (curve.value(z + step, number) - curve.value(z - step, number)) / (2 * step)
    np.testing.assert_allclose(by_sum, expected, rtol=1e-6, atol=1e-9)
    expected = (curve.value(z, number + step) - curve.value(z, number - step)) / (2 * step)
    np.testing.assert_allclose(np.zeros(30) if by_number is None else by_number, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", CURVES)
def test_trees(name):
    curve, z = CURVES[name], np.linspace(1.2, 4.0, 30)
    values = row_values(curve.tree(Variable(0), 1.6), ("z",), z[:, None])
    np.testing.assert_allclose(values, curve.value(z, 1.6), rtol=1e-12)


@pytest.mark.parametrize("name", CURVES)
def test_most_starts_have_values_on_a_sum_from_0_to_1(name):
    curve = CURVES[name]
    run = np.linspace(0.01, 1, 20)
    with np.errstate(all="ignore"):
        finite = [np.isfinite(curve.value(a * run + b, p)).all() for a, b, p in curve.starts]
    assert np.mean(finite) > 0.9
