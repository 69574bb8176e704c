"""Errors of a table's columns: each a number, or another column that holds one for each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gmeql.tables.cells import TableError
from gmeql.tables.table import Table
from gmeql.tables.training import Training


def with_errors(table: Table, training: Training, y_error: str | None, x_error: Mapping[str, str]) -> Training:
    """The training rows with the standard deviations of the target's and the columns' errors.

    Each is a number or the name of a column of `table`; columns without one are exact. Rows weigh by the target's.
    """
    if y_error is None:
        return training
    rows = np.searchsorted(table.rows, training.rows)
    y_errors = _deviations(table, y_error, rows, "--y-error")
    if not (y_errors > 0).all():
        raise TableError(table.source, "--y-error: standard deviations must be above 0", mend="give positive numbers")
    weights = (y_errors.max() / y_errors) ** 2
    training = replace(training, y_errors=y_errors, weights=None if np.all(weights == 1.0) else weights)
    if not x_error:
        return training
    x_errors = np.zeros(training.X.shape)
    for name, given in x_error.items():
        if name not in training.names:
            raise TableError(table.source, f"--x-error: {name!r} is no column that explains the target",
                             mend=f"there are {', '.join(training.names)}")  # fmt: skip
        x_errors[:, training.names.index(name)] = _deviations(table, given, rows, "--x-error")
    return replace(training, x_errors=x_errors)


def _deviations(table: Table, given: str, rows: np.ndarray, option: str) -> np.ndarray:
    """Standard deviations of some rows."""
    try:
        found = np.full(len(rows), float(given))
    except ValueError:
        found = np.asarray(table.column(given, option).values, dtype=float)[rows]
    if not (np.isfinite(found) & (found >= 0)).all():
        place = int(table.rows[rows[int(np.argmin(np.isfinite(found) & (found >= 0)))]])
        raise TableError(table.source, f"{option} {given}: row {place} holds no standard deviation",
                         mend="fill it with a number of at least 0")  # fmt: skip
    return found
