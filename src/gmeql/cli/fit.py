"""`gmeql fit` and `gmeql resume`: a search in the foreground, in a run folder."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gmeql.cli.choices import complete
from gmeql.cli.exits import NO_MODEL, USAGE, Exit
from gmeql.cli.options import DataArgument, JsonOption, QuietOption, Reading, in_panel, reads_table

if TYPE_CHECKING:
    from gmeql.runs.execute import RunOutcome
    from gmeql.runs.folder import Run
    from gmeql.runs.settings import FitSettings
    from gmeql.tables.training import Training


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


_search, _knowledge, _table, _output = (
    partial(in_panel, panel) for panel in ("The search", "What is known", "The table", "Output")
)


@reads_table()
def fit(
    data: DataArgument,
    reading: Reading,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Column to explain.", autocompletion=_complete_column)
    ] = None,
    max_time: Annotated[float | None, _search("Seconds to search. (default: 30)")] = None,
    max_candidates: Annotated[int | None, _search("Formulas to try: a budget that repeats exactly.")] = None,
    seed: Annotated[int | None, _search("Seed of the search. (default: 0)")] = None,
    functions: Annotated[str | None, _search("What a formula may use, as in +,-,*,/,sin,exp.")] = None,
    pin: Annotated[list[str] | None, _search("A part to build on, as in 'a/b'; may be repeated.")] = None,
    forbid: Annotated[list[str] | None, _search("A function or part not to use; may be repeated.")] = None,
    units: Annotated[str | None, _knowledge("Units of all columns and the target: m=kg,v=m/s,E=J.")] = None,
    constant_units: Annotated[str | None, _knowledge("Units that constants may carry, as in m/s**2, or any.")] = None,
    unit_check: Annotated[
        str | None, _knowledge("{choices}. (default: strict)", complete=complete("unit_check"))
    ] = None,
    template: Annotated[
        str | None, _knowledge("Outer form with free functions, as in 'a*exp(-b*f(x)) + g(y)'.")
    ] = None,
    constants: Annotated[str | None, _knowledge("Bounds of the template's constants: a=0..10,b=0..")] = None,
    guess: Annotated[list[str] | None, _knowledge("A formula to begin with; may be repeated.")] = None,
    constraint: Annotated[
        list[str] | None,
        _knowledge("What must hold, as in 'increasing in x', 'output >= 0', 'f(x=0) = 0'; may be repeated."),
    ] = None,
    known: Annotated[
        str | None, _search("Run folder of an earlier fit to the same rows; its formulas are kept.")
    ] = None,
    method: Annotated[str | None, _search("{choices}. (default: fitted)", complete=complete("method"))] = None,
    selection: Annotated[str | None, _search("{choices}. (default: best)", complete=complete("selection"))] = None,
    max_complexity: Annotated[int | None, _search("No formula larger than this.")] = None,
    loss: Annotated[
        str | None,
        _search(
            "{choices}: what constants minimise; outliers move huber less and robust not at all. (default: squared)",
            complete=complete("loss"),
        ),
    ] = None,
    jobs: Annotated[int | None, _search("Threads; -1 is all. (default: all)", "--jobs", "-j")] = None,
    device: Annotated[str | None, _search("{choices}. (default: auto)", complete=complete("device"))] = None,
    columns: Annotated[str | None, _table("Use only these columns, as in a,b,c.")] = None,
    drop: Annotated[str | None, _table("Leave these columns out.")] = None,
    weights: Annotated[str | None, _table("Column of row weights.")] = None,
    y_error: Annotated[str | None, _table("Standard deviation of the target's error: a number or a column.")] = None,
    x_error: Annotated[str | None, _table("The same for columns, as in x=0.1,t=sigma_t.")] = None,
    groups: Annotated[
        str | None, _table("Column of groups: one formula, some constants of each group's own.", "--groups")
    ] = None,
    out: Annotated[str | None, _output("Run folder. (default: gmeql-runs/...)", "--out", "-o")] = None,
    config: Annotated[str | None, _output("TOML file with settings; flags override it.")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find a formula for one column of a table.

    Writes a run folder with the model, the front of formulas and report.html. Ctrl-C ends it with what was found.
    """
    given = dict(locals())
    from gmeql.runs.settings import resolve
    from gmeql.tables.read import read

    others = ("data", "reading", "config", "known", "as_json", "quiet")
    flags = {key: value for key, value in given.items() if key not in others}
    settings = resolve({**flags, **reading}, file=config)
    table = read(data, **settings.table_options())
    if settings.target is None:
        names = ", ".join(f"'{name}'" for name in table.names[:20])
        raise Exit(USAGE, f"gmeql: {table.source}: say which column is to be explained; --target takes one of {names}")
    from gmeql.runs.knowing import training_of  # what follows takes a while to import; mistakes are told before

    training = training_of(settings, table)
    _begin_to_compile(settings)
    from gmeql.runs.checks import check_fit
    from gmeql.runs.folder import Run, default_folder

    check_fit(settings, training)
    say_notes(training, quiet)
    folder = Path(settings.out) if settings.out else default_folder("" if data == "-" else data)
    extra = {} if known is None else {"continues": _known_run(known, training)}
    run_fit(Run.create(folder, training, settings, **extra), training, settings, as_json=as_json, quiet=quiet)


