// Look up what one or two steps from the target lead to among the forms of all formulas.

// One step from r by a, or r itself.
DEVICE double stepped(int step, double r, double a) {
    switch (step) {
        case MINUS: return r - a;
        case PLUS: return r + a;
        case TIMES: return r * a;
        case OVER: return r / a;
        case UNDER: return a / r;
        case SQUARED: return r * r;
        case LOGGED: return log(fabs(r));
        case RAISED: return exp(fmin(r, LARGEST_EXPONENT));
    }
    return r;
}

DEVICE bool take_step(int step, const Row& r, const Row& a, Row& out) {
    bool fits = true;
    UNROLLED
    for (int i = 0; i < ROWS; ++i) {
        out.at[i] = stepped(step, r.at[i], a.at[i]);
        fits = fits && fabs(out.at[i]) < LARGEST;
    }
    return fits;
}

// Which steps are taken from which targets, by how many kept formulas.
struct Look {
    long long start, n;  // threads
    const double* targets;  // [T][ROWS]
    int number, first, second, n_first, n_second, most;
};

struct Hit {
    u64 code, other;  // the other one of a sum
    int look, target, i, j;
};

struct Hits {
    Hit* hits;  // [looks][most]
    int* counts;  // [looks]
};

DEVICE double range_of(const Row& row) {
    double lowest = row.at[0], highest = row.at[0];
    UNROLLED
    for (int i = 1; i < ROWS; ++i) {
        lowest = fmin(lowest, row.at[i]);
        highest = fmax(highest, row.at[i]);
    }
    return highest - lowest;
}

// Whether nothing is left of r beside a: what was taken to be a step from r is a alone.
DEVICE bool drowns(int step, const Row& r, const Row& a) {
    return (step == MINUS || step == PLUS) && range_of(a) > DROWNED * range_of(r);
}

DEVICE void note(const Hits& hits, const Hit& hit, int most) {
    const int place = count_up(&hits.counts[hit.look]);
    if (place < most) hits.hits[(long long)hit.look * most + place] = hit;
}

DEVICE void look_up(const Small& small, const Look& look, const Hits& hits, long long t) {
    const int j = (int)(t % look.n_second), i = (int)(t / look.n_second % look.n_first);
    const int target = (int)(t / ((long long)look.n_second * look.n_first));
    const Row r = row_of(look.targets, target), a = row_of(small.values, i), b = row_of(small.values, j);
    Row once, twice;
    if (!take_step(look.first, r, a, once) || !take_step(look.second, once, b, twice)) return;
    const u64 key = form_key(twice, small.signs);
    if (!key) return;
    const u64 code = find(small.by_forms, key);
    if (code == NO_CODE || drowns(look.first, r, a) || drowns(look.second, once, b)) return;
    Row met;
    if (!values_of(small, code, met) || !are_one(left_of(twice, nullptr, 0), left_of(met, nullptr, 0), ALIKE)) return;
    note(hits, {code, NO_CODE, look.number, target, i, j}, look.most);
}

GLOBAL void look(const Small* small, const Batch* batch, const Look* looks, const Hits* hits) {
    EACH_THREAD(batch->n) {
        const Look& look = part_of(*batch, looks, t);
        look_up(*small, look, *hits, t - look.start);
    }
}
