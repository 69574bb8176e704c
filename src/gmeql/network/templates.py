"""Architectures for the islands of the fitted search, drawn from a set of functions.

The paper picks the functions of each layer by hand and leaves choosing them open. Here a family is a recipe that draws
an architecture: sums of simple terms, products of powers, ratios of sums, and deep networks of all functions. Which
family and which reading of the target get the next island is learnt in ``search.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gmeql.formula.operators import WHOLE_POWERS, get_operator
from gmeql.network.architecture import PRESETS, Architecture

DEFAULT_FUNCTIONS = (
    "add", "sub", "mul", "div", "sqrt", "square", "cube", "pow4", "pow5", "pow6", "sin", "cos", "exp", "log", "tanh",
    "sum", "prod",
)  # fmt: skip
"""The paper's set, with exponential, logarithm, tanh and Π."""

_POWERS = (*WHOLE_POWERS, "sqrt", "inv")
_BINARY = ("add", "sub", "mul", "div")


class FunctionSet:
    """The functions a user allows, sorted by the part they play."""

    def __init__(self, functions: Sequence[str]) -> None:
        names = [get_operator(name).name for name in functions]
        self.binary = [name for name in _BINARY if name in names]
        self.powers = [name for name in _POWERS if name in names]
        self.dense = [name for name in ("sum", "prod") if name in names]
        self.unary = [n for n in names if n not in (*_BINARY, *self.dense, "id", "pow", "neg", "sum", "prod")]
        if not self.binary and not self.unary and not self.dense:
            raise ValueError(f"functions must hold at least one function, got {list(functions)!r}")
        self.additive = [name for name in ("add", "sub") if name in names]

    def allows(self, operators: set[str]) -> bool:
        """Whether formulas of these operators can be made: Π holds products and powers, Σ sums."""
        allowed = {*self.binary, *self.unary, *self.dense, "neg"}
        if "prod" in allowed:
            allowed |= {"mul", "div", "pow", *_POWERS}
        if "div" in allowed:
            allowed.add("inv")
        if "sum" in allowed:
            allowed |= {"add", "sub"}
        return operators <= allowed

    def some(self, rng: np.random.Generator, pool: Sequence[str], low: int, high: int) -> list[str]:
        """Between low and high names of the pool, with repetition."""
        if not pool:
            return []
        return [pool[int(i)] for i in rng.integers(0, len(pool), int(rng.integers(low, high + 1)))]


Family = Callable[[np.random.Generator, int, FunctionSet], "tuple[tuple[tuple[str, ...], ...], bool] | None"]


def _general(rng: np.random.Generator, n_variables: int, functions: FunctionSet):
    """The layers that hold all eight formulas of the paper's Table 1, as far as the functions are allowed."""
    allowed = {"id", *functions.binary, *functions.unary, *functions.dense}
    layers = [tuple(name for name in layer if name in allowed) for layer in PRESETS["general"]]
    return tuple(layer or ("id",) for layer in layers), False


def _sums(rng: np.random.Generator, n_variables: int, functions: FunctionSet):
    """Σ over simple terms of single variables: polynomials, sums of waves."""
    if "sum" not in functions.dense:
        return None
    terms = ["id"] * min(n_variables, 3)
    if rng.random() < 0.5:
        terms += [name for name in functions.powers if name not in ("sqrt", "inv")]
        terms += functions.some(rng, functions.powers, 0, 3)
    else:
        terms += functions.some(rng, functions.unary, 3, 6)
    terms += functions.some(rng, [n for n in ("mul",) if n in functions.binary], 0, 2)
    return (tuple(terms), ("sum", "sum"), ("id",)), False


def _ratios(rng: np.random.Generator, n_variables: int, functions: FunctionSet):
    """Sums of products, multiplied, divided or put under a function."""
    if "sum" not in functions.dense:
        return None
    kind = int(rng.integers(3))
    if kind == 0:
        terms = ["id"] * min(n_variables, 2) + functions.some(rng, functions.unary, 2, 3)
    elif kind == 1:
        terms = ["id"] * 2 + functions.some(rng, [n for n in ("square", "cube") if n in functions.unary], 2, 2)
    else:
        terms = ["id"] * 2 + functions.some(rng, [n for n in ("div",) if n in functions.binary], 2, 2)
    terms += functions.some(rng, [n for n in ("mul",) if n in functions.binary], 2, 3)
    top = [n for n in ("mul", "div") if n in functions.binary] + ["id"] + functions.some(rng, functions.unary, 0, 1)
    return (tuple(terms), ("sum", "sum"), tuple(top)), True


def _complete(rng: np.random.Generator, n_variables: int, functions: FunctionSet):
    """Every function twice with sums and products between: what a small network may lack by chance is here."""
    inner = [name for name in functions.unary if name not in functions.powers[2:]] or functions.unary
    products = [name for name in ("mul", "div") if name in functions.binary]
    layers = [
        ["id"] * min(n_variables, 2) + functions.unary + products,
        functions.binary + ["id"],
        inner + products,
        functions.binary + ["id"],
    ]
    return tuple(tuple(layer) or ("id",) for layer in layers), True


def _deep(n_nodes: int) -> Family:
    """Many thin layers, so that any node may read almost any node before it."""

    def draw(rng: np.random.Generator, n_variables: int, functions: FunctionSet):
        n_unary = int(rng.integers(n_nodes // 4, n_nodes // 2 + 1)) if functions.unary else 0
        n_binary = n_nodes - n_unary if functions.binary else 0
        pool = (functions.binary + [n for n in ("add", "mul") if n in functions.binary]) * n_nodes
        names = pool[:n_binary] + functions.some(rng, functions.unary, n_unary, n_unary)
        names = [names[int(i)] for i in rng.permutation(len(names))] or ["id"]
        layers = [names[i : i + NODES_PER_LAYER] for i in range(0, len(names), NODES_PER_LAYER)]
        if "prod" in functions.dense:
            if n_variables <= MAX_DENSE_INPUTS:
                layers[0] = layers[0] + ["prod"] * int(rng.integers(0, 3))
            if len(layers) > 2 and rng.random() < 0.15:
                layers.insert(int(rng.integers(2, len(layers) + 1)), ["prod"])
        if "sum" in functions.dense and rng.random() < 0.2:
            layers += [functions.some(rng, ["id", *functions.binary], 3, 4), ["sum"]]
        return tuple(tuple(layer) for layer in layers), True

    return draw


NODES_PER_LAYER = 3
MAX_DENSE_INPUTS = 8
"""Tables with more columns get no Π over all of them: it would have too many exponents."""

FAMILIES: dict[str, Family] = {
    "general": _general,
    "sums": _sums,
    "small": _deep(6),
    "ratios": _ratios,
    "complete": _complete,
    "middle": _deep(12),
    "large": _deep(20),
    "huge": _deep(30),
}
"""Shallow ones first; the order in which a search opens its first islands."""


def draw_architecture(
    family: str, rng: np.random.Generator, n_variables: int, functions: FunctionSet, skip: bool = True
) -> Architecture | None:
    """An architecture of the family, or None where the function set does not allow it."""
    drawn = FAMILIES[family](rng, n_variables, functions)
    if drawn is None:
        return None
    layers, reaches_back = drawn
    return Architecture(n_variables=n_variables, layers=layers, skip=reaches_back and skip)
