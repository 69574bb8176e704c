// One step of Algorithm 1 by the threads of a block: `two_stage.step` once more, in its order and with its words.

struct Today {  // what holds for one step
    Pair key;
    float temperature, sharpness, weights_rate;  // sharpness: one over the temperature
    bool anneals;
    float mean_share, square_share;  // Adam's corrections
};

constexpr int WIDTH = CONNECTIONS * CHOICES;

DEVICE float fallen(float first, float final, float share) {
    return first > 0.0f ? first * powf(final / first, share) : 0.0f;
}

DEVICE Today today(const float* knobs, u32 seed, int step, int age, bool stage2) {
    const float length = knobs[STAGE2_STEPS] - 1.0f;
    float share = (float)age / (length > 1.0f ? length : 1.0f);
    share = share < 1.0f ? share : 1.0f;
    Today now;
    now.key = key_of(seed, step);
    now.temperature = knobs[TEMPERATURE];
    now.weights_rate = knobs[WEIGHTS_RATE];
    if (stage2) {
        now.temperature = fallen(now.temperature, knobs[FINAL_TEMPERATURE], share);
        now.weights_rate = fallen(now.weights_rate, knobs[FINAL_WEIGHTS_RATE], share);
    }
    now.sharpness = 1.0f / now.temperature;
    now.anneals = knobs[ANNEAL_ELITES] != 0.0f;
    now.mean_share = 1.0f - powf(ADAM_DECAY, (float)(age + 1));
    now.square_share = 1.0f - powf(ADAM_SQUARE_DECAY, (float)(age + 1));
    return now;
}

DEVICE float adam(const float* knobs, const Today& now, float gradient, float rate, float* mean, float* square) {
    *mean = ADAM_DECAY * *mean + (1.0f - ADAM_DECAY) * gradient;
    *square = ADAM_SQUARE_DECAY * *square + (1.0f - ADAM_SQUARE_DECAY) * gradient * gradient;
    const float epsilon = ADAM_EPSILON / (knobs[EPSILON_HAT] != 0.0f ? sqrtf(now.square_share) : 1.0f);
    return rate * (*mean / now.mean_share) / (sqrtf(*square / now.square_share) + epsilon);
}

DEVICE float clipped(const float* knobs, float gradient) {
    const float most = knobs[GRADIENT_CLIP];
    return gradient > most ? most : (gradient < -most ? -most : gradient);
}

// The rows that one step sees (`step.batch_of`).
DEVICE Rows batch_of(const Rows& every, int step) {
    Rows rows = every;
    if (BATCH_ROWS == 0 || BATCH_ROWS >= every.total) return rows;
    rows.first = (int)((long long)step * BATCH_ROWS % every.total);
    rows.count = BATCH_ROWS;
    return rows;
}

// Which elites are drawn, and which of their connections are sampled anew (section 4.2).
DEVICE void sample(Block& b, const float* knobs, const Today& now) {
    const int count = filled(b.losses);
    const bool inherits = knobs[USE_ELITES] != 0.0f && (count == ELITES || knobs[FILL_FIRST] == 0.0f);
    EACH(p, SAMPLES) {
        const float uniform = uniform_at(now.key, ELITE_AT + p);
        b.slots[p] = inherits ? drawn_place(b.rank_weights, count, knobs[WORST_UP] != 0.0f, uniform) : -1;
    }
    EACH(i, SAMPLES * CONNECTIONS) b.label_noise[i] = uniform_at(now.key, LABEL_AT + i);
    EACH(c, CONNECTIONS) b.moved[c] = 0;
    if (THREAD == 0) b.n_labelled[0] = 0;
    MEET;
    float anew = rintf(knobs[RESAMPLE_FRACTION] * (float)CONNECTIONS);
    anew = anew > 1.0f ? anew : 1.0f;
    EACH(i, SAMPLES * CONNECTIONS) {
        const int first = i / CONNECTIONS * CONNECTIONS;
        int order = 0;
        for (int c = first; c < first + CONNECTIONS; ++c) order += b.label_noise[c] < b.label_noise[i];
        const bool chosen = knobs[BERNOULLI] != 0.0f ? b.label_noise[i] < knobs[RESAMPLE_FRACTION] : (float)order < anew;
        b.labels[i] = chosen || b.slots[i / CONNECTIONS] < 0;
        if (b.labels[i]) b.labelled[next_of(b.n_labelled)] = i;
    }
    MEET;
}

