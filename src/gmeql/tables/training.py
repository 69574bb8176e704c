"""Training data: what a fit is given of a table."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from gmeql.tables.cells import Note


@dataclass(frozen=True)
class Training:
    """What a fit needs: X [N, V], y [N], names of the V columns, optional weights [N], and every note so far."""

    X: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]
    target: str
    weights: np.ndarray | None
    rows: np.ndarray
    notes: tuple[Note, ...]
    source: str
    table_names: tuple[str, ...] | None = None
    """All columns of the table, in its order; None where it is not known."""
    groups: tuple[str, ...] | None = None
    """The group of each row [N], where groups have constants of their own,"""
    group_column: str | None = None
    """and the column that names them."""
    y_errors: np.ndarray | None = None
    """Standard deviations of the target's errors [N], which `weights` then follow, ..."""
    x_errors: np.ndarray | None = None
    """... and of the columns' errors [N, V]."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of names and numbers: equal for the same training data, whatever file it came from."""
        digest = hashlib.sha256("\0".join((*self.names, self.target)).encode())
        for array in (self.X, self.y, self.weights, self.x_errors):
            if array is not None:
                digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
        if self.groups is not None:
            digest.update("\0".join((str(self.group_column), *self.groups)).encode())
        return digest.hexdigest()
