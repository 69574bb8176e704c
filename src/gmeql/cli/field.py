"""`gmeql field`: laws of fields from gridded data."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gmeql.cli.exits import INTERRUPTED, NO_MODEL, USAGE, Exit, say
from gmeql.cli.options import (
    CandidatesOption,
    FolderOption,
    JobsOption,
    JsonOption,
    QuietOption,
    Reading,
    SeedOption,
    named_functions,
    read_table,
    reads_table,
    seconds_option,
    typed_command,
)

if TYPE_CHECKING:
    from gmeql.differential.fields.field import GMEQLField


@reads_table("text_as_missing", "keep_codes")  # a grid has no missing cell
def field(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="Table with a row for each point and time, or arrays by name (.npz).")
    ],
    reading: Reading,
    space: Annotated[str, typer.Option(help="Coordinates of space, as in x,y.")] = "x",
    time: Annotated[str, typer.Option("--time", "-t", help="Times.")] = "t",
    fields: Annotated[
        str, typer.Option(help="Fields, as in u,v; arrays are [*space, time]. (default: all others)")
    ] = "",
    order: Annotated[int | None, typer.Option(help="Highest derivative by space. (default: 4, in 2D and 3D 2)")] = None,
    functions: Annotated[str | None, typer.Option(help="What a law may use, as in +,-,*,/,sin,exp.")] = None,
    max_time: Annotated[
        float | None, seconds_option("Seconds for the search beyond sums of terms. (default: 60)")
    ] = None,
    max_candidates: CandidatesOption = None,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    out: FolderOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find the partial differential equation that moves fields on a grid.

    Writes a folder with model.json and report.html: simulated against measured, other laws. The equations go to stdout.
    Ctrl-C ends it with what was found.
    """
    from gmeql.runs.equations import read_gridded, write_report
    from gmeql.runs.settings import split_names

    read = partial(read_table, reading=reading)
    u, x, t = read_gridded(data, split_names(space), time, split_names(fields), read=read)
    from gmeql import GMEQLField  # takes a while to import; mistakes are told before
    from gmeql.cli.present import print_json
    from gmeql.model.fit.fitting import InterruptedWarning
    from gmeql.report.field import build
    from gmeql.runs.folder import default_folder

    if max_time is None and max_candidates is None:
        max_time = 60.0
    model = GMEQLField(
        order=order, functions=named_functions(functions), max_time=max_time,
        max_candidates=max_candidates, n_jobs=jobs, random_state=seed, verbose=0 if quiet else 1,
    )  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", InterruptedWarning)
        try:
            model.fit(u, x=x, t=t)
        except ValueError as error:
            raise Exit(USAGE, f"gmeql: {data}: {' '.join(str(error).split())}") from None
        except ArithmeticError as error:
            raise Exit(NO_MODEL, f"gmeql: {error}") from None
    folder = Path(out) if out else default_folder(data)
    command = typed_command()
    write_report(model, folder, build, source=Path(data).name, command=command)
    if as_json:
        print_json(_record(model, folder))
    else:
        print(model)
    if not quiet:
        say(f"report: {folder / 'report.html'}")
    if any(issubclass(one.category, InterruptedWarning) for one in caught):
        raise Exit(INTERRUPTED, "interrupted: what was found is saved")


def _record(model: GMEQLField, folder: Path) -> dict[str, Any]:
    return {
        "equations": {name: str(law) for name, law in zip(model.field_names_, model.equations_, strict=True)},
        "noise": dict(zip(model.field_names_, model.noise_, strict=True)),
        "score": model.score(),
        "fronts": {
            name: [{"equation": str(m.expression), "loss": m.loss, "complexity": m.complexity} for m in front]
            for name, front in zip(model.field_names_, model.fronts_, strict=True)
        },
        "folder": str(folder),
    }