// The choices of a connection are read and written together: where arrays of them begin, `source.block_arrays` sees to.
constexpr int ALIGNMENT = CHOICES % 4 == 0 ? 16 : CHOICES % 2 == 0 ? 8 : 4;
DEVICE void read_choices(const float* from, float (&values)[CHOICES]) {
    const float* there = (const float*)__builtin_assume_aligned(from, ALIGNMENT);
    UNROLLED
    for (int l = 0; l < CHOICES; ++l) values[l] = there[l];
}
DEVICE void write_choices(float* to, const float (&values)[CHOICES]) {
    float* there = (float*)__builtin_assume_aligned(to, ALIGNMENT);
    UNROLLED
    for (int l = 0; l < CHOICES; ++l) there[l] = values[l];
}

// Values at a connection's choices, those beyond its own at PADDED, less their logarithm of summed exponentials.
DEVICE void normalise(float (&values)[CHOICES], int choices) {
    float most = -infinity(), total = 0.0f;
    UNROLLED
    for (int l = 0; l < CHOICES; ++l) most = fmaxf(most, l < choices ? values[l] : -infinity());
    UNROLLED
    for (int l = 0; l < CHOICES; ++l) total += expf(l < choices ? values[l] - most : -infinity());
    const float normal = most + logf(total);
    UNROLLED
    for (int l = 0; l < CHOICES; ++l) values[l] = (l < choices ? values[l] : PADDED) - normal;
}

// The log-selections of one connection of a kept elite, at today's temperature (`step._taken`).
DEVICE void take(const Today& now, const float* kept, int choices, float (&taken)[CHOICES]) {
    read_choices(kept, taken);
    if (!now.anneals) return;
    UNROLLED
    for (int l = 0; l < CHOICES; ++l) taken[l] *= now.sharpness;
    normalise(taken, choices);
}

// The instances under the present logits: labelled connections by equation 2, the others inherited.
DEVICE void select(Block& b, const Today& now, const float* pool) {
    EACH(k, b.n_labelled[0] * CHOICES) {
        const int i = b.labelled[k / CHOICES], l = k % CHOICES, c = i % CONNECTIONS;
        if (l >= choices_of(c)) continue;
        b.log_selections[i * CHOICES + l] =
            (b.logits[c * CHOICES + l] + gumbel_at(now.key, i * CHOICES + l)) / now.temperature;
    }
    MEET;
    EACH(i, SAMPLES * CONNECTIONS) {
        const int p = i / CONNECTIONS, c = i % CONNECTIONS, choices = choices_of(c);
        float mine[CHOICES];
        if (b.labels[i]) {
            read_choices(b.log_selections + i * CHOICES, mine);
            normalise(mine, choices);
        } else {
            take(now, pool + b.row[b.slots[p]] * ITEM + c * CHOICES, choices, mine);
        }
        write_choices(b.log_selections + i * CHOICES, mine);
        UNROLLED
        for (int l = 0; l < CHOICES; ++l) mine[l] = expf(mine[l]);
        write_choices(b.selections + i * CHOICES, mine);
    }
    MEET;
}

constexpr int STRIDE = ELITE_WEIGHTS ? WEIGHTS : 0;  // from the weights of one instance to the next one's

// The weights at which instances are evaluated that have their own: those of their elites, or the shared ones.
DEVICE void inherit_weights(Block& b, const float* pool) {
    EACH(i, SAMPLES * WEIGHTS) {
        const int slot = b.slots[i / WEIGHTS], w = i % WEIGHTS;
        b.own_weights[i] = slot >= 0 ? pool[b.row[slot] * ITEM + WIDTH + w] : b.weights[w];
    }
    MEET;
}

// They move by their own gradients, which `move_weights` has left alone (`step._own_step`).
DEVICE void move_own_weights(Block& b, const float* knobs, const Today& now) {
    EACH(i, SAMPLES * WEIGHTS) {
        const float slope = isfinite(b.by_weight[i]) ? b.by_weight[i] : 0.0f;
        const float scale = sqrtf(b.online_weights_square[i % WEIGHTS] / now.square_share) + ADAM_EPSILON;
        b.own_weights[i] -= now.weights_rate * clipped(knobs, slope) / scale;
    }
    MEET;
}

