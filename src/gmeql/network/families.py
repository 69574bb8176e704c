"""Architectures for the islands of the fitted search, drawn from a set of functions.

The paper picks the functions of each layer by hand and leaves choosing them open. Here a family is a recipe that draws
an architecture: sums of simple terms, products of powers, ratios of sums, and deep networks of all functions. Which
family and which reading of the target get the next island is learnt by the search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gmeql.formula.operators import DERIVATIVE, WHOLE_POWERS, get_operator
from gmeql.network.architecture import PRESETS, Architecture

DEFAULT_FUNCTIONS = (
    "add", "sub", "mul", "div", "sqrt", *WHOLE_POWERS, "sin", "cos", "exp", "log", "tanh", "sum", "prod",
)  # fmt: skip
"""The paper's set, with exponential, logarithm, tanh and Π."""

SEEN_FUNCTIONS = ("abs",)
"""Functions that direct methods may use besides, where the user names none: islands do better without them."""

_POWERS = (*WHOLE_POWERS, "sqrt", "inv")
_BINARY = ("add", "sub", "mul", "div")
_DENSE = ("sum", "prod")


@dataclass(frozen=True)
class RecipeConfig:
    """Numbers of the recipes; how many of which function stands in the recipes themselves."""

    powers_share: float = 0.5
    """Sums made of powers; the others are made of any functions."""
    nodes_per_layer: int = 3
    """Thin layers, so that any node may read almost any node before it."""
    max_dense_inputs: int = 8
    """Tables with more columns get no Π over all of them: it would have too many exponents."""
    inner_product_share: float = 0.15
    """Deep networks with a Π between their layers."""
    top_sum_share: float = 0.2
    """Deep networks with a Σ on top."""


RECIPES = RecipeConfig()


class FunctionSet:
    """The functions a user allows, sorted by the part they play; the default set where none are named."""

    def __init__(self, functions: Sequence[str] | None = None) -> None:
        self.seen = [] if functions else list(SEEN_FUNCTIONS)
        functions = functions or DEFAULT_FUNCTIONS
        names = [get_operator(name).name for name in functions]
        self.derivatives = DERIVATIVE.name in names
        self.binary = [name for name in _BINARY if name in names]
        self.powers = [name for name in _POWERS if name in names]
        self.dense = [name for name in _DENSE if name in names]
        self.unary = [n for n in names if n not in (*_BINARY, *_DENSE, "id", "pow", "neg", DERIVATIVE.name)]
        if not self.binary and not self.unary and not self.dense:
            raise ValueError(f"functions must hold at least one function, got {list(functions)!r}")
        self._allowed = self._operators()

    def allows(self, operators: set[str]) -> bool:
        """Whether formulas of these operators can be made: Π holds products and powers, Σ sums."""
        return operators <= self._allowed

    def _operators(self) -> set[str]:
        """Every operator that formulas may hold."""
        allowed = {*self.binary, *self.unary, *self.dense, *self.seen, "neg"}
        if "prod" in allowed:
            allowed |= {"mul", "div", "pow", *_POWERS}
        if "div" in allowed:
            allowed.add("inv")
        if "sum" in allowed:
            allowed |= {"add", "sub"}
        return allowed


class Draft(NamedTuple):
    """What a family draws: names of functions layer by layer, and whether connections may reach back over layers."""

    layers: tuple[tuple[str, ...], ...]
    reaches_back: bool


Family = Callable[[np.random.Generator, int, FunctionSet], Draft | None]
"""Draws a network for so many columns, or None where the functions do not allow it."""


def _some(rng: np.random.Generator, pool: Sequence[str], low: int, high: int) -> list[str]:
    """Between low and high names of the pool, with repetition."""
    if not pool:
        return []
    return [pool[int(i)] for i in rng.integers(0, len(pool), int(rng.integers(low, high + 1)))]


def _general(rng: np.random.Generator, n_variables: int, functions: FunctionSet) -> Draft | None:
    """The layers that hold all eight formulas of the paper's Table 1, as far as the functions are allowed."""
    allowed = {"id", *functions.binary, *functions.unary, *functions.dense}
    layers = [tuple(name for name in layer if name in allowed) for layer in PRESETS["general"]]
    return Draft(tuple(layer or ("id",) for layer in layers), reaches_back=False)


