"""A run folder: everything comes back, and what is damaged or foreign is a `StorageError`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gmeql.model.files.storage import StorageError
from gmeql.runs.folder import Run, default_folder
from gmeql.runs.settings import DEFAULT_SECONDS, FitSettings
from gmeql.tables.read import Training, read

SETTINGS = FitSettings(target="the y", weights="w", seed=4, max_time=10.0)


def training() -> Training:
    data = b"x0,,w,the y\n1,5,1,2\n2,6,2,4\n,7,1,3\n4,8,3,9\n"
    return read(data, name="a table.csv").select("the y", weights="w")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path / "run", training(), SETTINGS)


def test_rows_settings_and_notes_come_back(run: Run) -> None:
    again, first = Run.open(run.folder).training(), training()
    for name in ("X", "y", "weights", "rows"):
        np.testing.assert_array_equal(getattr(again, name), getattr(first, name))
    assert (again.names, again.target, again.source, again.notes) == (first.names, "the y", "a table.csv", first.notes)
    assert run.settings() == SETTINGS
    description = run.description()
    assert description["state"] == "queued" and description["seed"] == 4 and description["versions"]["gmeql"]


def test_a_folder_is_made_once(run: Run) -> None:
    before = (run.folder / "run.json").read_bytes()
    with pytest.raises(StorageError, match="holds a run already"):
        Run.create(run.folder, training(), SETTINGS)
    assert (run.folder / "run.json").read_bytes() == before
    (run.folder / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        Run.create(run.folder / "file" / "inside", training(), SETTINGS)


def test_changes_keep_the_rest(run: Run) -> None:
    created = run.description()["created"]
    run.update(state="running", pid=7)
    assert run.description()["state"] == "running" and run.description()["created"] == created
    assert not list(run.folder.glob("*.tmp"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "cannot be read"),
        ("[]", "is not the description"),
        ('{"format": "gmeql-run", "version": 99}', "newer gmeql"),
        ('{"format": "gmeql-run", "version": 1}', "is damaged"),
        ('{"format": "gmeql-run", "version": 1, "data": {}, "settings": {}, "state": "odd"}', "is damaged"),
    ],
)
def test_a_description_that_is_none_is_refused(run: Run, content: str, words: str) -> None:
    (run.folder / "run.json").write_text(content)
    with pytest.raises(StorageError, match=words):
        Run.open(run.folder)


@pytest.mark.parametrize("name", ["settings", "versions", "created", "reason", "source", "target", "rows", "columns"])
def test_a_description_without_what_every_run_has_is_damaged(run: Run, name: str) -> None:
    content = run.description()
    (content if name in content else content["data"]).pop(name)
    run.write_description(content)
    with pytest.raises(StorageError, match="is damaged"):
        Run.open(run.folder)


def test_a_setting_of_another_version_is_refused_by_name(run: Run) -> None:
    run.update(settings=SETTINGS.to_dict() | {"colour": "red"})
    with pytest.raises(StorageError, match="unknown setting 'colour'"):
        run.settings()


def test_rows_that_are_missing_damaged_or_other_are_refused(run: Run) -> None:
    description = run.description()
    run.update(data=description["data"] | {"fingerprint": "0" * 64})
    with pytest.raises(StorageError, match="is not the data"):
        run.training()
    (run.folder / "data.parquet").write_bytes(b"PAR1")
    with pytest.raises(StorageError, match="is damaged"):
        run.training()
    (run.folder / "data.parquet").unlink()
    with pytest.raises(StorageError, match="is missing"):
        run.training()


def test_the_newest_progress_has_the_newest_front(run: Run) -> None:
    assert run.last_progress() is None and list(run.history()) == []
    lines = [{"elapsed": 1.0, "front": ["old"]}, {"elapsed": 2.0, "front": ["new"]}, {"elapsed": 3.0}]
    run.log_path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"elapsed": 4.0, "fr')
    assert run.last_progress() == {"elapsed": 3.0, "front": ["new"]}
    assert [line["elapsed"] for line in run.history()] == [1.0, 2.0, 3.0]


def test_more_time_counts_from_what_was_spent(run: Run) -> None:
    assert run.with_more_time(SETTINGS, None) == SETTINGS  # nothing spent: the rest is the whole
    assert run.with_more_time(SETTINGS, 5.0).max_time == 5.0
    run.log_path.write_text('{"elapsed": 9.9}\n')
    assert run.with_more_time(SETTINGS, 5.0).max_time == pytest.approx(14.9)
    assert run.with_more_time(SETTINGS, None).max_time == pytest.approx(9.9 + DEFAULT_SECONDS)
    by_count = replace(SETTINGS, max_time=None, max_candidates=5)
    assert run.with_more_time(by_count, None) == by_count


def test_folders_get_fresh_plain_names(tmp_path: Path) -> None:
    first = default_folder("../a b/c d;e.csv", tmp_path)
    assert first.parent == tmp_path and first.name.startswith("c-d-e-")
    first.mkdir()
    assert not default_folder("../a b/c d;e.csv", tmp_path).exists()
    assert default_folder("", tmp_path).name.startswith("data-")