// Losses of the instances in `b.selections` (inf where not finite) and, if asked for, their gradients.
template <bool SLOPES>
DEVICE void evaluate(Block& b, const float* weights, const Rows& rows, float* losses) {
    for (int p = WARP; p < SAMPLES; p += WARPS) {
        const float loss = evaluate_instance<SLOPES>(
            b.selections + p * WIDTH, weights + p * STRIDE, rows, b.by_selection + p * WIDTH, b.by_weight + p * WEIGHTS);
        if (LANE == 0) losses[p] = finite_or_infinite(loss);
    }
    MEET;
}

// The mean over instances of one entry of their gradients, clipped (`step._average`).
DEVICE float average(const float* knobs, const float* gradients, int width, const float* losses) {
    float total = 0.0f;
    int valid = 0, sound = 0;
    UNROLLED_BY_8
    for (int p = 0; p < SAMPLES; ++p) {
        const float gradient = gradients[p * width];
        const bool counts = isfinite(losses[p]), is_sound = counts && isfinite(gradient);
        valid += counts;
        sound += is_sound;
        total += is_sound ? gradient : 0.0f;
    }
    const float of_entries = sound == SAMPLES ? total / SAMPLES : 0.0f;
    return clipped(knobs, knobs[ZERO_ENTRIES] != 0.0f ? of_entries : total / (valid > 1 ? valid : 1));
}

// The hard structures in the place of the relaxed instances.
DEVICE void harden(Block& b) {
    EACH(i, SAMPLES * CONNECTIONS) {
        float* mine = b.selections + i * CHOICES;
        int choice = 0;
        for (int l = 1; l < choices_of(i % CONNECTIONS); ++l) choice = mine[l] > mine[choice] ? l : choice;
        for (int l = 0; l < CHOICES; ++l) mine[l] = l == choice ? 1.0f : 0.0f;
    }
    MEET;
}

// One online step of the logits; only those of labelled connections move (section 4.2).
DEVICE void move_logits(Block& b, const float* knobs, const Today& now, const float* losses) {
    EACH(i, SAMPLES * CONNECTIONS) {
        const int p = i / CONNECTIONS, c = i % CONNECTIONS, choices = choices_of(c);
        const bool labelled = b.labels[i];
        float slope[CHOICES], selected[CHOICES], along = 0.0f;
        read_choices(b.by_selection + i * CHOICES, slope);
        read_choices(b.selections + i * CHOICES, selected);
        UNROLLED
        for (int l = 0; l < CHOICES; ++l) if (l < choices) along += selected[l] * slope[l];
        UNROLLED
        for (int l = 0; l < CHOICES; ++l)
            slope[l] = labelled ? selected[l] * (slope[l] - along) * now.sharpness : 0.0f;
        write_choices(b.by_selection + i * CHOICES, slope);
        if (labelled && isfinite(losses[p])) b.moved[c] = 1;
    }
    MEET;
    EACH(i, WIDTH) {
        const int c = i / CHOICES;
        if (!b.moved[c] || i % CHOICES >= choices_of(c)) continue;
        const float gradient = average(knobs, b.by_selection + i, WIDTH, losses);
        b.logits[i] -= adam(knobs, now, gradient, knobs[LOGITS_RATE], b.online_logits_mean + i, b.online_logits_square + i);
    }
    MEET;
}

// One online step of the weights.
DEVICE void move_weights(Block& b, const float* knobs, const Today& now, const float* losses) {
    EACH(i, WEIGHTS) {
        const float gradient = average(knobs, b.by_weight + i, WEIGHTS, losses);
        b.weights[i] -= adam(knobs, now, gradient, now.weights_rate, b.online_weights_mean + i, b.online_weights_square + i);
    }
    MEET;
}

// T* after these instances, with the weights they were evaluated at.
DEVICE void keep_best(Block& b, const float* weights, const float* losses, int step, float* kept, float* kept_weights) {
    int winner = 0;
    float lowest = losses[0];
    for (int p = 1; p < SAMPLES; ++p) {
        const float loss = losses[p];
        winner = loss < lowest ? p : winner;
        lowest = loss < lowest ? loss : lowest;
    }
    const bool better = lowest < b.best_loss[0];
    MEET;
    if (!better) return;
    EACH(i, WIDTH) kept[i] = b.log_selections[winner * WIDTH + i];
    EACH(i, WEIGHTS) kept_weights[i] = weights[winner * STRIDE + i];
    if (THREAD == 0) {
        b.best_loss[0] = lowest;
        b.best_step[0] = step;
    }
    MEET;
}

