// A warp of 32 lanes, on the device and, for tests, as a loop on the processor.
//
// `LANES(l) { ... }` is done by every lane; what stands outside is computed by all lanes alike. Between two such blocks
// lanes meet in `MEET`. State that outlives a block is in `Work`, the warp's shared
// memory, or a `PerLane`.

#ifdef __CUDACC__
#define DEVICE __device__ __forceinline__
// A call instead of a copy: code that is used in two places must stay small enough for the instruction cache.
#define CALLED __device__ __noinline__
#define LANES(l) if (const int l = threadIdx.x & 31; true)
#define MEET __syncwarp()
#define CONSTANT_ARRAY __device__ const
// Before a loop over constants whose sums shall be registers.
#define UNROLLED _Pragma("unroll")
// Before a loop that shall stay one: warps at different places of a program share the instruction cache.
#define ROLLED _Pragma("unroll 1")
// A number that no kernel writes.
DEVICE double constant_at(const double* place) { return __ldg(place); }
DEVICE double inverse_root(double x) { return rsqrt(x); }
DEVICE long long bits_of(double x) { return __double_as_longlong(x); }
DEVICE double double_of(long long bits) { return __longlong_as_double(bits); }
// Adds the lanes' values to `total`, which is 0 before; the next `MEET` shows it to all.
DEVICE void add_up(double* total, double value) {
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    if ((threadIdx.x & 31) == 0) *total = value;
}
// A number of each lane: a register.
struct PerLane {
    double value;
    DEVICE double& at(int) { return value; }
};
// sums [8][8] += left [8][4] right [8][4]ᵀ, by all lanes together: lane l holds row l / 4 and column l % 4 of left and
// right, and row l / 4 and columns 2 (l % 4), 2 (l % 4) + 1 of the sums.
DEVICE void multiply_tiles(PerLane (&sums)[2], const PerLane& left, const PerLane& right) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(sums[0].value), "+d"(sums[1].value)
                 : "d"(left.value), "d"(right.value));
#else
    const int lane = threadIdx.x & 31;
    for (int k = 0; k < 4; ++k) {
        const double mine = __shfl_sync(0xffffffffu, left.value, lane / 4 * 4 + k);
        for (int half = 0; half < 2; ++half) {
            const double other = __shfl_sync(0xffffffffu, right.value, (2 * (lane % 4) + half) * 4 + k);
            sums[half].value += mine * other;
        }
    }
#endif
}
#else
#include <cmath>
#include <cstring>
#define DEVICE static inline
#define CALLED static inline
#define LANES(l) for (int l = 0; l < 32; ++l)
#define MEET
#define CONSTANT_ARRAY static const
#define UNROLLED
#define ROLLED
DEVICE double constant_at(const double* place) { return *place; }
using std::fabs;
using std::floor;
using std::fmax;
using std::fmin;
using std::isfinite;
using std::sqrt;
DEVICE double inverse_root(double x) { return 1.0 / sqrt(x); }
DEVICE long long bits_of(double x) {
    long long bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
DEVICE double double_of(long long bits) {
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
DEVICE void add_up(double* total, double value) { *total += value; }
struct PerLane {
    double value[32];
    double& at(int l) { return value[l]; }
};
DEVICE void multiply_tiles(PerLane (&sums)[2], const PerLane& left, const PerLane& right) {
    LANES(l) for (int half = 0; half < 2; ++half) for (int k = 0; k < 4; ++k)
        sums[half].value[l] += left.value[l / 4 * 4 + k] * right.value[(2 * (l % 4) + half) * 4 + k];
}
#endif

DEVICE double not_a_number() { return double_of(0x7ff8000000000000LL); }
DEVICE double infinity() { return double_of(0x7ff0000000000000LL); }
