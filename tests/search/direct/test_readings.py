"""Readings that direct methods invert: each gives the target back, and only where the functions allow it."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Variable, row_values
from gmeql.network.families import DEFAULT_FUNCTIONS, FunctionSet
from gmeql.search.direct.readings import (
    DIRECT_READINGS,
    EVERY_READING,
    INVERTED_BY,
    OUTER_READINGS,
    direct_readings,
    outer_readings,
)

Y = np.linspace(0.2, 1.4, 20)


@pytest.mark.parametrize("name", list(DIRECT_READINGS))
def test_every_reading_is_inverted(name: str) -> None:
    target = direct_readings(Y, FunctionSet(DEFAULT_FUNCTIONS))[name]
    root = DIRECT_READINGS[name].invert(Variable(0), 1.0)
    assert np.allclose(Expression(root, ("g",))(target[:, None]), Y)


def test_functions_decide_which_there_are() -> None:
    assert set(direct_readings(Y, FunctionSet(["add", "exp"]))) == {"identity", "log", "sin", "cos", "tan"}
    assert set(INVERTED_BY) == set(EVERY_READING)


def test_a_large_target_is_no_logarithm() -> None:
    assert "exp" not in direct_readings(1e5 * Y, FunctionSet(DEFAULT_FUNCTIONS))


def test_rarer_readings_are_inverted() -> None:
    y = np.linspace(-3.0, -0.5, 20)
    for name, target in outer_readings(y, FunctionSet()).items():
        back = OUTER_READINGS[name].invert(Variable(0), -1.0)
        assert np.allclose(row_values(back, ["x0"], target[:, None]), y), name
    assert set(outer_readings(np.linspace(-1.0, 1.0, 20), FunctionSet())) == {"cube root"}  # others lose the sign
    assert outer_readings(y, FunctionSet(["add", "mul"])) == {}
