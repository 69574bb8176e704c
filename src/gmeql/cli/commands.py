"""`gmeql`, the command line. Data on stdout, everything for people on stderr.

Exit codes: 0 done, 1 internal failure, 2 bad usage or bad input, 3 budget over with no model, 4 storage, 130 and 143
interrupted (what was found is saved). Heavy modules are imported inside the commands: `gmeql --help` loads none.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from gmeql.runs.execute import Outcome
    from gmeql.runs.folder import Run
    from gmeql.runs.settings import FitSettings
    from gmeql.tables.read import Training

OK, INTERNAL, USAGE, NO_MODEL, STORAGE, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 4, 130, 143
TEXT_FORMATS = ("text", "exact", "latex", "mathml", "python", "c", "spreadsheet", "sympy", "json")
DEBUG_VARIABLE = "GMEQL_DEBUG"
# Typer brings click along, in newer versions as a part of itself: the base of its errors is found from one of them.
CLICK_ERRORS = tuple(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

app = typer.Typer(
    name="gmeql",
    help="A table of numbers in, a formula out.",
    epilog="Start with: gmeql fit DATA.csv --target COLUMN     or a page to click through: gmeql ui",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


class Exit(Exception):
    """Ends the command with a code, and a line on stderr if there is one."""

    def __init__(self, code: int, message: str = "") -> None:
        super().__init__(message)
        self.code = code


def say(message: str) -> None:
    """A line for people."""
    print(message, file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; every way out of it is an exit code and at most one line of explanation."""
    code = OK
    try:
        app(arguments, standalone_mode=False, prog_name="gmeql")
    except Exception as error:  # noqa: BLE001  the outermost line: whatever it is, the user gets one sentence
        code = _explain(error)
    except KeyboardInterrupt:
        say("interrupted")
        code = INTERRUPTED
    except SystemExit as ended:  # Typer's way out with 1 when the reader of stdout, such as head, has gone: no failure
        code = OK if ended.code == 1 else int(ended.code or 0)
    _flush_stdout()
    sys.exit(code)


def _flush_stdout() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has gone: not our failure
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explain(error: Exception) -> int:
    if isinstance(error, typer.Exit):
        return int(error.exit_code)
    if isinstance(error, typer.Abort):
        say("interrupted")
        return INTERRUPTED
    if isinstance(error, CLICK_ERRORS):
        context = getattr(error, "ctx", None)
        if error.format_message():  # type: ignore[attr-defined]
            path = context.command_path if context else "gmeql"
            say(f"gmeql: {error.format_message()} (try: {path} --help)")  # type: ignore[attr-defined]
        return USAGE
    if isinstance(error, Exit):
        if str(error):
            say(str(error))
        return error.code
    if isinstance(error, BrokenPipeError):
        return OK
    from gmeql.model.storage import StorageError
    from gmeql.runs.settings import ConfigError
    from gmeql.tables.cells import TableError

    message = " ".join(str(error).split())
    if isinstance(error, TableError | ConfigError):
        say(f"gmeql: {message}")
        return USAGE
    if isinstance(error, StorageError | OSError):
        say(f"gmeql: {message}")
        return STORAGE
    if os.environ.get(DEBUG_VARIABLE):
        import traceback

        traceback.print_exception(error)
    else:
        say(f"gmeql: {type(error).__name__}: {message[:400]} (a traceback: {DEBUG_VARIABLE}=1)")
    return INTERNAL


