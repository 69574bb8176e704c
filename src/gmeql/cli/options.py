"""Arguments and options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

DataArgument = Annotated[
    str, typer.Argument(help="CSV, TSV, Parquet or Excel file; - is standard input.", metavar="DATA")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for programs.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.")]
CandidatesOption = Annotated[int | None, typer.Option(min=1, help="Formulas to try: the reproducible budget.")]
SeedOption = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the search.")]
FolderOption = Annotated[str | None, typer.Option("--out", "-o", help="Folder. (default: gmeql-runs/...)")]


def _checked(key: str) -> Callable[[Any], Any]:
    """A callback that checks an option as the setting of the same name of a fit is checked, in the same words."""

    def check(value: Any) -> Any:
        from gmeql.cli.exits import USAGE, Exit
        from gmeql.runs.settings import ConfigError, check_setting

        try:
            return None if value is None else check_setting(key, value)
        except ConfigError as error:
            raise Exit(USAGE, f"gmeql: {error}") from None

    return check


def seconds_option(help: str) -> Any:
    """`--max-time`, with what it means for a command."""
    return typer.Option(help=help, callback=_checked("max_time"))


ComplexityOption = Annotated[
    int | None, typer.Option(help="No formula larger than this.", callback=_checked("max_complexity"))
]
JobsOption = Annotated[
    int | None, typer.Option("--jobs", "-j", help="Threads; -1 is all. (default: all)", callback=_checked("jobs"))
]


def named_functions(functions: str | None) -> list[str] | None:
    """The functions that an option names; None where it was not given."""
    from gmeql.cli.exits import USAGE, Exit
    from gmeql.runs.settings import split_names

    if functions is None:
        return None
    names = list(split_names(functions))
    if not names:
        raise Exit(USAGE, "gmeql: --functions: none is given; name some, as in +,*,sin, or leave the option out")
    return names


def typed_command() -> str:
    """The command as it was given, for the page that says how to repeat it."""
    from gmeql.runs.settings import shell_line

    return shell_line(["gmeql", *(word for word in sys.argv[1:] if word != "--json")])
