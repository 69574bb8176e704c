"""A fit in a run folder: what it leaves there, how it is stopped, how it goes on."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from command_line import LINE
from gmeql import GMEQLRegressor
from gmeql.runs import execute as execute_module
from gmeql.runs.execute import Stop, execute, save_emergency
from gmeql.runs.folder import Run
from gmeql.runs.settings import ConfigError, FitSettings
from gmeql.search.polish.scoring import JudgedRows, description_length
from gmeql.tables.read import read

SETTINGS = FitSettings(target="y", max_time=None, max_candidates=400)
TRAINING = read(LINE.encode(), name="line.csv").select("y")


def made(folder: Path, **changes) -> Run:
    return Run.create(folder, TRAINING, replace(SETTINGS, **changes))


def test_a_run_leaves_model_front_report_and_why_it_ended(tmp_path: Path) -> None:
    run, events = made(tmp_path / "run"), []
    outcome = execute(run, on_progress=events.append)
    assert outcome.state == "done" and outcome.reason == run.description()["reason"] != "" and events[-1].done
    model = GMEQLRegressor.load(run.model_path)
    assert [str(member) for member in model.front_] == [str(member) for member in outcome.model.front_]
    np.testing.assert_allclose(model.expression_(TRAINING.X), TRAINING.y, rtol=1e-9)
    assert outcome.report == run.folder / "report.html" and outcome.report.is_file()
    assert (run.folder / "front.csv").read_text().count("\n") == len(model.front_) + 1


def test_a_wish_to_stop_keeps_what_was_found(tmp_path: Path) -> None:
    run, stop = made(tmp_path / "run", max_candidates=10**9), Stop()
    outcome = execute(run, on_progress=lambda event: stop.set(), stop=stop)
    assert outcome.state == "stopped" and outcome.model is not None and outcome.report is not None


def test_a_stop_for_later_stays_in_the_queue_and_goes_on_from_there(tmp_path: Path) -> None:
    run, stop = made(tmp_path / "run"), Stop()
    stop.for_later = True
    outcome = execute(run, on_progress=lambda event: stop.set(), stop=stop)
    assert outcome.state == "queued" == run.description()["state"] and outcome.report is None
    again = execute(run)
    assert again.state == "done" and again.model.candidates_ >= outcome.model.candidates_


def test_the_best_of_a_steered_run_is_the_shortest_description(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = "".join(f"{a},{b},{2 * a + n}\n" for a, b, n in rng.normal(size=(60, 3)))
    training = read(f"a,b,y\n{rows}".encode(), name="noisy.csv").select("y")
    settings = replace(SETTINGS, pin=("a + b",), max_candidates=3000)
    events: list = []
    execute(Run.create(tmp_path / "run", training, settings), on_progress=events.append)
    judged = JudgedRows.of(training.X, training.y, None, training.names)
    front = events[-1].front
    lengths = [description_length(m.expression.root, m.loss**2, judged) for m in front]
    assert events[-1].best is front[int(np.argmin(lengths))] is not front[-1]


def test_forbidden_parts_are_on_no_front(tmp_path: Path) -> None:
    run = made(tmp_path / "run", forbid=("a*b", "sin"), pin=("a + b",))
    model = execute(run).model
    assert not any("sin" in str(member) for member in model.front_)
    assert list(model.feature_names_in_) == ["a", "b"]
    with pytest.raises(ConfigError, match="every formula that was found holds something forbidden"):
        monkey = made(tmp_path / "other", forbid=("a*b",))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(execute_module, "merge", lambda *arguments: [])
            execute(monkey)


def test_a_run_that_continues_another_knows_its_front(tmp_path: Path) -> None:
    first = made(tmp_path / "first")
    known = execute(first).model
    second = Run.create(tmp_path / "second", TRAINING, replace(SETTINGS, max_candidates=1), continues="first")
    assert execute(second).model.front_[-1].loss <= known.front_[-1].loss


def test_a_failure_is_noted_and_raised(tmp_path: Path, monkeypatch) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(execute_module, "_fit", broken)
    run = made(tmp_path / "run")
    with pytest.raises(ZeroDivisionError):
        execute(run)
    assert run.description()["state"] == "failed" and "a bug" in run.description()["reason"]


def test_one_event_is_enough_to_save_a_model(tmp_path: Path) -> None:
    run, events = made(tmp_path / "run"), []
    execute(made(tmp_path / "other"), on_progress=events.append)
    assert save_emergency(run, TRAINING, SETTINGS, events[-1])
    model = GMEQLRegressor.load(run.model_path)
    assert [str(member) for member in model.front_] == [str(member.expression) for member in events[-1].front]
    assert run.description()["state"] == "stopped"
    assert not save_emergency(run, TRAINING, SETTINGS, replace(events[-1], front=()))


def test_a_run_that_goes_on_from_another_shows_and_chooses_what_that_one_knew(tmp_path: Path) -> None:
    first = execute(made(tmp_path / "first"))
    settings = replace(SETTINGS, pin=("a*b",), max_candidates=1)
    run, events = Run.create(tmp_path / "second", TRAINING, settings, continues="first"), []
    outcome = execute(run, on_progress=events.append)
    formula = str(outcome.model.expression_)
    assert formula == str(first.model.expression_)
    assert str(events[-1].best.expression) == formula == run.description()["chosen"]["formula"]
    assert run.last_progress()["best"]["formula"] == formula
    front = [(member.complexity, member.loss) for member in events[-1].front]
    assert front == sorted(front) and len({c for c, _ in front}) == len(front)
    assert [loss for _, loss in front] == sorted((loss for _, loss in front), reverse=True)
    page = re.sub("</?span[^>]*>", "", outcome.report.read_text(encoding="utf-8"))  # words of a command
    assert f"--known {tmp_path / 'first'}" in page and "kept the formulas of the run first," in page
    assert "--known" not in first.report.read_text(encoding="utf-8")


def test_what_an_earlier_run_knew_of_other_rows_is_left_alone(tmp_path: Path) -> None:
    execute(made(tmp_path / "first"))
    other = replace(TRAINING, y=np.sin(TRAINING.y))
    run = Run.create(tmp_path / "second", other, replace(SETTINGS, max_candidates=1), continues="first")
    known = {str(member) for member in GMEQLRegressor.load(tmp_path / "first" / "model.json").front_ if member.index}
    assert run.continues == tmp_path / "first" and not known & {str(member) for member in execute(run).model.front_}
