"""The walk that writes: signs, parentheses and order as a person would set them."""

from __future__ import annotations

import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, Variable
from random_trees import NAMES, call

x1, x2, x3 = (Variable(i) for i in range(3))


def text(root: Node) -> str:
    return str(Expression(root, NAMES))


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (
            call("add", call("mul", 0.8, call("cube", x1)), call("mul", 0.9, call("square", x2)), call("mul", 1.2, x3)),
            "0.8*x1**3 + 0.9*x2**2 + 1.2*x3",
        ),
        (call("sqrt", call("add", 1.3, call("mul", 1.2, call("div", x2, x1)))), "sqrt(1.3 + 1.2*x2/x1)"),
        (call("mul", 1.2, call("sin", call("mul", 1.1, x1)), call("cos", call("mul", 0.9, x2))),
         "1.2*sin(1.1*x1)*cos(0.9*x2)"),
        (call("add", x1, call("mul", -1, x2)), "x1 - x2"),
        (call("add", x1, call("neg", x2)), "x1 - x2"),
        (call("sub", x1, call("mul", -2, x2)), "x1 + 2*x2"),
        (call("add", call("mul", -1, x1), 2.0), "2 - x1"),
        (call("add", call("neg", x1), call("neg", x2)), "-x1 - x2"),
        (call("sub", x1, call("sub", x2, x3)), "x1 - (x2 - x3)"),
        (call("add", x1, call("add", x2, x3)), "x1 + x2 + x3"),
        (call("add", x1, -3.0), "x1 - 3"),
        (call("neg", call("add", x1, x2)), "-(x1 + x2)"),
        (call("neg", call("neg", x1)), "x1"),
        (call("mul", x3, call("sub", call("neg", x1), x2)), "-x3*(x1 + x2)"),
        (call("div", x3, call("sub", call("neg", x1), x2)), "-x3/(x1 + x2)"),
        (call("mul", call("sub", -2.0, x1), call("sub", call("neg", x1), x2)), "(2 + x1)*(x1 + x2)"),
        (
            call("div", call("mul", 3, x2), call("mul", call("sub", x2, call("div", 3, x1)), call("sub", call("neg", x3), 1))),
            "3*x2/((3/x1 - x2)*(x3 + 1))",
        ),
        (call("mul", call("sub", x1, x2), call("sub", call("neg", x3), 1)), "(x2 - x1)*(x3 + 1)"),
        (call("sub", x1, call("sub", call("neg", x2), x3)), "x1 + x2 + x3"),
        (call("square", call("sub", call("neg", x2), x3)), "(x2 + x3)**2"),
        (call("cube", call("sub", call("neg", x2), x3)), "(-x2 - x3)**3"),
        (call("mul", -1.0, call("add", x1, x2)), "-(x1 + x2)"),
        (call("mul", call("neg", x1), call("neg", x2)), "x1*x2"),
        (call("mul", x1, 2.0), "2*x1"),
        (call("mul", 1.0, x1), "x1"),
        (call("mul", 1.0, 1.0), "1"),
        (call("mul", -1.0, 1.0), "-1"),
        (call("mul", 1.00000001234, x1), "x1"),
        (call("mul", x1, call("inv", x2)), "x1/x2"),
        (call("inv", call("mul", x1, x2)), "1/(x1*x2)"),
        (call("div", x1, call("div", x2, x3)), "x1*x3/x2"),
        (call("div", call("div", x1, x2), x3), "x1/(x2*x3)"),
        (call("div", call("add", x1, 1.0), call("add", x2, 1.0)), "(x1 + 1)/(x2 + 1)"),
        (call("mul", call("inv", x1), call("inv", x2)), "1/(x1*x2)"),
        (call("square", call("add", x1, x2)), "(x1 + x2)**2"),
        (call("square", call("mul", x1, x2)), "(x1*x2)**2"),
        (call("square", call("square", x1)), "(x1**2)**2"),
        (call("square", call("neg", x1)), "(-x1)**2"),
        (call("neg", call("square", x1)), "-x1**2"),
        (call("square", call("sin", x1)), "sin(x1)**2"),
        (call("pow", x1, 2.0), "x1**2"),
        (call("pow", x1, -2.0), "1/x1**2"),
        (call("pow", x1, 0.5), "sqrt(x1)"),
        (call("pow", x1, -0.5), "1/sqrt(x1)"),
        (call("pow", x1, 1.37), "x1**1.37"),
        (call("pow", 2.0, x1), "2**x1"),
        (call("pow", -2.0, x1), "(-2)**x1"),
        (call("pow", x1, call("neg", x2)), "x1**(-x2)"),
        (call("pow", x1, call("add", x2, 1.0)), "x1**(x2 + 1)"),
        (call("pow", call("pow", x1, x2), x3), "(x1**x2)**x3"),
        (call("exp", call("neg", call("square", x1))), "exp(-x1**2)"),
        (call("id", call("add", x1, x2)), "x1 + x2"),
        (call("mul", call("id", call("add", x1, x2)), x3), "x3*(x1 + x2)"),
        (call("abs", call("sub", x1, x2)), "abs(x1 - x2)"),
        (call("sqrt", x1, protected=True), "sqrt(abs(x1))"),
        (call("div", x1, x2, protected=True), "x1/x2"),
        (call("add", x1, x2, x3, protected=True), "x1 + x2 + x3"),
        (Constant(-2.5), "-2.5"),
        (Constant(0.0), "0"),
    ],
)  # fmt: skip
def test_text_reads_as_a_person_writes(root: Node, expected: str) -> None:
    assert text(root) == expected
