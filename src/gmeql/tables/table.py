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
from gmeql.tables.column import TableColumn, with_indicators
from gmeql.tables.dates import day_numbers, first_day
from gmeql.tables.training import Training

MIN_ROWS = 2  # fewer say nothing about a formula
MOSTLY_EMPTY = 0.5  # a column with a larger share of missing cells is left out rather than its rows
_MEND_CELL = "mend the cell, count such cells as missing with --text-as-missing"
_MEND_PREDICTED = "mend the cell, or leave it empty (its prediction is then empty)"
_LABELS = " (class labels are not numbers: gmeql classify finds formulas for their chances)"


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
                f"{option} takes one of {shown}" if option.startswith("--") else f"{option} needs it; there is {shown}"
            )
        raise TableError(self.source, "there is no such column", column=name, mend=mend)

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
                raise self._broken(column, mend=mend)
        return np.stack([column.values for column in columns], axis=1) if columns else np.empty((len(self.rows), 0))

    def select(
        self,
        target: str,
        *,
        columns: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        errors: Sequence[str] = (),
        weights: str | None = None,
        text_as_missing: bool = False,
        groups: str | None = None,
    ) -> Training:
        """Training data for `target` from all other columns, or from `columns` only, without those in `drop` and `errors`.

        A column of a few words becomes a column of 0 and 1 for each, a column of dates the days since the first. Left out
        with a note: other text columns, constant and mostly empty ones, rows with a missing or infinite value. An error: a
        missing or constant target, text among numbers (unless `text_as_missing`), no row or no column left.
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
        self._check_target(wanted, text_as_missing)
        notes = list(self.notes)
        chosen = with_indicators(chosen, notes)
        features, kept_notes = self._features(chosen, explicit=columns is not None, text_as_missing=text_as_missing)
        notes += kept_notes
        used = [*features, wanted] + ([weigh] if weigh else [])
        if weigh is not None:
            self._check_weights(weigh)
        values = np.stack([column.values for column in used], axis=1)
        missing, infinite = np.isnan(values), np.isinf(values)
        names = [column.name for column in used]
        if labels is not None:
            missing = np.column_stack([missing, [label == "" for label in labels]])
            names.append(str(groups))
        infinite &= ~missing.any(axis=1)[:, None]
        keep = ~(infinite.any(axis=1) | missing.any(axis=1))
        for cells, what in ((missing, "missing"), (infinite, "infinite")):
            if cells.any():
                notes.append(_left_out(cells, names, what))
        if keep.sum() < MIN_ROWS:
            raise self._too_few(used, int(keep.sum()), len(keep))
        training = self._finish(
            values[keep],
            [c.name for c in features],
            wanted,
            weigh,
            self.rows[keep],
            notes,
            explicit=columns is not None,
        )
        if labels is None:
            return training
        return replace(training, groups=tuple(labels[i] for i in np.flatnonzero(keep)), group_column=groups)

    def _finish(
        self,
        values: np.ndarray,
        names: list[str],
        target: TableColumn,
        weights: TableColumn | None,
        rows: np.ndarray,
        notes: list[Note],
        *,
        explicit: bool,
    ) -> Training:
        width = len(names)
        X, y = values[:, :width], values[:, width]
        if np.all(y == y[0]):
            raise TableError(
                self.source,
                f"the target is {y[0]:.6g} in every usable row",
                column=target.name,
                mend="choose another --target",
            )
        varies = np.any(X != X[0], axis=0)
        if not varies.all() and not explicit:
            left_out = [name for name, kept in zip(names, varies, strict=True) if not kept]
            notes.append(
                _about(
                    left_out,
                    "constant",
                    "constant, so it explains nothing: left out",
                    "constant, so they explain nothing: left out",
                )
            )
            X, names = X[:, varies], [name for name, kept in zip(names, varies, strict=True) if kept]
        if not names:
            raise TableError(
                self.source,
                "no column is left to explain the target",
                column=target.name,
                mend="give a column of numbers that vary",
            )
        same = [name for name, column in zip(names, X.T, strict=True) if np.array_equal(column, y)]
        if same:
            notes.append(
                _about(
                    same,
                    "copies",
                    "equal to the target in every row: leave it out with --drop",
                    "equal to the target in every row: leave them out with --drop",
                )
            )
        weight_values = values[:, width + 1] if weights is not None else None
        if weight_values is not None and not np.any(weight_values > 0):
            raise TableError(
                self.source, "every weight is 0", column=weights.name if weights else None, mend="give positive weights"
            )
        return Training(
            np.ascontiguousarray(X),
            np.ascontiguousarray(y),
            tuple(names),
            target.name,
            weight_values,
            rows,
            tuple(notes),
            self.source,
            self.names,
        )

    def _features(
        self, chosen: list[TableColumn], *, explicit: bool, text_as_missing: bool
    ) -> tuple[list[TableColumn], list[Note]]:
        features: list[TableColumn] = []
        sparse: list[TableColumn] = []
        dropped: dict[str, list[str]] = {"text": [], "empty": [], "mostly_empty": []}
        notes: list[Note] = []
        for column in chosen:
            if column.kind == "broken" and not text_as_missing:
                raise self._broken(column)
            if column.kind in ("text", "empty"):
                if explicit:
                    raise TableError(
                        self.source,
                        "has no number" if column.kind == "empty" else "holds text, not numbers",
                        column=column.name,
                        mend="take it out of --columns",
                    )
                dropped[column.kind].append(column.name)
            elif not explicit and np.isnan(column.values).mean() > MOSTLY_EMPTY:
                sparse.append(column)
            else:
                features.append(column)
                if column.texts:
                    notes.append(
                        Note(
                            "text_cells",
                            f"{column.texts} text cells of {show(column.name)} count as missing",
                            column.texts,
                        )
                    )
        if not features:  # then a mostly empty column is better than none
            features, sparse = sparse, []
        dropped["mostly_empty"] = [column.name for column in sparse]
        for kind, one, many in (
            ("text", "text, not numbers: left out", "text, not numbers: left out"),
            ("empty", "empty: left out", "empty: left out"),
            (
                "mostly_empty",
                "more than half empty: left out (keep it with --columns)",
                "more than half empty: left out (keep them with --columns)",
            ),
        ):
            if dropped[kind]:
                notes.append(_about(dropped[kind], kind, one, many))
        if not features:
            raise TableError(
                self.source,
                "there is no column of numbers beside the target"
                if len(self.columns) > 1
                else "the table has only one column",
                mend="give at least one column of numbers to explain it with"
                + ("" if len(self.columns) > 1 else "; if there are several, name the --delimiter"),
            )
        return features, notes

    def _check_target(self, target: TableColumn, text_as_missing: bool) -> None:
        if not len(self.rows):
            raise TableError(
                self.source, "there is a header but no rows", mend=f"give at least {MIN_ROWS} rows of numbers"
            )
        if target.kind == "broken" and not text_as_missing:
            raise self._broken(target, mend=f"{_MEND_CELL}, or choose another --target")
        if target.days() is not None:
            raise TableError(
                self.source,
                "the target holds dates",
                column=target.name,
                mend="choose another --target, a column of numbers: dates can only explain one",
            )
        if target.kind in ("text", "empty") or not np.isfinite(target.values).any():
            problem = {"text": "the target holds text", "empty": "the target is empty"}.get(
                target.kind, "the target has no finite number"
            )
            raise TableError(
                self.source,
                problem,
                column=target.name,
                mend="choose another --target, a column of numbers" + _LABELS * (target.kind == "text"),
                row=target.first_text[0] if target.first_text else None,
            )
        if target.constant and len(self.rows) > 1:
            raise TableError(
                self.source, "the target is the same in every row", column=target.name, mend="choose another --target"
            )

    def _check_weights(self, weights: TableColumn) -> None:
        if weights.kind != "number":
            raise (
                self._broken(weights, mend="mend the cell, or choose other --weights")
                if weights.first_text
                else TableError(self.source, "the weights are empty", column=weights.name, mend="give positive weights")
            )
        negative = np.flatnonzero(weights.values < 0)
        if len(negative):
            raise TableError(
                self.source,
                f"a weight of {weights.values[negative[0]]:.6g}",
                row=int(self.rows[negative[0]]),
                column=weights.name,
                mend="weights are 0 or more",
            )

    def _broken(self, column: TableColumn, mend: str | None = None) -> TableError:
        row, cell = column.first_text or (0, "")
        more = f" (and {column.texts - 1} more such cells)" if column.texts > 1 else ""
        return TableError(
            self.source,
            f"{show(cell)} is not a number{more}",
            row=row,
            column=column.name,
            mend=mend or f"{_MEND_CELL}, or leave the column out with --drop {show(column.name)}",
        )

    def _too_few(self, used: Sequence[TableColumn], left: int, total: int) -> TableError:
        worst = max(used, key=lambda column: np.count_nonzero(~np.isfinite(column.values)))
        lost = np.count_nonzero(~np.isfinite(worst.values))
        if not lost:
            return TableError(
                self.source, f"only {total} row{'s' * (total != 1)}", mend=f"give at least {MIN_ROWS} rows of numbers"
            )
        return TableError(
            self.source,
            f"{left} of {total} rows are complete; this column lacks {lost} values",
            column=worst.name,
            mend=f"fill its cells or leave it out with --drop {show(worst.name)}",
        )


def _left_out(cells: np.ndarray, names: Sequence[str], what: str) -> Note:
    """A note about rows that are left out for some of their cells [N, C], with the columns that most of these stand in."""
    counts = sorted(zip(cells.sum(axis=0).tolist(), names, strict=False), key=lambda one: -one[0])
    lacking = [f"{count} in {show(name)}" for count, name in counts if count]
    more = f" and {len(lacking) - 5} more columns" if len(lacking) > 5 else ""
    rows = int(cells.any(axis=1).sum())
    text = f"{rows} of {len(cells)} rows left out: a value is {what} ({', '.join(lacking[:5])}{more})"
    return Note(f"{what}_rows", text, rows)


def _about(names: Sequence[str], code: str, one: str, many: str) -> Note:
    """One note about one or many columns, at most five of them named."""
    shown = ", ".join(map(show, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return Note(
        f"{code}_columns", f"column {shown} is {one}" if len(names) == 1 else f"columns {shown} are {many}", len(names)
    )
