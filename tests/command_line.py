"""The command line in this process, for tests."""

from __future__ import annotations

import pytest

from gmeql.cli import main

LINE = "a,b,y\n" + "".join(f"{i},{i * i % 7},{2.5 * i + 3 * (i * i % 7)}\n" for i in range(1, 13))
"""A table whose target is 2.5*a + 3*b."""


def run_gmeql(*arguments: str, expect: int = 0) -> None:
    """Run a command and hold its exit code against `expect`."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert ended.value.code == expect
