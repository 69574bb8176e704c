// The fit of one candidate by one warp: Levenberg-Marquardt as in `kernel/levenberg_marquardt.py`, step by step.

// Weighted mean squared error at `trial` over the first n_rows rows; inf if it is not finite or not below `limit`.
template <int T, int P, int R>
DEVICE double loss_at_trial(Work<T, P, R>& work, const Data& data, int n_rows, double mass, double limit) {
    MEET;  // lanes may still read the last total
    LANES(l) if (l == 0) work.total = 0.0;
    MEET;
    LANES(l) {
        double total = 0.0;
        // every lane goes round as often: lanes that part here need not come together again before they read `work`
        ROLLED
        for (int tile = 0; tile < n_rows; tile += 32 * R)
            total += pass_rows<T, P, R>(work, data, n_rows, tile + l, l, false);
        add_up(&work.total, total);
    }
    MEET;
    return work.total < limit * mass ? work.total / mass : infinity();
}

// JᵀWJ and JᵀWr at `trial`, into `hessian[into]`, `gradient[into]`. Returns the loss; inf if anything is not finite.
//
// With the residual as one more column both are products of columns, taken eight by eight on the matrix units: lane l
// holds row l / 4 and columns 2 (l % 4), 2 (l % 4) + 1 of each tile, so nothing is added up across lanes at the end.
template <int T, int P, int R>
DEVICE double slopes_at_trial(Work<T, P, R>& work, const Data& data, int n_rows, double mass, int into) {
    constexpr int TILES = columns_of(P) / 8;
    const int n = work.n_free, n_tiles = columns_of(n) / 8;
    PerLane sums[TILES * (TILES + 1) / 2][2], total;
    MEET;
    LANES(l) {
        for (int e = 0; e < TILES * (TILES + 1) / 2; ++e) sums[e][0].at(l) = sums[e][1].at(l) = 0.0;
        total.at(l) = 0.0;
        if (l == 0) work.total = 0.0;
    }
    ROLLED
    for (int tile = 0; tile < n_rows; tile += 32 * R) {
        LANES(l) total.at(l) += pass_rows<T, P, R>(work, data, n_rows, tile + l, l, true);
        MEET;
        for (int four = 0; four < 32 * R; four += 4) {
            PerLane columns[TILES];
            UNROLLED
            for (int t = 0; t < TILES; ++t) {
                if (t < n_tiles) LANES(l) columns[t].at(l) = work.slopes[8 * t + l / 4][four + l % 4];
            }
            UNROLLED
            for (int t = 0; t < TILES; ++t) {
                UNROLLED
                for (int s = 0; s <= t; ++s) {
                    if (t < n_tiles) multiply_tiles(sums[at(t, s)], columns[t], columns[s]);
                }
            }
        }
        MEET;
    }
    LANES(l) {
        add_up(&work.total, total.at(l));
        UNROLLED
        for (int t = 0; t < TILES; ++t) {
            UNROLLED
            for (int s = 0; s <= t; ++s) {
                UNROLLED
                for (int half = 0; half < 2; ++half) {
                    const int p = 8 * t + l / 4, q = 8 * s + 2 * (l % 4) + half;
                    const double sum = sums[at(t, s)][half].at(l);
                    if (p < n && q <= p) work.hessian[into][at(p, q)] = sum;
                    if (p == n && q < n) work.gradient[into][q] = sum;
                }
            }
        }
    }
    MEET;
    bool finite = work.total < infinity();
    for (int p = 0; p < n; ++p) {
        finite = finite && isfinite(work.gradient[into][p]) && isfinite(work.hessian[into][at(p, p)]);
    }
    return finite ? work.total / mass : infinity();
}

// Cholesky solve of (H + damping diag(H)) step = gradient; false where H is not positive definite.
//
// Column by column, its rows side by side, the gradient as one more row: a lane only reads columns that are done while it
// adds up, so its loads need not wait for each other.
template <int T, int P, int R>
DEVICE bool solve_damped(Work<T, P, R>& work, int which, double damping) {
    const int n = work.n_free;
    const double *hessian = work.hessian[which], *gradient = work.gradient[which];
    double *factor = work.factor, *step = work.step;
    for (int q = 0; q < n; ++q) {
        // what columns before it leave of column q
        LANES(l) for (int p = q + l; p <= n; p += 32) {
            const double* row = p < n ? factor + at(p, 0) : step;
            double left = p < n ? hessian[at(p, q)] : gradient[q];
            for (int s = 0; s < q; ++s) left -= row[s] * factor[at(q, s)];
            (p < n ? factor[at(p, q)] : step[q]) = left;
        }
        MEET;
        const double diagonal = hessian[at(q, q)];
        const double pivot = factor[at(q, q)] + damping * diagonal + TINY;
        if (!(pivot > PIVOT_SHARE * diagonal)) return false;
        const double inverse = inverse_root(pivot);
        MEET;
        LANES(l) for (int p = q + l; p <= n; p += 32) {
            if (p == q) factor[at(q, q)] = inverse;
            else (p < n ? factor[at(p, q)] : step[q]) *= inverse;
        }
        MEET;
    }
    for (int p = n - 1; p >= 0; --p) {
        const double solved = step[p] * factor[at(p, p)];
        MEET;
        LANES(l) {
            if (l == 0) step[p] = solved;
            for (int q = l; q < p; q += 32) step[q] -= factor[at(p, q)] * solved;
        }
        MEET;
    }
    return true;
}

