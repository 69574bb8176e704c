"""Structures that were tried: hash tables of their fingerprints, for all islands together and for each by itself."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

FIRST_BITS = 12
"""First size of the table of what an island itself tried, as a power of two."""
MAX_LOAD = 4
"""Slots per fingerprint below which an island's table grows: probing stays short at a load of a quarter."""


class TriedStructures:
    """How often structures were tried: a table of fingerprints, open addressing.

    Tables that saw the same fingerprints in the same order are equal, so a table can travel as that list. Its memory is taken
    when the first structure comes: a search that sees its formula before it draws any has none.
    """

    def __init__(self, bits: int) -> None:
        self._size = 1 << bits

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """Fingerprints by slot; 0 in an empty one."""
        return np.zeros(self._size, np.uint64)

    @cached_property
    def counts(self) -> NDArray[np.uint8]:
        """How often each was tried."""
        return np.zeros(self._size, np.uint8)

    def add(self, fingerprints: NDArray[np.uint64]) -> None:
        """Count one more try of each."""
        from gmeql.search.sampling.tried import count_tries

        count_tries(self.keys, self.counts, np.array(fingerprints, np.uint64))  # a copy: the given may be read-only

    def known(self) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
        """All fingerprints and how often each was tried."""
        used = np.flatnonzero(self.keys)
        return self.keys[used], self.counts[used]

    def merge(self, fingerprints: NDArray[np.uint64], counts: NDArray[np.uint8]) -> None:
        """Let each of these have been tried as often as said, at least; those that find no room are forgotten."""
        from gmeql.search.sampling.tried import raise_counts

        room = len(self.keys) * (MAX_LOAD - 1) // MAX_LOAD - int(np.count_nonzero(self.keys))
        raise_counts(self.keys, self.counts, fingerprints, counts, max(room, 0))

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """The used slots: their places, keys and counts."""
        used = np.flatnonzero(self.keys)
        return {"places": used, "keys": self.keys[used], "counts": self.counts[used]}

    @classmethod
    def from_dict(cls, data: Mapping[str, NDArray[Any]], bits: int) -> TriedStructures:
        """The table whose used slots `to_dict` gave."""
        table = cls(bits)
        table.keys[data["places"]] = data["keys"]
        table.counts[data["places"]] = data["counts"]
        return table


class IslandTried(TriedStructures):
    """What one island tried since its stage began, in order; the table grows with it."""

    def __init__(self, fingerprints: NDArray[np.uint64] | None = None) -> None:
        super().__init__(FIRST_BITS)
        self.fingerprints: NDArray[np.uint64] = np.zeros(0, np.uint64)
        if fingerprints is not None and len(fingerprints):
            self.make_room(len(fingerprints))
            self.add(fingerprints)

    def make_room(self, n: int) -> None:
        """Room for `n` more; a larger table gets the same fingerprints in the same order."""
        need = MAX_LOAD * (len(self.fingerprints) + n)
        if self._size < need:
            self._size = 1 << (need - 1).bit_length()
            self.keys, self.counts = np.zeros(self._size, np.uint64), np.zeros(self._size, np.uint8)
            super().add(self.fingerprints)

    def add(self, fingerprints: NDArray[np.uint64]) -> None:
        """Count one more try of each, and remember the order."""
        super().add(fingerprints)
        self.note(fingerprints)

    def note(self, fingerprints: NDArray[np.uint64]) -> None:
        """Remember the order of what the sampler itself has put into the table."""
        self.fingerprints = np.concatenate([self.fingerprints, fingerprints])
