// Small formulas by their values on ROWS rows, told apart by hash: `middle/kernels.py` once more, a thread a formula.
//
// A formula's *code* is one number: its cost, its operator, and the numbers of the kept formulas it is made of. Of
// several formulas with the same values, or the same form, the lowest code stays, whoever comes first.

typedef unsigned long long u64;

constexpr u64 SIDE_MASK = (1ULL << SIDE_BITS) - 1;
constexpr u64 NO_CODE = ~0ULL;

// A key of 0 is free. Codes are turned round: the lowest is the largest here, and none is 0.
struct Entry {
    u64 key, turned;
};

struct Table {
    Entry* entries;  // open addressing
    u64 mask;
};

struct Small {
    double* values;  // [K][ROWS] of the kept formulas
    const double* signs;  // [ROWS]
    const int* opcodes;  // by an operator's number
    Table by_values, by_forms;
    u64* found;  // [room] codes that are new
    int *n_found, room;
};

// A rectangle of formulas that are tried: an operator on kept formulas of two costs.
struct Block {
    long long start, n;  // threads
    u64 most_mixed;  // of a code's hash, for it to be collected
    int opcode, number, cost, left, right, n_right, is_half;
};

#ifdef __CUDACC__
DEVICE int count_up(int* counter) { return atomicAdd(counter, 1); }
DEVICE u64 put_if_zero(u64* place, u64 key) { return atomicCAS(place, 0ULL, key); }
DEVICE void raise_to(u64* place, u64 value) { atomicMax(place, value); }
DEVICE u64 seen(const u64* place) { return *(const volatile u64*)place; }
#define EACH_THREAD(n)                                                         \
    if (const long long t = (long long)blockIdx.x * blockDim.x + threadIdx.x; t < (n))
#define GLOBAL extern "C" __global__
#else
using std::acos;
using std::asin;
using std::atan;
using std::cos;
using std::exp;
using std::log;
using std::sin;
using std::tanh;
DEVICE int count_up(int* counter) { return (*counter)++; }
DEVICE u64 put_if_zero(u64* place, u64 key) {
    const u64 before = *place;
    if (before == 0) *place = key;
    return before;
}
DEVICE void raise_to(u64* place, u64 value) {
    if (value > *place) *place = value;
}
DEVICE u64 seen(const u64* place) { return *place; }
#define EACH_THREAD(n) for (long long t = 0; t < (n); ++t)
#define GLOBAL extern "C"
#endif

// Several pieces of work in one launch: each has `n` threads from `start` on.
struct Batch {
    long long n;
    int n_parts;
};

template <class Part>
DEVICE const Part& part_of(const Batch& batch, const Part* parts, long long t) {
    int low = 0, high = batch.n_parts;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (parts[middle].start <= t)
            low = middle;
        else
            high = middle;
    }
    return parts[low];
}

struct Row {
    double at[ROWS];
};

DEVICE Row row_of(const double* values, long long number) {
    Row row;
    UNROLLED
    for (int i = 0; i < ROWS; ++i) row.at[i] = values[number * ROWS + i];
    return row;
}

// One operator; nan where it is not worth keeping.
DEVICE double applied(int opcode, double x, double y) {
    switch (opcode) {
        case ADD: return x + y;
        case SUB: return x - y;
        case MUL: return x * y;
        case DIV: return y == 0.0 ? not_a_number() : x / y;
        case SQUARE: return x * x;
        case CUBE: return x * x * x;
        case SQRT: return x < 0.0 ? not_a_number() : sqrt(x);
        case LOG: return x <= 0.0 ? not_a_number() : log(x);
        case EXP: return fabs(x) > LARGEST_EXPONENT ? not_a_number() : exp(x);
        case SIN: return fabs(x) > LARGEST_ANGLE ? not_a_number() : sin(x);
        case COS: return fabs(x) > LARGEST_ANGLE ? not_a_number() : cos(x);
        case TANH: return tanh(x);
        case ABS: return fabs(x);
        case ATAN: return atan(x);
        case ASIN: return fabs(x) > 1.0 ? not_a_number() : asin(x);
        case ACOS: return fabs(x) > 1.0 ? not_a_number() : acos(x);
    }
    return not_a_number();
}

// Whether all values of an operator are of a size worth keeping. A call and a loop: sixteen functions are much code.
CALLED bool combine(int opcode, const Row& left, const Row& right, Row& out) {
    bool fits = true;
    ROLLED
    for (int i = 0; i < ROWS; ++i) {
        const double z = applied(opcode, left.at[i], right.at[i]), size = fabs(z);
        fits = fits && size < LARGEST && (size >= 1.0 / LARGEST || z == 0.0);
        out.at[i] = z + 0.0;
    }
    return fits;
}

DEVICE u64 mixed(u64 key, u64 value) {
    key = (key ^ value) * 0x9E3779B97F4A7C15ULL;
    return key ^ (key >> 29);
}

// Hash of values up to rounding.
DEVICE u64 value_key(const Row& row) {
    u64 key = 0x2545F4914F6CDD1DULL;
    UNROLLED
    for (int i = 0; i < ROWS; ++i)
        key = mixed(key, (u64)((bits_of(row.at[i]) + (1LL << (VALUE_SHIFT - 1))) >> VALUE_SHIFT));
    return key | 1;
}

