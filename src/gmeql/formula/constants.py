"""Constants of a formula: which of them the data determine, and which are structure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.expression import Expression
from gmeql.formula.limits import PLAIN_EXPONENT_LIMIT
from gmeql.formula.nodes import Call, Constant, Node, is_plain_exponent


def free_constants(expression: Expression) -> NDArray[np.bool_]:
    """Mask over `expression.constants`: what the data determine. Plain exponents and factors of ±1 are structure.

    >>> from gmeql.formula.expression import Expression
    >>> from gmeql.formula.nodes import Call, Constant, Variable
    >>> free_constants(Expression(Call("mul", (Constant(3.2), Call("pow", (Variable(0), Constant(-2.0))))))).tolist()
    [True, False]
    """
    return np.array(
        [
            abs(leaf.value) != 1.0 and not (is_exponent and is_plain_exponent(leaf))
            for leaf, is_exponent in _places(expression.root)
        ],
        dtype=bool,
    )


def exponents(expression: Expression) -> set[int]:
    """Indices into `expression.constants` of the exponents of powers."""
    return {i for i, (_, is_exponent) in enumerate(_places(expression.root)) if is_exponent}


def round_exponents(expression: Expression) -> set[int]:
    """Indices into `expression.constants` of exponents that are whole numbers, halves or thirds: chosen, not fitted.

    >>> from gmeql.formula.nodes import Call, Constant, Variable
    >>> round_exponents(Expression(Call("mul", (Constant(1.5), Call("pow", (Variable(0), Constant(1.5)))))))
    {1}
    """
    found = enumerate(_places(expression.root))
    return {i for i, (leaf, is_exponent) in found if is_exponent and (is_plain_exponent(leaf) or _is_third(leaf.value))}


def _is_third(exponent: float) -> bool:
    return abs(exponent) <= PLAIN_EXPONENT_LIMIT and exponent == round(3.0 * exponent) / 3.0


def _places(root: Node) -> list[tuple[Constant, bool]]:
    """Constants in the order of `expression.constants`, and whether each is the exponent of a power."""
    found: list[tuple[Constant, bool]] = []
    waiting: list[tuple[Node, bool]] = [(root, False)]
    while waiting:
        node, is_exponent = waiting.pop()
        if isinstance(node, Constant):
            found.append((node, is_exponent))
        elif isinstance(node, Call):
            if node.operator == "pow":
                waiting += ((node.args[1], True), (node.args[0], False))
            else:
                waiting += [(arg, False) for arg in reversed(node.args)]
    return found
