"""How the structures of a step lie in memory, as NumPy's types; pointers are whole numbers. And an arena of such memory."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gmeql.fitters.cuda.driver import Driver
from gmeql.search.sampling.arrays import DrawNumbers, Wiring


def _record(pointers: str = "", *, doubles: str = "", whole: str = "", **parts: Any) -> np.dtype[Any]:
    """A structure: pointers first, then the given parts, doubles, whole numbers of four bytes."""
    fields: list[tuple[Any, ...]] = [(name, "u8") for name in pointers.split()]
    fields += [(name, kind) if not isinstance(kind, tuple) else (name, *kind) for name, kind in parts.items()]
    fields += [(name, "f8") for name in doubles.split()] + [(name, "i4") for name in whole.split()]
    return np.dtype(fields, align=True)


NODE = _record(whole="op first dense_low dense_high first_dense")
CONNECTION = _record(whole="low n_choices")
WIRING = _record(
    "nodes connections positive",
    whole="n_nodes n_connections n_inputs n_variables n_weights max_choices with_offset max_nesting",
)
ELITES = _record("choices constants losses marks complexities")
ISLAND = np.dtype(
    [("wiring", WIRING), ("elites", ELITES, 2)]
    + [(name, "u8") for name in "probabilities cumulative counts draw_weights table_key random_state".split()]
    + [("best", "f8")]
    + [
        (name, "i4")
        for name in "which n_elites age last_gain is_exhausted is_finished n_drawn n_drawn_in_all dataset".split()
    ],
    align=True,
)
CANDIDATES = _record(
    "choices programs weight_ids lengths n_constants complexities parents most_tries tries constants losses hopeless keys "
    "states dataset"
)
TRIED = _record("keys counts mask")
NUMBERS = _record(doubles=" ".join(DrawNumbers._fields))
STEP = np.dtype(
    [("islands", "u8"), ("candidates", CANDIDATES), ("tried", TRIED), ("numbers", NUMBERS)]
    + [(name, "u8") for name in "rank_weights rank_sums chosen n_chosen finishing n_finishing".split()]
    + [(name, "u8") for name in "best_choices best_constants best_losses best_marks best_complexities".split()]
    + [(name, "f8") for name in "complexity_classes learning_rate exploration unseen_weight min_gain".split()]
    + [(name, "i4") for name in "n_islands n_candidates capacity choice_stride constant_stride".split()]
    + [(name, "i4") for name in "life patience least_drawn n_best class_width".split()],
    align=True,
)


def flat_wiring(wiring: Wiring) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and connections of an architecture as the device reads them."""
    nodes, connections = np.zeros(len(wiring.nodes), NODE), np.zeros(len(wiring.connections), CONNECTION)
    for name in NODE.names or ():
        nodes[name] = wiring.nodes[name]
    for name in CONNECTION.names or ():
        connections[name] = wiring.connections[name]
    return nodes, connections


class Arena:
    """Many small arrays as one piece of memory there, sent at once and fetched piece by piece."""

    ALIGNMENT = 16

    def __init__(self) -> None:
        self.sent: list[tuple[int, np.ndarray]] = []
        self.n_bytes = 0

    def add(self, array: np.ndarray) -> int:
        """Where the array will stand."""
        offset = self.reserve(array.nbytes)
        self.sent.append((offset, array))
        return offset

    def reserve(self, n_bytes: int) -> int:
        """Where so many bytes will stand that are not sent."""
        offset, self.n_bytes = self.n_bytes, self.n_bytes - (-n_bytes // self.ALIGNMENT) * self.ALIGNMENT
        return offset

    def place(self, driver: Driver) -> None:
        """Take the memory there; `base` is its address."""
        self.there = driver.zeros(max(self.n_bytes, self.ALIGNMENT))
        self.base = driver.pointer(self.there)

    def send(self, driver: Driver) -> None:
        """Copy all arrays there, if there are any; elsewhere all is 0 then."""
        if not self.sent:
            return
        buffer = np.zeros(max(self.n_bytes, self.ALIGNMENT), np.uint8)
        for offset, array in self.sent:
            buffer[offset : offset + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        driver.fill(self.there, buffer)

    def fetch(self, driver: Driver, first: int = 0, end: int | None = None) -> Fetched:
        """The bytes between two places."""
        return Fetched(first, driver.get(self.there[first:end]))


class Fetched(NamedTuple):
    """Part of an arena as it was fetched."""

    first: int
    """Where it begins there."""
    buffer: np.ndarray

    def array(self, offset: int, kind: Any, shape: tuple[int, ...]) -> np.ndarray:
        """The array that stands at a place of the arena; it shares the memory of all that was fetched with it."""
        kind, start = np.dtype(kind), offset - self.first
        n_bytes = kind.itemsize * math.prod(shape)
        array: np.ndarray = self.buffer[start : start + n_bytes].view(kind).reshape(shape)
        return array
