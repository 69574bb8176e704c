// Changes of a wiring that keep most of it (`sampling/moves.py`). Choices are int16 here.

DEVICE int source_of(const Wiring& wiring, const short* choices, int c) { return wiring.connections[c].low + choices[c]; }

// How many inputs read each node, of those that the output depends on; 0 for idle nodes.
CALLED void count_uses(const Wiring& wiring, const short* choices, Value* values) {
    const int output = wiring.n_nodes - 1;
    for (int k = 0; k < output; ++k) values[k].uses = 0;
    values[output].uses = 1;
    for (int k = output; k >= wiring.n_inputs; --k) {
        if (values[k].uses == 0) continue;
        const Node node = wiring.nodes[k];
        for (int source = node.dense_low; source < node.dense_high; ++source) values[source].uses += 1;
        for (int c = node.first; c < wiring.nodes[k + 1].first; ++c) values[source_of(wiring, choices, c)].uses += 1;
    }
}

// A connection of an active node, all alike; `k` is the node it feeds.
DEVICE int random_active_connection(u64& state, const Wiring& wiring, const Value* values, int n_active, int& k) {
    int skip = (int)(uniform(state) * n_active);
    for (k = wiring.n_inputs; k < wiring.n_nodes; ++k) {
        if (!values[k].uses) continue;
        const int first = wiring.nodes[k].first, count = wiring.nodes[k + 1].first - first;
        if (skip < count) return first + skip;
        skip -= count;
    }
    k = -1;
    return -1;
}

DEVICE bool may_read(const Connection& connection, int source) {
    return connection.low <= source && source < connection.low + connection.n_choices;
}

DEVICE short resample(u64& state, const Wiring& wiring, const double* cumulative, int c) {
    return (short)pick(cumulative + c * wiring.max_choices, wiring.connections[c].n_choices, uniform(state));
}

// Put an idle node between a node and one of its sources: a -> c becomes a -> idle -> c.
CALLED bool insert_node(u64& state, const Wiring& wiring, short* choices, const Value* values, int n_active,
                        const double* cumulative) {
    for (int attempt = 0; attempt < MOVE_ATTEMPTS; ++attempt) {
        int k;
        const int c = random_active_connection(state, wiring, values, n_active, k);
        const Connection reader = wiring.connections[c];
        const int source = reader.low + choices[c], idle = reader.low + (int)(uniform(state) * reader.n_choices);
        const int first = wiring.nodes[idle].first, last = wiring.nodes[idle + 1].first;
        if (idle < wiring.n_inputs || values[idle].uses || first == last) continue;
        const int takes = first + (int)(uniform(state) * (last - first));
        if (!may_read(wiring.connections[takes], source)) continue;
        for (int other = first; other < last; ++other) choices[other] = resample(state, wiring, cumulative, other);
        choices[takes] = (short)(source - wiring.connections[takes].low);
        choices[c] = (short)(idle - reader.low);
        return true;
    }
    return false;
}

// Take a node out: the connection that read it reads one of its inputs instead.
CALLED bool bypass_node(u64& state, const Wiring& wiring, short* choices, const Value* values, int n_active) {
    for (int attempt = 0; attempt < MOVE_ATTEMPTS; ++attempt) {
        int k;
        const int c = random_active_connection(state, wiring, values, n_active, k);
        const int source = source_of(wiring, choices, c);
        const int first = wiring.nodes[source].first, last = wiring.nodes[source + 1].first;
        if (source < wiring.n_inputs || first == last) continue;
        const int below = source_of(wiring, choices, first + (int)(uniform(state) * (last - first)));
        if (!may_read(wiring.connections[c], below)) continue;
        choices[c] = (short)(below - wiring.connections[c].low);
        return true;
    }
    return false;
}

// Whether `idle` chooses its inputs, may read those of node k, and may be read by all that read k.
CALLED bool can_replace(const Wiring& wiring, const short* choices, int k, int idle) {
    const Node *nodes = wiring.nodes;
    const int mine = nodes[k].first, n_mine = nodes[k + 1].first - mine;
    const int other = nodes[idle].first, n_other = nodes[idle + 1].first - other;
    if (n_other == 0) return false;
    for (int j = 0; j < n_mine && j < n_other; ++j)
        if (!may_read(wiring.connections[other + j], source_of(wiring, choices, mine + j))) return false;
    for (int reader = 0; reader < wiring.n_connections; ++reader)
        if (source_of(wiring, choices, reader) == k && !may_read(wiring.connections[reader], idle)) return false;
    return true;
}

// Let an idle node of another function take over a node's inputs and readers.
CALLED bool exchange_node(u64& state, const Wiring& wiring, short* choices, const Value* values, int n_active,
                          const double* cumulative) {
    const Node* nodes = wiring.nodes;
    const int output = wiring.n_nodes - 1;
    for (int attempt = 0; attempt < MOVE_ATTEMPTS; ++attempt) {
        int k;
        random_active_connection(state, wiring, values, n_active, k);
        if (k >= output) continue;
        const int idle = wiring.n_inputs + (int)(uniform(state) * (output - wiring.n_inputs));
        if (values[idle].uses || nodes[idle].op == nodes[k].op || !can_replace(wiring, choices, k, idle)) continue;
        const int mine = nodes[k].first, n_mine = nodes[k + 1].first - mine;
        const int other = nodes[idle].first, n_other = nodes[idle + 1].first - other;
        for (int j = 0; j < n_other; ++j) {
            if (j < n_mine) choices[other + j] = (short)(source_of(wiring, choices, mine + j) - wiring.connections[other + j].low);
            else choices[other + j] = resample(state, wiring, cumulative, other + j);
        }
        for (int reader = 0; reader < wiring.n_connections; ++reader) {
            const bool is_own = other <= reader && reader < other + n_other;  // a node never reads itself
            if (!is_own && source_of(wiring, choices, reader) == k)
                choices[reader] = (short)(idle - wiring.connections[reader].low);
        }
        return true;
    }
    return false;
}
