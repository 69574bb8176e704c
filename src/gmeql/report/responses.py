"""How a formula's values move with each of its columns, as curves among the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gmeql.report.numbers import plain_list
from gmeql.tables.categories import column_of

if TYPE_CHECKING:
    from gmeql.formula.expression import Expression
    from gmeql.tables.training import Training

MAX_RESPONSES = 8  # curves of one formula
CURVE_POINTS = 160


def kinds_of_categories(training: Training) -> dict[int, list[int]]:
    """Of each column of 0 and 1 that the table made of a column of words, all that it made of the same."""
    of_words: dict[str, list[int]] = {}
    for k, name in enumerate(training.names):
        word = column_of(name, training.table_names or ())
        if word != name:
            of_words.setdefault(word, []).append(k)
    return {k: columns for columns in of_words.values() for k in columns}


def middle_row(training: Training, kinds: Mapping[int, list[int]]) -> np.ndarray:
    """The median of each column [V]; a category's columns say its most frequent kind, since no row is of none or two."""
    middle = np.asarray(np.median(training.X, axis=0), dtype=float)
    for columns in kinds.values():
        counts = training.X[:, columns].sum(axis=0)
        rest = len(training.X) - counts.sum()  # rows of kinds that are too rare for a column
        middle[columns] = 0.0
        if counts.max() >= rest:
            middle[columns[int(np.argmax(counts))]] = 1.0
    return middle


def responses(
    expression: Expression,
    training: Training,
    X: np.ndarray,
    residuals: np.ndarray,
    place: Mapping[int, int],
    n_columns: int,
) -> list[dict[str, Any]]:
    """A curve per used column, the others at their middle, and each row at its distance from the formula.

    A row is of one kind of a category: where the column of a kind moves, those of the other kinds are 0. Own constants
    of groups, behind the first `n_columns`, are no columns that move. For a formula of one column the points are the
    measured values themselves.
    """
    kinds = kinds_of_categories(training)
    middle = middle_row(training, kinds)
    found = []
    for column in [c for c in expression.variables if c < n_columns][:MAX_RESPONSES]:
        held = middle.copy()
        held[kinds.get(column, [])] = 0.0
        low, high = float(training.X[:, column].min()), float(training.X[:, column].max())
        grid = np.linspace(low, high, CURVE_POINTS)
        on_curve = np.tile(held, (CURVE_POINTS, 1))
        on_curve[:, column] = grid
        at_rows = np.tile(held, (len(X), 1))
        at_rows[:, column] = X[:, column]
        with np.errstate(all="ignore"):
            curve, points = expression(on_curve), expression(at_rows) + residuals
        found.append(
            {
                "name": training.names[column],
                "column": place[column],
                "x": plain_list(grid),
                "y": plain_list(curve),
                "points": plain_list(points),
            }
        )
    return found
