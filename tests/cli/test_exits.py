"""Every way out of a command: the code and the line for each kind of error."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

from gmeql.cli.exits import DEBUG_VARIABLE, INTERNAL, INTERRUPTED, LEAST_MEMORY, OK, STORAGE, USAGE, Exit, explain
from gmeql.model.files.storage import StorageError
from gmeql.runs.settings import ConfigError
from gmeql.tables.cells import TableError


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (Exit(3, "gmeql: over"), 3, "gmeql: over\n"),
        (Exit(0), 0, ""),
        (typer.Exit(5), 5, ""),
        (typer.Abort(), INTERRUPTED, "interrupted\n"),
        (typer.BadParameter("no such word"), USAGE, "gmeql: Invalid value: no such word (try: gmeql --help)\n"),
        (BrokenPipeError(), OK, ""),
        (ConfigError("--seed: bad"), USAGE, "gmeql: --seed: bad\n"),
        (TableError("t.csv", "is bad", mend="mend it"), USAGE, "gmeql: t.csv: is bad; mend it\n"),
        (StorageError("m.json: damaged"), STORAGE, "gmeql: m.json: damaged\n"),
        (
            MemoryError(),
            STORAGE,
            "gmeql: there is not enough memory; end other programs, or give a sample of the rows\n",
        ),
        (OSError(28, "No space left on device"), STORAGE, "gmeql: [Errno 28] No space left on device\n"),
        (OSError(30, "Read-only file system", "a.csv"), STORAGE, "gmeql: a.csv: Read-only file system\n"),
        (KeyError("x\ny"), INTERNAL, "gmeql: KeyError: 'x\\ny' (a traceback: GMEQL_DEBUG=1)\n"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value)[:20],
)
def test_an_error_has_its_code_and_its_line(error, code, line, monkeypatch, capsys) -> None:
    monkeypatch.delenv(DEBUG_VARIABLE, raising=False)
    assert explain(error) == code
    out, err = capsys.readouterr()
    assert out == "" and err == line


def test_the_traceback_is_there_for_who_asks(monkeypatch, capsys) -> None:
    monkeypatch.setenv(DEBUG_VARIABLE, "1")
    assert explain(ZeroDivisionError("a bug")) == INTERNAL
    assert "ZeroDivisionError: a bug" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_too_small_a_limit_of_memory_is_named_before_anything_is_loaded() -> None:
    """Below it polars aborts in the middle of loading, which no Python code can catch."""
    code = (
        "import resource\nfrom gmeql.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_AS, (600 * 2**20,) * 2)\nmain(['show', 'model.json'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == STORAGE and done.stdout == ""
    assert done.stderr == (
        f"gmeql: memory is limited to 600 MB (ulimit -v), and at least {LEAST_MEMORY >> 20} MB are needed; "
        "raise the limit\n"
    )
