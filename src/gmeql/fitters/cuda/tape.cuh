// A whole program: packed into the warp's shared memory, its values forward, its slopes in reverse (`kernel/tape.py`).
//
// Each lane takes R rows at a time: its values and adjoints stay with it, so nobody waits for anybody, and what is decoded
// of a node serves 32 R rows. Nothing is kept between two points of a fit; recomputing is cheaper than memory here.

// What candidates are fitted to. Inputs [S][N], target, roots of the weights [N].
struct Data {
    const double *inputs, *target, *roots;
    int n_slots, n_rows, screen_rows;
    double mass, screen_mass;  // sums of the weights of all rows, and of those that screen
    double screen_ratio;  // variance of the target on those rows over that on all
};

// What is known of a node before any row is seen. NODE: the slot is another node, whose place stands there; FREE: its
// constant is fitted; ON: slopes go on below it.
constexpr int BINARY = 1, LEFT_NODE = 2, RIGHT_NODE = 4, LEFT_FREE = 8, RIGHT_FREE = 16, LEFT_ON = 32, RIGHT_ON = 64;
constexpr int MOVES = LEFT_FREE | RIGHT_FREE | LEFT_ON | RIGHT_ON;

// A node, and as one word of shared memory, so that one load brings all of it.
struct Node {
    int op, facts, left_constant, right_constant, left, right;
};

DEVICE unsigned long long packed(const Node& node) {
    const unsigned low = (unsigned)(node.op | node.facts << 8 | (node.left_constant & 255) << 16) |
                         (unsigned)(node.right_constant & 255) << 24;
    return low | (unsigned long long)((unsigned)(node.left & 65535) | (unsigned)node.right << 16) << 32;
}

DEVICE Node unpacked(unsigned long long word) {
    const int low = (int)(unsigned)word, high = (int)(word >> 32);
    return {low & 255, low >> 8 & 255, (int)(signed char)(low >> 16), low >> 24, (int)(short)high, high >> 16};
}

// Columns of slopes, padded to tiles of eight; the residual is one more column.
DEVICE constexpr int columns_of(int constants) { return (constants + 8) / 8 * 8; }

// Shared memory of one warp. T nodes, P constants at most, R rows of a lane at a time.
template <int T, int P, int R>
struct Work {
    unsigned long long nodes[T];  // those that the output reads, in order
    int n_nodes, n_free;
    double constants[P], trial[P];
    double hessian[2][P * (P + 1) / 2];  // rows of the lower triangle; taken and tried
    double gradient[2][P];
    double factor[P * (P + 1) / 2], step[P];
    double total;
    // Slopes of a tile of rows. Four more than a multiple of sixteen: lanes that read four rows of four columns each then
    // never wait for each other.
    double slopes[columns_of(P)][32 * R + 4];
};

DEVICE int at(int p, int q) { return p * (p + 1) / 2 + q; }

// Copy a program and its constants: only nodes that matter, with what their slopes need.
template <int T, int P, int R>
DEVICE void load(Work<T, P, R>& work, const short* code, int length, int width, const double* constants, int n_constants,
                 int n_free, int n_slots) {
    // the program as it comes, and what is found out of each node, until the slopes need the memory
    short* raw = reinterpret_cast<short*>(work.slopes);
    short *place = raw + 5 * T, *moves = place + T;
    LANES(l) {
        for (int i = l; i < 5 * length; i += 32) raw[i / length * T + i % length] = code[i / length * width + i % length];
        for (int p = l; p < n_constants; p += 32) work.constants[p] = work.trial[p] = constants[p];
        for (int k = l; k < length; k += 32) place[k] = k == length - 1;
    }
    MEET;
    LANES(l) if (l == 0) {
        for (int k = length - 1; k >= 0; --k) {
            if (!place[k]) continue;
            if (raw[T + k] >= n_slots) place[raw[T + k] - n_slots] = 1;
            if (is_binary(raw[k]) && raw[2 * T + k] >= n_slots) place[raw[2 * T + k] - n_slots] = 1;
        }
        int n = 0;
        for (int k = 0; k < length; ++k) {
            if (!place[k]) continue;
            const int op = raw[k], left = raw[T + k] - n_slots, right = raw[2 * T + k] - n_slots;
            const int left_constant = raw[3 * T + k];
            const int right_constant = is_binary(op) || op == POWER_FITTED ? raw[4 * T + k] : -1;
            int facts = is_binary(op) ? BINARY : 0;
            if (left_constant >= 0 && left_constant < n_free) facts |= LEFT_FREE;
            if (right_constant >= 0 && right_constant < n_free) facts |= RIGHT_FREE;
            if (left >= 0) facts |= LEFT_NODE | (moves[left] ? LEFT_ON : 0);
            if (is_binary(op) && right >= 0) facts |= RIGHT_NODE | (moves[right] ? RIGHT_ON : 0);
            moves[k] = (facts & MOVES) != 0;
            work.nodes[n] = packed({op, facts, left_constant, right_constant, left >= 0 ? place[left] : raw[T + k],
                                    facts & RIGHT_NODE ? place[right] : raw[2 * T + k]});
            place[k] = (short)n++;
        }
        work.n_nodes = n;
        work.n_free = n_free;
    }
    MEET;
    // columns of constants that no node reads, and of none at all, stay 0
    LANES(l) for (int c = 0; c < columns_of(P); ++c) for (int i = l; i < 32 * R + 4; i += 32) work.slopes[c][i] = 0.0;
    MEET;
}

