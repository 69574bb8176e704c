"""`gmeql bench` and `gmeql paper`: problems solved and counted, the paper's tables and figures made again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from gmeql.cli.choices import complete, require
from gmeql.cli.exits import USAGE, Exit, say


def bench(
    suite: Annotated[str, typer.Argument(help="paper, or a JSON file of cases.", metavar="SUITE")],
    problems: Annotated[str | None, typer.Option(help="Only these, as in b1,b5.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each problem.")] = 20,
    max_time: Annotated[float, typer.Option(min=0.0, help="Seconds per run.")] = 30.0,
    max_candidates: Annotated[int | None, typer.Option(min=1, help="Candidates per run.")] = None,
    method: Annotated[str, typer.Option(help="{choices}.", autocompletion=complete("method"))] = "fitted",
    noise: Annotated[float, typer.Option(min=0.0, help="Noise on training targets, relative to their RMS.")] = 0.0,
    noise_std: Annotated[float, typer.Option(min=0.0, help="The same, as a standard deviation.")] = 0.0,
    rows: Annotated[int | None, typer.Option(min=1, help="Training rows. (default: the suite's)")] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Runs at a time; a single one uses all cores.")] = 1,
    device: Annotated[
        str | None, typer.Option(help="{choices}. (default: auto)", autocompletion=complete("device"))
    ] = None,
    json_file: Annotated[
        str | None,
        typer.Option(
            "--json", help="Write one record per problem and seed; a second call continues where the first stopped."
        ),
    ] = None,
) -> None:
    """Solve benchmark problems and count how many were solved."""
    from rich.console import Console

    from gmeql.evaluation.bench import run_suite, table
    from gmeql.fitters.cuda.driver import why_not
    from gmeql.runs.settings import split_names

    require("method", method)
    if device is not None and require("device", device) == "gpu" and why_not():
        raise Exit(USAGE, f"gmeql: --device gpu, but {why_not()}")
    try:
        records = run_suite(
            suite,
            problems=list(split_names(problems)) if problems else None,
            seeds=seeds,
            max_time=max_time,
            max_candidates=max_candidates,
            method=method,
            noise=noise,
            noise_std=noise_std,
            rows=rows,
            options={} if device is None else {"device": device},
            jobs=jobs,
            path=json_file,
            show=True,
        )
    except ValueError as error:
        raise Exit(USAGE, f"gmeql: {' '.join(str(error).split())}") from None
    Console(highlight=False, width=None if sys.stdout.isatty() else 160).print(table(records))


def paper(
    budget: Annotated[
        str,
        typer.Option(
            help="{choices}: minutes, under an hour, or the paper's own on a GPU.", autocompletion=complete("budget")
        ),
    ] = "smoke",
    only: Annotated[
        str | None, typer.Option(help="Only these: table1, fig2a to fig2l, fig2, success, time, offline, noise.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Train only these: gmeql, eql, dsr, fitted, gp. (default: all)")
    ] = None,
    out: Annotated[str, typer.Option("--out", "-o", help="Folder for records, figures and tables.")] = "gmeql-paper",
    workers: Annotated[
        int | None, typer.Option(min=0, help="Processes that train; 0 means this one. (default: one per core)")
    ] = None,
    figures_only: Annotated[
        bool, typer.Option("--figures-only", help="Draw figures from existing records, train nothing.")
    ] = False,
) -> None:
    """Reproduce the tables and figures of the GMEQL paper.

    Stop it at any time: started again with the same --out it goes on where it stopped.
    """
    from gmeql.evaluation.paper import run as run_experiments
    from gmeql.runs.settings import split_names

    require("budget", budget)
    try:
        names = split_names(only) if only else None
        trained = split_names(methods) if methods else None
        run_experiments(
            budget=budget, only=names, methods=trained, out=Path(out), workers=workers, train=not figures_only
        )
    except ValueError as error:
        raise Exit(USAGE, f"gmeql: {error}") from None
    say(f"written to {out}")
