"""Functions of one product of powers: their series, and the constants of a law with one."""

import math

import numpy as np
import pytest

from gmeql.formula.nodes import Constant, Variable, build, row_values
from gmeql.search.direct.powers.shapes import (
    SHAPES,
    Law,
    converged,
    monomial,
    nearest,
    product_of_powers,
    products_of_powers,
    put,
    stepped,
)


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


def test_products_are_those_of_the_columns_in_units_of_their_largest() -> None:
    X = np.array([[1.0, -2.0], [3.0, 4.0], [0.5, -1.0]])
    tried = np.array([[1.0, 1.0], [-2.0, 3.0], [0.0, 2.0]])
    each = np.array([product_of_powers(X, powers) for powers in tried])
    np.testing.assert_allclose(products_of_powers(X, tried), each / np.abs(each).max(axis=1, keepdims=True))


def test_the_nearest_laws_are_the_simplest_of_those_that_leave_rounding() -> None:
    one, two, three, far = (
        Law(error, size, Constant(size)) for error, size in ((1e-15, 7), (3e-14, 5), (8e-13, 3), (1.0, 1))
    )
    assert nearest([one, two, three, far], least=1e-13, alike=100.0, most=3) == [two.root, one.root, three.root]
    assert nearest([], least=1e-13, alike=100.0, most=3) == []


def test_a_step_leads_to_the_constant_and_is_no_larger_than_allowed() -> None:
    slope = np.array([1.0, 2.0])
    assert stepped(2.0, slope, 0.25 * slope) == 2.5
    assert stepped(2.0, slope, 30.0 * slope) == 4.0 and stepped(2.0, slope, -30.0 * slope) == 1.0
    assert math.isnan(stepped(2.0, np.zeros(2), slope))
