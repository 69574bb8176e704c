"""Candidates of one step of an island, as arrays that the compiled sampler and fitter write into."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.fitters.opcodes import MAX_CONSTANTS, MAX_NODES

PROGRAM_ROWS = 5
"""Numbers that one node of a program is described by."""


@dataclass
class Candidates:
    """B drawn structures of C connections with their programs of P nodes and K constants; the fit fills in the rest."""

    choices: NDArray[np.int64]  # [B, C]
    programs: NDArray[np.int16]  # [B, 5, P]
    lengths: NDArray[np.int64]  # [B], nodes of the program
    n_constants: NDArray[np.int64]  # [B]
    weight_ids: NDArray[np.int64]  # [B, K], the network's weight that a constant stands for
    constants: NDArray[np.float64]  # [B, K], starts, then fitted values
    hashes: NDArray[np.uint64]  # [B], fingerprints
    complexities: NDArray[np.int64]  # [B]
    losses: NDArray[np.float64]  # [B]
    codes: NDArray[np.int64]  # [B], how each fit ended
    steps: NDArray[np.int64]  # [B], steps it took

    @classmethod
    def allocate(cls, n: int, n_connections: int) -> Candidates:
        """Room for `n` candidates, none drawn, none fitted."""
        return cls(
            choices=np.zeros((n, n_connections), np.int64),
            programs=np.zeros((n, PROGRAM_ROWS, MAX_NODES), np.int16),
            lengths=np.zeros(n, np.int64),
            n_constants=np.zeros(n, np.int64),
            weight_ids=np.zeros((n, MAX_CONSTANTS), np.int64),
            constants=np.zeros((n, MAX_CONSTANTS)),
            hashes=np.zeros(n, np.uint64),
            complexities=np.zeros(n, np.int64),
            losses=np.full(n, np.inf),
            codes=np.zeros(n, np.int64),
            steps=np.zeros(n, np.int64),
        )

    def take(self, rows: Any) -> Candidates:
        """The candidates in the given rows (a slice gives views, an index array copies)."""
        return Candidates(**{one.name: getattr(self, one.name)[rows] for one in fields(self)})
