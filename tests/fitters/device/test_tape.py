"""Tapes on an accelerator against the operator table."""

from __future__ import annotations

import numpy as np
from fitting_problems import SIMPLE, domain_inputs, one_node

from gmeql.fitters.device import engine
from gmeql.fitters.device.tape import families_of
from gmeql.fitters.opcodes import POWER_FITTED, POWER_WHOLE
from gmeql.fitters.programs import Program
from gmeql.formula.operators import get_operator


def test_device_opcodes_are_the_table() -> None:
    """After no step the loss tells how far the values are from the table's; slopes are held against it by the fits."""
    for operator in SIMPLE:
        inputs = domain_inputs(operator)
        code = one_node(operator.opcode, operator.arity == 2)
        constants = np.array([0.9, 0.8])[: operator.arity]
        expected = operator.natural(np, *[c * row for c, row in zip(constants, inputs, strict=False)])
        program = Program(code, constants, operator.arity, tuple(range(operator.arity)))
        result = engine.fit([program], None, inputs, expected, max_steps=0)
        assert result.losses[0] <= (1e-14 * np.abs(expected).max() + 1e-15) ** 2, operator.name


def test_only_families_that_occur_are_compiled() -> None:
    def families(*names: str) -> set[str]:
        return set(families_of(np.array([[get_operator(name).opcode for name in names]])))

    assert families("add", "square", "div") == set()
    assert families("add", "cos") == {"trigonometric"}
    assert families("log", "atan") == {"exponential", "inverse"}
    assert families_of(np.array([POWER_WHOLE, POWER_FITTED])) == {"whole", "exponential"}