// The elites that were drawn get their losses under the weights of before this step; insert sorts.
DEVICE void refresh(Block& b, const Today& now, const Rows& rows, const float* pool) {
    EACH(i, SAMPLES * CONNECTIONS) {
        const int c = i % CONNECTIONS, slot = b.slots[i / CONNECTIONS] > 0 ? b.slots[i / CONNECTIONS] : 0;
        float taken[CHOICES];
        take(now, pool + b.row[slot] * ITEM + c * CHOICES, choices_of(c), taken);
        UNROLLED
        for (int l = 0; l < CHOICES; ++l) taken[l] = expf(taken[l]);
        write_choices(b.selections + i * CHOICES, taken);
    }
    MEET;
    evaluate<false>(b, b.weights_before, rows, b.label_noise);  // its noise is used up
    EACH(p, SAMPLES) if (b.slots[p] >= 0) b.losses[b.slots[p]] = b.label_noise[p];
    MEET;
}

// Draw elites and train the logits offline on them (section 4.3).
DEVICE void train_offline(Block& b, const float* knobs, const Today& now, const float* pool) {
    const int count = filled(b.losses);
    if (count == 0 || knobs[USE_OFFLINE] == 0.0f) return;
    const bool squared = knobs[SQUARED_DIFFERENCE] != 0.0f;
    EACH(r, OFFLINE) {
        const float uniform = uniform_at(now.key, OFFLINE_AT + r);
        b.drawn[r] = b.row[drawn_place(b.rank_weights, count, knobs[WORST_UP] != 0.0f, uniform)];
    }
    MEET;
    EACH(i, OFFLINE * CONNECTIONS) {
        const int c = i % CONNECTIONS, choices = choices_of(c);
        float elite[CHOICES], pull[CHOICES], most = -infinity(), total = 0.0f;
        take(now, pool + b.drawn[i / CONNECTIONS] * ITEM + c * CHOICES, choices, elite);
        float logits[CHOICES], slope[CHOICES];
        read_choices(b.logits + c * CHOICES, logits);
        UNROLLED
        for (int l = 0; l < CHOICES; ++l) {
            pull[l] = l < choices ? logits[l] - now.temperature * elite[l] : -infinity();
            most = fmaxf(most, pull[l]);
        }
        UNROLLED
        for (int l = 0; l < CHOICES; ++l) {
            pull[l] = expf(pull[l] - most);
            total += pull[l];
        }
        const float share = (float)choices / total;
        UNROLLED
        for (int l = 0; l < CHOICES; ++l) slope[l] = share * pull[l] - 1.0f;
        UNROLLED
        for (int l = 0; l < CHOICES; ++l) if (squared) {
            const float at = expf(logits[l]);
            slope[l] = 2.0f * at * (at - expf(now.temperature * elite[l]));
        }
        write_choices(b.by_selection + i * CHOICES, slope);
    }
    MEET;
    EACH(i, WIDTH) {
        const int choices = choices_of(i / CHOICES);
        if (i % CHOICES >= choices) continue;
        float gradient = 0.0f;
        UNROLLED_BY_8
        for (int r = 0; r < OFFLINE; ++r) gradient += b.by_selection[r * WIDTH + i];
        gradient /= OFFLINE;
        if (knobs[AVERAGE_CHOICES] != 0.0f) gradient /= (float)choices;
        b.logits[i] -= adam(knobs, now, clipped(knobs, gradient), knobs[OFFLINE_RATE], b.offline_mean + i, b.offline_square + i);
    }
    MEET;
}

// The hashes of the instances' expressions.
DEVICE void mark(Block& b) {
    EACH(i, SAMPLES * CONNECTIONS) {
        const float* mine = b.log_selections + i * CHOICES;
        int choice = 0;
        for (int l = 1; l < choices_of(i % CONNECTIONS); ++l) choice = mine[l] > mine[choice] ? l : choice;
        b.choices[i] = choice;
    }
    MEET;
    EACH(i, 2 * SAMPLES) b.marks[2 * ELITES + i] = fingerprint(b.choices + i / 2 * CONNECTIONS, i % 2);
    MEET;
}
