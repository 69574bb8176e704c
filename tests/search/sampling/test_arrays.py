"""The flat arrays of a network are its architecture."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.operators import get_operator
from gmeql.network.architecture import Architecture
from gmeql.search.sampling.arrays import wiring_of

NETWORKS = {
    "layers": Architecture(2, (("id", "sin", "mul"), ("add", "square"))),
    "skip": Architecture(3, (("sin", "mul"), ("add", "square"), ("div",)), skip=True),
    "dense": Architecture(3, (("prod", "id"), ("sum", "mul"), ("id",))),
}


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_the_arrays_are_the_architecture(network: Architecture) -> None:
    wiring = wiring_of(network)
    nodes, connections = wiring.nodes, wiring.connections
    assert len(nodes) == network.n_nodes + 1 and len(connections) == network.n_connections
    assert (wiring.n_inputs, wiring.n_variables, wiring.n_weights) == (
        network.n_inputs, network.n_variables, network.n_weights,
    )  # fmt: skip
    np.testing.assert_array_equal(connections["low"], network.source_low)
    np.testing.assert_array_equal(connections["low"] + connections["n_choices"], network.source_high)
    for k, name in enumerate(network.node_operator):
        assert nodes["op"][k] == get_operator(name).opcode
        own = range(nodes["first"][k], nodes["first"][k + 1])
        assert list(own) == network.connections_of(k).tolist() or k < network.n_inputs
        if get_operator(name).is_dense:
            sources, weights = network.dense_of(k)
            assert list(range(nodes["dense_low"][k], nodes["dense_high"][k])) == sources.tolist()
            assert nodes["first_dense"][k] == weights[0] and len(own) == 0
        else:
            assert nodes["dense_high"][k] == 0
