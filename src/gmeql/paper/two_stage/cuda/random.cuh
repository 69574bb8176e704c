// Random numbers of a step: Threefry-2x32 as JAX counts it, so that both ways of training draw the same ones.

DEVICE u32 turned(u32 x, int by) { return (x << by) | (x >> (32 - by)); }

struct Pair {
    u32 first, second;
};

DEVICE Pair threefry(Pair key, Pair count) {
    const u32 keys[3] = {key.first, key.second, key.first ^ key.second ^ 0x1BD11BDAu};
    const int turns[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    u32 a = count.first + keys[0], b = count.second + keys[1];
    UNROLLED
    for (int round = 0; round < 5; ++round) {
        UNROLLED
        for (int i = 0; i < 4; ++i) {
            a += b;
            b = turned(b, turns[4 * (round % 2) + i]) ^ a;
        }
        a += keys[(round + 1) % 3];
        b += keys[(round + 2) % 3] + (u32)(round + 1);
    }
    return {a, b};
}

// Of a seed and a step; `jax.random.fold_in(jax.random.key(seed), step + 1)`.
DEVICE Pair key_of(u32 seed, int step) { return threefry({0u, seed}, {0u, (u32)(step + 1)}); }

// The number at a place of the step's long row of them, strictly inside (0, 1).
DEVICE float uniform_at(Pair key, int place) {
    const Pair bits = threefry(key, {0u, (u32)place});
    return ((float)((bits.first ^ bits.second) >> 9) + 0.5f) * 1.1920928955078125e-7f;
}

constexpr int GUMBEL_AT = 0;
constexpr int ELITE_AT = GUMBEL_AT + SAMPLES * CONNECTIONS * CHOICES;
constexpr int LABEL_AT = ELITE_AT + SAMPLES;
constexpr int OFFLINE_AT = LABEL_AT + SAMPLES * CONNECTIONS;

DEVICE float gumbel_at(Pair key, int place) { return -logf(-logf(uniform_at(key, GUMBEL_AT + place))); }
