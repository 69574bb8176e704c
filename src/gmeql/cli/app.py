"""`gmeql`, the command line. Data on stdout, everything for people on stderr.

Heavy modules are imported inside the commands: `gmeql --help` loads none.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Annotated, Any

import typer

from gmeql.cli.alternatives import alternatives
from gmeql.cli.bench import bench, paper
from gmeql.cli.choices import ChoosingCommand
from gmeql.cli.classify import classify
from gmeql.cli.dynamics import dynamics
from gmeql.cli.exits import INTERRUPTED, OK, explain, say
from gmeql.cli.field import field
from gmeql.cli.fit import fit, resume
from gmeql.cli.model import predict, show
from gmeql.cli.refine import refine
from gmeql.cli.solve import solve
from gmeql.cli.tools import doctor, ui

app = typer.Typer(
    name="gmeql",
    help="A table of numbers in, a formula out.",
    epilog="Start with: gmeql fit DATA.csv --target COLUMN     or a page to click through: gmeql ui",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
COMMANDS = (
    fit, resume, predict, show, alternatives, refine, classify, dynamics, field, solve, bench, paper, doctor, ui,
)  # fmt: skip
for command in COMMANDS:
    app.command(cls=ChoosingCommand)(command)


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


@cache
def _command() -> Any:
    """All commands, read off their signatures; once in a process, for that takes a tenth of a second."""
    return typer.main.get_command(app)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; every way out of it is an exit code and at most one line of explanation."""
    code = OK
    try:
        with _warnings_as_lines():
            ended_with = _command()(arguments, standalone_mode=False, prog_name="gmeql")
        if ended_with == INTERRUPTED:  # newer versions of Typer take Ctrl-C for themselves, and return this
            raise KeyboardInterrupt
    except Exception as error:  # noqa: BLE001  the outermost line: whatever it is, the user gets one sentence
        code = explain(error)
    except KeyboardInterrupt:
        say("interrupted")
        code = INTERRUPTED
    except SystemExit as ended:  # Typer's way out with 1 when the reader of stdout, such as head, has gone: no failure
        code = OK if ended.code == 1 else int(ended.code or 0)
    _flush_stdout()
    sys.exit(code)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Warnings as a line of their own words, each once: where in the code they were raised helps nobody at a terminal."""
    told: set[str] = set()

    def tell(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in told:
            told.add(str(message))
            say(f"note: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = tell
        yield


def _flush_stdout() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has gone: not our failure
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
