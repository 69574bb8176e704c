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
    EACH(i, ELITES + SAMPLES) {
        const u32 first = b.marks[2 * i], second = b.marks[2 * i + 1];
        const float loss = b.losses[i];
        UNROLLED_BY_8
        for (int j = ELITES; j < ELITES + SAMPLES; ++j) {
            if (first != b.marks[2 * j] || second != b.marks[2 * j + 1] || i == j) continue;
            if (loss < b.losses[j] || (loss == b.losses[j] && i < j)) b.lost[j] = 1;
            else if (i < ELITES) b.lost[i] = 1;
        }
    }
    MEET;
    EACH(j, SAMPLES) if (!b.lost[ELITES + j] && b.losses[ELITES + j] < b.losses[ELITES - 1]) b.enters[0] = 1;
    MEET;
}

// How many of the entries before one stay, by the bits of those that do.
DEVICE int staying_before(const Block& b, int i) {
    int count = 0;
    for (int word = 0; word < i / LANES; ++word) count += count_of(b.staying[word]);
    return i % LANES ? count + count_of(b.staying[i / LANES] & ((1u << i % LANES) - 1u)) : count;
}

// The place of an entry in the order of losses, of equal ones in the order of entries; what does not stay comes last.
DEVICE int rank_of(const Block& b, int i, bool sorted, int staying) {
    const float loss = b.losses[i];
    const int before = staying_before(b, i);
    if (b.lost[i] || !isfinite(loss)) return i + staying - before;
    int rank = 0;
    if (!sorted) {
        for (int k = 0; k < ELITES; ++k) rank += !b.lost[k] && (k < i ? b.losses[k] <= loss : b.losses[k] < loss);
    } else if (i < ELITES) {
        rank = before;
    } else {
        int low = 0, high = ELITES;  // how many elites' losses are at most this one
        while (low < high) {
            const int middle = (low + high) / 2;
            if (b.losses[middle] <= loss) low = middle + 1; else high = middle;
        }
        rank = staying_before(b, low);
    }
    UNROLLED_BY_8
    for (int k = ELITES; k < ELITES + SAMPLES; ++k)
        rank += !b.lost[k] && (k < i ? b.losses[k] <= loss : b.losses[k] < loss);
    return rank;
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
    EACH_TOGETHER(i, ELITES + SAMPLES) {
        const bool stays = i < ELITES + SAMPLES && !b.lost[i] && isfinite(b.losses[i]);
        const u32 bits = bits_of_lanes(stays);
        if (LANE == 0) b.staying[i / LANES] = bits;
    }
    MEET;
    const int staying = staying_before(b, ELITES + SAMPLES);
    EACH(i, ELITES + SAMPLES) {
        const int rank = rank_of(b, i, sorted, staying);
        const bool stays = rank < staying;
        b.sorted_losses[rank] = stays ? b.losses[i] : infinity();
        b.sorted_marks[2 * rank] = stays ? b.marks[2 * i] : 0u;
        b.sorted_marks[2 * rank + 1] = stays ? b.marks[2 * i + 1] : 0u;
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
