"""Every way out of a command: an exit code and at most one line of explanation on stderr.

0 done, 1 internal failure, 2 bad usage or bad input, 3 budget over with no model, 4 storage or memory, 130 and 143 interrupted
(what was found is saved).
"""

from __future__ import annotations

import os
import sys

import typer

OK, INTERNAL, USAGE, NO_MODEL, STORAGE, INTERRUPTED = 0, 1, 2, 3, 4, 130
DEBUG_VARIABLE = "GMEQL_DEBUG"
# Typer brings click along, in newer versions as a part of itself: the base of its errors is found from one of them.
CLICK_ERRORS = tuple(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


LEAST_MEMORY = 3000 * 2**20
"""Bytes of address space in which libraries and kernels can be loaded; with 2000 MB LLVM aborts, 2500 MB just do."""


class Exit(Exception):
    """Ends the command with a code, and a line on stderr if there is one."""

    def __init__(self, code: int, message: str = "") -> None:
        super().__init__(message)
        self.code = code


def say(message: str) -> None:
    """A line for people."""
    print(message, file=sys.stderr, flush=True)


def require_memory() -> None:
    """End the command where a limit such as `ulimit -v` leaves less than `LEAST_MEMORY`."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_MEMORY:
        raise Exit(
            STORAGE,
            f"gmeql: memory is limited to {limit >> 20} MB (ulimit -v), and at least {LEAST_MEMORY >> 20} MB are needed; "
            "raise the limit",
        )


def explain(error: Exception) -> int:
    """Say what went wrong, in one line where the user can mend it; returns the exit code."""
    if isinstance(error, typer.Exit):
        return int(error.exit_code)
    if isinstance(error, typer.Abort):
        say("interrupted")
        return INTERRUPTED
    if isinstance(error, CLICK_ERRORS):
        context = getattr(error, "ctx", None)
        if error.format_message():  # type: ignore[attr-defined]
            path = context.command_path if context else "gmeql"
            say(f"gmeql: {error.format_message()} (try: {path} --help)")  # type: ignore[attr-defined]
        return USAGE
    if isinstance(error, Exit):
        if str(error):
            say(str(error))
        return error.code
    if isinstance(error, BrokenPipeError):
        return OK
    if isinstance(error, MemoryError):  # first of those that import: what is left is too little to load anything
        say("gmeql: there is not enough memory; end other programs, or give a sample of the rows")
        return STORAGE
    from gmeql.model.files.storage import StorageError
    from gmeql.runs.settings import ConfigError
    from gmeql.tables.cells import TableError

    told = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
    message = " ".join(told.split())
    if isinstance(error, TableError | ConfigError):
        say(f"gmeql: {message}")
        return USAGE
    if isinstance(error, StorageError | OSError):
        say(f"gmeql: {message}")
        return STORAGE
    if os.environ.get(DEBUG_VARIABLE):
        import traceback

        traceback.print_exception(error)
    else:
        say(f"gmeql: {type(error).__name__}: {message[:400]} (a traceback: {DEBUG_VARIABLE}=1)")
    return INTERNAL