def _sums(rng: np.random.Generator, n_variables: int, functions: FunctionSet) -> Draft | None:
    """Σ over simple terms of single variables: polynomials, sums of waves."""
    if "sum" not in functions.dense:
        return None
    terms = ["id"] * min(n_variables, 3)
    if rng.random() < RECIPES.powers_share:
        terms += [name for name in functions.powers if name not in ("sqrt", "inv")]
        terms += _some(rng, functions.powers, 0, 3)
    else:
        terms += _some(rng, functions.unary, 3, 6)
    terms += _some(rng, [n for n in ("mul",) if n in functions.binary], 0, 2)
    return Draft((tuple(terms), ("sum", "sum"), ("id",)), reaches_back=False)


def _ratios(rng: np.random.Generator, n_variables: int, functions: FunctionSet) -> Draft | None:
    """Sums of products, multiplied, divided or put under a function."""
    if "sum" not in functions.dense:
        return None
    kind = int(rng.integers(3))
    if kind == 0:
        terms = ["id"] * min(n_variables, 2) + _some(rng, functions.unary, 2, 3)
    elif kind == 1:
        terms = ["id"] * 2 + _some(rng, [n for n in ("square", "cube") if n in functions.unary], 2, 2)
    else:
        terms = ["id"] * 2 + _some(rng, [n for n in ("div",) if n in functions.binary], 2, 2)
    terms += _some(rng, [n for n in ("mul",) if n in functions.binary], 2, 3)
    top = [n for n in ("mul", "div") if n in functions.binary] + ["id"] + _some(rng, functions.unary, 0, 1)
    return Draft((tuple(terms), ("sum", "sum"), tuple(top)), reaches_back=True)


def _complete(rng: np.random.Generator, n_variables: int, functions: FunctionSet) -> Draft | None:
    """Every function twice with sums and products between: what a small network may lack by chance is here."""
    inner = [name for name in functions.unary if name not in functions.powers[2:]] or functions.unary
    products = [name for name in ("mul", "div") if name in functions.binary]
    layers = [
        ["id"] * min(n_variables, 2) + functions.unary + products,
        functions.binary + ["id"],
        inner + products,
        functions.binary + ["id"],
    ]
    return Draft(tuple(tuple(layer) or ("id",) for layer in layers), reaches_back=True)


def _deep(n_nodes: int) -> Family:
    """Many thin layers, so that any node may read almost any node before it."""

    def draw(rng: np.random.Generator, n_variables: int, functions: FunctionSet) -> Draft | None:
        n_unary = int(rng.integers(n_nodes // 4, n_nodes // 2 + 1)) if functions.unary else 0
        n_binary = n_nodes - n_unary if functions.binary else 0
        pool = (functions.binary + [n for n in ("add", "mul") if n in functions.binary]) * n_nodes
        names = pool[:n_binary] + _some(rng, functions.unary, n_unary, n_unary)
        names = [names[int(i)] for i in rng.permutation(len(names))] or ["id"]
        layers = [names[i : i + RECIPES.nodes_per_layer] for i in range(0, len(names), RECIPES.nodes_per_layer)]
        if "prod" in functions.dense:
            if n_variables <= RECIPES.max_dense_inputs:
                layers[0] = layers[0] + ["prod"] * int(rng.integers(0, 3))
            if len(layers) > 2 and rng.random() < RECIPES.inner_product_share:
                layers.insert(int(rng.integers(2, len(layers) + 1)), ["prod"])
        if "sum" in functions.dense and rng.random() < RECIPES.top_sum_share:
            layers += [_some(rng, ["id", *functions.binary], 3, 4), ["sum"]]
        return Draft(tuple(tuple(layer) for layer in layers), reaches_back=True)

    return draw


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
    return Architecture(n_variables=n_variables, layers=drawn.layers, skip=drawn.reaches_back and skip)
