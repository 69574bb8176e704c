"""Functions of one column: those that its values allow, with the operators that they hold."""

from __future__ import annotations

import numpy as np

from gmeql.formula.nodes import calls, row_values
from gmeql.search.direct.terms.column_functions import LIBRARY, PLAIN_TERMS, functions_of_column

RNG = np.random.default_rng(0)
POSITIVE, SIGNED = RNG.uniform(0.5, 3.0, 40), RNG.uniform(-2.0, 2.0, 40)
WITH_ZERO = np.append(SIGNED, 0.0)


def test_operators_are_those_of_the_formula() -> None:
    for function in functions_of_column(1, SIGNED, LIBRARY):
        assert function.operators == {call.operator for call in calls(function.node)}


def test_a_column_with_other_signs_has_other_functions() -> None:
    """Whatever was asked before: formulas without constants are made once for a column."""
    for x in (POSITIVE, SIGNED, WITH_ZERO, POSITIVE):
        for function in functions_of_column(0, x, PLAIN_TERMS):
            assert np.isfinite(row_values(function.node, ("x",), x[:, None])).all(), function
    kinds = {name: {f.kind for f in functions_of_column(0, x, PLAIN_TERMS)} for name, x in
             (("positive", POSITIVE), ("signed", SIGNED), ("zero", WITH_ZERO))}  # fmt: skip
    assert "log" in kinds["positive"] and "log" not in kinds["signed"]
    assert "x**-1" in kinds["signed"] and "x**-1" not in kinds["zero"]


def test_a_constant_column_has_none() -> None:
    assert not list(functions_of_column(0, np.ones(5), PLAIN_TERMS))
