"""Records of a benchmark: what they hold, their files, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gmeql.evaluation.bench import BenchRecord, RecordFile, read_records
from gmeql.evaluation.problems import PAPER
from oracle import bench


REQUIRED = "problem seed method solved relative_rmse seconds candidates expression truth complexity".split()


def test_records_hold_what_is_promised(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "records.jsonl"
    records = bench(path=path)
    assert [(r.problem, r.seed) for r in records] == [("b1", 0), ("b1", 1), ("b5", 0), ("b5", 1)]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        assert set(REQUIRED) <= set(line)
        assert line["solved"] is True and line["relative_rmse"] < 1e-12 and line["method"] == "fitted"
        assert line["truth"] == PAPER[line["problem"]][0] and line["complexity"] == 7
    assert read_records(path) == records


def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("milk\neggs\n")
    with pytest.raises(ValueError, match=r"notes.txt:1 is not a benchmark record"):
        bench(path=path)
    assert path.read_text() == "milk\neggs\n"
    with pytest.raises(ValueError, match="is a folder"):
        bench(path=tmp_path)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"seeds": 0}, "seeds=0"),
        ({"seeds": [1, 1]}, "seeds"),
        ({"jobs": 0}, "jobs=0"),
        ({"max_time": 0}, "max_time=0"),
        ({"max_time": None}, "give a budget"),
        ({"noise": 0.1, "noise_std": 0.1}, "give one"),
        ({"rows": -5}, "rows=-5"),
        ({"problems": ["b99"]}, "no problem 'b99'"),
    ],
)
def test_bad_settings_are_named(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bench(**settings)


def test_what_json_cannot_hold_is_not_written(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "records.jsonl")
    with pytest.raises(ValueError):
        file.append(BenchRecord("b1", 0, "fitted", False, float("inf"), 1.0, 1, "x", "x", 1))
    assert file.read() == []
