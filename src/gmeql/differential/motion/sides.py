"""Right sides of a system as something to compute with: parameters in place of constants, tapes, programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.fitters.opcodes import MAX_CONSTANTS, MAX_NODES, USER_OPCODE
from gmeql.fitters.programs import ProgramTooLong, from_expression, stack
from gmeql.formula.nodes import Call, Constant, Node, Variable, calls, evaluate, is_plain_exponent
from gmeql.formula.operators import get_operator

FloatArray = NDArray[np.float64]


def _replaced(node: Node, leaf: Any) -> Node:
    """The tree with every constant but plain exponents replaced, from left to right."""
    if isinstance(node, Constant):
        return leaf(node)  # type: ignore[no-any-return]
    if not isinstance(node, Call):
        return node
    exponent = node.args[1] if node.operator == "pow" and is_plain_exponent(node.args[1]) else None
    args = tuple(arg if arg is exponent else _replaced(arg, leaf) for arg in node.args)
    return Call(node.operator, args, node.protected)


@dataclass(frozen=True)
class RightSides:
    """Equations over `n_columns` columns, whose constants stand in further columns: the parameters."""

    roots: tuple[Node, ...]
    n_columns: int
    values: tuple[float, ...]
    """Of the parameters: by equation, from left to right."""
    counts: tuple[int, ...]
    """Parameters of each equation."""

    @classmethod
    def of(cls, equations: Sequence[Node], n_columns: int) -> RightSides:
        """The right sides of equations; plain exponents stay as they are.

        >>> sides = RightSides.of([Call("mul", (Constant(3.0), Call("pow", (Variable(0), Constant(2.0)))))], 1)
        >>> sides.values, sides([2.0], [5.0])
        ((3.0,), [20.0])
        """
        values: list[float] = []

        def parameter(constant: Constant) -> Node:
            values.append(constant.value)
            return Variable(n_columns + len(values) - 1)

        roots, counts = [], []
        for equation in equations:
            before = len(values)
            roots.append(_replaced(equation, parameter))
            counts.append(len(values) - before)
        return cls(tuple(roots), n_columns, tuple(values), tuple(counts))

    def __call__(self, columns: Sequence[Any], parameters: Sequence[Any]) -> list[Any]:
        """Their values for columns and parameters: numbers, or arrays that NumPy broadcasts."""
        given = [*columns, *parameters]
        return [evaluate(root, given.__getitem__, np.float64, np) for root in self.roots]

    def programs(self) -> tuple[NDArray[np.int16], NDArray[np.int64], FloatArray] | None:
        """Programs [Z, 5, MAX_NODES] with their lengths and constants for compiled code; None where it knows not all."""
        for root in self.roots:
            for call in calls(root):
                if call.protected or get_operator(call.operator).opcode >= USER_OPCODE:
                    return None
        try:
            found = [from_expression(root, self.n_columns + len(self.values)) for root in self.roots]
        except ProgramTooLong:
            return None
        codes, lengths, _, constants = stack(found)
        assert codes.shape[1:] == (5, MAX_NODES) and constants.shape[1:] == (MAX_CONSTANTS,)
        return codes, lengths, constants


def with_values(equations: Sequence[Node], values: Sequence[float]) -> tuple[Node, ...]:
    """Equations with other values of their parameters, in the order of `RightSides.values`."""
    supply = iter(values)
    return tuple(_replaced(equation, lambda constant: Constant(next(supply))) for equation in equations)
