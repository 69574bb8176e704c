"""Two waves of angles that are a phase apart are one wave and a number."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.formula.simplify import simplify
from gmeql.formula.terms import split_sum, write_sum
from gmeql.formula.waves import wave_and_number

NAMES = ("x", "y")
X = np.random.default_rng(0).uniform(-3, 3, (50, 2))


@pytest.mark.parametrize("first", ["sin", "cos"])
@pytest.mark.parametrize("second", ["sin", "cos"])
def test_a_product_of_waves_a_phase_apart_is_a_wave_and_a_number(first: str, second: str) -> None:
    root = simplify(parse_tree(f"x - 2.6*{first}(3*x*y + 0.7)*{second}(3*x*y - 0.4) + 1.5", NAMES))
    ((constant, terms),) = wave_and_number(*split_sum(root))
    one = Expression(write_sum(constant, terms), NAMES)
    assert len(terms) == 2 and str(one).count("sin") + str(one).count("cos") == 1
    np.testing.assert_allclose(one(X), Expression(root, NAMES)(X), rtol=1e-12)


@pytest.mark.parametrize(
    "formula", ["x + cos(x)*cos(y)", "x + cos(x)*cos(2*x)", "x + y*cos(x)*cos(x + 1)", "x + cos(x)**2"]
)
def test_other_products_stay(formula: str) -> None:
    assert list(wave_and_number(*split_sum(simplify(parse_tree(formula, NAMES))))) == []
