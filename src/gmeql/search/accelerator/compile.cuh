// Turning a wiring into a program: `sampling/nodes.py` and `sampling/compile.py`, to the letter.

// Scratch memory of one thread in which a structure becomes a program.
struct Draft {
    Value values[MOST_NODES];
    u64 terms[MOST_NODES];
    short pending[MAX_NODES + 1];
    Constant constants[MAX_CONSTANTS];
    int length, n_constants, complexity, n_powers;  // of the program so far; complexity without the constants
    short* program;  // [5][MAX_NODES]
};

// What is known of a program beside its nodes; length -1: the wiring makes no sense.
struct Compiled {
    int length, n_constants, complexity;
    bool nonlinear, has_powers;
    u64 key;
};

DEVICE void emit(Draft& draft, int op, int left, int right, int left_constant, int right_constant) {
    const int k = draft.length++;
    draft.program[k] = (short)op;
    draft.program[MAX_NODES + k] = (short)left;
    draft.program[2 * MAX_NODES + k] = (short)right;
    draft.program[3 * MAX_NODES + k] = (short)left_constant;
    draft.program[4 * MAX_NODES + k] = (short)right_constant;
}

DEVICE int new_constant(Draft& draft, int weight, double start) {
    draft.constants[draft.n_constants] = {weight, start};
    return draft.n_constants++;
}

DEVICE int last_slot(const Wiring& wiring, const Draft& draft) { return 2 * wiring.n_variables + draft.length; }
DEVICE int largest(int a, int b) { return a > b ? a : b; }
DEVICE bool needs_constant(const Value& value) { return !(value.facts & SCALED) || value.uses > 1; }
DEVICE int scaled(const Value& value) { return value.uses == 1 ? (value.facts & SCALED) : 0; }
DEVICE bool has_offset(const Value& value) {
    return (value.facts & IS_CONSTANT) != 0 || ((value.facts & IS_SUM) != 0 && (value.facts & HAS_ONE) != 0);
}
DEVICE u64 term_hash(const Value& value) {
    return (value.facts & IS_SUM) && value.uses == 1 ? value.sum : scramble(value.hash);
}

DEVICE void write_identity(Value& mine, const Value& source) {
    const int uses = mine.uses;
    mine = source;
    mine.uses = uses;
    if (source.uses == 1 && uses > 1) mine.facts &= ~SCALED;
}

CALLED bool write_sum(Value& mine, const Value& left, const Value& right, int c, bool is_difference,
                      const Wiring& wiring, Draft& draft) {
    if (left.hash == right.hash || (left.facts & right.facts & IS_CONSTANT)) return false;
    const bool one_left = has_offset(left), one_right = has_offset(right);
    if (one_left && one_right && left.uses == 1 && right.uses == 1) return false;
    int left_constant = -1, right_constant = -1;
    if (needs_constant(left)) left_constant = new_constant(draft, c, 1.0);
    if (needs_constant(right)) right_constant = new_constant(draft, c + 1, is_difference ? -1.0 : 1.0);
    emit(draft, ADD, left.slot, right.slot, left_constant, right_constant);
    draft.complexity += 1;
    mine.slot = last_slot(wiring, draft);
    mine.facts = SCALED | IS_SUM | (one_left || one_right ? HAS_ONE : 0) | ((left.facts | right.facts) & FUNCTIONS);
    mine.nesting = largest(left.nesting, right.nesting);
    mine.sum = term_hash(left) + term_hash(right);
    mine.hash = scramble(mine.sum + MARK_SUM);
    return true;
}

CALLED bool write_product(Value& mine, const Value& left, const Value& right, const Wiring& wiring, Draft& draft) {
    if ((left.facts | right.facts) & IS_CONSTANT) return false;
    emit(draft, MUL, left.slot, right.slot, -1, -1);
    draft.complexity += 1;
    mine.slot = last_slot(wiring, draft);
    mine.facts = scaled(left) | scaled(right) | ((left.facts | right.facts) & FUNCTIONS);
    mine.nesting = largest(left.nesting, right.nesting);
    mine.hash = scramble(scramble(left.hash) + scramble(right.hash) + MARK_PRODUCT);
    return true;
}

CALLED bool write_quotient(Value& mine, const Value& left, const Value& right, bool is_inverse, const Wiring& wiring,
                           Draft& draft) {
    if (right.facts & IS_CONSTANT) return false;
    const u64 numerator = is_inverse ? scramble(MARK_ONE) : left.hash;
    if (is_inverse) {
        if (right.facts & POWER) return false;
        emit(draft, INV, right.slot, right.slot, -1, -1);
        mine.facts = POWER | scaled(right) | (right.facts & FUNCTIONS);
        mine.nesting = right.nesting;
    } else {
        if (left.hash == right.hash) return false;
        emit(draft, DIV, left.slot, right.slot, -1, -1);
        mine.facts = scaled(left) | scaled(right) | ((left.facts | right.facts) & FUNCTIONS);
        mine.nesting = largest(left.nesting, right.nesting);
    }
    draft.complexity += 1;
    mine.slot = last_slot(wiring, draft);
    mine.hash = scramble(scramble(numerator) - scramble(right.hash + MARK_DENOMINATOR) + MARK_QUOTIENT);
    return true;
}

