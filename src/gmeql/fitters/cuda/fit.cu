// The kernel: warps take candidates of a batch one after the other, a few each.

// A batch: codes [B][5][width], constants [B][n_wide], and what becomes of it.
struct Batch {
    const short* codes;
    const int *lengths, *n_free, *n_constants, *dataset;
    const double* hopeless;
    double *constants, *losses;
    int *ended, *steps;
    int width, n_wide;
    Limits limits;
};

template <int T, int P, int R>
DEVICE void fit_one(Work<T, P, R>& work, const Batch& batch, const Data* datasets, int b) {
    const Data data = datasets[batch.dataset[b]];
    double* constants = batch.constants + (long long)b * batch.n_wide;
    load<T, P, R>(work, batch.codes + (long long)b * 5 * batch.width, batch.lengths[b], batch.width, constants,
               batch.n_constants[b], batch.n_free[b], data.n_slots);
    const Fitted fitted = fit_candidate<T, P, R>(work, data, batch.limits, batch.hopeless[b]);
    LANES(l) {
        for (int p = l; p < work.n_free; p += 32) constants[p] = work.constants[p];
        if (l == 0) {
            batch.losses[b] = fitted.loss;
            batch.ended[b] = fitted.code;
            batch.steps[b] = fitted.steps;
        }
    }
    MEET;
}

#ifdef __CUDACC__
// `chosen` lists the `n_chosen` candidates of this size; `next` counts those that were taken. A block is one warp: of several
// the first to end would keep its registers and its memory from others until the last one has.
extern "C" __global__ void __launch_bounds__(32, WARPS) fit(const Batch* batch, const Data* datasets, const int* chosen,
                                                            const int* n_chosen, int* next) {
    extern __shared__ double shared[];
    auto& work = *reinterpret_cast<Work<NODES, CONSTANTS, ROWS_PER_LANE>*>(shared);
#pragma unroll 1
    for (int taken = 0; taken < FITS_PER_WARP; ++taken) {
        int c = 0;
        if (threadIdx.x == 0) c = atomicAdd(next, 1);
        c = __shfl_sync(0xffffffffu, c, 0);
        if (c >= *n_chosen) return;
        fit_one<NODES, CONSTANTS, ROWS_PER_LANE>(work, *batch, datasets, chosen[c]);
    }
}
#else
extern "C" int bytes_per_warp() { return (int)sizeof(Work<NODES, CONSTANTS, ROWS_PER_LANE>); }

extern "C" void fit(const Batch* batch, const Data* datasets, const int* chosen, const int* n_chosen) {
    Work<NODES, CONSTANTS, ROWS_PER_LANE> work;
    for (int c = 0; c < *n_chosen; ++c) {
        fit_one<NODES, CONSTANTS, ROWS_PER_LANE>(work, *batch, datasets, chosen[c]);
    }
}
#endif
