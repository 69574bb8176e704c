"""A small table, and the run folder of a small fit to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import LINE, run_gmeql


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "line.csv"
    path.write_text(LINE)
    return path


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder of a small fit."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "line.csv").write_text(LINE)
    run_gmeql(
        "fit", str(folder / "line.csv"), "-t", "y", "--max-candidates", "600", "--out", str(folder / "run"), "--quiet"
    )
    return folder / "run"