// Whether a source of Σ or Π differs from the terms before; if so it becomes term number n_terms.
DEVICE bool is_new_term(Draft& draft, u64 hash, int n_terms) {
    for (int t = 0; t < n_terms; ++t)
        if (draft.terms[t] == hash) return false;
    draft.terms[n_terms] = hash;
    return true;
}

CALLED bool write_dense_sum(Value& mine, const Node& node, const Wiring& wiring, Draft& draft) {
    int n_terms = 0, accumulator = -1, first_constant = -1, inside = 0, depth = 0;
    u64 total = 0;
    bool has_one = false;
    for (int s = node.dense_low; s < node.dense_high; ++s) {
        const Value source = draft.values[s];
        const bool is_one = has_offset(source);
        if ((is_one && has_one) || draft.n_constants >= MAX_CONSTANTS - SPARE_CONSTANTS) continue;
        if (!is_new_term(draft, source.hash, n_terms)) continue;
        has_one = has_one || is_one;
        n_terms += 1;
        int constant = -1;
        if (needs_constant(source)) constant = new_constant(draft, node.first_dense + s - node.dense_low, 1.0);
        inside |= source.facts & FUNCTIONS;
        depth = largest(depth, source.nesting);
        total += term_hash(source);
        if (n_terms == 1) {
            accumulator = source.slot;
            first_constant = constant;
        } else {
            if (draft.length >= MAX_NODES) return false;
            emit(draft, ADD, accumulator, source.slot, first_constant, constant);
            accumulator = last_slot(wiring, draft);
            first_constant = -1;
            draft.complexity += 1;
        }
    }
    if (n_terms < 2) return false;
    mine.slot = accumulator;
    mine.facts = SCALED | IS_SUM | inside | (has_one ? HAS_ONE : 0);
    mine.nesting = depth;
    mine.sum = total;
    mine.hash = scramble(total + MARK_SUM);
    return true;
}

CALLED bool write_dense_product(Value& mine, int k, const Node& node, const Wiring& wiring, Draft& draft) {
    int n_terms = 0, accumulator = -1, first_constant = -1, inside = 0, depth = 0;
    u64 total = 0;
    for (int s = node.dense_low; s < node.dense_high; ++s) {
        const Value source = draft.values[s];
        if (source.facts & IS_CONSTANT) continue;
        const bool is_full = draft.length >= MAX_NODES - 2 - SPARE_NODES;
        if (is_full || draft.n_constants >= MAX_CONSTANTS - SPARE_CONSTANTS) return false;
        const bool is_variable = s < wiring.n_variables;
        if ((is_variable && wiring.positive[s] == 0) || !is_new_term(draft, source.hash, n_terms)) continue;
        n_terms += 1;
        const int constant = new_constant(draft, node.first_dense + s - node.dense_low, 0.0);
        total += scramble(source.hash);
        inside |= source.facts & FUNCTIONS;
        depth = largest(depth, source.nesting);
        if (is_variable) {
            const int logarithm = wiring.n_variables + 1 + s;
            if (n_terms == 1) {
                accumulator = logarithm;
                first_constant = constant;
            } else {
                emit(draft, ADD, accumulator, logarithm, first_constant, constant);
                accumulator = last_slot(wiring, draft);
                first_constant = -1;
            }
        } else {
            emit(draft, POWER_FITTED, source.slot, 0, -1, constant);
            if (n_terms > 1) emit(draft, MUL, accumulator, last_slot(wiring, draft), -1, -1);
            accumulator = last_slot(wiring, draft);
        }
        draft.complexity += 2;
    }
    draft.n_powers += 1;
    if (n_terms < 1) return false;
    if (node.dense_low < wiring.n_variables) {
        emit(draft, EXP, accumulator, accumulator, first_constant, -1);
        accumulator = last_slot(wiring, draft);
    }
    mine.slot = accumulator;
    mine.facts = inside;
    mine.nesting = depth;
    mine.hash = scramble(total + MARK_POWERS + PER_NODE * (u64)k);
    return true;
}

CALLED bool write_function(Value& mine, const Value& source, int c, int op, const Wiring& wiring, Draft& draft) {
    const int facts = source.facts;
    const bool is_power =
        op == SQRT || op == SQUARE || op == CUBE || op == POW4 || op == POW5 || op == POW6 || op == ABS;
    if ((facts & IS_CONSTANT) || (is_power && (facts & POWER))) return false;
    int kind = 0;
    if (op == SIN || op == COS || op == TANH || op == ASIN || op == ACOS || op == ATAN) kind = TRIGONOMETRIC;
    else if (op == EXP) kind = EXPONENTIAL;
    else if (op == LOG) kind = LOGARITHM;
    const int depth = source.nesting + (facts & kind ? 1 : 0);
    if (depth > wiring.max_nesting) return false;
    int constant = -1;
    if ((kind == TRIGONOMETRIC || kind == EXPONENTIAL) && needs_constant(source)) constant = new_constant(draft, c, 1.0);
    emit(draft, op, source.slot, source.slot, constant, -1);
    draft.complexity += 2;
    mine.slot = last_slot(wiring, draft);
    mine.facts = (facts & FUNCTIONS) | kind | (is_power ? (POWER | scaled(source)) : 0);
    mine.nesting = depth;
    mine.hash = scramble(source.hash + PER_OPCODE * (u64)op + MARK_FUNCTION);
    return true;
}

