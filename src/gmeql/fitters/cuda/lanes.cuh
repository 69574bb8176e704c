// A warp of 32 lanes, on the device and, for tests, as a loop on the processor.
//
// `LANES(l) { ... }` is done by every lane; what stands outside is computed by all lanes alike. Between two such blocks
// lanes meet in `MEET`. State that outlives a block is in `Work`, the warp's shared memory.

#ifdef __CUDACC__
#define DEVICE __device__ __forceinline__
// A call instead of a copy: code that is used in two places must stay small enough for the instruction cache.
#define CALLED __device__ __noinline__
#define LANES(l) if (const int l = threadIdx.x & 31; true)
#define MEET __syncwarp()
#define CONSTANT_ARRAY __device__ const
// Before a loop over constants whose sums shall be registers.
#define UNROLLED _Pragma("unroll")
DEVICE long long bits_of(double x) { return __double_as_longlong(x); }
DEVICE double double_of(long long bits) { return __longlong_as_double(bits); }
// Adds the lanes' values to `total`, which is 0 before; the next `MEET` shows it to all.
DEVICE void add_up(double* total, double value) {
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    if ((threadIdx.x & 31) == 0) *total = value;
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
using std::fabs;
using std::floor;
using std::fmax;
using std::fmin;
using std::isfinite;
using std::sqrt;
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
#endif

DEVICE double not_a_number() { return double_of(0x7ff8000000000000LL); }
DEVICE double infinity() { return double_of(0x7ff0000000000000LL); }
