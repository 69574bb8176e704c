"""A killed run goes on from its checkpoint as if nothing had happened: the short version of benchmarks/kill_resume.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "kill_resume.py"


@pytest.mark.slow
def test_killed_runs_end_where_an_unbroken_one_does() -> None:
    kills = 10
    command = [sys.executable, str(PROGRAM), "--kills", str(kills), "--candidates", "4000", "--interval", "0.05"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert f"{kills} kills" in answer.stdout
