// A whole program: loaded into the warp's shared memory, its values forward, its slopes in reverse (`kernel/tape.py`).
//
// Each lane takes R rows at a time: its values and slopes stay with it, so nobody waits for anybody, and what is decoded
// of a node serves 32 R rows. Nothing is kept between two points of a fit; recomputing is cheaper than memory here.

// What candidates are fitted to. Inputs [S][N], target, roots of the weights [N].
struct Data {
    const double *inputs, *target, *roots;
    int n_slots, n_rows, screen_rows;
    double mass, screen_mass;  // sums of the weights of all rows, and of those that screen
    double screen_ratio;  // variance of the target on those rows over that on all
};

// Shared memory of one warp. T nodes, P constants at most.
template <int T, int P>
struct Work {
    short code[5][T];
    unsigned char active[T], moves[T];
    int n_active, length, n_free;
    double constants[P], trial[P];
    double hessian[2][P * (P + 1) / 2];  // rows of the lower triangle; taken and tried
    double gradient[2][P];
    double factor[P * (P + 1) / 2], step[P];
    double total;
    // Slopes of a tile of rows; where the products stay in registers there is none. One more column is the residual,
    // and an odd length keeps lanes that read different columns from waiting for each other.
    double slopes[P <= IN_REGISTERS ? 1 : P + 1][P <= IN_REGISTERS ? 1 : 32 * ROWS_PER_LANE + 1];
    double partial[P <= IN_REGISTERS ? 1 : 32];
};

DEVICE int at(int p, int q) { return p * (p + 1) / 2 + q; }

// Copy a program and its constants, and see which nodes matter and which of them free constants move.
template <int T, int P>
DEVICE void load(Work<T, P>& work, const short* code, int length, int width, const double* constants, int n_constants,
                 int n_free, int n_slots) {
    LANES(l) {
        for (int i = l; i < 5 * length; i += 32) work.code[i / length][i % length] = code[i / length * width + i % length];
        for (int p = l; p < n_constants; p += 32) work.constants[p] = work.trial[p] = constants[p];
        for (int k = l; k < length; k += 32) work.active[k] = 0;
    }
    MEET;
    LANES(l) if (l == 0) {
        work.length = length;
        work.n_free = n_free;
        // `active` counts as "is read" on the way down, then lists the nodes that are, in order
        work.active[length - 1] = 1;
        for (int k = length - 1; k >= 0; --k) {
            if (!work.active[k]) continue;
            if (work.code[1][k] >= n_slots) work.active[work.code[1][k] - n_slots] = 1;
            if (is_binary(work.code[0][k]) && work.code[2][k] >= n_slots) work.active[work.code[2][k] - n_slots] = 1;
        }
        int n_active = 0;
        for (int k = 0; k < length; ++k) {
            const int op = work.code[0][k], left = work.code[1][k] - n_slots, right = work.code[2][k] - n_slots;
            bool moves = (work.code[3][k] >= 0 && work.code[3][k] < n_free) || (left >= 0 && work.moves[left]);
            if (is_binary(op) || op == POWER_FITTED) moves = moves || (work.code[4][k] >= 0 && work.code[4][k] < n_free);
            if (is_binary(op)) moves = moves || (right >= 0 && work.moves[right]);
            work.moves[k] = moves;
            if (work.active[k]) work.active[n_active++] = (unsigned char)k;  // n_active <= k: written behind the reader
        }
        work.n_active = n_active;
    }
    MEET;
}

// One node decoded, with what it reads for the R rows of a lane.
template <int R>
struct Decoded {
    int op, left, right, left_constant, right_constant;
    double f, g, power;
    double x[R], y[R], u[R], w[R];  // slots, and times their constants
};

template <int T, int P, int R>
DEVICE void decode(const Work<T, P>& work, int k, const Data& data, const int (&row)[R], const double (&values)[T][R],
                   Decoded<R>& node) {
    const int op = node.op = work.code[0][k];
    node.left = work.code[1][k];
    node.right = work.code[2][k];
    node.left_constant = work.code[3][k];
    node.right_constant = work.code[4][k];
    node.f = node.left_constant >= 0 ? work.trial[node.left_constant] : 1.0;
    node.g = 1.0;
    node.power = 0.0;
    const int below = node.left - data.n_slots;
    if (below >= 0) ROWS node.x[r] = values[below][r];
    else ROWS node.x[r] = data.inputs[node.left * data.n_rows + row[r]];
    ROWS node.u[r] = node.f * node.x[r];
    if (is_binary(op)) {
        node.g = node.right_constant >= 0 ? work.trial[node.right_constant] : 1.0;
        const int other = node.right - data.n_slots;
        if (other >= 0) ROWS node.y[r] = values[other][r];
        else ROWS node.y[r] = data.inputs[node.right * data.n_rows + row[r]];
        ROWS node.w[r] = node.g * node.y[r];
    } else {
        if (op == POWER_FITTED) node.power = work.trial[node.right_constant];
        ROWS node.w[r] = 0.0;
    }
}

template <int T, int P, int R>
CALLED void forward(const Work<T, P>& work, const Data& data, const int (&row)[R], double (&values)[T][R],
                    double (&kept)[T][R]) {
    for (int a = 0; a < work.n_active; ++a) {
        const int k = work.active[a];
        Decoded<R> node;
        decode<T, P, R>(work, k, data, row, values, node);
        node_value<R>(node.op, node.u, node.w, node.right, node.power, values[k], kept[k]);
    }
}

// Slopes of the output, times the roots of the weights, to every free constant: jacobian [P][R].
template <int T, int P, int R>
CALLED void backward(const Work<T, P>& work, const Data& data, const int (&row)[R], const double (&roots)[R],
                     const double (&values)[T][R], const double (&kept)[T][R], double (&adjoint)[T][R],
                     double (&jacobian)[P][R]) {
    for (int a = 0; a < work.n_active; ++a) ROWS adjoint[work.active[a]][r] = 0.0;
    for (int p = 0; p < work.n_free; ++p) ROWS jacobian[p][r] = 0.0;
    ROWS adjoint[work.length - 1][r] = roots[r];
    for (int a = work.n_active - 1; a >= 0; --a) {
        const int k = work.active[a];
        if (!work.moves[k]) continue;
        Decoded<R> node;
        decode<T, P, R>(work, k, data, row, values, node);
        double slope[R];
        const int n_free = work.n_free, left = node.left - data.n_slots, right = node.right - data.n_slots;
        const bool left_free = node.left_constant >= 0 && node.left_constant < n_free;
        const bool left_on = left >= 0 && work.moves[left];
        if (left_free || left_on) {
            left_slope<R>(node.op, node.u, node.w, node.right, node.power, values[k], kept[k], slope);
            ROWS slope[r] *= adjoint[k][r];
            if (left_free) ROWS jacobian[node.left_constant][r] = slope[r] * node.x[r];
            if (left_on) ROWS adjoint[left][r] += slope[r] * node.f;
        }
        const bool right_free = node.right_constant >= 0 && node.right_constant < n_free;
        if (node.op == POWER_FITTED && right_free)
            ROWS jacobian[node.right_constant][r] = adjoint[k][r] * values[k][r] * kept[k][r];
        if (!is_binary(node.op)) continue;
        const bool right_on = right >= 0 && work.moves[right];
        if (right_free || right_on) {
            right_slope<R>(node.op, node.u, values[k], kept[k], slope);
            ROWS slope[r] *= adjoint[k][r];
            if (right_free) ROWS jacobian[node.right_constant][r] = slope[r] * node.y[r];
            if (right_on) ROWS adjoint[right][r] += slope[r] * node.g;
        }
    }
}
