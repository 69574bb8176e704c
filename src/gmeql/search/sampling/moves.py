"""Changes of a wiring that keep most of it: put a node in, take one out, let another function take over.

`values` [K] of `VALUE` tell by their uses which nodes are active (`count_uses`), `n_active` is how many connections
those have, `cumulative` [C, M] holds the cumulative choice probabilities of the structure parameters. Each move tries a
few random places and returns whether one of them fitted.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, from_dtype, int64, types, uint64, void

from gmeql.fitters.compiled import compiled, inner, part
from gmeql.search.sampling.arrays import CONNECTION, NODE, VALUE, Wiring
from gmeql.search.sampling.random import pick, uniform

ATTEMPTS = 8
"""Random places that a move tries before it gives up."""

STATE, CHOICES, CUMULATIVE, NOTES = uint64[::1], int64[::1], float64[:, ::1], from_dtype(VALUE)[::1]
"""Types of the state of the random numbers, of a structure, of cumulative probabilities, of what is known of nodes."""
WIRING = types.NamedTuple([from_dtype(NODE)[::1], from_dtype(CONNECTION)[::1], int64, int64, int64], Wiring)


@part(void(CHOICES, WIRING, NOTES))
def count_uses(choices, wiring, values):
    """How many inputs read each node, of those that the output depends on; 0 for idle nodes."""
    output = len(wiring.nodes) - 2
    for k in range(output):
        values[k].uses = 0
    values[output].uses = 1
    for k in range(output, wiring.n_inputs - 1, -1):
        if values[k].uses == 0:
            continue
        node = wiring.nodes[k]
        for source in range(node.dense_low, node.dense_high):
            values[source].uses += 1
        for c in range(node.first, wiring.nodes[k + 1].first):
            values[wiring.connections[c].low + choices[c]].uses += 1


@compiled()
def count_choices(choices, weights, wiring, counts):
    """Rank-weighted frequencies of the active choices of the elites [E, C], added to `counts` [C, M]."""
    values = np.zeros(len(wiring.nodes), VALUE)
    for e in range(len(choices)):
        count_uses(choices[e], wiring, values)
        for k in range(wiring.n_inputs, len(wiring.nodes) - 1):
            if values[k].uses:
                for c in range(wiring.nodes[k].first, wiring.nodes[k + 1].first):
                    counts[c, choices[e, c]] += weights[e]


@part(types.UniTuple(int64, 2)(STATE, NOTES, int64, WIRING))
def _random_active_connection(state, values, n_active, wiring):
    """A connection of an active node, all alike; and the node it feeds."""
    skip = int(uniform(state) * n_active)
    for k in range(wiring.n_inputs, len(wiring.nodes) - 1):
        if values[k].uses:
            first = wiring.nodes[k].first
            count = wiring.nodes[k + 1].first - first
            if skip < count:
                return first + skip, k
            skip -= count
    return -1, -1


@inner()
def _may_read(connection, source):
    """Whether a connection may choose a node."""
    return connection.low <= source < connection.low + connection.n_choices


@part(boolean(STATE, CHOICES, NOTES, int64, WIRING, CUMULATIVE))
def insert_node(state, choices, values, n_active, wiring, cumulative):
    """Put an idle node between a node and one of its sources: a -> c becomes a -> idle -> c."""
    connections = wiring.connections
    for _ in range(ATTEMPTS):
        c, _ = _random_active_connection(state, values, n_active, wiring)
        source = connections[c].low + choices[c]
        idle = connections[c].low + int(uniform(state) * connections[c].n_choices)
        first, last = wiring.nodes[idle].first, wiring.nodes[idle + 1].first
        if idle < wiring.n_inputs or values[idle].uses or first == last:
            continue
        takes = first + int(uniform(state) * (last - first))
        if not _may_read(connections[takes], source):
            continue
        for other in range(first, last):
            choices[other] = pick(cumulative[other], connections[other].n_choices, uniform(state))
        choices[takes] = source - connections[takes].low
        choices[c] = idle - connections[c].low
        return True
    return False


@part(boolean(STATE, CHOICES, NOTES, int64, WIRING))
def bypass_node(state, choices, values, n_active, wiring):
    """Take a node out: the connection that read it reads one of its inputs instead."""
    connections = wiring.connections
    for _ in range(ATTEMPTS):
        c, _ = _random_active_connection(state, values, n_active, wiring)
        source = connections[c].low + choices[c]
        first, last = wiring.nodes[source].first, wiring.nodes[source + 1].first
        if source < wiring.n_inputs or first == last:
            continue
        takes = first + int(uniform(state) * (last - first))
        below = connections[takes].low + choices[takes]
        if not _may_read(connections[c], below):
            continue
        choices[c] = below - connections[c].low
        return True
    return False


@part(boolean(int64, int64, CHOICES, WIRING))
def _can_replace(k, idle, choices, wiring):
    """Whether `idle` chooses its inputs, may read those of node `k`, and may be read by all that read `k`."""
    nodes, connections = wiring.nodes, wiring.connections
    mine, other = nodes[k].first, nodes[idle].first
    n_mine, n_other = nodes[k + 1].first - mine, nodes[idle + 1].first - other
    if n_other == 0:
        return False
    for j in range(min(n_mine, n_other)):
        if not _may_read(connections[other + j], connections[mine + j].low + choices[mine + j]):
            return False
    for reader in range(len(connections)):
        if connections[reader].low + choices[reader] == k and not _may_read(connections[reader], idle):
            return False
    return True


@part(boolean(STATE, CHOICES, NOTES, int64, WIRING, CUMULATIVE))
def exchange_node(state, choices, values, n_active, wiring, cumulative):
    """Let an idle node of another function take over a node's inputs and readers."""
    nodes, connections = wiring.nodes, wiring.connections
    output = len(nodes) - 2
    for _ in range(ATTEMPTS):
        _, k = _random_active_connection(state, values, n_active, wiring)
        if k >= output:
            continue
        idle = wiring.n_inputs + int(uniform(state) * (output - wiring.n_inputs))
        if values[idle].uses or nodes[idle].op == nodes[k].op or not _can_replace(k, idle, choices, wiring):
            continue
        mine, other = nodes[k].first, nodes[idle].first
        n_mine, n_other = nodes[k + 1].first - mine, nodes[idle + 1].first - other
        for j in range(n_other):
            if j < n_mine:
                choices[other + j] = connections[mine + j].low + choices[mine + j] - connections[other + j].low
            else:
                choices[other + j] = pick(cumulative[other + j], connections[other + j].n_choices, uniform(state))
        for reader in range(len(connections)):
            is_own = other <= reader < other + n_other  # a node never reads itself
            if not is_own and connections[reader].low + choices[reader] == k:
                choices[reader] = idle - connections[reader].low
        return True
    return False
