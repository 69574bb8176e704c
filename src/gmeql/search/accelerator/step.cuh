// Islands side by side: what a step of all of them reads and writes.
//
// Candidate b belongs to island b / B. Threads take candidates, warps take islands; nothing depends on who comes first.
// Behind the I B candidates of a step stand the I n_best ones of the step before that are being taken to convergence.

struct Elites {
    short* choices;  // [E][C]
    double* constants;  // [E][W] by weight, nan where there is none
    double* losses;  // [E] ascending, inf where empty
    u64* marks;  // [E] fingerprints
    int* complexities;  // [E]
};

struct Island {
    Wiring wiring;
    Elites elites[2];  // those that count, and room for the next
    double *probabilities, *cumulative, *counts;  // [C][M]
    double* draw_weights;  // [E] cumulative weights by which elites are drawn
    u64 table_key, random_state;
    double best;
    int which, n_elites, age, last_gain, is_exhausted, is_finished, n_drawn, n_drawn_in_all, dataset;
};

struct Candidates {
    short *choices, *programs, *weight_ids;  // [C], [5][MAX_NODES], [MAX_CONSTANTS] each
    int *lengths, *n_constants, *complexities, *parents, *most_tries, *tries;
    double *constants, *losses, *hopeless;
    u64 *keys, *states;
    int* dataset;
};

// How often structures were tried: open addressing.
struct Tried {
    u64* keys;
    int* counts;
    u64 mask;
};

struct Step {
    Island* islands;
    Candidates candidates;
    Tried tried;
    Numbers numbers;
    const double *rank_weights, *rank_sums;  // rank**-exponent of the ranks 1..E, and their sums
    int *chosen, *n_chosen;  // [sizes][I B] candidates of each size of programs, and how many
    int *finishing, *n_finishing;  // the same for those that are taken to convergence
    short* best_choices;  // [I][choice_stride] of each island's best elite, for the host
    double *best_constants, *best_losses;  // [I][constant_stride], [I]
    u64* best_marks;
    int* best_complexities;
    double complexity_classes, learning_rate, exploration, unseen_weight, min_gain;
    int n_islands, n_candidates, capacity, choice_stride, constant_stride;
    int life, patience, least_drawn, n_best, class_width;
};

#ifdef __CUDACC__
DEVICE int count_up(int* counter, int by = 1) { return atomicAdd(counter, by); }
DEVICE u64 put_if_zero(u64* place, u64 key) { return atomicCAS(place, 0ULL, key); }
#else
DEVICE int count_up(int* counter, int by = 1) {
    const int before = *counter;
    *counter += by;
    return before;
}
DEVICE u64 put_if_zero(u64* place, u64 key) {
    const u64 before = *place;
    if (before == 0) *place = key;
    return before;
}
#endif

DEVICE int tries_of(const Tried& tried, u64 key) {
    key |= 1;
    u64 place = scramble(key) & tried.mask;
    for (int probe = 0; probe < PROBES; ++probe, place = (place + 1) & tried.mask) {
        if (tried.keys[place] == key) return tried.counts[place];
        if (tried.keys[place] == 0) return 0;
    }
    return 0;
}

DEVICE void count_try(const Tried& tried, u64 key, int times = 1) {
    key |= 1;
    u64 place = scramble(key) & tried.mask;
    for (int probe = 0; probe < PROBES; ++probe, place = (place + 1) & tried.mask) {
        const u64 before = put_if_zero(&tried.keys[place], key);
        if (before == 0 || before == key) {
            count_up(&tried.counts[place], times);
            return;
        }
    }
}

// The first size of programs that holds this one.
DEVICE int size_number(int length, int n_constants) {
    int number = 0;
    while (length > SIZE_NODES[number] || n_constants > SIZE_CONSTANTS[number]) ++number;
    return number;
}
