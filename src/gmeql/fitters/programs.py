"""Formulas and structures as flat programs, and back.

A program is what the constant fitters walk: nodes over slots, each input optionally times a constant. The compiled
sampler writes programs of networks by itself; here a formula becomes one (so that it can be refitted), a program
becomes a formula (so that it can be read), and a trained network of method "paper" becomes its formulas.

Input slots: V variables, the constant 1, then the logarithm of each variable (nan where it is not positive).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gmeql.fitters.opcodes import EXP, ID, MAX_CONSTANTS, MAX_NODES, MUL, POW, POWER_FITTED, POWER_WHOLE
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, Variable, build, leaves, whole_exponent
from gmeql.formula.operators import get_operator, operator_of_opcode
from gmeql.network.architecture import Architecture


class ProgramTooLong(ValueError):
    """The formula needs more nodes or constants than a program may have."""


@dataclass(frozen=True)
class Program:
    """One formula as a tape.

    Attributes:
        code: [5, length] int16: opcode, left slot, right slot, left constant, right constant (-1: none).
        start: [P] the formula's own constants, the free ones first.
        n_free: how many of them are free.
        leaves: [P] which constant of the formula (in the order of `Expression.constants`) each one is; -1 - p for its
            parameter p.
    """

    code: np.ndarray
    start: np.ndarray
    n_free: int
    leaves: tuple[int, ...]

    @property
    def length(self) -> int:
        return self.code.shape[1]


BELOW_THE_LEAST = 6.0
"""How far below the logarithm of a column's least number above 0 that of 0 is taken to be: a 400th of it."""


