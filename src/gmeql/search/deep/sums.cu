// Sums of two formulas with any factors and any constant, over all pairs at once (`middle/remainders.py`): where y = c0 + c1 f +
// c2 g, what is left of f without its mean and its part along y is, but for a factor, what is left of g. So of all formulas one
// row each is entered under the form of what is left, and two under one form are a sum. Formulas times the target are entered as
// well, for fractions: those that are kept.

// In a code: times the target.
constexpr u64 BELOW = 1ULL << 63;

struct Sum {
    long long n, n_forms;  // entries: those of the forms, then formulas that are kept, times the target
    const double* along;  // [n_along][ROWS] orthonormal, without mean; the target's last
    const double* target;  // [ROWS]
    Table table;
    int number, most, n_along, of_logarithms;
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

// What a code stands for in a sum; false where that is nothing.
DEVICE bool term_of(const Small& small, const Sum& sum, u64 code, Row& row) {
    bool fits = values_of(small, code & ~BELOW, row);
    UNROLLED
    for (int i = 0; i < ROWS; ++i) {
        if (code & BELOW) row.at[i] *= sum.target[i];
        fits = fits && (!sum.of_logarithms || row.at[i] != 0.0);
    }
    if (fits && sum.of_logarithms) {
        ROLLED
        for (int i = 0; i < ROWS; ++i) row.at[i] = log(fabs(row.at[i]));
    }
    return fits;
}

// Whether two formulas are of one form but for rounding, beside all but the target: c0 + c1 f is no other formula than f.
DEVICE bool are_of_one_form(const Small& small, const Sum& sum, u64 code, u64 other) {
    Row row, by;
    const int n_along = sum.n_along - 1;
    if ((code ^ other) & BELOW) return false;
    if (!term_of(small, sum, code & ~BELOW, row) || !term_of(small, sum, other & ~BELOW, by)) return true;
    return are_one(left_of(row, sum.along, n_along), left_of(by, sum.along, n_along), SAME_FORM);
}

DEVICE bool are_a_sum(const Small& small, const Sum& sum, const Left& left, u64 code, u64 other) {
    Row by;
    if (other == NO_CODE || !term_of(small, sum, other, by)) return false;
    return are_one(left, left_of(by, sum.along, sum.n_along), ALIKE) && !are_of_one_form(small, sum, code, other);
}

// The code of an entry; none where nobody has entered anything.
DEVICE u64 entered(const Small& small, const Sum& sum, long long t) {
    if (t >= sum.n_forms) return code_of(0, KEPT, 0, t - sum.n_forms) | BELOW;
    const Entry entry = small.by_forms.entries[t];
    return entry.key ? ~entry.turned : NO_CODE;
}

DEVICE void enter_left(const Small& small, const Sum& sum, const Hits& hits, long long t) {
    const u64 code = entered(small, sum, t);
    Row row;
    if (code == NO_CODE || !term_of(small, sum, code, row) || rests_on_few(row)) return;
    const Left left = left_of(row, sum.along, sum.n_along);
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
    if (are_a_sum(small, sum, left, code, ~turned)) note(hits, {code, ~turned, sum.number, 0, 0, 0}, sum.most);
}

GLOBAL void sums(const Small* small, const Sum* sum, const Hits* hits) {
    EACH_THREAD(sum->n) enter_left(*small, *sum, *hits, t);
}
