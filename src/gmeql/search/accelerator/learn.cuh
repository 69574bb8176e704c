// What islands keep of a step and learn from it (`islands/island.py`): the best taken to convergence, elites, structure parameters.

DEVICE u64 order_of(double loss) { return loss >= 0.0 && loss < infinity() ? (u64)bits_of(loss) : ~0ULL; }

// Copy candidate b to place f, behind the candidates of a step; `length` 0 leaves the place empty.
DEVICE void copy_candidate(const Step& step, int b, int f) {
    const Candidates& all = step.candidates;
    LANES(l) {
        for (int k = l; k < 5 * MAX_NODES; k += 32)
            all.programs[(long long)f * 5 * MAX_NODES + k] = all.programs[(long long)b * 5 * MAX_NODES + k];
        for (int p = l; p < MAX_CONSTANTS; p += 32) {
            all.weight_ids[(long long)f * MAX_CONSTANTS + p] = all.weight_ids[(long long)b * MAX_CONSTANTS + p];
            all.constants[(long long)f * MAX_CONSTANTS + p] = all.constants[(long long)b * MAX_CONSTANTS + p];
        }
        for (int c = l; c < step.choice_stride; c += 32)
            all.choices[(long long)f * step.choice_stride + c] = all.choices[(long long)b * step.choice_stride + c];
        if (l == 0) {
            all.lengths[f] = all.lengths[b];
            all.n_constants[f] = all.n_constants[b];
            all.complexities[f] = all.complexities[b];
            all.losses[f] = all.losses[b];
            all.keys[f] = all.keys[b];
            all.dataset[f] = all.dataset[b];
        }
    }
}

// Copy the best candidates of an island that are elites, and list them: their fits go on to convergence.
DEVICE void choose_best(const Step& step, int i, Record* records) {
    const Island& island = step.islands[i];
    const Candidates& all = step.candidates;
    const int first = i * step.n_candidates, places = step.n_islands * step.n_candidates + i * step.n_best;
    const double worst = island.elites[island.which].losses[step.capacity - 1];
    int before = -1;
    for (int rank = 0; rank < step.n_best; ++rank) {
        LANES(l) {
            Record best = {~0ULL, 0, -1};
            for (int j = l; j < step.n_candidates; j += 32) {
                const u64 order = all.lengths[first + j] > 0 ? order_of(all.losses[first + j]) : ~0ULL;
                if (j != before && order < best.first) best = {order, 0, j};
            }
            records[l] = best;
        }
        MEET;
        Record best = records[0];
        for (int l = 1; l < 32; ++l)
            if (comes_after(best, records[l])) best = records[l];
        MEET;
        const int f = places + rank, b = first + best.place;
        if (best.place < 0 || before == -2 || all.losses[b] > worst) {
            LANES(l) if (l == 0) all.lengths[f] = 0;
            before = -2;
            continue;
        }
        before = best.place;
        copy_candidate(step, b, f);
        LANES(l) if (l == 0) {
            const int number = size_number(all.lengths[b], all.n_constants[b]);
            step.finishing[(long long)number * step.n_islands * step.n_best + count_up(&step.n_finishing[number])] = f;
        }
    }
}

