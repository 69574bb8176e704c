"""The promises of benchmarks/promises/run.py, in short versions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "promises" / "run.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        "same --kills 2 --candidates 1000 --fresh",
        "forms --formulas 60",
        "hardship --fresh",
        "page --runs 3 --connections 50",
    ],
)
def test_promises_are_kept(arguments: str) -> None:
    command = [sys.executable, str(PROGRAM), *arguments.split()]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "checks good" in answer.stdout and "BAD" not in answer.stdout
