"""Right sides of a system as something to compute with: parameters in place of constants, tapes, programs.

What leaves one state often enters another. So a term that stands in several equations with the same constants, to the last
digit and up to its sign, is one thing: its constants are fitted together and stay equal.
"""

from __future__ import annotations

from collections import Counter
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


def terms_of(root: Node) -> Sequence[Node]:
    """The terms of a sum in their order, subtracted ones with their sign; of anything else that alone."""
    if not (isinstance(root, Call) and root.operator in ("add", "sub")):
        return (root,)
    first, *others = root.args
    if root.operator == "sub":
        return (*terms_of(first), *(Call("neg", (other,)) for other in others))
    return (*terms_of(first), *(term for other in others for term in terms_of(other)))


def unsigned(term: Node) -> Node:
    """A term without its sign.

    >>> unsigned(Call("mul", (Constant(-0.3), Variable(0)))) == Call("mul", (Constant(0.3), Variable(0)))
    True
    """
    if isinstance(term, Call) and term.operator == "neg":
        return unsigned(term.args[0])
    if isinstance(term, Call) and term.operator in ("mul", "div"):
        first, *others = term.args
        first = Constant(abs(first.value)) if isinstance(first, Constant) else unsigned(first)
        return Call(term.operator, (first, *others), term.protected)
    return term


def has_coefficient(term: Node) -> bool:
    """Whether a term begins with a number that it is multiplied by, or is a number."""
    while isinstance(term, Call) and term.operator in ("neg", "mul", "div"):
        term = term.args[0]
    return isinstance(term, Constant)


def is_linear(root: Node) -> bool:
    """Whether a sum's constants are the coefficients of its terms and nothing else.

    >>> x = Variable(0)
    >>> [is_linear(Call("mul", (Constant(3.0), factor))) for factor in (x, Call("exp", (Call("mul", (Constant(2.0), x)),)))]
    [True, False]
    """
    return all(len(RightSides.of([term], 0).values) <= int(has_coefficient(term)) for term in terms_of(root))


def shared_terms(equations: Sequence[Node]) -> set[Node]:
    """Terms without signs that stand in several equations, constants and all; constants alone are not among them."""
    found = Counter(term for root in equations for term in {*map(unsigned, terms_of(root))})
    return {term for term, count in found.items() if count > 1 and isinstance(term, Call)}


def shared_constants(equations: Sequence[Node]) -> FloatArray:
    """[K, F] the parameters, in the order of `RightSides.values`, made of those that are free: 1, -1 and 0."""
    shared = shared_terms(equations)
    first: dict[Node, int] = {}
    values: list[float] = []
    source: list[int] = []
    for term in (term for root in equations for term in terms_of(root)):
        own, key = RightSides.of([term], 0).values, unsigned(term)
        begin = first.setdefault(key, len(values)) if key in shared else len(values)
        source += range(begin, begin + len(own))
        values += own
    free = sorted(set(source))
    made = np.zeros((len(values), len(free)))
    for k, place in enumerate(source):
        made[k, free.index(place)] = 1.0 if values[k] == values[place] else -1.0
    return made


def with_values(equations: Sequence[Node], values: Sequence[float]) -> tuple[Node, ...]:
    """Equations with other values of their parameters, in the order of `RightSides.values`."""
    supply = iter(values)
    return tuple(_replaced(equation, lambda constant: Constant(next(supply))) for equation in equations)
