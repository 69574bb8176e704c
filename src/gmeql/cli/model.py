"""`gmeql predict` and `gmeql show`: a fitted model, of one target or several."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gmeql.cli.choices import complete, require
from gmeql.cli.exits import USAGE, Exit, say
from gmeql.cli.options import DataArgument, JsonOption, Reading, read_table, reads_table

if TYPE_CHECKING:
    import numpy as np

    from gmeql.estimator import GMEQLClassifier, GMEQLRegressor
    from gmeql.formula.expression import Expression
    from gmeql.tables.read import Table

ModelArgument = Annotated[str, typer.Argument(help="model.json or a run folder.", metavar="MODEL")]
_MEND_CELL = "mend the cell, or leave it empty or count it as missing with --text-as-missing: no prediction then"
LEVEL = 0.95
"""Chance that low and high of an average hold the target."""
IndexOption = Annotated[
    str | None, typer.Option(help="Another formula of the front, by its index; one for each target, as in 2,0.")
]


def load(model: str) -> Any:
    """The model of a file or of a run folder: a regressor, or a classifier."""
    from gmeql.model.files.model_file import load_model
    from gmeql.model.files.storage import StorageError

    path = Path(model)
    if path.is_dir():
        path = path / "model.json"
        if not path.exists():
            raise StorageError(f"{model}: holds no model.json; give a finished run, or resume it: gmeql resume {model}")
    classes = load_model(path).classes
    from gmeql.estimator import GMEQLClassifier, GMEQLRegressor  # takes a while; a file that is none is told before

    return (GMEQLRegressor if classes is None else GMEQLClassifier).load(path)


def chosen(model: GMEQLRegressor, index: str | None) -> list[int]:
    """The formula of each target's front: the one at `index` where that is given, else the one the model chose."""
    from gmeql.model.targets import as_list

    fronts = as_list(model.front_)
    if index is None:
        return as_list(model.selected_index_)
    words = index.split(",")
    if not all(word.strip().isdigit() for word in words) or len(words) not in (1, len(fronts)):
        allowed = "a whole number" if len(fronts) == 1 else f"a whole number, or {len(fronts)} with commas between"
        raise Exit(USAGE, f"gmeql: --index {index!r}: is not {allowed}")
    picks = [int(word) for word in words] * (len(fronts) // len(words))
    for front, pick in zip(fronts, picks, strict=True):
        if pick >= len(front):
            raise Exit(USAGE, f"gmeql: --index {pick}: the front has formulas 0 to {len(front) - 1}")
    return picks


@reads_table()
def predict(
    model: ModelArgument,
    data: DataArgument,
    reading: Reading,
    index: IndexOption = None,
    out: Annotated[str | None, typer.Option("--out", "-o", help="CSV file instead of stdout.")] = None,
    append: Annotated[bool, typer.Option("--append", help="Keep the columns that the formula uses.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse rows outside the ranges that the formula was fitted to.")
    ] = False,
    average: Annotated[
        int | None, typer.Option(min=1, help="Average over this many of the best formulas, with low and high (95 %).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compute the formula for a new table: a row for each of its rows, a column for each target."""
    import numpy as np

    from gmeql.model.targets import as_list, names_of, target_names

    if as_json and out is not None:
        raise Exit(USAGE, "gmeql: --json is written to stdout and --out is a CSV file; leave one of them out")
    loaded = load(model)
    picks = chosen(loaded, index)
    table = read_table(data, reading)
    names = _column_names(loaded, table)
    table = table.cleared(names, text_as_missing=bool(reading["text_as_missing"]))
    averages = None if average is None else _averages(loaded, average, index)
    shown = [[front[k].expression] for front, k in zip(as_list(loaded.front_), picks, strict=True)]
    if averages is not None:
        shown = [[one.expression for one in found] for found in averages]
    used = sorted({column for each in shown for expression in each
                   for column in expression.variables if column < len(names)})  # fmt: skip
    X = np.zeros((len(table.rows), len(names)))
    X[:, used] = _used_columns(table, [names[j] for j in used])
    if not reading["keep_codes"]:
        _clear_codes(X, getattr(loaded, "feature_ranges_", None), used, names)
    complete_rows = np.asarray(np.isfinite(X).all(axis=1))
    _judge_kinds(table, [names[j] for j in used], names, strict=strict)
    formulas = [expression for each in shown for expression in each]
    _judge_ranges(loaded, X, used, names, formulas, strict=strict)
    _say_empty(int((~complete_rows).sum()), len(X), "a value is missing")
    columns = {names[j]: X[:, j] for j in used} if append else {}
    if hasattr(loaded, "classes_"):
        return _predict_classes(loaded, X, complete_rows, columns, out=out, as_json=as_json, index=index)
    from gmeql.cli.present import print_json
    from gmeql.model.certainty.alternatives import averaged

    tables = _seen(loaded, X, table)
    predicted: dict[str, Any] = {}
    labels = target_names(len(picks), "prediction")
    if len(picks) > 1 and hasattr(loaded, "target_names_"):
        labels = [f"prediction of {name}" for name in names_of(loaded)]
    for place, (label, (expression, *_), seen) in enumerate(zip(labels, shown, tables, strict=True)):
        if averages is not None:
            of_label = zip(("", " low", " high"), averaged(averages[place], [seen] * len(averages[place]), LEVEL))
            predicted |= {_free_name(label + end, columns): np.where(complete_rows, v, np.nan) for end, v in of_label}
            continue
        values = np.where(complete_rows, expression(seen), np.nan)
        of_it = "the formula" if len(picks) == 1 else f"the formula of {label}"
        _say_empty(int((~np.isfinite(values) & complete_rows).sum()), len(X), f"{of_it} is not defined there")
        predicted[_free_name(label, columns)] = np.where(np.isfinite(values), values, np.nan)
    if as_json:
        return print_json({name: _plain(values) for name, values in predicted.items()})
    return _write_csv(columns | predicted, out)


def _averages(model: GMEQLRegressor | GMEQLClassifier, n: int, index: str | None) -> list[Any]:
    """The `n` best formulas of each target, by their evidence."""
    from gmeql.model.certainty.alternatives import alternatives
    from gmeql.model.targets import as_list

    if index is not None:
        raise Exit(USAGE, "gmeql: --average takes the best formulas and --index one of them; leave one of them out")
    if hasattr(model, "classes_"):
        raise Exit(USAGE, "gmeql: --average: chances of classes are told by one formula each; leave it out")
    try:
        return [alternatives(front, n) for front in as_list(model.front_)]
    except ValueError as error:
        raise Exit(USAGE, f"gmeql: --average: {error}") from None


def _predict_classes(
    model: GMEQLClassifier,
    X: np.ndarray,
    complete_rows: np.ndarray,
    columns: dict[str, Any],
    *,
    out: str | None,
    as_json: bool,
    index: str | None,
) -> None:
    """The likeliest class of each row and the chance of each class."""
    import warnings

    import numpy as np

    from gmeql.cli.present import print_json

    if index is not None:
        raise Exit(USAGE, "gmeql: --index: the classes of a table are told by all formulas together; leave it out")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows outside were said before; the arrays carry no names
        chances = model.predict_proba(np.where(complete_rows[:, None], X, 0.0))
    told = [
        str(model.classes_[k]) if whole else None
        for k, whole in zip(chances.argmax(axis=1), complete_rows, strict=True)
    ]
    predicted: dict[str, Any] = {_free_name("prediction", columns): told}
    for k, label in enumerate(model.classes_):
        name = _free_name(f"chance of {label}", [*columns, *predicted])
        predicted[name] = np.where(complete_rows, chances[:, k], np.nan)
    if as_json:
        return print_json({n: v if isinstance(v, list) else _plain(v) for n, v in predicted.items()})
    return _write_csv(columns | predicted, out)


def _seen(model: GMEQLRegressor, X: np.ndarray, table: Table) -> list[np.ndarray]:
    """The rows as each target's formulas see them: with their group's own constants, nan for groups that are not known."""
    import numpy as np

    from gmeql.model.targets import as_list

    fronts = as_list(model.front_)
    if not hasattr(model, "group_constants_"):
        return [X] * len(fronts)
    tables = as_list(model.group_constants_)
    words = np.array(table.column(tables[0].column, "the groups of the formula").words(), dtype=object)
    known = np.isin(words, tables[0].labels)
    if not known.all():
        unknown = ", ".join(sorted(set(words[~known].tolist()))[:5])
        say(
            f"{_of(int((~known).sum()), len(X), 'prediction', 'is', 'are')} empty: the model does not know "
            f"{tables[0].column} {unknown}"
        )
    seen = []
    for own in tables:
        extended = np.full((len(X), X.shape[1] + own.values.shape[1]), np.nan)
        extended[known] = own.extended(X[known], own.codes(words[known]))
        seen.append(extended)
    return seen


def _used_columns(table: Table, names: list[str]) -> np.ndarray:
    """The values of the columns that the formulas use; those that are missing, and no others, are named."""
    from gmeql.tables.cells import TableError, show

    missing = [name for name in names if not table.knows(name)]
    if len(missing) > 1:
        raise TableError(
            table.source, f"lacks the columns {', '.join(map(show, missing))}", mend="the formula uses them"
        )
    return table.matrix(names, mend=_MEND_CELL)


def _judge_kinds(table: Table, used: list[str], names: list[str], *, strict: bool) -> None:
    """Say which rows are of a kind that the fit did not know, whose columns of 0 and 1 are all 0; or refuse them."""
    from gmeql.tables.categories import column_of, indicator_name

    for column in dict.fromkeys(column_of(name, table.names) for name in used if name not in table.names):
        start = indicator_name(column, "")
        known = [name.removeprefix(start) for name in names if name.startswith(start)]
        if not known:
            continue  # dates
        strange = [word for word in table.column(column, "the formula").words() if word not in known]
        if not strange:
            continue
        kinds = ", ".join(repr(word) if word else "empty" for word in list(dict.fromkeys(strange))[:5])
        told = f"{_of(len(strange), len(table.rows), 'row', 'has', 'have')} a {column} that the formula does not know ({kinds})"
        counts = "it counts" if len(strange) == 1 else "they count"
        if strict:
            raise Exit(USAGE, f"gmeql: {told}; without --strict {counts} as none of {', '.join(known)}")
        say(f"{told}: {counts} as none of {', '.join(known)}")


def _clear_codes(X: np.ndarray, ranges: np.ndarray | None, used: list[int], names: list[str]) -> None:
    """Empty the cells of X [N, V] that hold a code such as -999 far beyond the `ranges` [V, 2] of the fit, which they are told
    by: what a row is predicted to be depends on no other row."""
    import numpy as np

    from gmeql.tables.codes import codes_beyond, told

    if ranges is None:
        return
    for j in used:
        found = codes_beyond(X[:, j], *ranges[j])
        if found:
            say(told(names[j], found, "what the formula was fitted to"))
            X[np.isin(X[:, j], list(found)), j] = np.nan


def _judge_ranges(
    model: GMEQLRegressor,
    X: np.ndarray,
    used: list[int],
    names: list[str],
    formulas: list[Expression],
    *,
    strict: bool,
) -> None:
    """Say which rows lie outside the values of the fit, or refuse them."""
    from gmeql.model.fit.ranges import rows_outside

    outside = rows_outside(X, getattr(model, "feature_ranges_", None), used, formulas)
    if outside is None:
        return
    if strict:
        raise Exit(USAGE, f"gmeql: {outside.text(names)}; without --strict they are predicted all the same")
    say(outside.text(names))


def _column_names(model: GMEQLRegressor, table: Table) -> list[str]:
    """Columns of the table that the model knows: those of its names, or where it knows none, the first ones."""
    known = getattr(model, "feature_names_in_", None)
    if known is not None:
        return [str(name) for name in known]
    from gmeql.tables.cells import TableError

    count, given = int(model.n_features_in_), len(table.names)
    if given < count:
        mend = "the model knows no names and takes the first ones; give a table that has them"
        raise TableError(table.source, f"has {given} columns, the formula needs {count}", mend=mend)
    return list(table.names[:count])


def _say_empty(count: int, rows: int, why: str) -> None:
    if count:
        say(f"{_of(count, rows, 'prediction', 'is', 'are')} empty: {why}")


def _of(count: int, all_of_them: int, name: str, one: str, several: str) -> str:
    """How many of all, with the verb that goes with them.

    >>> _of(1, 3, "row", "has", "have"), _of(2, 3, "row", "has", "have")
    ('1 of 3 rows has', '2 of 3 rows have')
    """
    return f"{count} of {all_of_them} {name}{'s' * (all_of_them != 1)} {one if count == 1 else several}"


def _plain(values: np.ndarray) -> list[float | None]:
    return [None if value != value else float(value) for value in values]


def _free_name(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _write_csv(columns: dict[str, Any], out: str | None) -> None:
    """Columns as CSV to the file `out`, or to stdout; an empty cell for nan."""
    import io

    import polars as pl

    from gmeql.model.files.storage import write_atomic

    buffer = io.BytesIO()
    pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None)).write_csv(buffer)
    if out is None:
        sys.stdout.buffer.write(buffer.getvalue())
    else:
        write_atomic(out, buffer.getvalue())


@reads_table("text_as_missing", "keep_codes")  # of the table, only the names are needed
def show(
    model: ModelArgument,
    reading: Reading,
    format: Annotated[
        str | None, typer.Option("--format", "-f", help="{choices}.", autocompletion=complete("format"))
    ] = None,
    index: IndexOption = None,
    table: Annotated[
        str | None, typer.Option(help="For --format spreadsheet: the table whose cells the formula refers to.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the formula of a model in another form, or the whole front; several targets one after the other."""
    from gmeql.model.targets import as_list, names_of

    if format is not None:
        require("format", format)
    if as_json and format is not None:
        raise Exit(USAGE, "gmeql: --json has forms of its own; leave --format out")
    if table is not None and format != "spreadsheet":
        raise Exit(USAGE, "gmeql: --table belongs to --format spreadsheet; leave it out")
    loaded = load(model)
    from gmeql.cli import present

    fronts, picks = as_list(loaded.front_), chosen(loaded, index)
    if as_json:
        return present.print_json(present.model_record(loaded, picks))
    if format is None and index is None:
        titles = names_of(loaded) if len(fronts) > 1 else [""]
        for title, front, k in zip(titles, fronts, picks, strict=True):
            present.print_front(front, k, title=title, file=sys.stdout)
        return None
    expressions = [front[k].expression for front, k in zip(fronts, picks, strict=True)]
    if format == "spreadsheet":
        return _show_spreadsheet(loaded, expressions, None if table is None else read_table(table, reading).names)
    for expression in expressions:
        print(expression.export(format or "text"))
    return None


def _show_spreadsheet(model: GMEQLRegressor, expressions: list[Expression], table: Sequence[str] | None) -> None:
    """Formulas for cells on stdout, and on stderr which cell is which column."""
    from gmeql.formula.printing.spreadsheet import cells_used, to_spreadsheet

    columns = table if table is not None else getattr(model, "table_columns_", None)
    for expression in expressions:
        try:
            print(to_spreadsheet(expression, columns), flush=True)
        except ValueError as error:
            raise Exit(USAGE, f"gmeql: {error}") from None
        cells = ", ".join(f"{cell} is {name!r}" for cell, name in cells_used(expression, columns).items())
        say(f"for row 2, under a row of headings: {cells or 'no cell is used'}; English function names and separators")