// Hash of values without scale and offset; 0 where they are constant or rest on one row.
DEVICE u64 form_key(const Row& row, const double* signs) {
    double mean = 0.0, size = 0.0, along = 0.0, first = 0.0;
    int far = 0;
    UNROLLED
    for (int i = 0; i < ROWS; ++i) {
        mean += row.at[i] / ROWS;
        size = fmax(size, fabs(row.at[i]));
    }
    UNROLLED
    for (int i = 0; i < ROWS; ++i) {
        const double deviation = row.at[i] - mean;
        along += signs[i] * deviation;
        far = fabs(deviation) > first ? i : far;
        first = fmax(first, fabs(deviation));
    }
    double lowest = infinity(), highest = -infinity();
    UNROLLED
    for (int i = 0; i < ROWS; ++i) {
        lowest = i == far ? lowest : fmin(lowest, row.at[i]);
        highest = i == far ? highest : fmax(highest, row.at[i]);
    }
    if (!(first > LEAST_DEVIATION * size) || highest - lowest < LEAST_SUPPORT * first || along == 0.0) return 0;
    const double scale = along > 0.0 ? FORM_STEPS / first : -FORM_STEPS / first;
    u64 key = 0x2545F4914F6CDD1DULL;
    UNROLLED
    for (int i = 0; i < ROWS; ++i) key = mixed(key, (u64)(long long)floor((row.at[i] - mean) * scale + 0.5));
    return key | 1;
}

DEVICE u64 first_slot(const Table& table, u64 key) { return (key >> 20) & table.mask; }

// The place of a key, which is its own from now on, and whether it is new; none where the table is full there.
DEVICE Entry* place_of(const Table& table, u64 key, bool& is_new) {
    u64 slot = first_slot(table, key);
    for (int probe = 0; probe < PROBES; ++probe, slot = (slot + 1) & table.mask) {
        Entry& entry = table.entries[slot];
        u64 before = entry.key;
        if (before == 0) before = put_if_zero(&entry.key, key);
        is_new = before == 0;
        if (is_new || before == key) return &entry;
    }
    return nullptr;
}

// Let the code stand under its key, unless a lower one does.
DEVICE void enter(const Table& table, u64 key, u64 code) {
    bool is_new;
    Entry* entry = place_of(table, key, is_new);
    if (entry && entry->turned < ~code) raise_to(&entry->turned, ~code);
}

DEVICE u64 find(const Table& table, u64 key) {
    u64 slot = first_slot(table, key);
    for (int probe = 0; probe < PROBES; ++probe, slot = (slot + 1) & table.mask) {
        const Entry& entry = table.entries[slot];
        if (entry.key == key) return ~entry.turned;
        if (entry.key == 0) break;
    }
    return NO_CODE;
}

DEVICE u64 code_of(int cost, int number, long long left, long long right) {
    return (u64)cost << COST_AT | (u64)number << OPERATOR_AT | (u64)left << SIDE_BITS | ((u64)right & SIDE_MASK);
}

// The values of a formula by its code.
CALLED bool values_of(const Small& small, u64 code, Row& out) {
    const int number = (code >> OPERATOR_AT) & ((1 << OPERATOR_BITS) - 1);
    const long long left = (code >> SIDE_BITS) & SIDE_MASK, right = code & SIDE_MASK;
    if (number == KEPT) {
        out = row_of(small.values, right);
        return true;
    }
    const Row x = row_of(small.values, left);
    return combine(small.opcodes[number], x, right == (long long)SIDE_MASK ? x : row_of(small.values, right), out);
}

// What is left of values without their mean and their parts `along` some rows [n_along][ROWS], orthonormal and without mean.
struct Left {
    Row row;
    double size, rest;  // largest value before and after
};

DEVICE Left left_of(const Row& row, const double* along, int n_along) {
    Left left;
    double mean = 0.0;
    left.size = left.rest = 0.0;
    UNROLLED
    for (int i = 0; i < ROWS; ++i) {
        mean += row.at[i] / ROWS;
        left.size = fmax(left.size, fabs(row.at[i]));
    }
    UNROLLED
    for (int i = 0; i < ROWS; ++i) left.row.at[i] = row.at[i] - mean;
    ROLLED
    for (int d = 0; d < n_along; ++d) {
        double part = 0.0;
        UNROLLED
        for (int i = 0; i < ROWS; ++i) part += left.row.at[i] * along[d * ROWS + i];
        UNROLLED
        for (int i = 0; i < ROWS; ++i) left.row.at[i] -= part * along[d * ROWS + i];
    }
    UNROLLED
    for (int i = 0; i < ROWS; ++i) left.rest = fmax(left.rest, fabs(left.row.at[i]));
    return left;
}

// Whether the one is the other times a factor, up to `alike` and to the digits that were lost.
DEVICE bool are_one(const Left& a, const Left& b, double alike) {
    double highest = 0.0, factor = 0.0, off = 0.0;
    UNROLLED
    for (int i = 0; i < ROWS; ++i) {
        const bool is_higher = fabs(b.row.at[i]) > highest;
        highest = is_higher ? fabs(b.row.at[i]) : highest;
        factor = is_higher ? a.row.at[i] / b.row.at[i] : factor;
    }
    UNROLLED
    for (int i = 0; i < ROWS; ++i) off = fmax(off, fabs(a.row.at[i] - factor * b.row.at[i]));
    return off <= (alike + LAST_DIGITS * (a.size / a.rest + b.size / b.rest)) * a.rest;
}
