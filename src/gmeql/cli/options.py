"""Arguments and options that several commands share."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

DataArgument = Annotated[
    str, typer.Argument(help="CSV, TSV, Parquet or Excel file; - is standard input.", metavar="DATA")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for programs.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.")]
CandidatesOption = Annotated[int | None, typer.Option(help="Formulas to try: the reproducible budget.")]
SeedOption = Annotated[int, typer.Option(help="Seed of the search.")]
JobsOption = Annotated[int | None, typer.Option("--jobs", "-j", help="Threads. (default: all)")]
FolderOption = Annotated[str | None, typer.Option("--out", "-o", help="Folder. (default: gmeql-runs/...)")]


def typed_command() -> str:
    """The command as it was given, for the page that says how to repeat it."""
    from gmeql.runs.settings import shell_line

    return shell_line(["gmeql", *(word for word in sys.argv[1:] if word != "--json")])
