// What the sampler reads and writes (`sampling/arrays.py`), and its random numbers (`sampling/random.py`).

typedef unsigned long long u64;

struct Node {
    int op, first;  // connections of node k are nodes[k].first up to nodes[k + 1].first
    int dense_low, dense_high, first_dense;
};

struct Connection {
    int low, n_choices;
};

// An architecture, and what its formulas may look like on its rows.
struct Wiring {
    const Node* nodes;  // [K + 1]; the last one only ends the connections of the output
    const Connection* connections;  // [C]
    const int* positive;  // [V] whether a variable has a logarithm on every row
    int n_nodes, n_connections, n_inputs, n_variables, n_weights, max_choices, with_offset, max_nesting;
};

// The value of a node, while a structure becomes a program.
struct Value {
    int slot, facts, uses, nesting;
    u64 hash, sum;
};

struct Constant {
    int weight;
    double start;
};

struct Numbers {
    double resample_fraction, mean_changes, insert_share, bypass_share, exchange_share, fresh_share, cross_share;
    double inherit_share, jitter, max_tries, max_complexity;
};

DEVICE u64 next_bits(u64& state) {
    state += 0x9E3779B97F4A7C15ULL;
    u64 z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

// A multiple of 2**-53 in [0, 1).
DEVICE double uniform(u64& state) { return (double)(next_bits(state) >> 11) * (1.0 / 9007199254740992.0); }

DEVICE double normal(u64& state) {
    const double radius = sqrt(-2.0 * log(uniform(state) + 1e-300));
    return radius * cos(6.283185307179586 * uniform(state));
}

// A one-to-one hash of 64 bits.
DEVICE u64 scramble(u64 value) {
    value = (value ^ (value >> 32)) * 0xD6E8FEB86659FD93ULL;
    value = (value ^ (value >> 32)) * 0xD6E8FEB86659FD93ULL;
    return value ^ (value >> 32);
}

// First of n places whose cumulative weight exceeds u (in 0..1 of the total).
DEVICE int pick(const double* cumulative, int n, double u) {
    const double goal = u * cumulative[n - 1];
    int low = 0, high = n - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (cumulative[middle] > goal) high = middle;
        else low = middle + 1;
    }
    return low;
}
