"""Constants of a formula: which of them the data determine, and which are structure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, is_plain_exponent


def free_constants(expression: Expression) -> NDArray[np.bool_]:
    """Mask over `expression.constants`: what the data determine. Plain exponents and factors of ±1 are structure.

    >>> from gmeql.formula.expression import Expression
    >>> from gmeql.formula.nodes import Call, Constant, Variable
    >>> free_constants(Expression(Call("mul", (Constant(3.2), Call("pow", (Variable(0), Constant(-2.0))))))).tolist()
    [True, False]
    """
    mask: list[bool] = []
    waiting: list[tuple[Node, bool]] = [(expression.root, True)]
    while waiting:
        node, free = waiting.pop()
        if isinstance(node, Constant):
            mask.append(free and abs(node.value) != 1.0)
        elif isinstance(node, Call):
            exponents = {1} if node.operator == "pow" and is_plain_exponent(node.args[1]) else set()
            waiting.extend((arg, i not in exponents) for i, arg in reversed(list(enumerate(node.args))))
    return np.array(mask, dtype=bool)