def input_slots(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Input slots [2V + 1, N] of a data matrix [N, V], and which variables have a logarithm.

    Those are at least 0 and not always 0. What stands for the logarithm of 0 is far below the others', so that a product of
    powers is nearly 0 there; the formula that is polished has the 0 itself.
    """
    with np.errstate(all="ignore"):
        logarithms = np.log(X)
    least = np.min(logarithms, axis=0, initial=np.inf, where=np.isfinite(logarithms))
    positive = (X >= 0).all(axis=0) & np.isfinite(least)
    logarithms = np.where(X == 0, least - BELOW_THE_LEAST, logarithms)
    logarithms[:, ~positive] = np.nan
    slots = np.concatenate([X.T, np.ones((1, len(X))), logarithms.T])
    return np.ascontiguousarray(slots), positive.astype(np.int64)


# --- formula -> program -------------------------------------------------------------------------------------------


class _Writer:
    """Writes nodes; a value is (slot, constant): the slot times its constant, where there is one."""

    def __init__(
        self, n_variables: int, parameters: Sequence[float] = (), uses: Mapping[int, int] | None = None
    ) -> None:
        self.one = n_variables
        self.parameters = parameters
        self.uses = uses or {}
        self.shared: dict[int, tuple[int, int]] = {}
        self.first = 2 * n_variables + 1
        self.nodes: list[tuple[int, int, int, int, int]] = []
        self.constants: list[float] = []
        self.leaves: list[int] = []
        self.n_leaves = 0

    def constant(self, value: float, leaf: int | None = None) -> tuple[int, int]:
        self.constants.append(value)
        self.leaves.append(self.n_leaves if leaf is None else leaf)
        self.n_leaves += leaf is None
        if len(self.constants) > MAX_CONSTANTS:
            raise ProgramTooLong(f"more than {MAX_CONSTANTS} constants")
        return self.one, len(self.constants) - 1

    def parameter(self, index: int) -> tuple[int, int]:
        """A parameter by its variable's number; one that stands in several places is a node that all of them read."""
        if index in self.shared:
            return self.shared[index]
        value = self.constant(self.parameters[index - self.one], leaf=-1 - (index - self.one))
        if self.uses.get(index, 1) > 1:
            value = self.shared[index] = self.emit(ID, value)
        return value

    def emit(self, op: int, left: tuple[int, int], right: tuple[int, int] = (0, -1)) -> tuple[int, int]:
        self.nodes.append((op, left[0], right[0], left[1], right[1]))
        if len(self.nodes) > MAX_NODES:
            raise ProgramTooLong(f"more than {MAX_NODES} nodes")
        return self.first + len(self.nodes) - 1, -1

    def write(self, node: Node) -> tuple[int, int]:
        if isinstance(node, Variable):
            return (node.index, -1) if node.index < self.one else self.parameter(node.index)
        if isinstance(node, Constant):
            return self.constant(node.value)
        name = node.operator
        if name == "pow":
            return self._power(node)
        values = [self.write(arg) for arg in node.args]
        if name == "mul":
            return self._product(values)
        result = values[0]
        if len(values) == 1:
            return self.emit(get_operator(name).opcode, result)
        for value in values[1:]:
            result = self.emit(get_operator(name).opcode, result, value)
        return result

    def _product(self, values: list[tuple[int, int]]) -> tuple[int, int]:
        """A factor that is a bare constant rides on its neighbour's slot instead of taking a node."""
        result = values[0]
        for value in values[1:]:
            if result[0] == self.one and result[1] >= 0 and value[1] < 0:
                result = (value[0], result[1])
            elif value[0] == self.one and value[1] >= 0 and result[1] < 0:
                result = (result[0], value[1])
            else:
                result = self.emit(MUL, result, value)
        return result

    def _power(self, node: Call) -> tuple[int, int]:
        base = self.write(node.args[0])
        whole = whole_exponent(node)
        if whole is not None:
            self.n_leaves += 1  # a whole exponent is part of the structure
            return self.emit(POWER_WHOLE, base, (whole, -1))
        if isinstance(node.args[1], Constant):
            return self.emit(POWER_FITTED, base, (0, self.constant(node.args[1].value)[1]))
        slot, constant = self.write(node.args[1])
        if slot == self.one and constant >= 0:  # a parameter of this place alone
            return self.emit(POWER_FITTED, base, (0, constant))
        return self.emit(POW, base, (slot, constant))


def from_expression(
    root: Node, n_variables: int, fixed: Collection[int] = (), parameters: Sequence[float] = ()
) -> Program:
    """The program of a formula. Constants whose number is in `fixed` keep their value in a fit.

    Variables from `n_variables` on are `parameters` with these values: constants that may stand in several places.
    Parameter p has the number -1 - p among the program's `leaves`, and in `fixed`.
    """
    uses = Counter(leaf.index for leaf in leaves(root) if isinstance(leaf, Variable)) if len(parameters) else None
    writer = _Writer(n_variables, parameters, uses)
    slot, constant = writer.write(root)
    if constant >= 0 or slot < writer.first or slot != writer.first + len(writer.nodes) - 1:
        writer.emit(ID, (slot, constant))
    order = sorted(range(len(writer.leaves)), key=lambda p: writer.leaves[p] in fixed)
    rank = {p: i for i, p in enumerate(order)} | {-1: -1}
    code = np.array([(op, left, right, rank[c], rank[d]) for op, left, right, c, d in writer.nodes], np.int16).T
    numbers = tuple(writer.leaves[p] for p in order)
    start = np.array([writer.constants[p] for p in order])
    n_free = sum(number not in fixed for number in numbers)
    return Program(code, start, n_free, numbers)


def replace_constants(expression: Expression, program: Program, fitted: np.ndarray) -> Expression:
    """The formula with the constants that a fit of its program gave."""
    values = list(expression.constants)
    for p, leaf in enumerate(program.leaves):
        values[leaf] = float(fitted[p])
    return expression.with_constants(values)


def stack(programs: Sequence[Program]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Codes [B, 5, MAX_NODES], lengths, numbers of free constants and starts [B, MAX_CONSTANTS] of several programs."""
    codes = np.zeros((len(programs), 5, MAX_NODES), np.int16)
    start = np.zeros((len(programs), MAX_CONSTANTS))
    for b, program in enumerate(programs):
        codes[b, :, : program.length] = program.code
        start[b, : len(program.start)] = program.start
    lengths = np.array([program.length for program in programs], np.int64)
    return codes, lengths, np.array([program.n_free for program in programs], np.int64), start


def starts(own: np.ndarray, given: np.ndarray | None) -> np.ndarray:
    """Where the fits start, [B, MAX_CONSTANTS]: the programs' own constants, or the given ones [B, P]."""
    if given is None:
        return own
    return np.pad(np.asarray(given, float), ((0, 0), (0, MAX_CONSTANTS - given.shape[1])))


# --- program -> formula -------------------------------------------------------------------------------------------


def to_node(code: np.ndarray, length: int, constants: np.ndarray | Sequence[Node], n_variables: int) -> Node:
    """The formula that a program spells with the given constants: numbers, or what is to stand in their places."""
    first = 2 * n_variables + 1
    nodes: list[Node] = [Variable(i) for i in range(n_variables)]
    nodes.append(Constant(1.0))
    nodes += [Call("log", (Variable(i),)) for i in range(n_variables)]

    def weighted(slot: int, constant: int) -> Node:
        return nodes[slot] if constant < 0 else build("mul", number(constant), nodes[slot])

    def number(constant: int) -> Node:
        given = constants[constant]
        return given if isinstance(given, Constant | Variable | Call) else Constant(float(given))

    for k in range(length):
        op, left, right, left_constant, right_constant = (int(v) for v in code[:, k])
        u = weighted(left, left_constant)
        if op == POWER_FITTED:
            node = build("pow", u, number(right_constant))
        elif op == POWER_WHOLE:
            node = build("pow", u, Constant(float(right)))
        elif op == EXP and (powers := _log_terms(u)) is not None:
            node = build("mul", *powers) if len(powers) > 1 else powers[0] if powers else Constant(1.0)
        else:
            operator = operator_of_opcode(op)
            node = (
                build(operator.name, u, weighted(right, right_constant))
                if operator.arity == 2
                else build(operator.name, u)
            )
        nodes.append(node)
    return nodes[first + length - 1]


def _log_terms(node: Node) -> list[Node] | None:
    """For Σ e_i log x_i the factors x_i ** e_i; None where the node is not such a sum."""
    if isinstance(node, Call) and node.operator == "add":
        parts = [_log_terms(arg) for arg in node.args]
        return None if any(part is None for part in parts) else [factor for part in parts for factor in part or []]
    if isinstance(node, Constant) and node.value == 0.0:
        return []
    exponent = 1.0
    if isinstance(node, Call) and node.operator == "mul" and len(node.args) == 2 and isinstance(node.args[0], Constant):
        exponent, node = node.args[0].value, node.args[1]
    if isinstance(node, Call) and node.operator == "log" and isinstance(node.args[0], Variable):
        return [build("pow", node.args[0], Constant(exponent))]
    return None


# --- network -> formulas ------------------------------------------------------------------------------------------


def expression_from_structure(
    architecture: Architecture,
    choices: Any,
    weights: Any,
    names: Sequence[str] | None = None,
    *,
    protected: bool = True,
) -> tuple[Expression, ...]:
    """The formulas, one per output, that a hard structure spells with its weights (the paper's Section 3).

    `protected` picks the protected form of each operator, which is what method "paper" trains on.
    """
    sources = architecture.sources(architecture.validate_choices(choices))
    weights = np.asarray(weights, float)
    names = tuple(names) if names is not None else tuple(f"x{i + 1}" for i in range(architecture.n_variables))
    nodes: list[Node | None] = [Variable(i) for i in range(architecture.n_variables)]
    nodes += [Constant(value) for value in architecture.constants]
    nodes += [None] * (architecture.n_nodes - architecture.n_inputs)
    active = architecture.active_nodes(choices)

    def times(weight: float, node: Node | None) -> Node:
        assert node is not None  # sources come before the nodes they feed
        return build("mul", Constant(float(weight)), node)

    for number in range(architecture.n_inputs, architecture.n_nodes):
        if not active[number]:
            continue
        operator = get_operator(architecture.node_operator[number])
        if operator.is_dense:
            origins, ids = architecture.dense_of(number)
            if operator.name == "sum":
                nodes[number] = build("add", *(times(weights[w], nodes[s]) for s, w in zip(origins, ids, strict=True)))
            else:
                nodes[number] = build(
                    "mul",
                    *(build("pow", nodes[s], Constant(float(weights[w]))) for s, w in zip(origins, ids, strict=True)),
                )
            continue
        inputs = [times(weights[c], nodes[sources[c]]) for c in architecture.connections_of(number)]
        if operator.name == "id":
            nodes[number] = inputs[0]
        elif protected and operator.name not in ("add", "sub", "mul", "neg"):
            nodes[number] = Call(operator.name, tuple(inputs), protected=True)
        else:
            nodes[number] = build(operator.name, *inputs)
    outputs = range(architecture.layer_slices[-1].start, architecture.n_nodes)
    return tuple(Expression(output, names) for output in nodes[outputs.start :] if output is not None)