struct Limits {
    int max_steps, forced;
    double tolerance;
};

struct Fitted {
    double loss;
    int code, steps;
};

// Fit on the first n_rows rows; `work.constants` is overwritten. What ends a fit and how stands in `fitters/method.py`.
template <int T, int P, int R>
DEVICE Fitted fit_rows(Work<T, P, R>& work, const Data& data, int n_rows, double mass, const Limits& limits,
                       double hopeless) {
    const int n_free = work.n_free;
    const bool forced = limits.forced;
    double loss = infinity(), damping = FIRST_DAMPING / DAMPING_DOWN;
    int rejected = 0, code = STEPS_SPENT, taken = 0, which = 0;
    bool solved = true;
    LANES(l) for (int p = l; p < n_free; p += 32) work.trial[p] = work.constants[p];
    MEET;
    while (true) {
        double trial_loss = infinity(), gain = 1.0;
        bool ends = n_free == 0, slopes_finite = false;
        if (solved) {
            if (taken == 0 && n_free > 0) {
                // the start is always taken if it is finite: values and slopes in one pass
                trial_loss = slopes_at_trial<T, P, R>(work, data, n_rows, mass, 1 - which);
                slopes_finite = trial_loss < infinity();
            } else {
                trial_loss = loss_at_trial<T, P, R>(work, data, n_rows, mass, loss);
                if (taken > 0) {
                    gain = (loss - trial_loss) / loss;
                    ends = ends || taken >= limits.max_steps || (gain < limits.tolerance && !forced);
                }
                if (!ends && trial_loss < loss)
                    slopes_finite = slopes_at_trial<T, P, R>(work, data, n_rows, mass, 1 - which) < infinity();
            }
            ++taken;
        }
        if (trial_loss < loss && (ends || slopes_finite)) {
            loss = trial_loss;
            LANES(l) for (int p = l; p < n_free; p += 32) work.constants[p] = work.trial[p];
            which = 1 - which;
            damping = fmax(damping * DAMPING_DOWN, LEAST_DAMPING);
            rejected = 0;
            if (n_free == 0 || (!forced && (gain < limits.tolerance || (loss < TINY && taken <= limits.max_steps)))) {
                code = CONVERGED;
                break;
            }
            if (!forced && taken > HOPELESS_AFTER && loss > HOPELESS_FACTOR * hopeless && gain < HOPELESS_GAIN) {
                code = HOPELESS;
                break;
            }
        } else {
            if (taken == 1) {
                code = NOT_FINITE;
                break;
            }
            damping *= DAMPING_UP;
            ++rejected;
            if (rejected > MAX_REJECTED && !forced) {
                code = CONVERGED;
                break;
            }
            if (!solved && damping > STUCK_DAMPING) break;
        }
        if (taken > limits.max_steps) break;
        MEET;
        solved = solve_damped<T, P, R>(work, which, damping);
        if (solved) {
            LANES(l) for (int p = l; p < n_free; p += 32) work.trial[p] = work.constants[p] - work.step[p];
        }
        MEET;
    }
    MEET;
    return {loss, code, taken};
}

// With `screen_rows` < N, only what stays promising there sees all rows.
template <int T, int P, int R>
DEVICE Fitted fit_candidate(Work<T, P, R>& work, const Data& data, const Limits& limits, double hopeless) {
    int n_rows = data.screen_rows;
    while (true) {
        const bool screens = n_rows < data.n_rows;
        const double goal = screens ? hopeless * data.screen_ratio : hopeless;
        Fitted fitted = fit_rows<T, P, R>(work, data, n_rows, screens ? data.screen_mass : data.mass, limits, goal);
        if (!screens) return fitted;
        if (!(fitted.loss < SCREEN_FACTOR * goal)) {
            fitted.code = isfinite(fitted.loss) ? HOPELESS : NOT_FINITE;
            return fitted;
        }
        n_rows = data.n_rows;
    }
}