// What a node reads for the R rows of a lane: slots x and y, times their constants f and g.
template <int R>
struct Read {
    double f, g, power;
    double x[R], y[R], u[R], w[R];
};

template <int T, int P, int R>
DEVICE void read(const Work<T, P, R>& work, const Node& node, const double* inputs, int n_rows, const int (&row)[R],
                 const double (&values)[T][R], Read<R>& in) {
    in.f = node.left_constant >= 0 ? work.trial[node.left_constant] : 1.0;
    in.g = node.right_constant >= 0 ? work.trial[node.right_constant] : 1.0;
    in.power = in.g;
    if (node.facts & LEFT_NODE) ROWS in.x[r] = values[node.left][r];
    else ROWS in.x[r] = constant_at(inputs + node.left * n_rows + row[r]);
    ROWS in.u[r] = in.f * in.x[r];
    if (node.facts & BINARY) {
        if (node.facts & RIGHT_NODE) ROWS in.y[r] = values[node.right][r];
        else ROWS in.y[r] = constant_at(inputs + node.right * n_rows + row[r]);
        ROWS in.w[r] = in.g * in.y[r];
    } else {
        ROWS in.w[r] = 0.0;
    }
}

// Slopes of the output, times the roots of the weights, to every free constant, into the lane's rows of the tile.
template <int T, int P, int R>
DEVICE void backward(Work<T, P, R>& work, const double* inputs, int n_rows, const int (&row)[R],
                     const double (&roots)[R], int l, const double (&values)[T][R], const double (&kept)[T][R]) {
    double adjoint[T][R];
    for (int k = 0; k < work.n_nodes; ++k) ROWS adjoint[k][r] = 0.0;
    ROWS adjoint[work.n_nodes - 1][r] = roots[r];
    for (int k = work.n_nodes - 1; k >= 0; --k) {
        const Node node = unpacked(work.nodes[k]);
        if (!(node.facts & MOVES)) continue;
        Read<R> in;
        read<T, P, R>(work, node, inputs, n_rows, row, values, in);
        double slope[R];
        if (node.facts & (LEFT_FREE | LEFT_ON)) {
            left_slope<R>(node.op, in.u, in.w, node.right, in.power, values[k], kept[k], slope);
            ROWS slope[r] *= adjoint[k][r];
            if (node.facts & LEFT_FREE) ROWS work.slopes[node.left_constant][32 * r + l] = slope[r] * in.x[r];
            if (node.facts & LEFT_ON) ROWS adjoint[node.left][r] += slope[r] * in.f;
        }
        if (!(node.facts & (RIGHT_FREE | RIGHT_ON))) continue;
        if (node.op == POWER_FITTED) {
            ROWS work.slopes[node.right_constant][32 * r + l] = adjoint[k][r] * values[k][r] * kept[k][r];
            continue;
        }
        right_slope<R>(node.op, in.u, values[k], kept[k], slope);
        ROWS slope[r] *= adjoint[k][r];
        if (node.facts & RIGHT_FREE) ROWS work.slopes[node.right_constant][32 * r + l] = slope[r] * in.y[r];
        if (node.facts & RIGHT_ON) ROWS adjoint[node.right][r] += slope[r] * in.g;
    }
}

// One lane's R rows from `low` on at `trial`: the sum of their squared residuals; with slopes, their rows of the tile.
// Rows beyond the last count nothing.
template <int T, int P, int R>
CALLED double pass_rows(Work<T, P, R>& work, const Data& data, int n_rows, int low, int l, bool with_slopes) {
    double values[T][R], kept[T][R], roots[R], total = 0.0;
    int row[R];
    ROWS row[r] = low + 32 * r < n_rows ? low + 32 * r : n_rows - 1;
    ROWS roots[r] = low + 32 * r < n_rows ? constant_at(data.roots + row[r]) : 0.0;
    const double* inputs = data.inputs;
    const int last = work.n_nodes - 1, stride = data.n_rows;
    for (int k = 0; k <= last; ++k) {
        const Node node = unpacked(work.nodes[k]);
        Read<R> in;
        read<T, P, R>(work, node, inputs, stride, row, values, in);
        node_value<R>(node.op, in.u, in.w, node.right, in.power, values[k], kept[k]);
    }
    ROWS {
        const double residual = roots[r] * (values[last][r] - constant_at(data.target + row[r]));
        total += low + 32 * r < n_rows ? residual * residual : 0.0;
        if (with_slopes) work.slopes[work.n_free][32 * r + l] = residual;
    }
    if (with_slopes) backward<T, P, R>(work, inputs, stride, row, roots, l, values, kept);
    return total;
}
