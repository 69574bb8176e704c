"""Functions of one product of powers: their series, and the constants of a law with one."""

import numpy as np
import pytest

from gmeql.formula.nodes import Constant, Variable, build, row_values
from gmeql.search.direct.shapes import SHAPES, converged, monomial, product_of_powers, put


@pytest.mark.parametrize("place", range(len(SHAPES)))
def test_a_function_is_the_series_that_the_table_says(place):
    shape = SHAPES[place]
    v = np.array([0.02, 0.01])
    rest = row_values(shape.form(Variable(0)), ("v",), v[:, None]) / v**shape.power
    # c (1 + first v**degree + ...): what is left falls one power of v faster
    factor = (rest[1] * 2**shape.degree - rest[0]) / (2**shape.degree - 1)
    assert (rest[0] / factor - 1) / v[0] ** shape.degree == pytest.approx(shape.first, rel=0.05)


def test_both_constants_of_a_law_are_found():
    rng = np.random.default_rng(0)
    inner, before = rng.uniform(0.1, 3, 200), rng.uniform(1, 2, 200)
    form = build("tanh", Variable(0))
    found = converged(2.5 * before * np.tanh(0.7 * inner), form, inner, before, 0.6)
    assert found is not None
    error, factor, scale = found
    assert error < 1e-12 and factor == pytest.approx(2.5) and scale == pytest.approx(0.7)
    assert converged(np.full(200, np.nan), form, inner, before, 0.6) is None


def test_products_of_powers_have_values_and_formulas_alike():
    X = np.array([[2.0, -3.0], [0.5, 4.0]])
    powers = np.array([-1.0, 3.0])
    product = row_values(put(build("mul", Constant(2.0), Variable(0)), monomial(powers)), ("a", "b"), X)
    assert np.allclose(product, 2 * product_of_powers(X, powers)) and np.allclose(product, [-27.0, 256.0])
