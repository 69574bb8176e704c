// Sums of two formulas with any factors and any constant, over all pairs at once: where y = c0 + c1 f + c2 g, what is left of
// f without its mean and its part along y is, but for a factor, what is left of g. So of all formulas one row each is entered
// under the form of what is left, and two under one form are a sum.

// What is looked for: the target without its mean, of length 1.
struct Sum {
    long long n;  // entries of the forms
    const double* along;  // [ROWS]
    Table table;
    int number, most;
};

// Whether most rows are alike beside the others: what is left of any two such formulas may look alike.
DEVICE bool rests_on_few(const Row& row) {
    const double alike = LEAST_SUPPORT * range_of(row);
    int most = 0;
    UNROLLED
    for (int i = 0; i < ROWS; ++i) {
        int n = 0;
        UNROLLED
        for (int j = 0; j < ROWS; ++j) n += fabs(row.at[i] - row.at[j]) <= alike;
        most = n > most ? n : most;
    }
    return 2 * most > ROWS;
}

// Whether a formula and another one are a sum, and not of one form but for rounding.
DEVICE bool are_a_sum(const Small& small, const Sum& sum, const Row& row, const Left& left, u64 other) {
    Row by;
    if (other == NO_CODE || !values_of(small, other, by)) return false;
    return are_one(left, left_of(by, sum.along), ALIKE) && !are_one(left_of(row, nullptr), left_of(by, nullptr), SAME_FORM);
}

DEVICE void enter_left(const Small& small, const Sum& sum, const Hits& hits, long long t) {
    const Entry entry = small.by_forms.entries[t];
    const u64 code = ~entry.turned;
    Row row;
    if (entry.key == 0 || !values_of(small, code, row) || rests_on_few(row)) return;
    const Left left = left_of(row, sum.along);
    const u64 key = left.rest > LEAST_LEFT * left.size ? form_key(left.row, small.signs) : 0;
    if (!key) return;
    bool is_new;
    Entry* place = place_of(sum.table, key, is_new);
    if (!place) return;
    if (is_new) {
        place->turned = ~code;
        return;
    }
    u64 turned = 0;  // until whoever was first has written it
    for (int wait = 0; wait < MOST_WAITS && !turned; ++wait) turned = seen(&place->turned);
    if (are_a_sum(small, sum, row, left, ~turned)) note(hits, {code, ~turned, sum.number, 0, 0, 0}, sum.most);
}

GLOBAL void sums(const Small* small, const Sum* sum, const Hits* hits) {
    EACH_THREAD(sum->n) enter_left(*small, *sum, *hits, t);
}
