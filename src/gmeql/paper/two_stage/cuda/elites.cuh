// The elite repository of one seed: `network.repository` once more, for the threads of a block.
//
// Losses, marks and places are in the block's memory, elites' selections in `pool`, from which they never move: `row`
// says where each lies. The last SAMPLES rows of the list are free, for the candidates of a step.

DEVICE int filled(const float* losses) {  // they are sorted, empty places last
    int low = 0, high = ELITES;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (isfinite(losses[middle])) low = middle + 1; else high = middle;
    }
    return low;
}

// The place of an elite drawn by the cumulative weights of ranks; -1 where there is none.
DEVICE int drawn_place(const float* cumulative, int count, bool worst_up, float uniform) {
    if (count == 0) return -1;
    const float target = uniform * cumulative[count - 1];
    int low = 0, high = ELITES;  // how many cumulative weights are at most the target
    while (low < high) {
        const int middle = (low + high) / 2;
        if (cumulative[middle] <= target) low = middle + 1; else high = middle;
    }
    const int place = low < count - 1 ? low : count - 1;
    return worst_up ? count - 1 - place : place;
}

// Of equal expressions the lowest loss stays, of equal losses the one that was there first; whether any candidate does.
DEVICE void mark_repeated(Block& b) {
    EACH(i, ELITES + SAMPLES) b.lost[i] = 0;
    if (THREAD == 0) b.enters[0] = 0;
    MEET;
    EACH(pair, SAMPLES * (ELITES + SAMPLES)) {
        const int j = ELITES + pair / (ELITES + SAMPLES), i = pair % (ELITES + SAMPLES);
        if (i == j || b.marks[2 * i] != b.marks[2 * j] || b.marks[2 * i + 1] != b.marks[2 * j + 1]) continue;
        const bool first = b.losses[i] < b.losses[j] || (b.losses[i] == b.losses[j] && i < j);
        if (first) b.lost[j] = 1;
        else if (i < ELITES) b.lost[i] = 1;
    }
    MEET;
    EACH(j, SAMPLES) if (!b.lost[ELITES + j] && b.losses[ELITES + j] < b.losses[ELITES - 1]) b.enters[0] = 1;
    MEET;
}

// Sorts elites and candidates together; the best ELITES stay. `sorted`: the elites' losses are in order beforehand.
// They are kept times `scale`.
DEVICE void insert(Block& b, float* pool, bool sorted, float scale) {
    mark_repeated(b);
    if (sorted && !b.enters[0]) return;
    constexpr int width = CONNECTIONS * CHOICES;
    EACH(i, SAMPLES * ITEM) {
        const int p = i / ITEM, at = i % ITEM;
        float* kept = pool + b.row[ELITES + p] * ITEM + at;
        if (at < width) *kept = scale * b.log_selections[p * width + at];
        else *kept = at - width < WEIGHTS ? b.own_weights[p * WEIGHTS + at - width] : 0.0f;
    }
    EACH(i, ELITES + SAMPLES) if (b.lost[i]) b.losses[i] = infinity();
    MEET;
    EACH(i, ELITES + SAMPLES) {
        const float loss = b.losses[i];
        int rank = 0;
        for (int k = 0; k < i; ++k) rank += b.losses[k] <= loss;
        for (int k = i + 1; k < ELITES + SAMPLES; ++k) rank += b.losses[k] < loss;
        const bool real = isfinite(loss);
        b.sorted_losses[rank] = loss;
        b.sorted_marks[2 * rank] = real ? b.marks[2 * i] : 0u;
        b.sorted_marks[2 * rank + 1] = real ? b.marks[2 * i + 1] : 0u;
        b.sorted_row[rank] = b.row[i];
    }
    MEET;
    EACH(i, ELITES + SAMPLES) {
        b.losses[i] = b.sorted_losses[i];
        b.marks[2 * i] = b.sorted_marks[2 * i];
        b.marks[2 * i + 1] = b.sorted_marks[2 * i + 1];
        b.row[i] = b.sorted_row[i];
    }
    MEET;
}
