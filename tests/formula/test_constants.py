"""Constants of a formula: which of them the data determine."""

from __future__ import annotations

from gmeql.formula.constants import free_constants
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable

X1 = Variable(0)


def test_plain_exponents_and_signs_are_structure() -> None:
    root = Call("add", (Constant(2.0), Call("mul", (Constant(-1.0), Call("pow", (X1, Constant(0.5)))))))
    assert free_constants(Expression(root)).tolist() == [True, False, False]
    odd = Call("pow", (X1, Constant(1.37)))
    assert free_constants(Expression(odd)).tolist() == [True]
