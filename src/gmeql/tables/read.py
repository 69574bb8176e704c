"""Reading a user's table: any delimiter, encoding and decimal mark, Parquet and Excel, into numbers.

`read` gives a `Table` (every column, judged), `Table.select` the `Training` data for one target, each with notes on all
that was done; what cannot be read is a `TableError`.
"""

from __future__ import annotations

import difflib
import gzip
import sys
import zlib
from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gmeql.tables.cells import DECIMAL_MARKS, Note, TableError, show
from gmeql.tables.names import tidy_names
from gmeql.tables.column import TableColumn
from gmeql.tables.judging import judged
from gmeql.tables.table import OTHER_SHEETS, Table
from gmeql.tables.training import Training
from gmeql.tables.text import Grid, TextTable, name_columns, read_text

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Note", "Table", "TableColumn", "TableError", "Training", "read"]

MAX_UNPACKED_BYTES = 4 * 2**30  # a compressed file may not grow beyond this
PREVIEW_ROWS = 8
MOST_SHEETS = 5  # that a note names
OTHER_FILES = (b"%PDF", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"\x7fELF", b"\x89HDF", b"\x93NUMPY", b"BZh", b"\xfd7zXZ")
MARK_UP = (b"{", b"[{", b"[[", b"<html", b"<!doctype", b"<?xml", b"<table")  # JSON, HTML and XML, in lower case
MARK_UP_BYTES = 64  # in which they show


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
        delimiter, decimal, header, encoding: taken if given, found out if not. Where a file has its own, a note says that
            they are not used.
        sheet: name of the sheet of a workbook; the first by default. Other files have none.
        skip_bad_rows: leave out rows with the wrong number of cells, counted, instead of ending with an error.

    >>> table = read(b"t,y\\n0,1\\n1,3\\n2,5\\n", name="line.csv")
    >>> table.names, table.select("y").X.ravel().tolist()
    (('t', 'y'), [0.0, 1.0, 2.0])
    """
    data = source if isinstance(source, bytes) else _load(source)
    name = name or ("table" if isinstance(source, bytes) else "standard input" if str(source) == "-" else str(source))
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '\n\r"'):
        raise TableError(name, f"the delimiter {delimiter!r} is not one character", mend="as in --delimiter ';'")
    if decimal is not None and decimal not in DECIMAL_MARKS:
        raise TableError(name, f"the decimal mark {decimal!r} is unknown", mend="--decimal takes '.' or ','")
    if decimal is not None and decimal == delimiter:
        raise TableError(
            name, "delimiter and decimal mark are the same", mend="change one of --delimiter and --decimal"
        )
    if data.startswith(b"\x1f\x8b"):
        data = _unzip(data, name)
    if not data.strip(b" \t\r\n\0"):
        raise TableError(name, "the file is empty", mend="give a table with a header and at least two rows")
    is_frame = data.startswith((b"PAR1", b"ARROW1"))
    is_workbook = data.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0"))
    if sheet is not None and not is_workbook:
        raise TableError(name, f"has no sheet {show(sheet)}: it is no workbook", mend="leave --sheet out, or give one")
    texts = {"--delimiter": delimiter, "--encoding": encoding}
    if is_frame:
        return _with_unused(_read_frame(data, name), texts | {"--decimal": decimal, "--header": header})
    if is_workbook:
        return _with_unused(_read_workbook(data, name, sheet, decimal, header), texts)
    if data.startswith(OTHER_FILES) or data[:MARK_UP_BYTES].removeprefix(BOM_UTF8).lstrip().lower().startswith(MARK_UP):
        raise TableError(name, "this is not a table", mend="give CSV, TSV, Parquet or Excel")
    text = read_text(
        data, name, delimiter=delimiter, decimal=decimal, header=header, encoding=encoding, skip_bad_rows=skip_bad_rows
    )
    return _judge(text, name)


def _with_unused(table: Table, options: Mapping[str, object]) -> Table:
    """The table with a note on each option that says how to read text, which the file needs nobody to say."""
    unused = [option for option, value in options.items() if value is not None]
    if not unused:
        return table
    note = Note("unused_options", f"not used, the file is no text: {', '.join(unused)}", len(unused))
    return replace(table, notes=(*table.notes, note))


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
        elif series.dtype in (pl.String, pl.Categorical, pl.Date) or isinstance(series.dtype, (pl.Enum, pl.Datetime)):
            columns.append(judged(label, series.cast(pl.String), ".", rows, notes))
        else:
            first = next(((i, value) for i, value in enumerate(series) if value is not None), None)
            missing = series.null_count()
            columns.append(
                TableColumn(
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
    as_it_is: dict[str, Any] = {
        "sheet_name": sheet,
        "engine": engine,
        "has_header": False,
        "drop_empty_rows": False,
        "drop_empty_cols": False,
        "raise_if_empty": False,
    }
    try:
        frame = pl.read_excel(io.BytesIO(data), infer_schema_length=0, **as_it_is)
        if engine == "calamine" and frame.width:
            floats = {"dtypes": dict.fromkeys(range(frame.width), "float")}
            frame = _with_all_digits(frame, pl.read_excel(io.BytesIO(data), read_options=floats, **as_it_is))
    except Exception as error:  # noqa: BLE001  the readers raise their own unrelated types
        names = _sheet_names(data)
        if sheet is not None and names and sheet not in names:
            mend = f"--sheet takes one of {', '.join(map(show, names))}"
            raise TableError(name, f"has no sheet {show(sheet)}", mend=mend) from None
        problem = f"the workbook cannot be read ({type(error).__name__})"
        raise TableError(name, problem, mend="save the sheet as CSV") from None
    if not frame.width or not frame.height:
        others = ", ".join(show(other) for other in _sheet_names(data) if other != sheet)
        raise TableError(
            name, "the sheet is empty", mend=f"choose another with --sheet{f', such as {others}' if others else ''}"
        )
    grid = Grid(tuple(column.cast(pl.String) for column in frame.get_columns()), np.arange(1, frame.height + 1))
    table = _judge(name_columns(grid, [], delimiter=",", decimal=decimal, header=header), name)
    unread = _sheet_names(data)[1:] if sheet is None else []
    if not unread:
        return table
    listed = ", ".join(map(show, unread[:MOST_SHEETS])) + (" and more" if len(unread) > MOST_SHEETS else "")
    note = Note(OTHER_SHEETS, f"the first sheet is read; --sheet takes another, such as {listed}", len(unread))
    return replace(table, notes=(*table.notes, note))


def _with_all_digits(cells: pl.DataFrame, numbers: pl.DataFrame) -> pl.DataFrame:
    """The cells of a sheet as text, which the reader wrote with nine decimals, with every digit of those that are numbers."""
    import polars as pl

    if cells.shape != numbers.shape:
        return cells
    columns = []
    for text, number in zip(cells.get_columns(), numbers.get_columns(), strict=True):
        exact, shown = number.cast(pl.Float64, strict=False), text.cast(pl.Float64, strict=False)
        differs = (shown != exact).fill_null(False)
        columns.append(text.zip_with(~differs, exact.cast(pl.String)))
    return pl.DataFrame(columns)


def _sheet_names(data: bytes) -> list[str]:
    """The sheets of a workbook; none where it cannot be read."""
    import io

    try:
        import fastexcel

        return list(fastexcel.read_excel(data).sheet_names)
    except ImportError:
        pass
    except Exception:  # noqa: BLE001  the reader raises its own unrelated types
        return []
    try:
        import openpyxl

        return list(openpyxl.load_workbook(io.BytesIO(data), read_only=True).sheetnames)
    except Exception:  # noqa: BLE001
        return []


def _judge(text: TextTable, source: str) -> Table:
    notes = list(text.notes)
    columns = [
        judged(name, cells, text.decimal, text.rows, notes)
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


def _column_of_numbers(name: str, values: np.ndarray, rows: np.ndarray) -> TableColumn:
    missing = int(np.isnan(values).sum())
    return TableColumn(name, values, "empty" if missing == len(rows) else "number", missing)
