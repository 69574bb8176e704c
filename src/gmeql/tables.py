"""Reading a user's table: any delimiter, encoding and decimal mark, Parquet and Excel, into numbers.

`read` gives a `Table` (every column, judged), `Table.select` the `Training` data for one target. Nothing is dropped
silently: each dropped row or column is counted in a `Note`. What cannot be used is a `TableError` that names file, row,
column and the mend.
"""

from __future__ import annotations

import difflib
import gzip
import hashlib
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from gmeql.text_tables import (
    Grid,
    Note,
    TableError,
    TextTable,
    clean_cell,
    is_missing,
    name_columns,
    parse_number,
    read_text,
    show,
    tidy_names,
)

if TYPE_CHECKING:
    import polars

__all__ = ["Column", "Note", "Table", "TableError", "Training", "read"]

MAX_UNPACKED_BYTES = 4 * 2**30  # a compressed file may not grow beyond this
MIN_ROWS = 2  # fewer say nothing about a formula
MOSTLY_EMPTY = 0.5  # a column with a larger share of missing cells is left out rather than its rows
SLOW_CELLS = 2000  # distinct odd cells that are looked at one by one before a column counts as text
PREVIEW_ROWS = 8
Kind = Literal["number", "broken", "text", "empty"]


@dataclass(frozen=True)
class Column:
    """One column, judged. `values` has NaN where a cell is missing or text; `broken` means text among numbers."""

    name: str
    values: np.ndarray
    kind: Kind
    missing: int = 0
    texts: int = 0
    first_text: tuple[int, str] | None = None

    @property
    def constant(self) -> bool:
        finite = self.values[np.isfinite(self.values)]
        return self.kind == "number" and finite.size > 0 and bool(np.all(finite == finite[0]))

    @property
    def summary(self) -> str:
        """A few words for lists of columns."""
        if self.kind in ("text", "empty"):
            return "text" if self.kind == "text" else "empty"
        finite = self.values[np.isfinite(self.values)]
        if finite.size == 0:
            return "no finite number"
        words = f"constant {finite[0]:.4g}" if self.constant else f"{finite.min():.4g} to {finite.max():.4g}"
        words += f", {self.missing} missing" if self.missing else ""
        return words + (f", {self.texts} cells are text" if self.kind == "broken" else "")


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

    @property
    def fingerprint(self) -> str:
        """SHA-256 of names and numbers: equal for the same training data, whatever file it came from."""
        digest = hashlib.sha256("\0".join((*self.names, self.target)).encode())
        for array in (self.X, self.y, self.weights):
            if array is not None:
                digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Table:
    """Every column of a table. `rows[i]` is the row of the file (as an editor counts) that data row i comes from."""

    columns: tuple[Column, ...]
    rows: np.ndarray
    source: str
    notes: tuple[Note, ...] = ()
    duplicated: frozenset[str] = frozenset()
    preview: tuple[tuple[str, ...], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str, option: str) -> Column:
        """The column of that name; the error lists near names."""
        for column in self.columns:
            if column.name == name:
                return column
        near = difflib.get_close_matches(name, self.names, n=3, cutoff=0.5) or [
            known for known in self.names if known.lower() == name.lower()
        ]
        if near:
            mend = f"did you mean {' or '.join(map(show, near))}?"
        else:
            shown = ", ".join(map(show, self.names[:12])) + (
                f" and {len(self.names) - 12} more" if len(self.names) > 12 else ""
            )
            mend = f"{option} takes one of {shown}"
        raise TableError(self.source, "there is no such column", column=name, mend=mend)

    def matrix(self, names: Sequence[str]) -> np.ndarray:
        """X [N, V] of the named columns, rows as they are; NaN where a cell is missing. For prediction."""
        columns = [self.column(name, "the formula") for name in names]
        for column in columns:
            if column.kind == "broken" or column.kind == "text":
                raise self._broken(column, mend="mend the cell, or leave it empty (its prediction is then empty)")
        return np.stack([column.values for column in columns], axis=1) if columns else np.empty((len(self.rows), 0))

    def select(
        self,
        target: str,
        *,
        columns: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        weights: str | None = None,
        text_as_missing: bool = False,
    ) -> Training:
        """Training data for `target` from all other columns, or from `columns` only, without those in `drop`.

        Left out with a note: text columns, constant and mostly empty ones, rows with a missing or infinite value. An
        error: a missing or constant target, text among numbers (unless `text_as_missing`), no row or no column left.
        """
        if target in self.duplicated:
            raise TableError(self.source, "two columns carry this name", column=target, mend="rename one of them")
        wanted = self.column(target, "--target")
        weigh = None if weights is None else self.column(weights, "--weights")
        for name in drop:
            self.column(name, "--drop")
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
        features, kept_notes = self._features(chosen, explicit=columns is not None, text_as_missing=text_as_missing)
        notes += kept_notes
        used = [*features, wanted] + ([weigh] if weigh else [])
        if weigh is not None:
            self._check_weights(weigh)
        values = np.stack([column.values for column in used], axis=1)
        infinite = np.isinf(values).any(axis=1)
        missing = np.isnan(values).any(axis=1)
        keep = ~(infinite | missing)
        if count := int(missing.sum()):
            notes.append(Note("missing_rows", f"{count} of {len(keep)} rows left out: a value is missing", count))
        if count := int((infinite & ~missing).sum()):
            notes.append(Note("infinite_rows", f"{count} of {len(keep)} rows left out: a value is infinite", count))
        if keep.sum() < MIN_ROWS:
            raise self._too_few(used, int(keep.sum()), len(keep))
        return self._finish(
            values[keep],
            [c.name for c in features],
            wanted,
            weigh,
            self.rows[keep],
            notes,
            explicit=columns is not None,
        )

    def _finish(
        self,
        values: np.ndarray,
        names: list[str],
        target: Column,
        weights: Column | None,
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
        )

    def _features(
        self, chosen: list[Column], *, explicit: bool, text_as_missing: bool
    ) -> tuple[list[Column], list[Note]]:
        features: list[Column] = []
        sparse: list[Column] = []
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

    def _check_target(self, target: Column, text_as_missing: bool) -> None:
        if not len(self.rows):
            raise TableError(
                self.source, "there is a header but no rows", mend=f"give at least {MIN_ROWS} rows of numbers"
            )
        if target.kind == "broken" and not text_as_missing:
            raise self._broken(target)
        if target.kind in ("text", "empty") or not np.isfinite(target.values).any():
            problem = {"text": "the target holds text", "empty": "the target is empty"}.get(
                target.kind, "the target has no finite number"
            )
            raise TableError(
                self.source,
                problem,
                column=target.name,
                mend="choose another --target, a column of numbers",
                row=target.first_text[0] if target.first_text else None,
            )
        if target.constant and len(self.rows) > 1:
            raise TableError(
                self.source, "the target is the same in every row", column=target.name, mend="choose another --target"
            )

    def _check_weights(self, weights: Column) -> None:
        if weights.kind != "number":
            raise (
                self._broken(weights)
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

    def _broken(self, column: Column, mend: str | None = None) -> TableError:
        row, cell = column.first_text or (0, "")
        more = f" (and {column.texts - 1} more such cells)" if column.texts > 1 else ""
        return TableError(
            self.source,
            f"{show(cell)} is not a number{more}",
            row=row,
            column=column.name,
            mend=mend
            or "mend the cell, count such cells as missing with --text-as-missing, "
            f"or leave the column out with --drop {show(column.name)}",
        )

    def _too_few(self, used: Sequence[Column], left: int, total: int) -> TableError:
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


def _about(names: Sequence[str], code: str, one: str, many: str) -> Note:
    """One note about one or many columns, at most five of them named."""
    shown = ", ".join(map(show, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return Note(
        f"{code}_columns", f"column {shown} is {one}" if len(names) == 1 else f"columns {shown} are {many}", len(names)
    )


# ------------------------------------------------------------------------------------------------- reading


def read(
    source: str | Path | bytes,
    *,
    name: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    skip_bad_rows: bool = False,
) -> Table:
    """Read a CSV, TSV, Parquet, Arrow or Excel table, gzipped or not, from a path, `-` (stdin) or bytes.

    Args:
        source: path, `"-"`, or the file's bytes.
        name: what messages call the table; its path by default.
        delimiter, decimal, header, encoding: taken if given, found out if not (text tables only).
        sheet: name of the sheet of a workbook; the first by default.
        skip_bad_rows: leave out rows with the wrong number of cells, counted, instead of ending with an error.

    >>> table = read(b"t,y\\n0,1\\n1,3\\n2,5\\n", name="line.csv")
    >>> table.names, table.select("y").X.ravel().tolist()
    (('t', 'y'), [0.0, 1.0, 2.0])
    """
    data = source if isinstance(source, bytes) else _load(source)
    name = name or ("table" if isinstance(source, bytes) else "standard input" if str(source) == "-" else str(source))
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '\n\r"'):
        raise TableError(name, f"the delimiter {delimiter!r} is not one character", mend="as in --delimiter ';'")
    if decimal not in (None, ".", ","):
        raise TableError(name, f"the decimal mark {decimal!r} is unknown", mend="--decimal takes '.' or ','")
    if decimal is not None and decimal == delimiter:
        raise TableError(
            name, "delimiter and decimal mark are the same", mend="change one of --delimiter and --decimal"
        )
    if data.startswith(b"\x1f\x8b"):
        data = _unzip(data, name)
    if not data.strip(b" \t\r\n\0"):
        raise TableError(name, "the file is empty", mend="give a table with a header and at least two rows")
    if data.startswith(b"PAR1") or data.startswith(b"ARROW1"):
        return _read_frame(data, name)
    if data.startswith(b"PK\x03\x04") or data.startswith(b"\xd0\xcf\x11\xe0"):
        return _read_workbook(data, name, sheet, decimal, header)
    if data.startswith(
        (b"%PDF", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"\x7fELF", b"\x89HDF", b"\x93NUMPY", b"BZh", b"\xfd7zXZ")
    ):
        raise TableError(name, "this is not a table", mend="give CSV, TSV, Parquet or Excel")
    text = read_text(
        data, name, delimiter=delimiter, decimal=decimal, header=header, encoding=encoding, skip_bad_rows=skip_bad_rows
    )
    return _judge(text, name)


def _load(source: str | Path) -> bytes:
    path = str(source)
    try:
        if path == "-":
            return sys.stdin.buffer.read()
        return Path(path).read_bytes()
    except FileNotFoundError:
        folder = Path(path).parent
        near = (
            difflib.get_close_matches(Path(path).name, [p.name for p in folder.iterdir()], n=1)
            if folder.is_dir()
            else []
        )
        raise TableError(
            path, "no such file", mend=f"did you mean {show(str(folder / near[0]), 200)}?" if near else "check the path"
        ) from None
    except IsADirectoryError:
        raise TableError(path, "this is a folder", mend="give a file in it") from None
    except PermissionError:
        raise TableError(path, "may not be read", mend="change its permissions") from None
    except (OSError, ValueError) as error:
        raise TableError(path, f"cannot be read ({error})", mend="check the path") from None


def _unzip(data: bytes, name: str) -> bytes:
    import io

    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            unpacked = file.read(MAX_UNPACKED_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(
            name, f"the gzip file is damaged ({error})", mend="pack it again, or give the table itself"
        ) from None
    if len(unpacked) > MAX_UNPACKED_BYTES:
        raise TableError(name, f"unpacks to more than {MAX_UNPACKED_BYTES >> 30} GiB", mend="give a sample of its rows")
    return unpacked


def _read_frame(data: bytes, name: str) -> Table:
    import io

    import polars as pl

    parquet = data.startswith(b"PAR1")
    try:
        frame = pl.read_parquet(io.BytesIO(data)) if parquet else pl.read_ipc(io.BytesIO(data))
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise TableError(
            name,
            f"the {'Parquet' if parquet else 'Arrow'} file is damaged ({type(error).__name__})",
            mend="write it again",
        ) from None
    except pl.exceptions.PanicException:
        raise TableError(name, "the file is damaged", mend="write it again") from None
    names, duplicated, notes = tidy_names(frame.columns)
    rows = np.arange(1, frame.height + 1)
    columns = []
    for label, series in zip(names, frame.get_columns(), strict=True):
        if series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null):
            columns.append(
                _column_of_numbers(label, series.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy(), rows)
            )
        elif series.dtype in (pl.String, pl.Categorical) or isinstance(series.dtype, pl.Enum):
            columns.append(_column(label, series.cast(pl.String), ".", rows, notes))
        else:
            first = next(((i, value) for i, value in enumerate(series) if value is not None), None)
            missing = series.null_count()
            columns.append(
                Column(
                    label,
                    np.full(frame.height, np.nan),
                    "text" if first else "empty",
                    missing,
                    frame.height - missing,
                    (int(rows[first[0]]), str(first[1])) if first else None,
                )
            )
    if not columns:
        raise TableError(name, "the file has no columns", mend="give a table with at least two")
    head = frame.head(PREVIEW_ROWS)
    preview = tuple(tuple("" if cell is None else str(cell) for cell in row) for row in head.rows())
    return Table(tuple(columns), rows, name, tuple(notes), duplicated, preview)


def _read_workbook(data: bytes, name: str, sheet: str | None, decimal: str | None, header: bool | None) -> Table:
    import importlib.util
    import io

    import polars as pl

    engine: Literal["calamine", "openpyxl"] = "calamine" if importlib.util.find_spec("fastexcel") else "openpyxl"
    if engine == "openpyxl" and not importlib.util.find_spec("openpyxl"):
        raise TableError(
            name, "no reader for Excel files is installed", mend="pip install fastexcel, or save the sheet as CSV"
        )
    try:
        frame = pl.read_excel(
            io.BytesIO(data),
            sheet_name=sheet,
            engine=engine,
            has_header=False,
            infer_schema_length=0,
            drop_empty_rows=False,
            drop_empty_cols=False,
            raise_if_empty=False,
        )
    except Exception as error:  # noqa: BLE001  the readers raise their own unrelated types
        raise TableError(
            name,
            f"the workbook{f' or its sheet {show(sheet)}' if sheet else ''} cannot be read ({type(error).__name__})",
            mend="check --sheet, or save the sheet as CSV",
        ) from None
    if not frame.width or not frame.height:
        raise TableError(name, "the sheet is empty", mend="choose another with --sheet")
    grid = Grid(tuple(column.cast(pl.String) for column in frame.get_columns()), np.arange(1, frame.height + 1))
    return _judge(name_columns(grid, [], delimiter=",", decimal=decimal, header=header), name)


def _judge(text: TextTable, source: str) -> Table:
    notes = list(text.notes)
    columns = [
        _column(name, cells, text.decimal, text.rows, notes)
        for name, cells in zip(text.names, text.columns, strict=True)
    ]
    # A nameless last column without a single value comes from a delimiter at the end of each row.
    while len(columns) > 1 and columns[-1].kind == "empty" and columns[-1].name == f"column{len(columns)}":
        columns.pop()
        notes = [note for note in notes if note.code != "empty_names" or note.count > 1]
    preview = tuple(
        tuple(cell or "" for cell in row)
        for row in zip(*(cells.head(PREVIEW_ROWS).to_list() for cells in text.columns[: len(columns)]), strict=True)
    )
    return Table(tuple(columns), text.rows, source, tuple(notes), text.duplicated, preview)


def _column_of_numbers(name: str, values: np.ndarray, rows: np.ndarray) -> Column:
    missing = int(np.isnan(values).sum())
    return Column(name, values, "empty" if missing == len(rows) else "number", missing)


def _column(name: str, cells: polars.Series, decimal: str, rows: np.ndarray, notes: list[Note]) -> Column:
    """Judge a column of strings. Plain numbers go through Polars at once; only odd cells are looked at one by one."""
    import polars as pl

    text = cells.fill_null("").str.strip_chars()
    plain = (
        text
        if decimal == "."
        else pl.select(
            pl.when(text.str.contains(".", literal=True))
            .then(pl.lit("?"))
            .otherwise(text.str.replace(",", ".", literal=True))
        ).to_series()
    )
    values = plain.cast(pl.Float64, strict=False).to_numpy().astype(np.float64, copy=True)
    odd = np.flatnonzero(np.isnan(values))
    if not len(odd):
        return Column(name, values, "number")
    distinct = text.gather(odd).unique(maintain_order=True).to_list()
    meaning: dict[str, float | None] = {}
    if (
        all(parse_number(cell, decimal) is None and not is_missing(cell) for cell in distinct[:SLOW_CELLS])
        and len(distinct) > SLOW_CELLS
    ):
        distinct = []  # free text: no use in looking at every cell
    for cell in distinct:
        meaning[cell] = np.nan if is_missing(cell) else parse_number(cell, decimal)
    flags = {"true": 1.0, "false": 0.0}
    if (
        len(odd) == len(values)
        and any(c.lower() in flags for c in meaning)
        and all(c.lower() in flags or is_missing(c) for c in meaning)
    ):
        meaning = {cell: flags.get(cell.lower(), np.nan) for cell in meaning}
        notes.append(Note("booleans", f"{show(name)}: true and false count as 1 and 0"))
    numbers = int(np.isfinite(values).sum()) + int(np.isinf(values).sum())
    missing = texts = 0
    first_text: tuple[int, str] | None = None
    changed: set[str] = set()
    for i, cell in zip(odd.tolist(), text.gather(odd).to_list(), strict=True):
        value = meaning.get(cell)
        if value is None:
            texts += 1
            if first_text is None:
                first_text = (int(rows[i]), cell)
        elif np.isnan(value):
            missing += 1
        else:
            values[i] = value
            numbers += 1
            changed.add(cell)
    if any(clean_cell(cell).endswith("%") for cell in changed):
        notes.append(Note("percent", f"{show(name)}: percent signs taken off, the numbers stay (12% is 12)"))
    group_marks = " '’" + ("," if decimal == "." else ".")
    if any(mark in clean_cell(cell).rstrip("% ") for cell in changed for mark in group_marks):
        notes.append(Note("thousands", f"{show(name)}: thousands marks taken off"))
    kind: Kind = "number"
    if not numbers:
        kind = "text" if texts else "empty"
    elif texts:
        kind = "broken" if numbers >= texts else "text"
    if kind == "text":
        values = np.full(len(values), np.nan)
    return Column(name, values, kind, missing, texts, first_text)
