"""The GMEQL network: which operator stands where (Architecture) and who feeds whom (choices).

Section 3 of the paper. A network has an input layer (variables and constants), hidden layers of function nodes and
an output layer. The j-th input of a node is a *connection*; each connection takes one of several *choices*, the
nodes it may be wired to: those of the layer below, or, with `skip`, of every layer below. Dense nodes (Σ and Π)
take the whole layer below and have no choices.

Nodes are numbered through the whole network: variables, constants, hidden nodes layer by layer, outputs. A hard
structure is an integer vector `choices` of shape [C]: entry c counts from `source_low[c]`.

>>> network = Architecture(n_variables=2, layers=(("square", "sin"), ("add",)))
>>> network.n_connections, network.n_nodes
(5, 7)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from gmeql.formula.domains import Array, Namespace
from gmeql.formula.operators import DERIVATIVE, NAMED_CONSTANTS, OPERATORS, WHOLE_POWERS, get_operator


@dataclass(frozen=True)
class Architecture:
    """Layers of operators over an input layer. Immutable and hashable; derived arrays are cached.

    Legend: `V` columns of the data, `C` connections, `M` choices of the connection that has most.
    """

    n_variables: int
    """Number of columns of the data, V."""
    layers: tuple[tuple[str, ...], ...]
    """Operator names of each hidden layer, bottom to top."""
    n_outputs: int = 1
    """Number of target columns."""
    constants: tuple[float, ...] = (1.0,)
    """Values of the constant input nodes that follow the variables (the paper's constant 1 first)."""
    skip: bool = False
    """Whether choices reach back over all layers below instead of the one directly below."""

    def __post_init__(self) -> None:
        if not isinstance(self.n_variables, int | np.integer) or self.n_variables < 1:
            raise ValueError(f"n_variables must be a whole number of at least 1, got {self.n_variables!r}")
        if not isinstance(self.n_outputs, int | np.integer) or self.n_outputs < 1:
            raise ValueError(f"n_outputs must be a whole number of at least 1, got {self.n_outputs!r}")
        if isinstance(self.layers, str) or not len(self.layers):
            raise ValueError("layers must hold at least one layer of operator names, such as [['sin', 'add'], ['mul']]")
        layers = []
        for number, layer in enumerate(self.layers, start=1):
            if isinstance(layer, str) or not len(layer):
                raise ValueError(f"layer {number} must be a non-empty list of operator names, got {layer!r}")
            try:
                layers.append(_names(layer))
            except ValueError as error:
                raise ValueError(f"layer {number}: {error}") from None
            if DERIVATIVE.name in layers[-1]:
                raise ValueError(
                    f"layer {number}: D acts on formulas, not on values, so no node can be one; "
                    "give it in functions=, or in a template such as D(f(x), x)"
                )
        constants = tuple(
            NAMED_CONSTANTS[c] if isinstance(c, str) and c in NAMED_CONSTANTS else c for c in self.constants
        )
        for constant in constants:
            if isinstance(constant, str) or not math.isfinite(constant):
                known = ", ".join(NAMED_CONSTANTS)
                raise ValueError(f"constants must be finite numbers or names ({known}), got {constant!r}")
        object.__setattr__(self, "n_variables", int(self.n_variables))
        object.__setattr__(self, "n_outputs", int(self.n_outputs))
        object.__setattr__(self, "layers", tuple(layers))
        object.__setattr__(self, "constants", tuple(float(c) for c in constants))

    # --- sizes -----------------------------------------------------------------------------------------------

    @property
    def n_inputs(self) -> int:
        return self.n_variables + len(self.constants)

    @cached_property
    def layer_slices(self) -> tuple[slice, ...]:
        """Node numbers of each layer: the input layer first, the outputs last."""
        sizes = [self.n_inputs, *(len(layer) for layer in self.layers), self.n_outputs]
        return tuple(slice(end - size, end) for end, size in zip(accumulate(sizes), sizes, strict=True))

    @property
    def n_nodes(self) -> int:
        return int(self.layer_slices[-1].stop)

    @cached_property
    def node_operator(self) -> tuple[str, ...]:
        """Operator of each node; inputs and outputs are identities."""
        hidden = [name for layer in self.layers for name in layer]
        return ("id",) * self.n_inputs + tuple(hidden) + ("id",) * self.n_outputs

    # --- connections -----------------------------------------------------------------------------------------

    @cached_property
    def _wiring(self) -> dict[str, np.ndarray]:
        operators = [get_operator(name) for name in self.node_operator[self.n_inputs :]]
        chosen = np.array([0 if operator.is_dense else operator.arity for operator in operators])
        below = [layer for layer, above in pairwise(self.layer_slices) for _ in range(above.start, above.stop)]
        low = np.zeros(len(below), np.int64) if self.skip else np.array([layer.start for layer in below])
        dense = [
            (np.full(layer.stop - layer.start, number), np.arange(layer.start, layer.stop))
            for number, (operator, layer) in enumerate(zip(operators, below, strict=True), start=self.n_inputs)
            if operator.is_dense
        ]
        nothing = np.zeros(0, np.int64)
        return {
            "node": np.arange(self.n_inputs, self.n_nodes).repeat(chosen),
            "low": low.repeat(chosen),
            "high": np.array([layer.stop for layer in below]).repeat(chosen),
            "dense_node": np.concatenate([nothing, *(numbers for numbers, _ in dense)]),
            "dense_source": np.concatenate([nothing, *(sources for _, sources in dense)]),
        }

    @property
    def connection_node(self) -> np.ndarray:
        """Node that each connection feeds, [C]."""
        return self._wiring["node"]

    @property
    def source_low(self) -> np.ndarray:
        """First node that each connection may choose, [C]."""
        return self._wiring["low"]

    @property
    def source_high(self) -> np.ndarray:
        """One past the last node that each connection may choose, [C]."""
        return self._wiring["high"]

    @cached_property
    def n_choices(self) -> np.ndarray:
        """Number of choices of each connection (the paper's M_{k-1}), [C]."""
        n_choices: np.ndarray = self.source_high - self.source_low
        return n_choices

    @property
    def n_connections(self) -> int:
        return len(self.connection_node)

    @property
    def n_dense(self) -> int:
        """Number of dense inputs, all Σ and Π nodes together."""
        return len(self._wiring["dense_node"])

    @property
    def n_weights(self) -> int:
        """One weight per connection, then one per dense input."""
        return self.n_connections + self.n_dense

    @property
    def max_choices(self) -> int:
        return int(self.n_choices.max())

    @cached_property
    def choice_mask(self) -> np.ndarray:
        """Which entries of a padded [C, M] array are real choices."""
        return np.arange(self.max_choices)[None, :] < self.n_choices[:, None]

    def connections_of(self, node: int) -> np.ndarray:
        """Connections of a node in the order of its inputs; empty for inputs and dense nodes."""
        return np.flatnonzero(self.connection_node == node)

    def dense_of(self, node: int) -> tuple[np.ndarray, np.ndarray]:
        """Source nodes of a dense node and the numbers of their weights."""
        mine = np.flatnonzero(self._wiring["dense_node"] == node)
        return self._wiring["dense_source"][mine], self.n_connections + mine

    # --- structures ------------------------------------------------------------------------------------------

    def validate_choices(self, choices: Array) -> np.ndarray:
        """The choices as an integer array, or a ValueError that names the bad connection."""
        array = np.asarray(choices)
        if array.shape[-1:] != (self.n_connections,):
            raise ValueError(f"choices must end in {self.n_connections} connections, got shape {array.shape}")
        if not np.issubdtype(array.dtype, np.integer):
            raise ValueError(f"choices must be whole numbers, got dtype {array.dtype}")
        bad = np.argwhere((array < 0) | (array >= self.n_choices))
        if len(bad):
            connection = int(bad[0][-1])
            raise ValueError(
                f"connection {connection} must choose one of 0..{self.n_choices[connection] - 1}, "
                f"got {int(array[tuple(bad[0])])}"
            )
        return array.astype(np.int64)

    def sources(self, choices: Array) -> Array:
        """Node number that feeds each connection."""
        return choices + self.source_low

    def active_nodes(self, choices: Array) -> np.ndarray:
        """Nodes that the outputs depend on, [n_nodes]."""
        sources = self.sources(self.validate_choices(choices))
        active = np.zeros(self.n_nodes, bool)
        active[self.layer_slices[-1]] = True
        for node in range(self.n_nodes - 1, self.n_inputs - 1, -1):
            if active[node]:
                active[sources[self.connections_of(node)]] = True
                active[self.dense_of(node)[0]] = True
        return active

    def active_connections(self, choices: Array) -> np.ndarray:
        """Connections whose node is active, [C]."""
        active: np.ndarray = self.active_nodes(choices)[self.connection_node]
        return active

    def fingerprints(self, choices: Array, xp: Namespace = np) -> Array:
        """Hash of the expression that each structure spells, weights ignored: [..., C] -> uint32 [..., 2].

        Section 4.2: an instance is converted to its expression by walking from the output, and no two instances in
        the repository may spell the same one. Each node hashes its operator with the hashes of its inputs (in any
        order where the operator commutes), so equal hashes at the outputs mean equal expressions.
        """
        sources = choices + xp.asarray(self.source_low, dtype=choices.dtype)
        shape = choices.shape[:-1]
        halves = []
        for key in HASH_KEYS:
            stacked = xp.stack(
                [xp.full(shape, mixed(node + 1, key), dtype=xp.uint32) for node in range(self.n_inputs)], axis=-1
            )
            for layer in self.layer_slices[1:]:
                columns = [self._node_hash(node, stacked, sources, key, xp) for node in range(layer.start, layer.stop)]
                stacked = xp.concatenate([stacked, xp.stack(columns, axis=-1)], axis=-1)
            total = xp.zeros(shape, dtype=xp.uint32)
            for node in range(self.layer_slices[-1].start, self.n_nodes):
                total = _mix(total + stacked[..., node], key, xp)
            halves.append(total)
        return xp.stack(halves, axis=-1)

    def _node_hash(self, node: int, hashes: Array, sources: Array, key: int, xp: Namespace) -> Array:
        operator = get_operator(self.node_operator[node])
        if operator.is_dense:
            inputs = [hashes[..., source] for source in self.dense_of(node)[0]]
        else:
            inputs = [
                xp.take_along_axis(hashes, sources[..., c : c + 1], axis=-1)[..., 0] for c in self.connections_of(node)
            ]
        if operator.name == "id":
            return inputs[0]
        total = xp.full(hashes.shape[:-1], mixed(1000 + operator.opcode, key), dtype=xp.uint32)
        if operator.commutative or operator.is_dense:
            for value in inputs:
                total = total + _mix(value, key, xp)
        else:
            for value in inputs:
                total = _mix(total + value, key, xp)
        return _mix(total, key, xp)

    # --- description -----------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        return {
            "n_variables": self.n_variables,
            "layers": [list(layer) for layer in self.layers],
            "n_outputs": self.n_outputs,
            "constants": list(self.constants),
            "skip": self.skip,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Architecture:
        allowed = {"n_variables", "layers", "n_outputs", "constants", "skip"}
        if not isinstance(data, dict) or set(data) - allowed or not {"n_variables", "layers"} <= set(data):
            raise ValueError(f"an architecture needs n_variables and layers and may hold {sorted(allowed)}")
        layers = tuple(tuple(layer) for layer in data["layers"])
        return cls(
            n_variables=data["n_variables"],
            layers=layers,
            n_outputs=data.get("n_outputs", 1),
            constants=tuple(data.get("constants", (1.0,))),
            skip=bool(data.get("skip", False)),
        )

    def __str__(self) -> str:
        return " -> ".join("[" + ", ".join(layer) + "]" for layer in self.layers)


def _names(layer: Sequence[str]) -> tuple[str, ...]:
    """Names of a layer's operators, where some are aliases."""
    names = tuple(layer)
    try:
        if OPERATORS.keys() >= set(names):
            return names  # nearly always, thousands of times a second
    except TypeError:  # something that is no name
        pass
    return tuple(get_operator(name).name for name in names)


_MASK = 0xFFFFFFFF
HASH_KEYS = (0x9E3779B9, 0x85EBCA6B)
"""One per half of a fingerprint, so that the halves are independent."""


def mixed(value: int, key: int) -> int:
    """The scramble of `_mix` on a plain integer."""
    value = (value ^ key) & _MASK
    value = ((value ^ (value >> 16)) * 0x7FEB352D) & _MASK
    value = ((value ^ (value >> 15)) * 0x846CA68B) & _MASK
    return value ^ (value >> 16)


def _mix(value: Array, key: int, xp: Namespace) -> Array:
    """Scramble 32 bits (a multiply-xorshift permutation), so that sums of hashes stay distinct."""
    u = xp.uint32
    value = value ^ u(key)
    value = (value ^ (value >> u(16))) * u(0x7FEB352D)
    value = (value ^ (value >> u(15))) * u(0x846CA68B)
    return value ^ (value >> u(16))


# --- presets ----------------------------------------------------------------------------------------------------

PRESETS: dict[str, tuple[tuple[str, ...], ...]] = {
    # Layers of the authors' released code for b1-b4.
    "released": (("id", *WHOLE_POWERS, "sin", "cos"), ("add", "mul", "div", "sum"), ("add", "mul")),
    # Holds all eight truths of the paper's Table 1.
    "general": (
        ("id", "id", *WHOLE_POWERS, "sin", "cos", "mul", "div"),
        ("id", "sin", "cos", "square", "add", "mul", "div", "sum"),
        ("add", "mul", "sqrt", "id"),
    ),
    # One more id, square and cube, so that the six terms of b4 can all stand under one sum.
    "sums": (
        ("id", "id", "id", "square", "square", "cube", "cube", "pow4", "pow4", "pow5", "pow6"),
        ("sum", "sum", "add"),
        ("add", "id"),
    ),
    # The paper selects its functions "manually" and prints no layers. The presets below are selected by hand too: the
    # functions of a problem's kind, in small layers, nothing wired.
    # The released layers without sine and cosine, whose small angles stand in for x and keep it out.
    "powers": (("id", *WHOLE_POWERS), ("add", "mul", "div", "sum"), ("add", "mul")),
    # b1-b4: smaller still, one Σ over the powers: every term has its own weight, and nothing else can stand in.
    "power_sum": (("id", *WHOLE_POWERS), ("sum",), ("id",)),
    # b5: waves of powers, added. A second sine, because a node can be used by one formula only in one way.
    "wave_sum": (("id", "square"), ("sin", "sin", "cos"), ("add",)),
    # b6: waves multiplied.
    "wave_product": (("id", "id"), ("sin", "cos"), ("mul",)),
    # b7: a product times a wave beside plain terms, all under one Σ.
    "modulated_product": (("id", "id", "mul", "cos"), ("id", "id", "mul"), ("sum",)),
    # b8: the root of a weighted sum of a ratio.
    "root_of_ratio": (("div", "id"), ("sum",), ("sqrt",)),
}
HAND_CHOSEN = {
    **{f"b{i}": "power_sum" for i in range(1, 5)},
    "b5": "wave_sum",
    "b6": "wave_product",
    "b7": "modulated_product",
    "b8": "root_of_ratio",
}
"""The preset selected by hand for each of the paper's problems."""
PUBLISHED = {**HAND_CHOSEN, **{f"b{i}": "released" for i in range(1, 5)}}
"""The preset nearest to what was published: the released code's layers for b1-b4; for b5-b8 nobody knows them."""
_PROBLEM_PRESETS = {**{f"b{i}": "sums" for i in range(1, 5)}, **{f"b{i}": "general" for i in range(5, 9)}}


def architecture_preset(name: str, n_variables: int, n_outputs: int = 1) -> Architecture:
    """An architecture by name: one of `PRESETS` ("released", "general", "sums", "powers", ...), or "b1" to "b8", a
    general one that holds that truth.

    >>> print(architecture_preset("released", 3))
    [id, square, cube, pow4, pow5, pow6, sin, cos] -> [add, mul, div, sum] -> [add, mul]
    """
    layers = PRESETS.get(_PROBLEM_PRESETS.get(name, name))
    if layers is None:
        known = ", ".join([*PRESETS, *_PROBLEM_PRESETS])
        raise ValueError(f"unknown architecture preset {name!r}; known: {known}")
    return Architecture(n_variables=n_variables, layers=layers, n_outputs=n_outputs)


def as_architecture(
    value: Architecture | str | Sequence[Sequence[str]], n_variables: int, n_outputs: int = 1
) -> Architecture:
    """An Architecture from what a user may give: an Architecture, a preset's name, or layers of operator names."""
    if isinstance(value, str):
        return architecture_preset(value, n_variables, n_outputs)
    if not isinstance(value, Architecture):
        return Architecture(n_variables=n_variables, layers=tuple(tuple(layer) for layer in value), n_outputs=n_outputs)
    if value.n_variables != n_variables or value.n_outputs != n_outputs:
        raise ValueError(
            f"the architecture has {value.n_variables} variables and {value.n_outputs} outputs, "
            f"the data {n_variables} and {n_outputs}"
        )
    return value