// The best of old and new elites with distinct expressions stay (`network/repository.py`). New are the candidates of this
// step and those of the step before that were taken to convergence; at the end of a stage only the latter.
DEVICE void absorb_island(const Step& step, int i, Record* records, bool with_step) {
    Island& island = step.islands[i];
    const Candidates& all = step.candidates;
    const Wiring& wiring = island.wiring;
    const Elites old = island.elites[island.which], next = island.elites[1 - island.which];
    const int first = i * step.n_candidates, capacity = step.capacity, n_weights = wiring.n_weights + 2;
    const int behind = step.n_islands * step.n_candidates + i * step.n_best - step.n_candidates;
    if (with_step && island.is_finished) return;
    const int n_places = capacity + step.n_candidates + step.n_best;
    const double worst = old.losses[capacity - 1];
#define CANDIDATE_OF(place) ((place) - capacity < step.n_candidates ? first + (place) - capacity : behind + (place) - capacity)
    const auto counts = [&](int place) {
        if (place < capacity) return place < island.n_elites;
        const int b = CANDIDATE_OF(place);
        return (with_step || place >= capacity + step.n_candidates) && all.lengths[b] > 0 && all.losses[b] < worst;
    };
    // few candidates are better than the worst elite: those that are not need no sorting
    LANES(l) {
        int mine = 0;
        for (int place = l; place < n_places; place += 32) mine += counts(place);
        records[l].place = mine;
    }
    MEET;
    PerLane start;
    int n_sorted = 0;
    for (int l = 0; l < 32; ++l) n_sorted += records[l].place;
    LANES(l) {
        int before = 0;
        for (int other = 0; other < l; ++other) before += records[other].place;
        start.at(l) = before;
    }
    MEET;
    LANES(l) {
        int next_record = (int)start.at(l);
        for (int place = l; place < n_places; place += 32) {
            if (!counts(place)) continue;
            const bool is_old = place < capacity;
            const int b = CANDIDATE_OF(place);
            records[next_record++] = {is_old ? old.marks[place] : all.keys[b],
                                      order_of(is_old ? old.losses[place] : all.losses[b]), place};
        }
    }
    const int n = power_of_two(n_sorted), n_filled = largest(n, capacity);
    LANES(l) for (int e = n_sorted + l; e < n_filled; e += 32) records[e] = {~0ULL, ~0ULL, n_places + e};
    MEET;
    sort_records(records, n);  // by expression, then loss: the first of each stays
    LANES(l) for (int e = l; e < n; e += 32) {
        if (e > 0 && records[e].first == records[e - 1].first) records[e].second = ~0ULL;
    }
    MEET;
    LANES(l) for (int e = l; e < n; e += 32) {
        records[e].first = records[e].second;
        records[e].second = 0;
    }
    MEET;
    sort_records(records, n);  // by loss
    LANES(l) for (int e = l; e < capacity; e += 32) {
        const bool is_filled = records[e].first != ~0ULL;
        const int place = records[e].place, b = CANDIDATE_OF(place);
        const bool is_old = place < capacity;
        next.losses[e] = !is_filled ? infinity() : (is_old ? old.losses[place] : all.losses[b]);
        next.marks[e] = !is_filled ? 0 : (is_old ? old.marks[place] : all.keys[b]);
        next.complexities[e] = !is_filled ? 0 : (is_old ? old.complexities[place] : all.complexities[b]);
    }
    LANES(l) for (int e = 0; e < capacity; ++e) {
        if (records[e].first == ~0ULL) break;
        const int place = records[e].place;
        const short* choices = place < capacity ? old.choices + place * wiring.n_connections
                                                : all.choices + (long long)CANDIDATE_OF(place) * step.choice_stride;
        for (int c = l; c < wiring.n_connections; c += 32) next.choices[e * wiring.n_connections + c] = choices[c];
        for (int w = l; w < n_weights; w += 32)
            next.constants[e * n_weights + w] = place < capacity ? old.constants[place * n_weights + w] : not_a_number();
    }
    MEET;
    LANES(l) for (int e = l; e < capacity; e += 32) {
        if (records[e].first == ~0ULL || records[e].place < capacity) continue;
        const long long b = CANDIDATE_OF(records[e].place);
        for (int p = 0; p < all.n_constants[b]; ++p)
            next.constants[e * n_weights + all.weight_ids[b * MAX_CONSTANTS + p]] = all.constants[b * MAX_CONSTANTS + p];
    }
#undef CANDIDATE_OF
    MEET;
    int n_elites = 0;
    while (n_elites < capacity && records[n_elites].first != ~0ULL) n_elites += 1;
    const double best = next.losses[0];
    MEET;
    LANES(l) if (l == 0) {
        island.which = 1 - island.which;
        island.n_elites = n_elites;
        if (with_step) island.age += 1;
        if (best < island.best * (1.0 - step.min_gain)) {
            island.last_gain = island.age;
            island.best = best;
        }
        island.is_exhausted = island.n_drawn < step.least_drawn;
        island.is_finished =
            island.is_exhausted || island.age >= step.life || island.age - island.last_gain >= step.patience;
    }
    MEET;
}

