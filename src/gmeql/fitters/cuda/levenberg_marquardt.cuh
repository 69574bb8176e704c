// The fit of one candidate by one warp: Levenberg-Marquardt as in `kernel/levenberg_marquardt.py`, step by step.

// Weighted mean squared error at `trial` over the first n_rows rows; inf if it is not finite or not below `limit`.
template <int T, int P, int R>
DEVICE double loss_at_trial(Work<T, P>& work, const Data& data, int n_rows, double mass, double limit) {
    MEET;  // lanes may still read the last total
    LANES(l) if (l == 0) work.total = 0.0;
    MEET;
    LANES(l) {
        double total = 0.0, values[T][R], kept[T][R];
        // every lane goes round as often: lanes that part here need not come together again before they read `work`
        for (int tile = 0; tile < n_rows; tile += 32 * R) {
            const int low = tile + l;
            int row[R];
            ROWS row[r] = low + 32 * r < n_rows ? low + 32 * r : n_rows - 1;
            forward<T, P, R>(work, data, row, values, kept);
            ROWS {
                const double residual = data.roots[row[r]] * (values[work.length - 1][r] - data.target[row[r]]);
                total += low + 32 * r < n_rows ? residual * residual : 0.0;
            }
        }
        add_up(&work.total, total);
    }
    MEET;
    return work.total < limit * mass ? work.total / mass : infinity();
}

// Values and slopes of one lane's R rows from `low` on; rows beyond the last count nothing.
template <int T, int P, int R>
DEVICE void slopes_of_rows(const Work<T, P>& work, const Data& data, int n_rows, int low, double (&jacobian)[P][R],
                           double (&residual)[R]) {
    double values[T][R], kept[T][R], adjoint[T][R], roots[R];
    int row[R];
    ROWS row[r] = low + 32 * r < n_rows ? low + 32 * r : n_rows - 1;
    ROWS roots[r] = low + 32 * r < n_rows ? data.roots[row[r]] : 0.0;
    forward<T, P, R>(work, data, row, values, kept);
    ROWS residual[r] = roots[r] * (values[work.length - 1][r] - data.target[row[r]]);
    backward<T, P, R>(work, data, row, roots, values, kept, adjoint, jacobian);
}

// Sums over rows of products of slopes, few constants: those of a lane's rows stay in its registers.
template <int T, int P, int R>
DEVICE void add_in_registers(Work<T, P>& work, const Data& data, int n_rows, int into) {
    const int n = work.n_free;
    LANES(l) {
        double total = 0.0, jacobian[P][R], residual[R], products[P * (P + 1) / 2], with_residual[P];
        for (int e = 0; e < P * (P + 1) / 2; ++e) products[e] = 0.0;
        for (int p = 0; p < P; ++p) with_residual[p] = 0.0;
        for (int p = 0; p < P; ++p) ROWS jacobian[p][r] = 0.0;
        for (int tile = 0; tile < n_rows; tile += 32 * R) {
            slopes_of_rows<T, P, R>(work, data, n_rows, tile + l, jacobian, residual);
            ROWS total += residual[r] * residual[r];
            UNROLLED
            for (int p = 0; p < P; ++p) {
                if (p < n) {
                    ROWS with_residual[p] += jacobian[p][r] * residual[r];
                    UNROLLED
                    for (int q = 0; q <= p; ++q) ROWS products[at(p, q)] += jacobian[p][r] * jacobian[q][r];
                }
            }
        }
        add_up(&work.total, total);
        UNROLLED
        for (int p = 0; p < P; ++p) {
            if (p < n) {
                add_up(&work.gradient[into][p], with_residual[p]);
                UNROLLED
                for (int q = 0; q <= p; ++q) add_up(&work.hessian[into][at(p, q)], products[at(p, q)]);
            }
        }
    }
    MEET;
}

