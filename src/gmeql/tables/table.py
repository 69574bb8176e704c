"""A judged table, and what of it one target is explained by.

Nothing is dropped silently: each dropped row or column is counted in a `Note`. What cannot be used is a `TableError`
that names file, row, column and the mend.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gmeql.tables.categories import indicator, indicator_name
from gmeql.tables.cells import Note, TableError, show
from gmeql.tables.codes import without_codes
from gmeql.tables.column import TableColumn, with_indicators
from gmeql.tables.dates import day_numbers, first_day
from gmeql.tables.multiples import without_multiples
from gmeql.tables.selecting import (
    about_texts,
    broken_cell,
    check_target,
    check_weights,
    copies,
    usable,
    varying,
    whole_rows,
)
from gmeql.tables.training import Training

OTHER_SHEETS = "other_sheets"
"""The code of the note that a workbook has others: a column that is missed may stand there."""
_MEND_PREDICTED = "mend the cell, or leave it empty (its prediction is then empty)"


@dataclass(frozen=True)
class Table:
    """Every column of a table. `rows[i]` is the row of the file (as an editor counts) that data row i comes from."""

    columns: tuple[TableColumn, ...]
    rows: np.ndarray
    source: str
    notes: tuple[Note, ...] = ()
    duplicated: frozenset[str] = frozenset()
    preview: tuple[tuple[str, ...], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str, option: str) -> TableColumn:
        """The column of that name; the error lists near names."""
        found = self._find(name)
        if found is not None:
            return found
        near = difflib.get_close_matches(name, self.names, n=3, cutoff=0.5) or [
            known for known in self.names if known.lower() == name.lower()
        ]
        if near:
            mend = f"did you mean {' or '.join(map(show, near))}?"
        else:
            shown = ", ".join(map(show, self.names[:12])) + (
                f" and {len(self.names) - 12} more" if len(self.names) > 12 else ""
            )
            mend = (
                f"{option} takes one of {shown}"
                if option.startswith("--")
                else f"{option} needs it; the table has {shown}"
            )
        sheets = "".join(f" ({note.message})" for note in self.notes if note.code == OTHER_SHEETS)
        raise TableError(self.source, "there is no such column", column=name, mend=mend + sheets)

    def knows(self, name: str) -> bool:
        """Whether there is a column of that name, or a text column of which it names a category."""
        return self._find(name) is not None

    def _find(self, name: str) -> TableColumn | None:
        for column in self.columns:
            if column.name == name:
                return column
        for column in self.columns:
            first = None if column.labels is None else first_day(column.name, name)
            days = None if first is None else day_numbers(column.labels)
            if first is not None and days is not None:
                return TableColumn(name, days - first, "number", missing=column.missing)
        for column in self.columns:
            if column.labels is not None and name.startswith(indicator_name(column.name, "")):
                category = name.removeprefix(indicator_name(column.name, ""))
                return TableColumn(name, indicator(column.labels, category), "number")
        return None

    def matrix(self, names: Sequence[str], mend: str = _MEND_PREDICTED) -> np.ndarray:
        """X [N, V] of the named columns, rows as they are; NaN where a cell is missing. `mend` is said of text."""
        columns = [self.column(name, "the formula") for name in names]
        for column in columns:
            if column.kind == "broken" or column.kind == "text":
                raise broken_cell(self.source, column, mend)
        return np.stack([column.values for column in columns], axis=1) if columns else np.empty((len(self.rows), 0))

    def cleared(self, names: Sequence[str], *, text_as_missing: bool = False, keep_codes: bool = True) -> Table:
        """The table whose named columns have missing cells where no value stands: codes such as -999 (unless
        `keep_codes`), and text among numbers (if `text_as_missing`); notes tell which."""
        notes: list[Note] = []
        cleared = []
        for column in self.columns:
            if column.name in names and not keep_codes:
                column = without_codes(column, notes)
            if column.name in names and text_as_missing and column.kind == "broken":
                notes += about_texts(column)
                column = replace(column, kind="number", missing=column.missing + column.texts, texts=0)
            cleared.append(column)
        return replace(self, columns=tuple(cleared), notes=(*self.notes, *notes))

    def select(
        self,
        target: str,
        *,
        columns: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        errors: Sequence[str] = (),
        weights: str | None = None,
        text_as_missing: bool = False,
        keep_codes: bool = False,
        groups: str | None = None,
    ) -> Training:
        """Training data for `target` from all other columns, or from `columns` only, without those in `drop` and `errors`.

        A column of a few words becomes a column of 0 and 1 for each, a column of dates the days since the first; numbers such
        as -999 far from all others count as missing (unless `keep_codes`). Left out with a note: other text columns, constant
        and mostly empty ones, rows with a missing or infinite value. An error: a missing or constant target, text among
        numbers (unless `text_as_missing`), no row or no column left.
        """
        if target in self.duplicated:
            raise TableError(self.source, "two columns carry this name", column=target, mend="rename one of them")
        wanted = self.column(target, "--target")
        weigh = None if weights is None else self.column(weights, "--weights")
        labels = None if groups is None else self.column(groups, "--groups").words()
        for option, names in (("--drop", drop), ("--y-error or --x-error", errors)):
            for name in names:
                self.column(name, option)
        drop = [*drop, *errors, *([] if groups is None else [groups])]
        chosen = (
            [self.column(name, "--columns") for name in columns]
            if columns is not None
            else [column for column in self.columns if column.name not in (target, weights) and column.name not in drop]
        )
        if target in [column.name for column in chosen]:
            raise TableError(
                self.source, "the target cannot also explain itself", column=target, mend="take it out of --columns"
            )
        chosen = [column for column in chosen if column.name not in drop]
        check_target(self.source, wanted, len(self.rows), text_as_missing=text_as_missing)
        if weigh is not None:
            check_weights(self.source, weigh, self.rows)
        if len(self.columns) == 1:
            raise TableError(
                self.source,
                "the table has only one column",
                mend="give at least one column of numbers to explain it with; if there are several, name the --delimiter",
            )
        notes, explicit = list(self.notes), columns is not None
        if not keep_codes:
            chosen = [without_codes(column, notes) for column in chosen]
            wanted = without_codes(wanted, notes)
        features = usable(
            self.source, with_indicators(chosen, notes), notes, explicit=explicit, text_as_missing=text_as_missing
        )
        used = [*features, wanted, *([] if weigh is None else [weigh])]
        keep = whole_rows(self.source, used, notes, groups=None if labels is None else (str(groups), labels))
        X, y = np.stack([column.values for column in features], axis=1)[keep], wanted.values[keep]
        kept = varying(self.source, features, X, wanted.name, y, notes, explicit=explicit)
        X, names = X[:, kept], tuple(features[j].name for j in kept)
        if not explicit:
            single = without_multiples(X, names, notes)
            X, names = X[:, single], tuple(names[j] for j in single)
        notes += copies(X, names, y)
        weight = None if weigh is None else weigh.values[keep]
        if weight is not None and not np.any(weight > 0):
            raise TableError(self.source, "every weight is 0", column=weights, mend="give positive weights")
        return Training(
            np.ascontiguousarray(X),
            np.ascontiguousarray(y),
            names,
            target,
            weight,
            self.rows[keep],
            tuple(notes),
            self.source,
            self.names,
            groups=None if labels is None else tuple(labels[i] for i in np.flatnonzero(keep)),
            group_column=groups,
        )
