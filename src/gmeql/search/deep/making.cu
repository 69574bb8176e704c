// Claim and collect the formulas of one cost, keep those that were chosen, enter the forms of others.

// The formula at a place of a block; whether it is one: no function is made of constants alone, nothing twice.
DEVICE bool tried(const Small& small, const Block& block, long long t, Row& out, u64& code) {
    const long long i = t / block.n_right, j = t % block.n_right;
    if (block.is_half && j < i) return false;
    const long long left = block.left + i, right = block.right + j;
    const bool is_unary = block.right < 0;
    const Row x = row_of(small.values, left), y = is_unary ? x : row_of(small.values, right);
    if (!combine(block.opcode, x, y, out)) return false;
    bool is_constant = true;
    UNROLLED
    for (int k = 1; k < ROWS; ++k) is_constant = is_constant && out.at[k] == out.at[0];
    if (is_constant && (is_unary || block.cost > LARGEST_CONSTANT_COST)) return false;
    code = code_of(block.cost, block.number, left, is_unary ? SIDE_MASK : right);
    return true;
}

DEVICE void claim_one(const Small& small, const Block& block, long long t) {
    Row out;
    u64 code;
    if (tried(small, block, t, out, code)) enter(small.by_values, value_key(out), code);
}

// What of a block is the first of its values, or a share of that, in any order.
DEVICE void collect_one(const Small& small, const Block& block, long long t) {
    Row out;
    u64 code;
    if (!tried(small, block, t, out, code) || find(small.by_values, value_key(out)) != code) return;
    if (mixed(0, code) > block.most_mixed) return;
    const int place = count_up(small.n_found);
    if (place < small.room) small.found[place] = code;
}

// Formulas that are kept, from a place on: their values, unless they are leaves, and their forms.
struct Kept {
    long long n;
    const u64* codes;
    int first, are_leaves;
};

DEVICE void keep_one(const Small& small, const Kept& kept, long long t) {
    const long long number = kept.first + t;
    const u64 code = kept.codes[t];
    Row out;
    if (kept.are_leaves) {
        out = row_of(small.values, number);
        enter(small.by_values, value_key(out), code);
    } else {
        values_of(small, code, out);
        UNROLLED
        for (int i = 0; i < ROWS; ++i) small.values[number * ROWS + i] = out.at[i];
    }
    const u64 key = form_key(out, small.signs);
    if (key) enter(small.by_forms, key, code_of((int)(code >> COST_AT), KEPT, 0, number));
}

DEVICE void enter_form(const Small& small, const Block& block, long long t) {
    Row out;
    u64 code;
    if (!tried(small, block, t, out, code)) return;
    const u64 key = form_key(out, small.signs);
    if (key) enter(small.by_forms, key, code);
}

GLOBAL void claim(const Small* small, const Batch* batch, const Block* blocks) {
    EACH_THREAD(batch->n) {
        const Block& block = part_of(*batch, blocks, t);
        claim_one(*small, block, t - block.start);
    }
}

GLOBAL void collect(const Small* small, const Batch* batch, const Block* blocks) {
    EACH_THREAD(batch->n) {
        const Block& block = part_of(*batch, blocks, t);
        collect_one(*small, block, t - block.start);
    }
}

GLOBAL void keep(const Small* small, const Kept* kept) {
    EACH_THREAD(kept->n) keep_one(*small, *kept, t);
}

GLOBAL void forms(const Small* small, const Batch* batch, const Block* blocks) {
    EACH_THREAD(batch->n) {
        const Block& block = part_of(*batch, blocks, t);
        enter_form(*small, block, t - block.start);
    }
}
