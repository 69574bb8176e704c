"""`gmeql bench` and `gmeql paper` from outside."""

from __future__ import annotations

import json

import pytest

from command_line import run_gmeql


def test_a_problem_is_solved_and_recorded(tmp_path, capsys) -> None:
    path = tmp_path / "records.json"
    options = ("--problems", "b1", "--seeds", "1", "--max-candidates", "3000", "--max-time", "60", "--json", str(path))
    run_gmeql("bench", "paper", *options)
    assert "b1" in capsys.readouterr().out
    (record,) = json.loads(path.read_text())
    assert record["problem"] == "b1" and record["seed"] == 0 and record["method"] == "fitted"


def test_the_device_is_that_of_every_run(tmp_path, capsys) -> None:
    path = tmp_path / "records.json"
    options = ("--problems", "b1", "--seeds", "1", "--max-candidates", "2000", "--json", str(path))
    run_gmeql("bench", "paper", *options, "--device", "cpu")
    (record,) = json.loads(path.read_text())
    assert record["options"] == {"device": "cpu"}


def test_a_card_that_is_not_there_is_said_once(monkeypatch, capsys) -> None:
    monkeypatch.setattr("gmeql.fitters.cuda.driver.why_not", lambda: "no CUDA device was found")
    run_gmeql("bench", "paper", "--device", "gpu", expect=2)
    assert capsys.readouterr().err == "gmeql: --device gpu, but no CUDA device was found\n"


def test_the_paper_is_made_with_what_was_asked_for(tmp_path, monkeypatch, capsys) -> None:
    asked = {}
    monkeypatch.setattr("gmeql.evaluation.paper.run", lambda **options: asked.update(options))
    run_gmeql("paper", "--only", "table1,fig2a", "--out", str(tmp_path), "--workers", "0", "--figures-only")
    expected = {"budget": "smoke", "only": ("table1", "fig2a"), "out": tmp_path, "workers": 0, "train": False}
    assert asked == {**expected, "methods": None}
    run_gmeql("paper", "--methods", "gmeql,fitted", "--out", str(tmp_path))
    assert asked["methods"] == ("gmeql", "fitted")
    assert f"written to {tmp_path}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bench", "paper", "--problems", "b99"], "b99"),
        (["bench", "paper", "--device", "tpu"], "cpu, gpu"),
        (["paper", "--only", "table99"], "table99"),
    ],
)
def test_what_is_not_there_is_named(arguments, words, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    run_gmeql(*arguments, expect=2)
    assert words in capsys.readouterr().err
