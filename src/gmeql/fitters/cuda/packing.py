"""Candidates as they are sent to an accelerator, in one piece: each copy there and back takes a moment of its own."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gmeql.fitters.cuda.source import size_of

ALIGNED = 16
"""Bytes that arrays begin at multiples of."""


class Joined(NamedTuple):
    """Candidates behind each other, as they are sent; leading axis B."""

    codes: np.ndarray
    """[B, 5, T] int16"""
    lengths: np.ndarray
    n_free: np.ndarray
    n_constants: np.ndarray
    constants: np.ndarray
    """[B, P]"""
    dataset: np.ndarray
    """Which data each is fitted to."""
    hopeless: np.ndarray

    def take(self, rows: Any) -> Joined:
        """Some of them."""
        return Joined(*(array[rows] for array in self))


class Packed(NamedTuple):
    """What goes there only, and behind it what comes back."""

    whole: np.ndarray
    """uint8"""
    places: dict[str, tuple[int, Any, tuple[int, ...]]]
    """Where each array begins, its type and shape."""
    sizes: np.ndarray
    """The number of each candidate's size."""

    def array(self, name: str) -> np.ndarray:
        """One of the arrays."""
        return view_of(self.whole, *self.places[name])


def view_of(whole: np.ndarray, start: int, kind: Any, shape: tuple[int, ...]) -> np.ndarray:
    """An array that lies in bytes."""
    return whole[start : start + math.prod(shape) * np.dtype(kind).itemsize].view(kind).reshape(shape)


def packed(candidates: Joined) -> Packed:
    """Candidates no wider than the longest of them."""
    n, width = len(candidates.lengths), int(candidates.lengths.max())
    n_wide = max(int(candidates.n_constants.max()), 1)
    numbers = ("lengths", "n_free", "n_constants", "dataset")
    shapes: dict[str, tuple[Any, tuple[int, ...]]] = {"codes": (np.int16, (n, 5, width))}
    shapes |= dict.fromkeys(numbers, (np.int32, (n,)))
    shapes |= {"hopeless": (np.float64, (n,)), "constants": (np.float64, (n, n_wide)), "losses": (np.float64, (n,))}
    shapes |= dict.fromkeys(("ended", "steps"), (np.int32, (n,)))
    places, end = {}, 0
    for name, (kind, shape) in shapes.items():
        places[name] = (end, kind, shape)
        end += -(-math.prod(shape) * np.dtype(kind).itemsize // ALIGNED) * ALIGNED
    sent = Packed(np.empty(end, np.uint8), places, size_of(candidates.lengths, candidates.n_constants))
    sent.array("codes")[:] = candidates.codes[:, :, :width]
    sent.array("constants")[:] = candidates.constants[:, :n_wide]
    for name in (*numbers, "hopeless"):
        sent.array(name)[:] = getattr(candidates, name)
    return sent
