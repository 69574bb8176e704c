"""How often structures were tried: counts by hash in a table of open addressing."""

from __future__ import annotations

import numpy as np

from gmeql.fitters.compiled import compiled
from gmeql.search.sampling.random import scramble

PROBES = 64
"""Places that are looked at for a hash; what finds none among them is not counted."""
MOST = 100
"""Counts end here: the table holds bytes."""


# One type for all callers: else the compiler makes a version for each kind of whole number that is added.
@compiled("i8(u8[::1], u1[::1], u8, i8)")
def count_one(keys, counts, key, add):
    """How often this hash was tried so far; `add` is added to its count."""
    mask = np.uint64(len(keys) - 1)
    key = key | np.uint64(1)
    place = scramble(key) & mask
    for _ in range(PROBES):
        if keys[place] == key:
            before = counts[place]
            counts[place] = min(before + add, MOST)
            return before
        if keys[place] == 0:
            if add > 0:
                keys[place] = key
                counts[place] = add
            return 0
        place = (place + np.uint64(1)) & mask
    return 0


@compiled()
def count_tries(keys, counts, hashes):
    """Add one try for each of `hashes`, in their order."""
    for k in range(len(hashes)):
        count_one(keys, counts, hashes[k], 1)


@compiled()
def raise_counts(keys, counts, hashes, least, room):
    """Let each of `hashes` have been tried as often as `least` says, at least; `room` of them may be new."""
    for k in range(len(hashes)):
        before = count_one(keys, counts, hashes[k], 0)
        if before == 0:
            if room == 0:
                continue
            room -= 1
        if before < least[k]:
            count_one(keys, counts, hashes[k], least[k] - before)
