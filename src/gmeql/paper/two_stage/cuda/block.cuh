// The threads of a block, on the device and, for tests, as one thread on the processor.
//
// `EACH(i, n) { ... }` shares n pieces of work among the threads; between two such loops threads meet in `MEET`. What
// stands outside of loops is computed by all threads alike.

typedef unsigned int u32;

#ifdef __CUDACC__
#define DEVICE __device__ __forceinline__
#define TABLE __device__ const
#define MEET __syncthreads()
// The lanes of a warp alone.
#define MEET_LANES __syncwarp()
// What is read from memory behind it is read there, not kept in registers since the last time.
#define ANEW asm volatile("" ::: "memory")
#define THREAD ((int)threadIdx.x)
constexpr int LANES = 32;
// Before a loop over constants whose values shall be registers.
#define UNROLLED _Pragma("unroll")
// Before a loop whose loads shall be on the way together.
#define UNROLLED_BY_8 _Pragma("unroll 8")
DEVICE float total_of_lanes(float value) {
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}
// One bit a lane, and how many bits are set.
DEVICE u32 bits_of_lanes(bool value) { return __ballot_sync(0xffffffffu, value); }
DEVICE int count_of(u32 bits) { return __popc(bits); }
DEVICE int next_of(int* counter) { return atomicAdd(counter, 1); }
DEVICE float of_lane(float value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }
// values[0 .. 31] summed over the lanes, each sum in the lane of its number and in the order of `total_of_lanes`.
template <int DISTANCE = 16>
DEVICE float totals_of_lanes(float* values) {
    const bool upper = threadIdx.x & DISTANCE;
    UNROLLED
    for (int i = 0; i < DISTANCE; ++i) {
        const float given = upper ? values[i] : values[i + DISTANCE], kept = upper ? values[i + DISTANCE] : values[i];
        values[i] = kept + __shfl_xor_sync(0xffffffffu, given, DISTANCE);
    }
    if constexpr (DISTANCE > 1) totals_of_lanes<DISTANCE / 2>(values);
    return values[0];
}
// `EACH_TOTAL(i, total, g, first) { ... }`: the sums over lanes of g[first .. first + 31], one a lane.
#define EACH_TOTAL(i, total, g, first) \
    if (const float total = totals_of_lanes(g + first); true) if (const int i = first + LANE; true)
DEVICE void sine_and_cosine(float a, float& sine, float& cosine) { sincosf(a, &sine, &cosine); }
DEVICE float infinity() { return __int_as_float(0x7f800000); }
#else
#include <cmath>
#define DEVICE static inline
#define TABLE static const
#define MEET
#define MEET_LANES
#define ANEW
#define THREAD 0
constexpr int LANES = 1;
#define UNROLLED
#define UNROLLED_BY_8
using std::fabs;
using std::isfinite;
DEVICE float total_of_lanes(float value) { return value; }
DEVICE u32 bits_of_lanes(bool value) { return value ? 1u : 0u; }
DEVICE int count_of(u32 bits) { return (int)bits; }
DEVICE int next_of(int* counter) { return (*counter)++; }
DEVICE float of_lane(float value, int) { return value; }
#define EACH_TOTAL(i, total, g, first) \
    for (int i = first; i < first + 32; ++i) if (const float total = g[i]; true)
DEVICE void sine_and_cosine(float a, float& sine, float& cosine) {
    sine = std::sin(a);
    cosine = std::cos(a);
}
DEVICE float infinity() { return HUGE_VALF; }
#endif

constexpr int WARPS = THREADS / LANES;
#define LANE (THREAD % LANES)
#define WARP (THREAD / LANES)
#define EACH(i, n) for (int i = THREAD; i < (n); i += THREADS)

// All lanes of a warp go round together, those beyond n too.
#define EACH_TOGETHER(i, n) for (int i = THREAD; i < ((n) + LANES - 1) / LANES * LANES; i += THREADS)

DEVICE float finite_or_infinite(float x) { return isfinite(x) ? x : infinity(); }
DEVICE float sign_of(float x) { return x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : 0.0f); }
