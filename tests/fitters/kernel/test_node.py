"""Nodes against the operator table: values and slopes of every opcode."""

from __future__ import annotations

import numpy as np
import pytest
from fitting_problems import SIMPLE, domain_inputs, one_node, walk

from gmeql.fitters.opcodes import POWER_FITTED, POWER_WHOLE
from gmeql.formula.operators import Operator


@pytest.mark.parametrize("operator", SIMPLE, ids=lambda operator: operator.name)
def test_kernel_opcodes_are_the_table(operator: Operator) -> None:
    inputs = domain_inputs(operator)
    binary = operator.arity == 2
    code = one_node(operator.opcode, binary)
    constants = np.array([0.9, 0.8])[: operator.arity]
    args = [c * row for c, row in zip(constants, inputs, strict=False)]
    expected = operator.natural(np, *args)
    slopes = [p * row for p, row in zip(operator.partials(np, *args), inputs, strict=False)]
    plain, output, jacobian = walk(code, constants, inputs)
    np.testing.assert_array_equal(plain, output)
    np.testing.assert_allclose(output, expected, rtol=4e-15, atol=4e-16)
    np.testing.assert_allclose(jacobian, slopes, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("exponent", [-3, -2, -1, 0, 1, 2, 3, 7, 12])
def test_whole_powers(exponent: int) -> None:
    inputs = np.array([[-2.5, -1.0, -0.3, 0.2, 1.0, 3.5]])
    plain, output, jacobian = walk(one_node(POWER_WHOLE, False, exponent), np.array([1.25]), inputs)
    u = 1.25 * inputs[0]
    np.testing.assert_allclose(output, u**exponent, rtol=1e-14)
    np.testing.assert_allclose(jacobian[0], exponent * u ** (exponent - 1.0) * inputs[0], rtol=1e-14)


def test_fitted_powers() -> None:
    inputs = np.array([[0.01, 0.3, 1.0, 2.5, 40.0, -1.0]])
    code = np.array([[POWER_FITTED], [0], [0], [0], [1]], np.int16)
    plain, output, jacobian = walk(code, np.array([1.2, -1.7]), inputs)
    u = 1.2 * inputs[0, :5]
    np.testing.assert_allclose(output[:5], u**-1.7, rtol=1e-13)
    np.testing.assert_allclose(jacobian[0, :5], -1.7 * u**-2.7 * inputs[0, :5], rtol=1e-13)
    np.testing.assert_allclose(jacobian[1, :5], u**-1.7 * np.log(u), rtol=1e-12, atol=1e-14)
    assert np.isnan(output[5])
