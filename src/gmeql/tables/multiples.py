"""Columns that are another one in another unit: the same lengths in metres and in feet.

Both in a formula, `length_m**2.5*sqrt(length_ft)` would say no more than one of them, and what rounding left of each would
decide which. A multiple alone is meant: what has a zero of its own, as Kelvin beside Celsius, may be the one that a law is in.

Legend: `N` rows, `V` columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gmeql.tables.cells import Note, show

LEAST_VALUES = 8
"""Different values below which two columns are multiples by chance, as codes and counts may be."""
LEAST_STEPS = 50.0
"""How many times its rounding a column must span, so that a multiple says something."""
MOST_DECIMALS = 12
MOST_COLUMNS = 200
"""Columns beyond which nobody named each in a unit of his own, and looking at all pairs takes long."""
FIRST_ROWS = 50
"""Rows that most pairs are told apart by."""


def without_multiples(X: np.ndarray, names: Sequence[str], notes: list[Note]) -> list[int]:
    """Which columns of X [N, V] are no multiple of an earlier one within the digits that both have, with a note about the others.

    >>> length = np.array([1.5, 2.25, 3.0, 4.75, 5.5, 6.25, 7.0, 8.5, 9.25])
    >>> without_multiples(np.column_stack([length, length + 273.15, (3.28084 * length).round(3)]), ["m", "k", "ft"], [])
    [0, 1]
    """
    if X.shape[1] > MOST_COLUMNS:
        return list(range(X.shape[1]))
    kept: list[int] = []
    steps = [_step(column) for column in X.T]
    for k, column in enumerate(X.T):
        source = next((j for j in kept if _is_multiple(X[:, j], column, steps[j], steps[k])), None)
        if source is None:
            kept.append(k)
        else:
            times = float(X[:, source] @ column / (X[:, source] @ X[:, source]))
            text = f"column {show(names[k])} is {times:.6g} times {show(names[source])}: left out (--columns keeps columns)"
            notes.append(Note("multiple_columns", text, 1))
    return kept


def _is_multiple(source: np.ndarray, column: np.ndarray, source_step: float, step: float) -> bool:
    if len(column) > FIRST_ROWS and not _are_in_proportion(source[:FIRST_ROWS], column[:FIRST_ROWS], source_step, step):
        return False
    if not _are_in_proportion(source, column, source_step, step):
        return False
    times = float(source @ column / (source @ source))
    enough = np.ptp(column) >= LEAST_STEPS * max(step, abs(times) * source_step)
    return bool(enough and min(len(np.unique(column)), len(np.unique(source))) >= LEAST_VALUES)


def _are_in_proportion(source: np.ndarray, column: np.ndarray, source_step: float, step: float) -> bool:
    with np.errstate(all="ignore"):
        times = float(source @ column / (source @ source))
        allowed = 0.6 * (step + abs(times) * source_step) + 1e-12 * np.abs(column)
        return bool(np.isfinite(times) and (np.abs(column - times * source) <= allowed).all())


def _step(values: np.ndarray) -> float:
    """The unit of the last digit that the values have; 0 where they have more than are written down."""
    size = float(np.abs(values).max())
    for decimals in range(MOST_DECIMALS):
        scaled = values * 10.0**decimals
        if np.abs(scaled - np.rint(scaled)).max() <= 1e-9 * max(size * 10.0**decimals, 1.0):
            return 10.0**-decimals
    return 0.0
