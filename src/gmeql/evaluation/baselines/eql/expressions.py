"""From the weights of a trained network to the expression it computes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gmeql.evaluation.baselines.eql.config import UNITS, EQLConfig
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.formula.operators import get_operator


def _scaled(factor: float, node: Any) -> Any:
    if isinstance(node, Constant):
        return Constant(factor * node.value)
    if factor == 1.0:
        return node
    if isinstance(node, Call) and node.operator == "mul" and isinstance(node.args[0], Constant):
        return Call("mul", (Constant(factor * node.args[0].value), *node.args[1:]))
    if isinstance(node, Call) and node.operator == "add":  # a factor of a sum goes to its terms: no constant twice
        return Call("add", tuple(_scaled(factor, term) for term in node.args))
    return Call("mul", (Constant(factor), node))


def _sum(terms: list[Any]) -> Any:
    """Sum of nodes; constants are gathered into one term."""
    flat: list[Any] = []
    for term in terms:
        flat.extend(term.args if isinstance(term, Call) and term.operator == "add" else (term,))
    total = sum(term.value for term in flat if isinstance(term, Constant))
    others = [term for term in flat if not isinstance(term, Constant)]
    merged: dict[Any, float] = {}
    for term in others:  # equal terms (two identity units that carry the same variable) become one
        factor, body = _split(term)
        merged[body] = merged.get(body, 0.0) + factor
    nodes = [_scaled(factor, body) for body, factor in merged.items() if factor != 0.0]
    if total != 0.0 or not nodes:
        nodes.append(Constant(float(total)))
    return nodes[0] if len(nodes) == 1 else Call("add", tuple(nodes))


def _split(node: Any) -> tuple[float, Any]:
    """A product's constant factor and the rest."""
    if isinstance(node, Call) and node.operator == "mul" and isinstance(node.args[0], Constant):
        return node.args[0].value, node.args[1] if len(node.args) == 2 else Call("mul", node.args[1:])
    return 1.0, node


def _unit_node(name: str, a: Any, b: Any) -> Any:
    """One unit of its input sums. Factors move out of powers and products, so that no constant stands there twice."""
    unit = UNITS[name]
    a = _scaled(unit.scale, a)
    if name == "one":
        return Constant(1.0)
    if name == "id":
        return a
    if isinstance(a, Constant) and (unit.arity == 1 or isinstance(b, Constant)):
        return _constant_unit(name, a.value, b.value)
    if name == "exp":
        return _sum([_scaled(unit.gain, Call("exp", (a,))), Constant(-unit.gain)])
    if name == "sigmoid":  # 1 / (1 + exp(-a))
        return Call("div", (Constant(1.0), _sum([Call("exp", (_scaled(-1.0, a),)), Constant(1.0)])))
    factor_a, rest_a = _split(a)
    factor_b, rest_b = _split(b)
    if name in ("square", "cube"):
        return _scaled(factor_a ** (2 if name == "square" else 3), Call(name, (rest_a,)))
    if name == "mul":
        if isinstance(a, Constant) or isinstance(b, Constant):
            a, b = (a, b) if isinstance(a, Constant) else (b, a)
            return _scaled(unit.gain * a.value, b)
        body = Call("square", (rest_a,)) if rest_a == rest_b else Call("mul", (rest_a, rest_b))
        return _scaled(unit.gain * factor_a * factor_b, body)
    if name == "div":
        if isinstance(b, Constant):
            return _scaled(1.0 / b.value if b.value else 0.0, a)
        if isinstance(a, Constant):
            return _scaled(a.value / factor_b, Call("div", (Constant(1.0), rest_b))) if a.value else Constant(0.0)
        return _scaled(factor_a / factor_b, Call("div", (rest_a, rest_b)))
    if name == "sqrt":
        return _scaled(math.sqrt(abs(factor_a)), Call("sqrt", (rest_a,), protected=True))
    return Call(name, (a,))


def _constant_unit(name: str, a: float, b: float) -> Constant:
    """A unit whose inputs are all constant; what is not finite (0/0 in a dead division unit) counts as 0."""
    operator = {"exp": "exp", "sigmoid": "exp"}.get(name, name)
    args = (-a,) if name == "sigmoid" else (a, b)[: UNITS[name].arity]
    with np.errstate(all="ignore"):
        value = float(get_operator(operator).protected(np, *(np.float64(v) for v in args)))
    if name == "exp":
        value -= 1.0
    if name == "sigmoid":
        value = 1.0 / (1.0 + value)
    if name == "div" and b <= 0:
        value = 0.0
    return Constant(value * UNITS[name].gain if math.isfinite(value) else 0.0)


def read_off(
    weights: list[np.ndarray], names: tuple[str, ...], x_scales: np.ndarray, y_scale: float, config: EQLConfig
) -> Expression:
    """The expression that one trained network computes, in the units of the data; zero weights leave no trace."""
    units = config.flat_units
    nodes: list[Any] = [_scaled(1.0 / float(x_scales[i]), Variable(i)) for i in range(len(names))]
    for matrix in weights[:-1]:
        column, outputs = 0, []
        for name in units:
            pair = []
            for _ in range(UNITS[name].arity):
                column_weights = matrix[: len(nodes), column]
                pair.append(_sum([_scaled(float(w), n) for w, n in zip(column_weights, nodes, strict=True) if w != 0]))
                column += 1
            outputs.append(_unit_node(name, pair[0], pair[-1]))
        nodes = outputs
    last = weights[-1][:, 0] * y_scale
    return Expression(_sum([_scaled(float(w), n) for w, n in zip(last, nodes, strict=True) if w != 0]), tuple(names))
