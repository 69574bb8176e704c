// Drawing candidates (`sampling/draw.py`): a structure each, then who was tried too often, then where its fit starts.

DEVICE void copy_elite(u64& state, const Island& island, const Numbers& numbers, int parent, short* mine) {
    const Wiring& wiring = island.wiring;
    const Elites& elites = island.elites[island.which];
    for (int c = 0; c < wiring.n_connections; ++c) mine[c] = elites.choices[parent * wiring.n_connections + c];
    if (island.n_elites <= 1 || !(uniform(state) < numbers.cross_share)) return;
    const int other = pick(island.draw_weights, island.n_elites, uniform(state));
    for (int k = wiring.n_inputs; k < wiring.n_nodes - 1; ++k) {
        if (!(uniform(state) < CROSS_CHANCE)) continue;
        for (int c = wiring.nodes[k].first; c < wiring.nodes[k + 1].first; ++c)
            mine[c] = elites.choices[other * wiring.n_connections + c];
    }
}

// One of the moves, or where none fits, re-sampled connections.
DEVICE void change(u64& state, const Island& island, const Numbers& numbers, short* mine, Value* values) {
    const Wiring& wiring = island.wiring;
    count_uses(wiring, mine, values);
    int n_active = 0;
    for (int k = wiring.n_inputs; k < wiring.n_nodes; ++k)
        if (values[k].uses) n_active += wiring.nodes[k + 1].first - wiring.nodes[k].first;
    const double kind = uniform(state);
    bool changed = false;
    if (n_active > 0) {
        if (kind < numbers.insert_share) {
            changed = insert_node(state, wiring, mine, values, n_active, island.cumulative);
        } else if (kind < numbers.insert_share + numbers.bypass_share) {
            changed = bypass_node(state, wiring, mine, values, n_active);
        } else if (kind < numbers.insert_share + numbers.bypass_share + numbers.exchange_share) {
            changed = exchange_node(state, wiring, mine, values, n_active, island.cumulative);
        }
    }
    if (changed) return;
    // an exponential number of re-sampled connections, one at least on average
    const double changes = 1.0 - numbers.mean_changes * log(uniform(state) + 1e-300);
    double rate = numbers.resample_fraction;
    if (numbers.mean_changes > 0) rate = fmin(rate, changes / largest(n_active, 1));
    for (int k = wiring.n_inputs; k < wiring.n_nodes; ++k) {
        const double chance = values[k].uses ? rate : IDLE_CHANCE;
        for (int c = wiring.nodes[k].first; c < wiring.nodes[k + 1].first; ++c)
            if (uniform(state) < chance) mine[c] = resample(state, wiring, island.cumulative, c);
    }
}

// One candidate: a structure that makes sense and was not tried once too often before this step.
DEVICE void draw_candidate(const Step& step, int b, Draft& draft) {
    const Island& island = step.islands[b / step.n_candidates];
    const Candidates& all = step.candidates;
    all.lengths[b] = 0;
    all.losses[b] = infinity();
    if (island.is_finished) return;
    const Wiring& wiring = island.wiring;
    short* mine = all.choices + (long long)b * step.choice_stride;
    u64 state = island.random_state ^ scramble(((u64)island.age << 32) + (u64)(b % step.n_candidates) + 1);
    for (int attempt = 0; attempt < DRAW_ATTEMPTS; ++attempt) {
        int parent = -1;
        if (island.n_elites > 0 && uniform(state) >= step.numbers.fresh_share) {
            parent = pick(island.draw_weights, island.n_elites, uniform(state));
            copy_elite(state, island, step.numbers, parent, mine);
            change(state, island, step.numbers, mine, draft.values);
        } else {
            for (int c = 0; c < wiring.n_connections; ++c) mine[c] = resample(state, wiring, island.cumulative, c);
        }
        const Compiled made = compile_structure(mine, wiring, draft, all.programs + (long long)b * 5 * MAX_NODES);
        if (made.length < 0 || made.complexity > step.numbers.max_complexity) continue;
        const u64 key = made.key ^ island.table_key;
        const int most = (made.nonlinear ? (int)step.numbers.max_tries : 1) * (made.has_powers ? POWER_TRIES : 1);
        if (tries_of(step.tried, key) >= most) continue;
        for (int p = 0; p < made.n_constants; ++p) {
            all.weight_ids[(long long)b * MAX_CONSTANTS + p] = (short)draft.constants[p].weight;
            all.constants[(long long)b * MAX_CONSTANTS + p] = draft.constants[p].start;
        }
        all.lengths[b] = made.length;
        all.n_constants[b] = made.n_constants;
        all.complexities[b] = made.complexity;
        all.parents[b] = parent;
        all.most_tries[b] = most;
        all.keys[b] = key;
        break;
    }
    all.states[b] = state;
}

