"""How a formula's values move with each of its columns, as curves among the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gmeql.report.numbers import plain_list
from gmeql.tables.categories import column_of, indicator_name

if TYPE_CHECKING:
    from gmeql.formula.expression import Expression
    from gmeql.tables.training import Training

MAX_RESPONSES = 8  # curves of one formula
CURVE_POINTS = 160
OTHERS = "others"  # kinds that are too rare for a column


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

    A column of words is one curve over its kinds, as the user's table has it. Own constants of groups, behind the first
    `n_columns`, are no columns that move. For a formula of one column the points are the measured values themselves.
    """
    kinds = kinds_of_categories(training)
    middle = middle_row(training, kinds)
    used = [c for c in expression.variables if c < n_columns]
    firsts = list(dict.fromkeys(kinds[c][0] if c in kinds else c for c in used))
    return [
        _over_kinds(expression, training, kinds[c], middle, X, residuals)
        if c in kinds
        else _over_numbers(expression, training, c, middle, X, residuals) | {"column": place[c]}
        for c in firsts[:MAX_RESPONSES]
    ]


def _over_numbers(
    expression: Expression, training: Training, column: int, middle: np.ndarray, X: np.ndarray, residuals: np.ndarray
) -> dict[str, Any]:
    low, high = float(training.X[:, column].min()), float(training.X[:, column].max())
    grid = np.linspace(low, high, CURVE_POINTS)
    on_curve, at_rows = np.tile(middle, (CURVE_POINTS, 1)), np.tile(middle, (len(X), 1))
    on_curve[:, column], at_rows[:, column] = grid, X[:, column]
    with np.errstate(all="ignore"):
        curve, points = expression(on_curve), expression(at_rows) + residuals
    return {
        "name": training.names[column],
        "x": plain_list(grid),
        "y": plain_list(curve),
        "points": plain_list(points),
    }


def _over_kinds(
    expression: Expression,
    training: Training,
    columns: list[int],
    middle: np.ndarray,
    X: np.ndarray,
    residuals: np.ndarray,
) -> dict[str, Any]:
    """Of a column of words: the value at each kind, the kind of each row, and the rows around these values."""
    word = column_of(training.names[columns[0]], training.table_names or ())
    names = [training.names[k].removeprefix(indicator_name(word, "")) for k in columns]
    belongs = X[:, columns] > 0
    own = np.where(belongs.any(axis=1), belongs.argmax(axis=1), len(columns))
    if (own == len(columns)).any():
        names.append(OTHERS)
    rows = np.tile(middle, (len(columns) + 1, 1))
    rows[:, columns] = np.eye(len(columns) + 1, len(columns))
    with np.errstate(all="ignore"):
        values = expression(rows)
    return {
        "name": word,
        "kinds": names,
        "own": own.tolist(),
        "y": plain_list(values[: len(names)]),
        "points": plain_list(values[own] + residuals),
    }
