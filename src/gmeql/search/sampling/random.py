"""Random numbers inside compiled code: SplitMix64, whose whole state is one number that a checkpoint keeps."""

from __future__ import annotations

import numpy as np

from gmeql.fitters.compiled import compiled


@compiled()
def next_bits(state):
    """SplitMix64: 64 random bits; `state` is a one-element uint64 array."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled()
def uniform(state):
    """A multiple of 2**-53 in [0, 1)."""
    return float(next_bits(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled()
def normal(state):
    """Standard normal by Box and Muller."""
    return np.sqrt(-2.0 * np.log(uniform(state) + 1e-300)) * np.cos(6.283185307179586 * uniform(state))


@compiled()
def scramble(value):
    """A one-to-one hash of 64 bits."""
    value = (value ^ (value >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    value = (value ^ (value >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return value ^ (value >> np.uint64(32))


@compiled()
def pick(cumulative, n, u):
    """First of `n` places whose cumulative weight exceeds `u` (in 0..1 of the total)."""
    goal = u * cumulative[n - 1]
    low, high = 0, n - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > goal:
            high = middle
        else:
            low = middle + 1
    return low