// Sorts n (a power of two) records by (first, second, place) in shared memory; one warp, bitonic.
struct Record {
    u64 first, second;
    int place;
};

DEVICE bool comes_after(const Record& a, const Record& b) {
    if (a.first != b.first) return a.first > b.first;
    if (a.second != b.second) return a.second > b.second;
    return a.place > b.place;
}

CALLED void sort_records(Record* records, int n) {
    for (int size = 2; size <= n; size *= 2) {
        for (int distance = size / 2; distance > 0; distance /= 2) {
            LANES(l) {
                for (int pair = l; pair < n / 2; pair += 32) {
                    const int low = 2 * distance * (pair / distance) + pair % distance, high = low + distance;
                    const bool ascending = (low & size) == 0;
                    const Record a = records[low], b = records[high];
                    if (comes_after(a, b) == ascending) {
                        records[low] = b;
                        records[high] = a;
                    }
                }
            }
            MEET;
        }
    }
}

DEVICE int power_of_two(int n) {
    int power = 32;
    while (power < n) power *= 2;
    return power;
}

// Count equal structures of one step as tries behind each other, in the order of the candidates; drop what is too many.
DEVICE void claim_island(const Step& step, int i, Record* records) {
    if (step.islands[i].is_finished) return;
    const Candidates& all = step.candidates;
    const int first = i * step.n_candidates, n = power_of_two(step.n_candidates);
    LANES(l) for (int j = l; j < n; j += 32) {
        const bool is_drawn = j < step.n_candidates && all.lengths[first + j] > 0;
        records[j] = {is_drawn ? all.keys[first + j] : ~0ULL, is_drawn ? 0ULL : 1ULL, j};
    }
    MEET;
    sort_records(records, n);
    LANES(l) for (int j = l; j < n; j += 32) {
        if (records[j].second) continue;
        int rank = 0;
        while (rank < j && records[j - rank - 1].first == records[j].first) ++rank;
        const int b = first + records[j].place;
        all.tries[b] = tries_of(step.tried, all.keys[b]) + rank;
        if (all.tries[b] >= all.most_tries[b]) all.lengths[b] = -1;  // drawn in vain
    }
    MEET;
    LANES(l) {
        int drawn = 0;
        for (int j = l; j < step.n_candidates; j += 32) drawn += all.lengths[first + j] > 0;
        records[l].place = drawn;
    }
    MEET;
    int drawn = 0;
    for (int l = 0; l < 32; ++l) drawn += records[l].place;
    LANES(l) if (l == 0) {
        step.islands[i].n_drawn = drawn;
        step.islands[i].n_drawn_in_all += drawn;
    }
}

// Where the fit starts: natural constants or an elite's, in either order, then jittered ones. Counts the try.
DEVICE void start_candidate(const Step& step, int b) {
    const Candidates& all = step.candidates;
    if (all.lengths[b] <= 0) {
        all.lengths[b] = 0;
        return;
    }
    const Island& island = step.islands[b / step.n_candidates];
    const Wiring& wiring = island.wiring;
    const int parent = all.parents[b], tries = all.tries[b], n = all.n_constants[b];
    u64 state = all.states[b];
    const bool inherits = parent >= 0 && (uniform(state) < step.numbers.inherit_share) == (tries % 2 == 0);
    double* start = all.constants + (long long)b * MAX_CONSTANTS;
    for (int p = 0; p < n; ++p) {
        const int weight = all.weight_ids[(long long)b * MAX_CONSTANTS + p];
        double value = start[p];
        if (value == 0.0 && weight < wiring.n_weights && !inherits && uniform(state) < PRESENT_CHANCE) {
            const double half = 0.5 * (1.0 + floor(uniform(state) * HALVES));  // an exponent of Π
            value = uniform(state) < 0.5 ? half : -half;
        }
        if (inherits) {
            const double old = island.elites[island.which].constants[parent * (wiring.n_weights + 2) + weight];
            if (isfinite(old)) value = old;
        }
        if (tries >= PLAIN_STARTS) value *= 1.0 + step.numbers.jitter * normal(state);
        start[p] = value;
    }
    count_try(step.tried, all.keys[b]);
    all.dataset[b] = island.dataset;
    all.hopeless[b] = island.elites[island.which].losses[step.capacity - 1];
    const int number = size_number(all.lengths[b], n);
    step.chosen[(long long)number * step.n_islands * step.n_candidates + count_up(&step.n_chosen[number])] = b;
}
