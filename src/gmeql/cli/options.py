"""Arguments and options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial, wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gmeql.cli.choices import complete

if TYPE_CHECKING:
    from gmeql.tables.table import Table

DataArgument = Annotated[
    str, typer.Argument(help="CSV, TSV, Parquet or Excel file; - is standard input.", metavar="DATA")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object to stdout, for programs.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no notes.")]
CandidatesOption = Annotated[int | None, typer.Option(min=1, help="Formulas to try: a budget that repeats exactly.")]
SeedOption = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the search.")]
FolderOption = Annotated[str | None, typer.Option("--out", "-o", help="Folder. (default: gmeql-runs/...)")]


def in_panel(panel: str, help: str, *flags: str, complete: Callable[..., list[str]] | None = None) -> Any:
    """An option of one of the panels of a command's help."""
    return typer.Option(*flags, help=help, rich_help_panel=panel, autocompletion=complete)


# --- how a table is read ----------------------------------------------------------------------------------------------

Reading = Mapping[str, Any]
"""How a table is to be read: settings of a fit by their names, None where nothing was said."""
_table = partial(in_panel, "The table")
READING: dict[str, Any] = {
    "delimiter": Annotated[str | None, _table("What separates cells, if the guess is wrong.")],
    "decimal": Annotated[str | None, _table("Decimal mark: {choices}", complete=complete("decimal"))],
    "header": Annotated[bool | None, _table("Whether the first row names the columns.", "--header/--no-header")],
    "encoding": Annotated[str | None, _table("Encoding of the text, such as utf-8 or latin-1.")],
    "sheet": Annotated[str | None, _table("Sheet of a workbook.")],
    "skip_bad_rows": Annotated[bool | None, _table("Leave out rows of the wrong length.", "--skip-bad-rows")],
    "text_as_missing": Annotated[bool | None, _table("Count text among numbers as missing.", "--text-as-missing")],
    "keep_codes": Annotated[
        bool | None, _table("Keep numbers such as -999, not count them as missing.", "--keep-codes")
    ],
}
"""Options of every command that reads a table."""


def reads_table(*without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the options of `READING`, but for those in `without`; they come to it as its argument `reading`."""
    options = {name: option for name, option in READING.items() if name not in without}

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def reading_command(**given: Any) -> None:
            command(reading={name: given.pop(name) for name in options}, **given)

        own = signature(command, eval_str=True)
        added = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=o) for name, o in options.items()]
        kept = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in own.parameters.values() if each.name != "reading"]
        asked = own.replace(parameters=[*kept, *added])
        reading_command.__signature__ = asked  # type: ignore[attr-defined]
        reading_command.__annotations__ = {each.name: each.annotation for each in asked.parameters.values()}
        return reading_command

    return with_options


def read_table(data: str, reading: Reading) -> Table:
    """The table of a command, read as its options say."""
    from gmeql.runs.settings import resolve
    from gmeql.tables.read import read

    return read(data, **resolve(reading, environment={}).table_options())


def cell_options(reading: Reading) -> dict[str, bool]:
    """Which cells of a table count as missing, as `Table.select` and `Table.cleared` take it."""
    return {name: bool(reading[name]) for name in ("text_as_missing", "keep_codes")}


# --- options that are checked -----------------------------------------------------------------------------------------


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
