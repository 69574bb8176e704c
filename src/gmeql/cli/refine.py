"""`gmeql refine`: a new run that goes on from one formula of an earlier one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gmeql.cli.fit import run_fit
from gmeql.cli.options import FolderOption, JsonOption, QuietOption


def refine(
    run: Annotated[str, typer.Argument(help="Run folder of an earlier fit.", metavar="RUN")],
    formula: Annotated[
        str, typer.Argument(help="A formula in its columns, as gmeql alternatives lists them.", metavar="FORMULA")
    ],
    max_time: Annotated[float | None, typer.Option(help="Seconds to search. (default: those of the run)")] = None,
    max_candidates: Annotated[int | None, typer.Option(help="Formulas to try.")] = None,
    out: FolderOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Search on from one formula: a new run on the same rows that begins with it.

    Its numbers are starts only. The formulas of the earlier run stay known to the new one.
    """
    from dataclasses import replace

    from gmeql.runs.folder import Run, default_folder
    from gmeql.runs.settings import resolve

    opened = Run.open(run)
    training = opened.training()
    from gmeql.runs.checks import check_fit  # takes a while to import; a folder that is none is told before

    given = {"max_time": max_time, "max_candidates": max_candidates, "guess": [formula]}
    checked = resolve({key: value for key, value in given.items() if value is not None}, environment={})
    settings = replace(opened.settings(), guess=checked.guess, out=None)
    if max_time is not None or max_candidates is not None:
        settings = replace(settings, max_time=checked.max_time, max_candidates=checked.max_candidates)
    check_fit(settings, training)
    folder = Path(out) if out else default_folder(Path(training.source).name, opened.folder.parent)
    continued = Run.create(folder, training, settings, continues=str(opened.folder.resolve()))
    run_fit(continued, training, settings, as_json=as_json, quiet=quiet)
