"""Every opcode has a name, and the names are those of the operator table."""

from __future__ import annotations

from gmeql.fitters import opcodes
from gmeql.formula.operators import OPERATORS, USER_OPCODE

OWN = {"POWER_FITTED", "POWER_WHOLE", "USER_OPCODE", "MAX_NODES", "MAX_CONSTANTS"}


def test_the_names_are_the_table() -> None:
    table = {name.upper(): operator.opcode for name, operator in OPERATORS.items() if not operator.is_user_defined}
    named = {name: value for name, value in vars(opcodes).items() if isinstance(value, int) and name not in OWN}
    assert named == table


def test_opcodes_of_programs_alone_are_nobody_elses() -> None:
    taken = [operator.opcode for operator in OPERATORS.values()]
    for own in (opcodes.POWER_FITTED, opcodes.POWER_WHOLE):
        assert own not in taken and own < USER_OPCODE
    assert opcodes.POWER_FITTED != opcodes.POWER_WHOLE
