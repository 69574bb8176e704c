// The kernel: a block trains one seed for many steps.

struct Run {
    const u32* seed;
    int *step, *age;
    float *logits, *weights, *online_logits_mean, *online_logits_square, *online_weights_mean, *online_weights_square;
    float *offline_mean, *offline_square;
    float* elite_losses;
    u32* elite_marks;
    float* elite_items;
    float *best_loss, *best_log_selections, *best_weights;
    int* best_step;
    const float *columns, *targets, *knobs, *rank_weights;
    float *pool, *curves;
    int n_seeds, n_rows, n_steps, stage2, curve_every;
};

#define PARAMETERS(copy)                                              \
    copy(logits, WIDTH) copy(weights, WEIGHTS)                        \
    copy(online_logits_mean, WIDTH) copy(online_logits_square, WIDTH) \
    copy(online_weights_mean, WEIGHTS) copy(online_weights_square, WEIGHTS) \
    copy(offline_mean, WIDTH) copy(offline_square, WIDTH)
#define FETCH(name, n) EACH(i, n) b.name[i] = run.name[s * (n) + i];
#define RETURN(name, n) EACH(i, n) run.name[s * (n) + i] = b.name[i];

DEVICE void load(const Run& run, int s, Block& b, float* pool) {
    PARAMETERS(FETCH)
    FETCH(rank_weights, ELITES)
    EACH(i, ELITES + SAMPLES) {
        b.row[i] = i;
        b.losses[i] = i < ELITES ? run.elite_losses[s * ELITES + i] : infinity();
        b.marks[2 * i] = i < ELITES ? run.elite_marks[2 * (s * ELITES + i)] : 0u;
        b.marks[2 * i + 1] = i < ELITES ? run.elite_marks[2 * (s * ELITES + i) + 1] : 0u;
    }
    EACH(i, ELITES * ITEM) pool[i] = run.elite_items[(long long)s * ELITES * ITEM + i];
    if (THREAD == 0) {
        b.best_loss[0] = run.best_loss[s];
        b.best_step[0] = run.best_step[s];
    }
    MEET;
}

DEVICE void save(const Run& run, int s, const Block& b, const float* pool) {
    PARAMETERS(RETURN)
    EACH(i, ELITES) {
        run.elite_losses[s * ELITES + i] = b.losses[i];
        run.elite_marks[2 * (s * ELITES + i)] = b.marks[2 * i];
        run.elite_marks[2 * (s * ELITES + i) + 1] = b.marks[2 * i + 1];
    }
    EACH(i, ELITES * ITEM)
        run.elite_items[(long long)s * ELITES * ITEM + i] = pool[b.row[i / ITEM] * ITEM + i % ITEM];
    if (THREAD == 0) {
        run.best_loss[s] = b.best_loss[0];
        run.best_step[s] = b.best_step[0];
        run.step[s] += run.n_steps;
        run.age[s] += run.n_steps;
    }
}

// Mean and lowest loss of the step's instances, and the lowest so far.
DEVICE void report(const Block& b, const float* losses, float* point) {
    float total = 0.0f, lowest = infinity();
    int valid = 0;
    for (int p = 0; p < SAMPLES; ++p) {
        lowest = fminf(lowest, losses[p]);
        if (isfinite(losses[p])) total += losses[p], ++valid;
    }
    point[0] = valid ? total / valid : infinity();
    point[1] = lowest;
    point[2] = b.best_loss[0];
}

DEVICE void train(const Run& run, int s, Block& b) {
    const Rows every = {run.columns + (long long)s * VARIABLES * run.n_rows,
                        run.targets + (long long)s * OUTPUTS * run.n_rows, run.n_rows, 0, run.n_rows};
    const float* knobs = run.knobs + s * KNOBS;
    float* pool = run.pool + (long long)s * (ELITES + SAMPLES) * ITEM;
    float *best = run.best_log_selections + s * WIDTH, *best_weights = run.best_weights + s * WEIGHTS;
    float* losses = b.losses + ELITES;  // those of the candidates
    const u32 seed = run.seed[s];
    const int step0 = run.step[s], age0 = run.age[s];
    const bool stage2 = run.stage2 != 0, renews = knobs[REFRESH_ELITES] != 0.0f, hard = knobs[HARD_BEST] != 0.0f;
    load(run, s, b, pool);
    for (int n = 0; n < run.n_steps; ++n) {
        const Today now = today(knobs, seed, step0 + n, age0 + n, stage2);
        const Rows rows = batch_of(every, step0 + n);
        EACH(i, WEIGHTS) b.weights_before[i] = b.weights[i];
        sample(b, knobs, now);
        select(b, now, pool);
        if (ELITE_WEIGHTS) inherit_weights(b, pool);
        evaluate<true>(b, ELITE_WEIGHTS ? b.own_weights : b.weights, rows, losses);
        if (IN_TURN) {
            if (stage2) move_weights(b, knobs, now, losses);
            evaluate<true>(b, b.weights, rows, losses);
            move_logits(b, knobs, now, losses);
            select(b, now, pool);
            evaluate<false>(b, b.weights, rows, losses);
        } else {
            move_logits(b, knobs, now, losses);
            if (stage2) move_weights(b, knobs, now, losses);
        }
        const float* weights_of = ELITE_WEIGHTS ? b.own_weights : IN_TURN ? b.weights : b.weights_before;
        if (hard) {
            harden(b);
            evaluate<false>(b, weights_of, every, b.label_noise);  // its noise is used up
        }
        keep_best(b, weights_of, hard ? b.label_noise : losses, step0 + n, best, best_weights);
        if ((n + 1) % run.curve_every == 0 && THREAD == 0)
            report(b, losses, run.curves + 3 * (s * (run.n_steps / run.curve_every) + n / run.curve_every));
        if (ELITE_WEIGHTS && stage2) move_own_weights(b, knobs, now);
        mark(b);
        if (renews) refresh(b, now, rows, pool);
        insert(b, pool, !renews, now.anneals ? now.temperature : 1.0f);
        if (stage2) train_offline(b, knobs, now, pool);
    }
    save(run, s, b, pool);
}

#ifdef __CUDACC__
extern "C" __global__ void __launch_bounds__(THREADS, 1) steps(const Run* run) {
    extern __shared__ Block memory[];
    train(*run, blockIdx.x, memory[0]);
}
#else
extern "C" void steps(const Run* run) {
    alignas(16) static Block memory;
    for (int s = 0; s < run->n_seeds; ++s) train(*run, s, memory);
}
#endif