def _version(value: bool) -> None:
    if value:
        from gmeql._version import __version__

        print(f"gmeql {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


# ------------------------------------------------------------------------------------------------- fit and resume


def _complete_column(context: typer.Context, incomplete: str) -> list[str]:
    """Column names of DATA, for the shell's completion."""
    # While an option is being completed, words that are no option yet stand in `args`.
    data = next((word for word in (context.params.get("data"), *context.args) if word and Path(word).is_file()), None)
    if data is None:
        return []
    from gmeql.tables.read import TableError, read

    try:
        return [name for name in read(data).names if name.startswith(incomplete)]
    except TableError:
        return []


DataArgument = Annotated[
    str, typer.Argument(help="CSV, TSV, Parquet or Excel file; - is standard input.", metavar="DATA")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for programs.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.")]
SEARCH, TABLE, OUTPUT = "The search", "The table", "Output"


@app.command()
def fit(
    data: DataArgument,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Column to explain.", autocompletion=_complete_column)
    ] = None,
    max_time: Annotated[
        float | None, typer.Option(help="Seconds to search. (default: 30)", rich_help_panel=SEARCH)
    ] = None,
    max_candidates: Annotated[
        int | None, typer.Option(help="Formulas to try: the reproducible budget.", rich_help_panel=SEARCH)
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the search. (default: 0)", rich_help_panel=SEARCH)] = None,
    functions: Annotated[
        str | None, typer.Option(help="What a formula may use, as in +,-,*,/,sin,exp.", rich_help_panel=SEARCH)
    ] = None,
    pin: Annotated[
        list[str] | None, typer.Option(help="A part to build on, as in 'a/b'; may be repeated.", rich_help_panel=SEARCH)
    ] = None,
    forbid: Annotated[
        list[str] | None, typer.Option(help="A function or part not to use; may be repeated.", rich_help_panel=SEARCH)
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="fitted, paper or released. (default: fitted)", rich_help_panel=SEARCH)
    ] = None,
    selection: Annotated[
        str | None, typer.Option(help="best, accurate, simple or validation. (default: best)", rich_help_panel=SEARCH)
    ] = None,
    max_complexity: Annotated[
        int | None, typer.Option(help="No formula larger than this.", rich_help_panel=SEARCH)
    ] = None,
    loss: Annotated[
        str | None, typer.Option(help="squared, or robust against outliers. (default: squared)", rich_help_panel=SEARCH)
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Threads. (default: all)", rich_help_panel=SEARCH)
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="auto, cpu or gpu. (default: auto)", rich_help_panel=SEARCH)
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Use only these columns, as in a,b,c.", rich_help_panel=TABLE)
    ] = None,
    drop: Annotated[str | None, typer.Option(help="Leave these columns out.", rich_help_panel=TABLE)] = None,
    weights: Annotated[str | None, typer.Option(help="Column of row weights.", rich_help_panel=TABLE)] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="Between cells, if not found right.", rich_help_panel=TABLE)
    ] = None,
    decimal: Annotated[str | None, typer.Option(help="Decimal mark: . or ,", rich_help_panel=TABLE)] = None,
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first row names the columns.", rich_help_panel=TABLE),
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="As in utf-8 or latin-1.", rich_help_panel=TABLE)] = None,
    sheet: Annotated[str | None, typer.Option(help="Sheet of a workbook.", rich_help_panel=TABLE)] = None,
    skip_bad_rows: Annotated[
        bool | None, typer.Option("--skip-bad-rows", help="Leave out rows of the wrong length.", rich_help_panel=TABLE)
    ] = None,
    text_as_missing: Annotated[
        bool | None,
        typer.Option("--text-as-missing", help="Count text among numbers as missing.", rich_help_panel=TABLE),
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Run folder. (default: gmeql-runs/...)", rich_help_panel=OUTPUT)
    ] = None,
    config: Annotated[
        str | None, typer.Option(help="TOML file with settings; flags are stronger.", rich_help_panel=OUTPUT)
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find a formula for one column of a table.

    Writes a run folder with the model, the front of formulas and report.html. Ctrl-C ends it with what was found.
    """
    given = dict(locals())
    from gmeql.runs.folder import Run, default_folder
    from gmeql.runs.settings import resolve
    from gmeql.runs.steering import Steering, check_functions
    from gmeql.tables.read import read

    flags = {key: value for key, value in given.items() if key not in ("data", "config", "as_json", "quiet")}
    settings = resolve(flags, file=config)
    check_functions(settings)
    table = read(data, **settings.table_options())
    if settings.target is None:
        names = ", ".join(f"'{name}'" for name in table.names[:20])
        raise Exit(USAGE, f"gmeql: {table.source}: say which column is to be explained; --target takes one of {names}")
    training = table.select(settings.target, **settings.select_options())
    Steering.of(settings, training.names).extend(
        training
    )  # a pin that cannot be read is refused before a folder is made
    _say_notes(training, quiet)
    folder = Path(settings.out) if settings.out else default_folder("" if data == "-" else data)
    _run(Run.create(folder, training, settings), training, settings, as_json=as_json, quiet=quiet)


@app.command()
def resume(
    run: Annotated[str, typer.Argument(help="Run folder of an earlier fit.", metavar="RUN")],
    max_time: Annotated[float | None, typer.Option(help="Seconds more to search.")] = None,
    max_candidates: Annotated[int | None, typer.Option(help="Formulas to try in all.")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Go on with a run, from its newest checkpoint."""
    from dataclasses import replace

    from gmeql.runs.folder import Run
    from gmeql.runs.settings import resolve

    opened = Run.open(run)
    training = opened.training()
    checked = resolve({"max_time": max_time, "max_candidates": max_candidates}, environment={})
    settings = opened.settings()
    if max_candidates is not None:
        settings = replace(settings, max_candidates=checked.max_candidates)
    if max_time is not None or max_candidates is None:
        settings = opened.with_more_time(settings, checked.max_time if max_time is not None else None)
    _say_notes(training, quiet)
    _run(opened, training, settings, as_json=as_json, quiet=quiet)


def _say_notes(training: Training, quiet: bool) -> None:
    if quiet:
        return
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    columns = ", ".join(training.names[:8]) + (
        f" and {len(training.names) - 8} more" if len(training.names) > 8 else ""
    )
    rows = f"{len(training.y):,} rows"
    console.print(f"{training.source}: {rows}, explaining {training.target} by {columns}", markup=False, soft_wrap=True)
    for note in training.notes:
        console.print(f"  {note}", markup=False, style="dim", soft_wrap=True)


def _run(run: Run, training: Training, settings: FitSettings, *, as_json: bool, quiet: bool) -> None:
    """Search in a thread, so that the main thread answers signals at once whatever the search is computing."""
    from gmeql.cli.foreground import leave, run_interruptibly

    outcome, code = run_interruptibly(run, training, settings, quiet=quiet)
    if outcome is None or outcome.model is None:
        raise Exit(
            code or NO_MODEL,
            "" if code else "gmeql: the budget is over and no formula was found; give it more --max-time",
        )
    _present(run, training, outcome, as_json=as_json, quiet=quiet)
    if code:
        leave(code, f"interrupted: what was found is saved; go on with: gmeql resume {run.folder}")


def _present(run: Run, training: Training, outcome: Outcome, *, as_json: bool, quiet: bool) -> None:
    from gmeql.cli import present

    model = outcome.model
    if as_json:
        present.print_json(present.fit_record(run, training, outcome))
    elif sys.stdout.isatty():
        present.print_result(run, training, outcome, file=sys.stdout)
    else:
        print(f"{training.target} = {model.expression_}")  # type: ignore[union-attr]
        if not quiet:
            present.print_result(run, training, outcome, file=sys.stderr)


# ------------------------------------------------------------------------------------------------- using a model


ModelArgument = Annotated[str, typer.Argument(help="model.json or a run folder.", metavar="MODEL")]
IndexOption = Annotated[int | None, typer.Option(help="Another formula of the front, by its index.")]


def _load(model: str, index: int | None) -> Any:
    from gmeql.estimator import GMEQLRegressor
    from gmeql.model.storage import StorageError

    path = Path(model)
    if path.is_dir():
        path = path / "model.json"
        if not path.exists():
            raise StorageError(f"{model}: holds no model.json; give a finished run, or resume it: gmeql resume {model}")
    loaded = GMEQLRegressor.load(path)
    fronts = loaded.front_ if isinstance(loaded.front_, list) else [loaded.front_]
    if index is not None and not all(0 <= index < len(front) for front in fronts):
        raise Exit(USAGE, f"gmeql: --index {index}: the front has formulas 0 to {min(map(len, fronts)) - 1}")
    return loaded


@app.command()
def predict(
    model: ModelArgument,
    data: DataArgument,
    index: IndexOption = None,
    out: Annotated[str | None, typer.Option("--out", "-o", help="CSV file instead of stdout.")] = None,
    append: Annotated[bool, typer.Option("--append", help="Keep the columns that the formula uses.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Values of the formula for a new table, one row for each of its rows."""
    import io

    import numpy as np
    import polars as pl

    from gmeql.model.storage import write_atomic
    from gmeql.tables.read import read

    loaded = _load(model, index)
    table = read(data)
    names = getattr(loaded, "feature_names_in_", None)
    names = list(map(str, names)) if names is not None else list(table.names[: loaded.n_features_in_])
    X = table.matrix(names)
    complete = np.isfinite(X).all(axis=1)
    expressions = [loaded.front_[loaded.selected_index_ if index is None else index].expression]
    values = expressions[0](X)
    values = np.where(complete, values, np.nan)
    undefined = int((~np.isfinite(values) & complete).sum())
    for count, what in (
        (int((~complete).sum()), "a value is missing"),
        (undefined, "the formula is not defined there"),
    ):
        if count:
            say(f"{count} of {len(values)} predictions are empty: {what}")
    values = np.where(np.isfinite(values), values, np.nan)
    if as_json:
        from gmeql.cli.present import print_json

        return print_json({"prediction": [None if np.isnan(v) else float(v) for v in values]})
    columns = {name: X[:, i] for i, name in enumerate(names)} if append else {}
    columns[_free_name("prediction", columns)] = values
    frame = pl.DataFrame(columns).with_columns(pl.all().fill_nan(None))
    buffer = io.BytesIO()
    frame.write_csv(buffer)
    if out is None:
        sys.stdout.buffer.write(buffer.getvalue())
    else:
        write_atomic(out, buffer.getvalue())
    return None


def _free_name(name: str, taken: Any) -> str:
    while name in taken:
        name += "_"
    return name


def _complete_format(incomplete: str) -> list[str]:
    return [name for name in TEXT_FORMATS if name.startswith(incomplete)]


@app.command()
def show(
    model: ModelArgument,
    format: Annotated[
        str | None,
        typer.Option("--format", "-f", help=f"One of {', '.join(TEXT_FORMATS)}.", autocompletion=_complete_format),
    ] = None,
    index: IndexOption = None,
    as_json: JsonOption = False,
) -> None:
    """The formula of a model in another form, or the whole front."""
    from gmeql.cli import present

    if format is not None and format not in TEXT_FORMATS:
        raise Exit(USAGE, f"gmeql: --format {format!r}: unknown; one of {', '.join(TEXT_FORMATS)}")
    loaded = _load(model, index)
    if as_json:
        return present.print_json(present.model_record(loaded, index))
    if format is None and index is None:
        return present.print_front(loaded.front_, loaded.selected_index_, file=sys.stdout)
    print(loaded.export(format or "text", index=index))
    return None


# ------------------------------------------------------------------------------------------------- evaluation


@app.command()
def bench(
    suite: Annotated[str, typer.Argument(help="paper, or a JSON file of cases.", metavar="SUITE")],
    problems: Annotated[str | None, typer.Option(help="Only these, as in b1,b5.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each problem.")] = 20,
    max_time: Annotated[float, typer.Option(min=0.0, help="Seconds a run.")] = 30.0,
    max_candidates: Annotated[int | None, typer.Option(min=1, help="Candidates a run.")] = None,
    method: Annotated[str, typer.Option(help="fitted, paper or released.")] = "fitted",
    noise: Annotated[float, typer.Option(min=0.0, help="Noise on training targets, relative to their RMS.")] = 0.0,
    noise_std: Annotated[float, typer.Option(min=0.0, help="The same, as a standard deviation.")] = 0.0,
    rows: Annotated[int | None, typer.Option(min=1, help="Training rows. (default: the suite's)")] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Runs at a time; one uses all cores.")] = 1,
    json_file: Annotated[
        str | None, typer.Option("--json", help="Write one record per problem and seed; goes on where it stopped.")
    ] = None,
) -> None:
    """Solve benchmark problems and count how many were solved."""
    from gmeql.cli.present import run_bench

    settings = {
        "seeds": seeds,
        "max_time": max_time,
        "max_candidates": max_candidates,
        "method": method,
        "noise": noise,
        "noise_std": noise_std,
        "rows": rows,
        "jobs": jobs,
    }
    raise Exit(run_bench(suite, problems, json_file, settings))


@app.command()
def paper(
    budget: Annotated[
        str, typer.Option(help="smoke (minutes), quick (under an hour) or full (the paper's, for a GPU).")
    ] = "smoke",
    only: Annotated[
        str | None, typer.Option(help="Only these: table1, fig2a to fig2l, fig2, success, time, offline, noise.")
    ] = None,
    out: Annotated[str, typer.Option("--out", "-o", help="Folder for records, figures and tables.")] = "gmeql-paper",
    workers: Annotated[
        int | None, typer.Option(min=0, help="Processes that train; 0: this one. (default: one per core)")
    ] = None,
    figures_only: Annotated[
        bool, typer.Option("--figures-only", help="Draw from the records that are there, train nothing.")
    ] = False,
) -> None:
    """Reproduce the tables and figures of the GMEQL paper.

    Stop it at any time: started again with the same --out it goes on where it stopped.
    """
    from gmeql.evaluation.paper import run as run_experiments
    from gmeql.runs.settings import split_names

    if budget not in ("smoke", "quick", "full"):
        raise Exit(USAGE, f"gmeql: --budget {budget!r}: unknown; one of smoke, quick, full")
    try:
        names = split_names(only) if only else None
        run_experiments(budget=budget, only=names, out=Path(out), workers=workers, train=not figures_only)
    except ValueError as error:
        raise Exit(USAGE, f"gmeql: {error}") from None
    say(f"written to {out}")


@app.command()
def doctor(as_json: JsonOption = False) -> None:
    """Versions, cores, devices and caches: what to send along with a question."""
    from gmeql.cli import present

    record = present.doctor_record()
    if as_json:
        present.print_json(record)
    else:
        present.print_doctor(record)


@app.command()
def ui(
    folder: Annotated[str, typer.Option("--runs", help="Folder of the runs it shows and makes.")] = "gmeql-runs",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
) -> None:
    """A page in the browser: drop a table, watch the search, compare formulas. This computer only."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise Exit(USAGE, "gmeql: the page needs two more packages: pip install 'gmeql[web]'") from None
    from gmeql.web import serve

    serve(Path(folder), port=port, open_browser=open_browser)


if __name__ == "__main__":
    main()
