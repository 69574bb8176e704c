"""`gmeql field`: laws of fields from gridded data."""

from __future__ import annotations

import shlex
import sys
import warnings
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gmeql.cli.exits import INTERRUPTED, NO_MODEL, USAGE, Exit, say
from gmeql.cli.options import CandidatesOption, FolderOption, JobsOption, JsonOption, QuietOption, SeedOption

if TYPE_CHECKING:
    from gmeql.differential.fields.field import GMEQLField


def field(
    data: Annotated[str, typer.Argument(metavar="DATA.npz", help="Arrays by name, as numpy.savez writes them.")],
    space: Annotated[str, typer.Option(help="Arrays of the coordinates of space, as in x,y.")] = "x",
    time: Annotated[str, typer.Option("--time", "-t", help="Array of the times.")] = "t",
    fields: Annotated[str, typer.Option(help="Arrays of the fields [*space, time]. (default: all others)")] = "",
    order: Annotated[int | None, typer.Option(help="Highest derivative by space. (default: 4, in 2D and 3D 2)")] = None,
    functions: Annotated[str | None, typer.Option(help="What a law may use, as in +,-,*,/,sin,exp.")] = None,
    max_time: Annotated[float | None, typer.Option(help="Seconds for the open-form search. (default: 60)")] = None,
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
    from gmeql import GMEQLField
    from gmeql.cli.present import print_json
    from gmeql.model.fitting import InterruptedWarning
    from gmeql.runs.folder import default_folder

    u, x, t = _arrays(data, _listed(space), time, _listed(fields))
    if max_time is None and max_candidates is None:
        max_time = 60.0
    model = GMEQLField(
        order=order, functions=_listed(functions) if functions else None, max_time=max_time,
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
    _write(model, folder, data)
    if as_json:
        print_json(_record(model, folder))
    else:
        print(model)
    if not quiet:
        say(f"report: {folder / 'report.html'}")
    if any(issubclass(one.category, InterruptedWarning) for one in caught):
        raise Exit(INTERRUPTED)


def _listed(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _arrays(path: str, space: list[str], time: str, fields: list[str]) -> tuple[dict[str, Any], list[Any], Any]:
    """Fields by name, coordinates and times of a file of arrays; nothing in it is unpickled."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as held:
            if not hasattr(held, "files"):
                raise Exit(
                    USAGE, f"gmeql: {path}: holds one array without a name; write it with numpy.savez(u=, x=, t=)"
                )
            arrays = {name: held[name] for name in held.files}
    except FileNotFoundError:
        raise Exit(USAGE, f"gmeql: {path}: there is no such file") from None
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, AttributeError):
        raise Exit(USAGE, f"gmeql: {path}: is no file of arrays; write one with numpy.savez(u=, x=, t=)") from None
    chosen = fields or [name for name in arrays if name not in (*space, time)]
    for name, option in ((time, "--time"), *((s, "--space") for s in space), *((f, "--fields") for f in chosen)):
        if name not in arrays:
            raise Exit(
                USAGE, f"gmeql: {path}: {option} names {name!r}; the file holds {', '.join(arrays) or 'nothing'}"
            )
    return {name: arrays[name] for name in chosen}, [arrays[name] for name in space], arrays[time]


def _write(model: GMEQLField, folder: Path, source: str) -> None:
    from gmeql.model.storage import write_atomic
    from gmeql.report.field import build

    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "model.json")
    created = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    page = build(model, source=Path(source).name, created=created, command=shlex.join(["gmeql", *sys.argv[1:]]))
    write_atomic(folder / "report.html", page.encode())


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
