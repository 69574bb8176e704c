"""Programs with starts and targets that every engine is tried on, and one node at a time."""

from __future__ import annotations

import numpy as np
from random_trees import call

from gmeql.fitters.kernel.memory import BLOCK, make_work
from gmeql.fitters.kernel.tape import jacobian_one
from gmeql.fitters.opcodes import MAX_CONSTANTS, MAX_NODES
from gmeql.fitters.programs import Program, from_expression, input_slots
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, Variable
from gmeql.formula.operators import OPERATORS, Operator

ROWS = BLOCK + 37  # more than one block of the CPU kernel and no multiple of one
x, y, z = (Variable(i) for i in range(3))
NAMES = ("x", "y", "z")
SIMPLE = [operator for operator in OPERATORS.values() if not operator.is_user_defined and not operator.is_dense]


def data() -> tuple[np.ndarray, np.ndarray]:
    """Positive rows and their slots."""
    X = np.random.default_rng(5).uniform(0.3, 2.0, (ROWS, 3))
    return X, input_slots(X)[0]


def scaled(c: float, node: Node) -> Node:
    return Call("mul", (Constant(c), node))


FORMULAS: dict[str, Node] = {
    "line": call("add", scaled(1.5, x), scaled(-0.7, y), 0.3),
    "wave": call("mul", 2.0, call("sin", scaled(1.3, x)), call("cos", scaled(0.8, y))),
    "quotient": call("div", call("add", x, 0.5), call("add", scaled(1.2, y), scaled(0.4, z))),
    "difference": call("sub", scaled(2.0, call("sqrt", x)), scaled(0.5, call("log", call("add", y, 0.2)))),
    "decay": call("mul", 1.7, call("exp", scaled(-0.9, x))),
    "fitted power": call("mul", 0.8, call("pow", x, 1.7), call("pow", y, -0.6)),
    "general power": call("mul", 1.1, call("pow", call("add", x, 0.4), scaled(0.9, y))),
    "whole powers": call("add", scaled(0.5, call("pow", x, -2.0)), scaled(0.3, call("pow", y, 3.0))),
    "table powers": call(
        "add", scaled(0.5, call("square", x)), scaled(0.3, call("cube", y)), scaled(0.1, call("pow4", z)),
        scaled(0.05, call("pow5", x)),
    ),
    "inverse functions": call("add", call("atan", scaled(1.4, x)), call("asin", scaled(0.4, y))),
    "angles": call("add", call("acos", scaled(0.3, x)), scaled(0.01, call("pow6", y)), call("inv", call("add", z, 0.1))),
    "tanh": call("mul", 2.0, call("tanh", call("add", scaled(1.4, x), -0.8))),
    "abs and neg": call("neg", call("abs", call("add", x, -0.05))),
    "no constants": call("mul", x, y),
    "shared in twelve nodes": call(
        "add", *(scaled(0.2 + 0.1 * i, call("sin", call("mul", v, w))) for i, (v, w) in enumerate([(x, y), (y, z), (x, z)])),
        scaled(0.7, call("exp", call("neg", z))), scaled(-0.3, x), 0.9,
    ),
}  # fmt: skip


def problems(jitter: float = 0.05) -> tuple[list[Program], np.ndarray, np.ndarray, list[np.ndarray]]:
    """Every formula with starts off its truth; targets of each."""
    X, slots = data()
    programs = [from_expression(root, 3) for root in FORMULAS.values()]
    starts = np.zeros((len(programs), MAX_CONSTANTS))
    rng = np.random.default_rng(11)
    for b, program in enumerate(programs):
        starts[b, : len(program.start)] = program.start * (1 + jitter * rng.standard_normal(len(program.start)))
    targets = [Expression(root, NAMES)(X) for root in FORMULAS.values()]
    return programs, slots, starts, targets


def one_node(op: int, binary: bool, exponent: int = 0) -> np.ndarray:
    """A program of one node: both inputs carry a constant where the operator reads them."""
    return np.array([[op], [0], [1 if binary else exponent], [0], [1 if binary else -1]], np.int16)


def domain_inputs(operator: Operator) -> np.ndarray:
    """Seven slots, as three columns have: the operator's arguments first."""
    rng = np.random.default_rng(4)
    domains = operator._domains_for((0,) * operator.arity)
    rows = []
    for domain in domains:
        low, high = max(domain.low, -6.0), min(domain.high, 6.0)
        rows.append(rng.uniform(low + 1e-3, high - 1e-3, ROWS))
    rows += [rows[0]] * (7 - len(rows))
    return np.ascontiguousarray(rows)


def walk(code: np.ndarray, constants: np.ndarray, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Output, output again with slopes, and Jacobian of the compiled kernel."""
    padded = np.zeros((5, MAX_NODES), np.int16)
    padded[:, : code.shape[1]] = code
    held = np.zeros(MAX_CONSTANTS)
    held[: len(constants)] = constants
    n_free = len(constants)
    plain, output = np.empty(inputs.shape[1]), np.empty(inputs.shape[1])
    jacobian = np.zeros((MAX_CONSTANTS, inputs.shape[1]))
    work = make_work(len(inputs), BLOCK)
    jacobian_one(padded, code.shape[1], held, 0, inputs, work, plain, jacobian)
    jacobian_one(padded, code.shape[1], held, n_free, inputs, work, output, jacobian)
    return plain, output, jacobian[:n_free]