def _begin_to_compile(settings: FitSettings) -> None:
    """On a new machine, beside all that is imported next."""
    from gmeql.model.fit.kernels import begin_to_compile
    from gmeql.model.fit.methods import METHODS

    if METHODS[settings.method].compiled:
        begin_to_compile()


def _known_run(folder: str, training: Training) -> str:
    """The whole path of an earlier run on the same rows."""
    from gmeql.runs.folder import Run

    if Run.open(folder).description()["data"].get("fingerprint") != training.fingerprint:
        raise Exit(USAGE, f"gmeql: --known {folder}: was fitted to other rows; leave it out, or give it the same table")
    return str(Path(folder).resolve())


def resume(
    run: Annotated[str, typer.Argument(help="Run folder of an earlier fit.", metavar="RUN")],
    max_time: Annotated[float | None, typer.Option(help="Seconds more to search.")] = None,
    max_candidates: Annotated[int | None, typer.Option(help="Formulas to try in all.")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Continue a run from its newest checkpoint."""
    from dataclasses import replace

    from gmeql.runs.folder import Run
    from gmeql.runs.settings import resolve

    opened = Run.open(run)
    training = opened.training()
    from gmeql.runs.checks import check_fit  # takes a while to import; a folder that is none is told before

    checked = resolve({"max_time": max_time, "max_candidates": max_candidates}, environment={})
    settings = opened.settings()
    if max_candidates is not None:
        settings = replace(settings, max_candidates=checked.max_candidates)
    if max_time is not None or max_candidates is None:
        settings = opened.with_more_time(settings, checked.max_time if max_time is not None else None)
    check_fit(settings, training)
    say_notes(training, quiet)
    run_fit(opened, training, settings, as_json=as_json, quiet=quiet)


def say_notes(training: Training, quiet: bool) -> None:
    """What is explained by what, and all that was done to the table before."""
    if quiet:
        return
    from rich.console import Console

    from gmeql.tables.categories import columns_of

    console = Console(stderr=True, highlight=False)
    names = columns_of(training.names, training.table_names or ())  # as the table has them, not one for each category
    columns = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    rows = f"{len(training.y):,} rows"
    whole = not console.is_terminal  # in a terminal lines end between words
    console.print(
        f"{training.source}: {rows}, explaining {training.target} by {columns}", markup=False, soft_wrap=whole
    )
    for note in training.notes:
        console.print(f"  {note}", markup=False, style="dim", soft_wrap=whole)


def run_fit(run: Run, training: Training, settings: FitSettings, *, as_json: bool, quiet: bool) -> None:
    """Search in a thread, so that the main thread answers signals at once whatever the search is computing."""
    from gmeql.cli.foreground import leave, run_interruptibly

    show = partial(_present, run, training, as_json=as_json, quiet=quiet)
    outcome, code = run_interruptibly(run, training, settings, quiet=quiet, show=show)
    found = outcome is not None and outcome.model is not None
    if code:
        report = f"report  {outcome.report}\n" if outcome is not None and outcome.report and not quiet else ""
        what = "what was found is saved" if found else "no formula was found yet"
        leave(code, f"{report}interrupted: {what}; go on with: gmeql resume {run.folder}")
    if outcome is None or outcome.model is None:
        reason = outcome.reason if outcome is not None and outcome.reason != "no formula was found" else ""
        why = reason or "the budget is over and no formula was found; give it more --max-time"
        raise Exit(NO_MODEL, f"gmeql: {why}")
    show(outcome)


def _present(run: Run, training: Training, outcome: RunOutcome, *, as_json: bool, quiet: bool) -> None:
    from gmeql.cli import present

    from gmeql.runs.execute import seen_by

    model = outcome.model
    assert model is not None
    training = seen_by(model, training)
    if as_json:
        present.print_json(present.fit_record(run, training, outcome))
    elif sys.stdout.isatty():
        present.print_result(run, training, outcome, file=sys.stdout)
    else:
        print(f"{training.target} = {model.expression_}")
        if not quiet:
            present.print_result(run, training, outcome, file=sys.stderr)
