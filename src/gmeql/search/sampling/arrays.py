"""What the compiled sampler reads and writes, as a few named tuples of arrays.

Legend: `K` nodes of a network, its inputs first; `C` connections, `M` choices of a connection at most; `V` variables;
`W` weights (connections, dense inputs, the two of the output); `E` elites; `B` candidates of a batch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gmeql.formula.operators import get_operator
from gmeql.network.architecture import Architecture

OUTPUT_SCALE, OUTPUT_OFFSET = 0, 1
"""Places of the two output constants behind the weights of the architecture."""

NODE = np.dtype(
    [
        ("op", np.int64),
        ("first", np.int64),  # connections of node k are nodes[k].first up to nodes[k + 1].first
        ("dense_low", np.int64),  # first source of a Σ or Π
        ("dense_high", np.int64),  # one past its last source, 0 for nodes that choose
        ("first_dense", np.int64),  # the weight of its first source
    ],
    align=True,
)
"""A node of a network."""

CONNECTION = np.dtype([("low", np.int64), ("n_choices", np.int64)], align=True)
"""A connection: the first node that it may choose, and how many there are."""

VALUE = np.dtype(
    [
        ("slot", np.int64),  # the program's slot that holds it
        ("facts", np.int64),  # bits that decide which constants are redundant and which wirings make no sense
        ("uses", np.int64),  # how many inputs read it, of those that the output depends on; 0: the node is idle
        ("nesting", np.int64),  # how often functions of one kind stand inside each other
        ("hash", np.uint64),  # what it computes, up to constants
        ("sum", np.uint64),  # for a sum, the sum of what its terms add to the hash
    ],
    align=True,
)
"""The value of a node, while a structure becomes a program."""


CONSTANT = np.dtype([("weight", np.int64), ("start", np.float64)], align=True)
"""A constant of a program: which weight of the network it is, and where it naturally starts."""

SIZE = np.dtype(
    [("length", np.int64), ("n_constants", np.int64), ("complexity", np.int64), ("n_powers", np.int64)], align=True
)
"""A program's size so far: nodes and constants written, complexity without the constants, how many Π there are."""


class Wiring(NamedTuple):
    """An architecture as flat arrays."""

    nodes: np.ndarray
    """[K + 1] of `NODE`; the last one only ends the connections of the output."""
    connections: np.ndarray
    """[C] of `CONNECTION`."""
    n_inputs: int
    n_variables: int
    n_weights: int


class FormulaRules(NamedTuple):
    """What a formula may look like."""

    positive: np.ndarray
    """[V] whether a variable has a logarithm on every row."""
    with_offset: bool
    max_nesting: int
    """How often functions of one kind may stand inside each other."""


class Elites(NamedTuple):
    """What candidates are copied from."""

    choices: np.ndarray
    """[E, C]"""
    constants: np.ndarray
    """[E, W] fitted constants by weight, nan where there is none."""
    cumulative: np.ndarray
    """[E] cumulative weights by which elites are drawn."""
    size: int


class DrawNumbers(NamedTuple):
    """The numbers of a draw; `IslandConfig` says what each one means and where it comes from."""

    resample_fraction: float
    mean_changes: float
    insert_share: float
    bypass_share: float
    exchange_share: float
    fresh_share: float
    cross_share: float
    inherit_share: float
    jitter: float
    max_tries: int
    max_complexity: int


class TriedTables(NamedTuple):
    """How often structures were tried, in two tables of open addressing."""

    known_keys: np.ndarray
    known_counts: np.ndarray
    """What all know: only read."""
    own_keys: np.ndarray
    own_counts: np.ndarray
    """What the island tried since: drawn candidates are added."""
    table_key: np.uint64
    """Tells equal structures on different tables of data apart."""


class DrawnArrays(NamedTuple):
    """Where drawn candidates are written to."""

    choices: np.ndarray
    """[B, C]"""
    programs: np.ndarray
    """[B, 5, MAX_NODES]"""
    lengths: np.ndarray
    n_constants: np.ndarray
    weight_ids: np.ndarray
    """[B, MAX_CONSTANTS] the weight that each constant is."""
    constants: np.ndarray
    """[B, MAX_CONSTANTS] where the fit starts."""
    hashes: np.ndarray
    complexities: np.ndarray


def wiring_of(architecture: Architecture) -> Wiring:
    """The flat arrays of an architecture."""
    nodes = np.zeros(architecture.n_nodes + 1, NODE)
    nodes["first"] = architecture.connection_node.searchsorted(np.arange(len(nodes)))
    operators = [get_operator(name) for name in architecture.node_operator]
    nodes["op"][:-1] = [operator.opcode for operator in operators]
    for k, operator in enumerate(operators):
        if operator.is_dense:
            sources, weights = architecture.dense_of(k)
            nodes["dense_low"][k], nodes["dense_high"][k] = sources[0], sources[-1] + 1
            nodes["first_dense"][k] = weights[0]
    connections = np.zeros(architecture.n_connections, CONNECTION)
    connections["low"], connections["n_choices"] = architecture.source_low, architecture.n_choices
    return Wiring(nodes, connections, architecture.n_inputs, architecture.n_variables, architecture.n_weights)
