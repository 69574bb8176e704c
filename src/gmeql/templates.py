"""Architectures for the islands of the fitted search, drawn from a set of functions.

The paper picks the functions of each layer by hand and leaves choosing them open. Here a family is a recipe that draws
an architecture: sums of simple terms, products of powers, ratios of sums, and deep networks of all functions. Which
family and which reading of the target get the next island is learnt in ``search.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gmeql.architecture import PRESETS, Architecture
from gmeql.operators import get_operator

DEFAULT_FUNCTIONS = (
    "add", "sub", "mul", "div", "sqrt", "square", "cube", "pow4", "pow5", "pow6", "sin", "cos", "exp", "log", "tanh",
    "sum", "prod",
)  # fmt: skip
"""The paper's set, with exponential, logarithm, tanh and Π."""

_POWERS = ("square", "cube", "pow4", "pow5", "pow6", "sqrt", "inv")
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


def _deep(depth: int) -> Family:
    def draw(rng: np.random.Generator, n_variables: int, functions: FunctionSet):
        layers: list[tuple[str, ...]] = []
        for level in range(depth):
            layer = [*functions.binary, *functions.additive[:1], *[n for n in ("mul",) if n in functions.binary]]
            layer += functions.some(rng, functions.unary, 2, 4)
            layer += functions.some(rng, functions.binary, 0, 2)
            if "prod" in functions.dense:
                if level == 0 and n_variables <= 8:
                    layer += ["prod"] * int(rng.integers(0, 3))
                elif level > 0 and rng.random() < 0.1:
                    layers.append(tuple(functions.some(rng, ["id", *functions.binary, *functions.unary], 3, 3)))
                    layer = ["prod", *[n for n in ("mul", "div") if n in functions.binary]]
            layers.append(tuple(layer) or ("id",))
        if "sum" in functions.dense and rng.random() < 0.3:
            layers.append(("sum",))
        return tuple(layers), True

    return draw


FAMILIES: dict[str, Family] = {
    "general": _general,
    "sums": _sums,
    "deep1": _deep(1),
    "ratios": _ratios,
    "deep2": _deep(2),
    "deep3": _deep(3),
    "deep4": _deep(4),
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
