"""What explains a target: columns that can, and rows that are whole. What is left out is told in notes.

Nothing is dropped silently: each dropped row or column is counted in a `Note`. What cannot be used is a `TableError` about the
table called `source`, with row, column and the mend.

Legend: `N` rows, `V` columns, `C` columns with the target, weights and groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gmeql.tables.cells import Note, TableError, show
from gmeql.tables.column import TableColumn
from gmeql.tables.dates import is_unclear

MIN_ROWS = 2  # fewer say nothing about a formula
MOSTLY_EMPTY = 0.5  # a column with a larger share of missing cells is left out rather than its rows
MOST_NAMED = 5  # columns that a note names
_MEND_CELL = "mend the cell, count such cells as missing with --text-as-missing"
_LABELS = " (class labels are not numbers: gmeql classify finds formulas for their chances)"
_LEFT_OUT = {
    "text": "text, not numbers: left out",
    "unclear_dates": "written as 01/02/2024, which may be two days: left out (2024-02-01 and 1.2.2024 are clear)",
    "empty": "empty: left out",
    "mostly_empty": "more than half empty: left out (--columns keeps columns)",
    "constant": "constant, so nothing is explained by it: left out",
    "copies": "equal to the target in every row (--drop leaves columns out)",
}
"""What is said of columns, by the code of the note."""


# --- columns ---------------------------------------------------------------------------------------------------------


def check_target(source: str, target: TableColumn, n_rows: int, *, text_as_missing: bool) -> None:
    """Refuse a target that is no column of numbers, or always the same."""
    if not n_rows:
        raise TableError(source, "there is a header but no rows", mend=f"give at least {MIN_ROWS} rows of numbers")
    if target.kind == "broken" and not text_as_missing:
        raise broken_cell(source, target, f"{_MEND_CELL}, or choose another --target")
    row, mend = None, "choose another --target, a column of numbers"
    if target.days() is not None:
        problem, mend = "the target holds dates", f"{mend}: dates can only explain one"
    elif target.kind == "text":
        problem, mend = "the target holds text", mend + _LABELS
        row = target.first_text[0] if target.first_text else None
    elif target.kind == "empty":
        problem = "the target is empty"
    elif not np.isfinite(target.values).any():
        problem = "the target has no finite number"
    elif target.constant and n_rows > 1:
        problem, mend = "the target is the same in every row", "choose another --target"
    else:
        return
    raise TableError(source, problem, row=row, column=target.name, mend=mend)


def check_weights(source: str, weights: TableColumn, rows: np.ndarray) -> None:
    """Refuse weights that are no numbers of at least 0; `rows` [N] are those of the file."""
    if weights.kind != "number" and weights.first_text:
        raise broken_cell(source, weights, "mend the cell, or choose other --weights")
    if weights.kind != "number":
        raise TableError(source, "the weights are empty", column=weights.name, mend="give positive weights")
    negative = np.flatnonzero(weights.values < 0)
    if len(negative):
        raise TableError(
            source,
            f"a weight of {weights.values[negative[0]]:.6g}",
            row=int(rows[negative[0]]),
            column=weights.name,
            mend="weights are 0 or more",
        )


def usable(
    source: str, chosen: Sequence[TableColumn], notes: list[Note], *, explicit: bool, text_as_missing: bool
) -> list[TableColumn]:
    """Those of the `chosen` columns that can explain a target; where somebody named them (`explicit`), all must."""
    features: list[TableColumn] = []
    left_out: dict[str, list[TableColumn]] = {"text": [], "unclear_dates": [], "empty": [], "mostly_empty": []}
    for column in chosen:
        if column.kind == "broken" and not text_as_missing:
            raise broken_cell(source, column, f"{_MEND_CELL}, or leave the column out with --drop {show(column.name)}")
        if column.kind in ("text", "empty"):
            if explicit:
                problem = "has no number" if column.kind == "empty" else "holds text, not numbers"
                raise TableError(source, problem, column=column.name, mend="take it out of --columns")
            unclear = column.first_text is not None and is_unclear(column.first_text[1])
            left_out["unclear_dates" if unclear else column.kind].append(column)
        elif not explicit and np.isnan(column.values).mean() > MOSTLY_EMPTY:
            left_out["mostly_empty"].append(column)
        else:
            features.append(column)
            notes += about_texts(column)
    if not features:  # then a mostly empty column is better than none
        features, left_out["mostly_empty"] = left_out["mostly_empty"], []
    about = [note for code, columns in left_out.items() for note in _about((c.name for c in columns), code)]
    notes += about
    if not features:
        why = "".join(f"; {note.message}" for note in about)
        raise TableError(
            source,
            f"there is no column of numbers beside the target{why}",
            mend="give at least one column of numbers to explain it with",
        )
    return features


def about_texts(column: TableColumn) -> list[Note]:
    """A note about text among the numbers of a column that counts as missing; none where there is none."""
    text = f"text cells of {show(column.name)} that count as missing: {column.texts}"
    return [Note("text_cells", text, column.texts)] if column.texts else []


def varying(
    source: str,
    features: Sequence[TableColumn],
    X: np.ndarray,
    target: str,
    y: np.ndarray,
    notes: list[Note],
    *,
    explicit: bool,
) -> list[int]:
    """Which columns of X [N, V] vary, all where somebody named them; refuses rows in which the target or nothing else does."""
    if np.all(y == y[0]):
        problem = f"the target is {y[0]:.6g} in every usable row"
        raise TableError(source, problem, column=target, mend="choose another --target")
    varies = np.any(X != X[0], axis=0) | explicit
    notes += _about((column.name for column, kept in zip(features, varies, strict=True) if not kept), "constant")
    if not varies.any():
        problem, mend = "no column is left to explain the target", "give a column of numbers that vary"
        raise TableError(source, problem, column=target, mend=mend)
    return np.flatnonzero(varies).tolist()


def copies(X: np.ndarray, names: Sequence[str], y: np.ndarray) -> list[Note]:
    """A note about columns of X [N, V] that are the target."""
    same = [name for name, column in zip(names, X.T, strict=True) if np.array_equal(column, y)]
    return _about(same, "copies")


def _about(names: Iterable[str], code: str) -> list[Note]:
    """One note about one or many columns, or none about none."""
    shown = [show(name) for name in names]
    if not shown:
        return []
    listed = ", ".join(shown[:MOST_NAMED]) + _more(len(shown) - MOST_NAMED)
    subject = f"column {listed} is" if len(shown) == 1 else f"columns {listed} are"
    return [Note(f"{code}_columns", f"{subject} {_LEFT_OUT[code]}", len(shown))]


def _more(count: int, what: str = "") -> str:
    return f" and {count} more{what}" if count > 0 else ""


def broken_cell(source: str, column: TableColumn, mend: str) -> TableError:
    """Text among the numbers of a column."""
    row, cell = column.first_text or (0, "")
    more = f" (and {column.texts - 1} more such cells)" if column.texts > 1 else ""
    return TableError(source, f"{show(cell)} is not a number{more}", row=row, column=column.name, mend=mend)


# --- rows ------------------------------------------------------------------------------------------------------------


def whole_rows(
    source: str, used: Sequence[TableColumn], notes: list[Note], *, groups: tuple[str, Sequence[str]] | None
) -> np.ndarray:
    """Which rows [N] have a finite value in every column, and a group where these are given by column and label of each row."""
    values = np.stack([column.values for column in used], axis=1)
    missing, infinite = np.isnan(values), np.isinf(values)
    names = [column.name for column in used]
    if groups is not None:
        missing = np.column_stack([missing, [label == "" for label in groups[1]]])
        names.append(groups[0])
    infinite &= ~missing.any(axis=1)[:, None]
    whole: np.ndarray = ~(infinite.any(axis=1) | missing.any(axis=1))
    for cells, what in ((missing, "missing"), (infinite, "infinite")):
        if cells.any():
            notes.append(_incomplete(cells, names, what))
    if whole.sum() < MIN_ROWS:
        raise _too_few(source, used, int(whole.sum()), len(whole))
    return whole


def _incomplete(cells: np.ndarray, names: Sequence[str], what: str) -> Note:
    """A note about rows that are left out for some of their cells [N, C], with the columns that most of these stand in."""
    counts = sorted(zip(cells.sum(axis=0).tolist(), names, strict=False), key=lambda one: -one[0])
    lacking = [f"{count} in {show(name)}" for count, name in counts if count]
    listed = ", ".join(lacking[:MOST_NAMED]) + _more(len(lacking) - MOST_NAMED, " columns")
    rows = int(cells.any(axis=1).sum())
    return Note(f"{what}_rows", f"{rows} of {len(cells)} rows left out: a value is {what} ({listed})", rows)


def _too_few(source: str, used: Sequence[TableColumn], left: int, total: int) -> TableError:
    worst = max(used, key=lambda column: np.count_nonzero(~np.isfinite(column.values)))
    lost = np.count_nonzero(~np.isfinite(worst.values))
    if not lost:
        problem = f"only {total} row{'s' * (total != 1)}"
        return TableError(source, problem, mend=f"give at least {MIN_ROWS} rows of numbers")
    return TableError(
        source,
        f"{left} of {total} rows are complete; this column lacks {lost} values",
        column=worst.name,
        mend=f"fill its cells or leave it out with --drop {show(worst.name)}",
    )
