"""`gmeql dynamics`: laws of motion from a table of measured states."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gmeql.cli.exits import INTERRUPTED, NO_MODEL, USAGE, Exit, say
from gmeql.cli.options import (
    CandidatesOption,
    DataArgument,
    FolderOption,
    JobsOption,
    JsonOption,
    QuietOption,
    Reading,
    SeedOption,
    cell_options,
    named_functions,
    read_table,
    reads_table,
    seconds_option,
    typed_command,
)

if TYPE_CHECKING:
    from gmeql.differential.motion.dynamics import GMEQLDynamics


@reads_table()
def dynamics(
    data: DataArgument,
    reading: Reading,
    time: Annotated[str, typer.Option("--time", "-t", help="Column of times.")],
    states: Annotated[str, typer.Option("--states", "-s", help="Columns whose motion to explain, as in x,v.")],
    inputs: Annotated[str, typer.Option(help="Columns that act on the states, as in u1,u2.")] = "",
    runs: Annotated[str, typer.Option(help="Column that tells several runs of one experiment apart.")] = "",
    order: Annotated[int, typer.Option(help="1: x' = f(x); 2: x'' = f(x, x').")] = 1,
    with_time: Annotated[bool, typer.Option("--with-time", help="Equations may depend on the time itself.")] = False,
    functions: Annotated[str | None, typer.Option(help="What an equation may use, as in +,-,*,/,sin,exp.")] = None,
    max_time: Annotated[float | None, seconds_option("Seconds for everything. (default: 60)")] = None,
    max_candidates: CandidatesOption = None,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    out: FolderOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find the differential equations that move the columns of a table.

    Writes a folder with model.json and report.html: simulated against measured, phase portrait, other systems.

    The equations go to stdout. Ctrl-C ends it with what was found.
    """
    from gmeql.runs.equations import time_name, trajectories, write_report
    from gmeql.runs.settings import split_names

    names, given = list(split_names(states)), list(split_names(inputs))
    if not names:
        raise Exit(USAGE, "gmeql: --states is empty; name the columns whose motion is to be explained, as in x,v")
    table = read_table(data, reading).cleared([time, *names, *given], **cell_options(reading))
    X, t, u = trajectories(table, time, names, given, runs)
    left_out = len(table.rows) - (sum(map(len, t)) if isinstance(t, list) else len(t))
    if not quiet:
        for note in table.notes:
            say(f"{table.source}: {note}")
        if left_out:
            say(f"{table.source}: {left_out:,} of {len(table.rows):,} rows left out: a cell is missing")
    from gmeql import GMEQLDynamics  # takes a while to import; mistakes are told before
    from gmeql.cli.present import print_json
    from gmeql.model.fit.fitting import InterruptedWarning
    from gmeql.report.motion import build
    from gmeql.runs.folder import default_folder

    if max_time is None and max_candidates is None:
        max_time = 60.0
    model = GMEQLDynamics(
        order, with_time=with_time, functions=named_functions(functions), max_time=max_time,
        max_candidates=max_candidates, feature_names=names, n_jobs=jobs, random_state=seed, verbose=0 if quiet else 1,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InterruptedWarning)  # the exit code says it
        try:
            model.fit(X, t, u=u)
        except ValueError as error:
            raise Exit(USAGE, f"gmeql: {table.source}: {' '.join(str(error).split())}") from None
        except ArithmeticError as error:
            raise Exit(NO_MODEL, f"gmeql: {error}") from None
    folder = Path(out) if out else default_folder("" if data == "-" else data)
    command = typed_command()
    write_report(model, folder, build, source=Path(table.source).name, time=time_name(table, time), command=command)
    if as_json:
        print_json(_record(model, folder))
    else:
        model.print()
    if not quiet:
        say(f"report: {folder / 'report.html'}")
    if model.stop_reason_ == "interrupted":
        raise Exit(INTERRUPTED, "interrupted: what was found is saved")


def _record(model: GMEQLDynamics, folder: Path) -> dict[str, Any]:
    return {
        "equations": dict(zip(model.columns_.measured, model.equations(), strict=True)),
        "loss": model.systems_[model.selected_index_].loss,
        "noise": dict(zip(model.columns_.measured, map(float, model.noise_), strict=True)),
        "systems": [
            {"equations": model.equations(m.index), "loss": m.loss, "complexity": m.complexity} for m in model.systems_
        ],
        "reason": model.stop_reason_,
        "candidates": model.candidates_,
        "seconds": round(model.seconds_, 3),
        "folder": str(folder),
    }
