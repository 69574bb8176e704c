// The kernels of a step, in their order: draw, claim, start, (fit), absorb, learn, choose, (fit to the end, beside the
// next step); settle ends a stage, present lets the host fetch it.

#ifdef __CUDACC__
#define THREAD_KERNEL(name, call)                                             \
    extern "C" __global__ void name(const Step* step) {                       \
        const int b = blockIdx.x * blockDim.x + threadIdx.x;                  \
        if (b < step->n_islands * step->n_candidates) call;                   \
    }
#define WARP_KERNEL(name, call)                                               \
    extern "C" __global__ void name(const Step* step) {                       \
        extern __shared__ Record records[];                                   \
        const int i = blockIdx.x;                                             \
        call;                                                                 \
    }
#else
#define THREAD_KERNEL(name, call)                                             \
    extern "C" void name(const Step* step) {                                  \
        for (int b = 0; b < step->n_islands * step->n_candidates; ++b) call;  \
    }
#define WARP_KERNEL(name, call)                                               \
    extern "C" void name(const Step* step) {                                  \
        static Record records[MOST_RECORDS];                                  \
        for (int i = 0; i < step->n_islands; ++i) call;                       \
    }
#endif

DEVICE void draw_one(const Step& step, int b) {
    Draft draft;
    draw_candidate(step, b, draft);
}

DEVICE void settle_island(const Step& step, int i, Record* records) {
    absorb_island(step, i, records, false);
    weigh_elites(step, i, reinterpret_cast<Active*>(records));
}

THREAD_KERNEL(draw, draw_one(*step, b))
WARP_KERNEL(claim, claim_island(*step, i, records))
THREAD_KERNEL(start, start_candidate(*step, b))
WARP_KERNEL(choose, choose_best(*step, i, records))
WARP_KERNEL(absorb, absorb_island(*step, i, records, true))
WARP_KERNEL(settle, settle_island(*step, i, records))
WARP_KERNEL(present, present_elites(*step, i))
WARP_KERNEL(learn, learn_island(*step, i, reinterpret_cast<Active*>(records)))

// Tries that were made elsewhere.
#ifdef __CUDACC__
extern "C" __global__ void recall(const Tried* tried, const u64* keys, const int* counts, const int* n) {
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < *n) count_try(*tried, keys[k], counts[k]);
}
#else
extern "C" void recall(const Tried* tried, const u64* keys, const int* counts, const int* n) {
    for (int k = 0; k < *n; ++k) count_try(*tried, keys[k], counts[k]);
}
#endif

#ifndef __CUDACC__
// Tests compare this with the compiled sampler.
extern "C" int compile_one(const short* choices, const Wiring* wiring, short* program, short* weights, double* starts,
                           u64* key, int* facts) {
    static Draft draft;
    const Compiled made = compile_structure(choices, *wiring, draft, program);
    for (int p = 0; p < made.n_constants; ++p) {
        weights[p] = (short)draft.constants[p].weight;
        starts[p] = draft.constants[p].start;
    }
    *key = made.key;
    facts[0] = made.n_constants;
    facts[1] = made.complexity;
    facts[2] = made.nonlinear;
    facts[3] = made.has_powers;
    return made.length;
}
#endif