CALLED bool write_output(const Value& output, const Wiring& wiring, Draft& draft) {
    if (output.facts & IS_CONSTANT) return false;
    int scale = -1;
    if (!(output.facts & SCALED)) scale = new_constant(draft, wiring.n_weights + OUTPUT_SCALE, 1.0);
    const bool takes_offset = wiring.with_offset && !((output.facts & IS_SUM) && (output.facts & HAS_ONE));
    if ((takes_offset || scale >= 0) && draft.length >= MAX_NODES) return false;
    if (takes_offset) {
        const int offset = new_constant(draft, wiring.n_weights + OUTPUT_OFFSET, 0.0);
        emit(draft, ADD, output.slot, wiring.n_variables, scale, offset);
    } else if (scale >= 0) {
        emit(draft, ID, output.slot, output.slot, scale, -1);
    }
    return draft.length > 0;
}

// Constants met on the way down through sums are linear; any other one makes the fit depend on its start.
CALLED int count_linear(const Wiring& wiring, Draft& draft) {
    const short* program = draft.program;
    const int n_slots = 2 * wiring.n_variables + 1;
    int linear = 0, n_pending = 1;
    draft.pending[0] = (short)(draft.length - 1);
    while (n_pending > 0) {
        const int k = draft.pending[--n_pending], op = program[k];
        if (op != ID && op != ADD) continue;
        for (int side = 0; side < (op == ADD ? 2 : 1); ++side) {
            const int below = program[(1 + side) * MAX_NODES + k] - n_slots;
            if (program[(3 + side) * MAX_NODES + k] >= 0) linear += 1;
            else if (below >= 0) draft.pending[n_pending++] = (short)below;
        }
    }
    return linear;
}

CALLED bool write_node(int k, const short* choices, const Wiring& wiring, Draft& draft) {
    Value& mine = draft.values[k];
    const Node node = wiring.nodes[k];
    const int op = node.op, c = node.first;
    mine.sum = 0;
    if (op == SUM) return write_dense_sum(mine, node, wiring, draft);
    if (op == PROD) return write_dense_product(mine, k, node, wiring, draft);
    const Value first = draft.values[source_of(wiring, choices, c)];
    if (op == ID) {
        write_identity(mine, first);
        return true;
    }
    if (op == INV) return write_quotient(mine, first, first, true, wiring, draft);
    if (op != ADD && op != SUB && op != MUL && op != DIV) return write_function(mine, first, c, op, wiring, draft);
    const Value second = draft.values[source_of(wiring, choices, c + 1)];
    if (op == MUL) return write_product(mine, first, second, wiring, draft);
    if (op == DIV) return write_quotient(mine, first, second, (first.facts & IS_CONSTANT) != 0, wiring, draft);
    return write_sum(mine, first, second, c, op == SUB, wiring, draft);
}

// Write the program of one structure; `draft.constants` then holds which weight each constant is, and its start.
CALLED Compiled compile_structure(const short* choices, const Wiring& wiring, Draft& draft, short* program) {
    const Compiled refused = {-1, 0, 0, false, false, 0};
    const int output = wiring.n_nodes - 1;
    draft.length = draft.n_constants = draft.complexity = draft.n_powers = 0;
    draft.program = program;
    count_uses(wiring, choices, draft.values);
    for (int i = 0; i < wiring.n_inputs; ++i) {
        const bool is_variable = i < wiring.n_variables;
        Value& input = draft.values[i];
        input.slot = is_variable ? i : wiring.n_variables;
        input.facts = is_variable ? 0 : IS_CONSTANT | HAS_ONE;
        input.nesting = 0;
        input.hash = scramble(is_variable ? (u64)(i + 1) : MARK_ONE);
        input.sum = 0;
    }
    for (int k = wiring.n_inputs; k <= output; ++k) {
        if (draft.values[k].uses == 0) continue;
        if (draft.length >= MAX_NODES - SPARE_NODES || draft.n_constants >= MAX_CONSTANTS - SPARE_CONSTANTS) return refused;
        if (!write_node(k, choices, wiring, draft)) return refused;
    }
    const Value last = draft.values[output];
    if (!write_output(last, wiring, draft)) return refused;
    const int n_linear = count_linear(wiring, draft);
    const u64 key = scramble((last.facts & IS_SUM ? last.sum : scramble(last.hash)) + 1);
    return {draft.length, draft.n_constants, draft.complexity + draft.n_constants, n_linear < draft.n_constants,
            draft.n_powers > 0, key};
}