// The same for many constants: the slopes of 32 R rows lie in shared memory, and each lane takes some of the products.
template <int T, int P, int R>
DEVICE void add_in_tiles(Work<T, P>& work, const Data& data, int n_rows, int into) {
    const int n = work.n_free, n_products = (n + 1) * (n + 2) / 2 - 1;  // the residual is column n, without its square
    LANES(l) work.partial[l] = 0.0;
    for (int tile = 0; tile < n_rows; tile += 32 * R) {
        LANES(l) {
            double jacobian[P][R], residual[R];
            slopes_of_rows<T, P, R>(work, data, n_rows, tile + l, jacobian, residual);
            for (int p = 0; p < n; ++p) ROWS work.slopes[p][32 * r + l] = jacobian[p][r];
            ROWS work.slopes[n][32 * r + l] = residual[r];
            ROWS work.partial[l] += residual[r] * residual[r];
        }
        MEET;
        LANES(l) for (int e = l; e < n_products; e += 32) {
            int p = (int)((sqrt(8.0f * e + 1.0f) - 1.0f) * 0.5f);
            if (at(p + 1, 0) <= e) p += 1;  // rounding
            if (at(p, 0) > e) p -= 1;
            const int q = e - at(p, 0);
            double sum = 0.0;
            for (int i = 0; i < 32 * R; ++i) sum += work.slopes[p][i] * work.slopes[q][i];
            if (p < n) work.hessian[into][e] += sum;
            else work.gradient[into][q] += sum;
        }
        MEET;
    }
    LANES(l) add_up(&work.total, work.partial[l]);
    MEET;
}

// JᵀWJ and JᵀWr at `trial`, into `hessian[into]`, `gradient[into]`. Returns the loss; inf if anything is not finite.
template <int T, int P, int R>
CALLED double slopes_at_trial(Work<T, P>& work, const Data& data, int n_rows, double mass, int into) {
    const int n = work.n_free;
    MEET;
    LANES(l) {
        for (int e = l; e < at(n, 0); e += 32) work.hessian[into][e] = 0.0;
        for (int p = l; p < n; p += 32) work.gradient[into][p] = 0.0;
        if (l == 0) work.total = 0.0;
    }
    MEET;
    if constexpr (P <= IN_REGISTERS) add_in_registers<T, P, R>(work, data, n_rows, into);
    else add_in_tiles<T, P, R>(work, data, n_rows, into);
    bool finite = work.total < infinity();
    for (int p = 0; p < n; ++p) {
        finite = finite && isfinite(work.gradient[into][p]) && isfinite(work.hessian[into][at(p, p)]);
    }
    return finite ? work.total / mass : infinity();
}

// Cholesky solve of (H + damping diag(H)) step = gradient; false where H is not positive definite.
template <int T, int P>
DEVICE bool solve_damped(Work<T, P>& work, int which, double damping) {
    const int n = work.n_free;
    const double* hessian = work.hessian[which];
    double *factor = work.factor, *step = work.step;
    LANES(l) {
        for (int e = l; e < n * (n + 1) / 2; e += 32) factor[e] = hessian[e];
        for (int p = l; p < n; p += 32) step[p] = work.gradient[which][p];
    }
    MEET;
    for (int q = 0; q < n; ++q) {
        // column q: what is left of it after the columns before it were taken off
        const double diagonal = hessian[at(q, q)];
        const double pivot = factor[at(q, q)] + damping * diagonal + TINY;
        if (!(pivot > PIVOT_SHARE * diagonal)) return false;
        const double root = sqrt(pivot), inverse = 1.0 / root, solved = step[q] * inverse;
        MEET;
        LANES(l) {
            for (int p = q + 1 + l; p < n; p += 32) factor[at(p, q)] *= inverse;
            if (l == 0) {
                factor[at(q, q)] = inverse;
                step[q] = solved;
            }
        }
        MEET;
        LANES(l) {
            for (int p = q + 1 + l; p < n; p += 32) {
                const double own = factor[at(p, q)];
                step[p] -= own * solved;
                for (int s = q + 1; s <= p; ++s) factor[at(p, s)] -= own * factor[at(s, q)];
            }
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
DEVICE Fitted fit_rows(Work<T, P>& work, const Data& data, int n_rows, double mass, const Limits& limits,
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
        solved = solve_damped<T, P>(work, which, damping);
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
DEVICE Fitted fit_candidate(Work<T, P>& work, const Data& data, const Limits& limits, double hopeless) {
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