// Let the elites stand where the host fetches them, and the best of them where it fetches that of every island.
DEVICE void present_elites(const Step& step, int i) {
    Island& island = step.islands[i];
    const Elites& elites = island.elites[island.which];
    LANES(l) {
        for (int c = l; c < island.wiring.n_connections; c += 32)
            step.best_choices[i * step.choice_stride + c] = elites.choices[c];
        for (int w = l; w < island.wiring.n_weights + 2; w += 32)
            step.best_constants[i * step.constant_stride + w] = elites.constants[w];
        if (l == 0) {
            step.best_losses[i] = elites.losses[0];
            step.best_marks[i] = elites.marks[0];
            step.best_complexities[i] = elites.complexities[0];
        }
    }
    if (island.which == 0) return;
    const Elites &from = island.elites[1], &to = island.elites[0];
    const int n_choices = step.capacity * island.wiring.n_connections;
    const int n_constants = step.capacity * (island.wiring.n_weights + 2);
    LANES(l) {
        for (int e = l; e < n_choices; e += 32) to.choices[e] = from.choices[e];
        for (int e = l; e < n_constants; e += 32) to.constants[e] = from.constants[e];
        for (int e = l; e < step.capacity; e += 32) {
            to.losses[e] = from.losses[e];
            to.marks[e] = from.marks[e];
            to.complexities[e] = from.complexities[e];
        }
    }
    MEET;
    LANES(l) if (l == 0) island.which = 0;
}

// The nodes that an elite's output depends on, as bits.
struct Active {
    u64 bits[2];
};

DEVICE Active active_nodes(const Wiring& wiring, const short* choices) {
    Active active = {{0, 0}};
    const int output = wiring.n_nodes - 1;
    active.bits[output / 64] |= 1ULL << (output % 64);
    for (int k = output; k >= wiring.n_inputs; --k) {
        if (!(active.bits[k / 64] >> (k % 64) & 1)) continue;
        const Node node = wiring.nodes[k];
        for (int s = node.dense_low; s < node.dense_high; ++s) active.bits[s / 64] |= 1ULL << (s % 64);
        for (int c = node.first; c < wiring.nodes[k + 1].first; ++c) {
            const int s = source_of(wiring, choices, c);
            active.bits[s / 64] |= 1ULL << (s % 64);
        }
    }
    return active;
}

// By what weights elites are drawn next: ranks within classes of complexity keep short formulas in play.
DEVICE void weigh_elites(const Step& step, int i, Active* active) {
    const Island& island = step.islands[i];
    const Elites& elites = island.elites[island.which];
    const int n = island.n_elites;
    LANES(l) for (int e = l; e < n; e += 32) {
        int rank = 0;
        for (int other = 0; other < e; ++other)
            rank += elites.complexities[other] / step.class_width == elites.complexities[e] / step.class_width;
        active[e].bits[0] = (u64)rank;
    }
    MEET;
    LANES(l) if (l == 0) {
        int n_classes = 0;
        for (int e = 0; e < n; ++e) n_classes += active[e].bits[0] == 0;
        double total = 0.0;
        for (int e = 0; e < n; ++e) {
            total += step.complexity_classes * step.rank_weights[(int)active[e].bits[0]] / n_classes +
                     (1 - step.complexity_classes) * step.rank_weights[e] / log(n + 2.0);
            island.draw_weights[e] = total;
        }
    }
    MEET;
}

// Offline training of the structure parameters from the elites (Section 4.3), and by what weights elites are drawn next.
DEVICE void learn_island(const Step& step, int i, Active* active) {
    const Island& island = step.islands[i];
    const Wiring& wiring = island.wiring;
    const Elites& elites = island.elites[island.which];
    const int n = island.n_elites, width = wiring.max_choices;
    if (n == 0) return;
    LANES(l) for (int e = l; e < n; e += 32) active[e] = active_nodes(wiring, elites.choices + e * wiring.n_connections);
    MEET;
    LANES(l) for (int k = wiring.n_inputs + l; k < wiring.n_nodes; k += 32) {
        for (int c = wiring.nodes[k].first; c < wiring.nodes[k + 1].first; ++c) {
            const int n_choices = wiring.connections[c].n_choices;
            double *counts = island.counts + c * width, *probabilities = island.probabilities + c * width;
            double seen = 0.0, total = 0.0;
            for (int m = 0; m < n_choices; ++m) counts[m] = 0.0;
            for (int e = 0; e < n; ++e) {
                if (!(active[e].bits[k / 64] >> (k % 64) & 1)) continue;
                const double weight = step.rank_weights[e] / step.rank_sums[n - 1];
                counts[elites.choices[e * wiring.n_connections + c]] += weight;
                seen += weight;
            }
            for (int m = 0; m < n_choices; ++m) {
                const double even = 1.0 / n_choices;
                double goal = (counts[m] + step.unseen_weight * even) / (seen + step.unseen_weight);
                goal = (1 - step.exploration) * goal + step.exploration * even;
                probabilities[m] += step.learning_rate * (goal - probabilities[m]);
                total += probabilities[m];
                island.cumulative[c * width + m] = total;
            }
        }
    }
    MEET;
    weigh_elites(step, i, active);
}
