// The threads of a block, on the device and, for tests, as one thread on the processor.
//
// `EACH(i, n) { ... }` shares n pieces of work among the threads; between two such loops threads meet in `MEET`. What
// stands outside of loops is computed by all threads alike.

typedef unsigned int u32;

#ifdef __CUDACC__
#define DEVICE __device__ __forceinline__
#define MEET __syncthreads()
#define THREAD ((int)threadIdx.x)
constexpr int LANES = 32;
// Before a loop over constants whose values shall be registers.
#define UNROLLED _Pragma("unroll")
DEVICE float total_of_lanes(float value) {
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}
DEVICE float infinity() { return __int_as_float(0x7f800000); }
#else
#include <cmath>
#define DEVICE static inline
#define MEET
#define THREAD 0
constexpr int LANES = 1;
#define UNROLLED
using std::fabs;
using std::isfinite;
DEVICE float total_of_lanes(float value) { return value; }
DEVICE float infinity() { return HUGE_VALF; }
#endif

constexpr int WARPS = THREADS / LANES;
#define LANE (THREAD % LANES)
#define WARP (THREAD / LANES)
#define EACH(i, n) for (int i = THREAD; i < (n); i += THREADS)

DEVICE float finite_or_infinite(float x) { return isfinite(x) ? x : infinity(); }
DEVICE float sign_of(float x) { return x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : 0.0f); }
