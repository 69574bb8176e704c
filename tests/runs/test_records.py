"""Progress and fronts as plain data, and the log of a run that a kill may cut off."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace

from gmeql.formula.bounds import Bounds
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.model.pareto.front import Front
from gmeql.runs import records
from gmeql.runs.records import (
    UNSEEN_COLUMNS,
    ProgressLog,
    front_csv,
    log_entries,
    member_record,
    progress_record,
)
from gmeql.search.events import REASONS, Member, Progress, reason_text
from gmeql.search.judging.outlook import Outlook

MEAN = Member(Expression(Constant(2.0), ("a",)), 0.5, 1)
LINE = Member(Expression(Call("mul", (Constant(1.5), Variable(0))), ("a, b",)), 0.25, 3)


def event(elapsed: float, *front: Member, done: bool = False) -> Progress:
    reason = "max_time" if done else ""
    return Progress(elapsed, 10, 5.0, 1, front, front[-1], done=done, reason=reason)


def test_an_event_is_plain_data() -> None:
    record = json.loads(json.dumps(progress_record(event(1.23456, MEAN, LINE, done=True))))
    assert record["elapsed"] == 1.235 and record["done"] is True and record["reason"] == REASONS["max_time"]
    assert [item["complexity"] for item in record["front"]] == [1, 3] and record["best"]["loss"] == 0.25


def test_a_loss_that_is_not_finite_becomes_null_and_unknown_reasons_stay() -> None:
    assert member_record(Member(MEAN.expression, math.inf, 1))["loss"] is None
    assert reason_text("schedule complete") == "schedule complete" and reason_text("exact") == "a formula is exact"


def test_the_log_holds_every_change_of_the_front_and_few_other_lines(tmp_path, monkeypatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(records.time, "monotonic", lambda: clock[0])
    with ProgressLog(tmp_path / "log") as log:
        for now, progress in (
            (0.0, event(0.0, MEAN)),
            (0.1, event(0.1, MEAN)),  # nothing new, and too soon
            (0.3, event(0.3, MEAN)),  # nothing new, but long enough ago
            (0.4, event(0.4, MEAN, LINE)),
            (0.5, event(0.5, MEAN, LINE, done=True)),
        ):
            clock[0] = now
            log.add(progress)
    lines = list(log_entries((tmp_path / "log").read_text().splitlines()))
    assert [line["elapsed"] for line in lines] == [0.0, 0.3, 0.4, 0.5]
    assert ["front" in line for line in lines] == [True, False, True, True]


def test_lines_that_a_kill_cut_off_are_passed_over() -> None:
    lines = ['{"elapsed": 1.0}', '{"elapsed": 2.0, "fro', "[]", '{"elapsed": "x"}', ""]
    assert [entry["elapsed"] for entry in log_entries(lines)] == [1.0]


def test_a_front_as_csv_reads_back() -> None:
    front = Front.from_members([MEAN, LINE], rows=5, target_spread=1.0, target_largest=2.0)
    rows = list(csv.DictReader(io.StringIO(front_csv(front))))
    assert [row["formula"] for row in rows] == [str(member) for member in front]
    assert [float(row["loss"]) for row in rows] == [0.5, 0.25] and rows[1]["index"] == "1"
    assert {row[name] for row in rows for name in UNSEEN_COLUMNS} == {""}


def test_what_a_formula_promises_on_unseen_rows_is_in_record_and_csv() -> None:
    line = replace(LINE, outlook=Outlook(0.3, 0.02, False, 4.0, Bounds(-1.5, 2.5, True)))
    pole = replace(MEAN, outlook=Outlook(math.inf, math.inf, True, 4.0, Bounds(-math.inf, 2.5, False)))
    assert member_record(line)["outlook"]["standard_error"] == 0.02 and member_record(MEAN)["outlook"] is None
    assert json.loads(json.dumps(member_record(pole), allow_nan=False))["outlook"]["error"] is None
    front = Front.from_members([pole, line], rows=5, target_spread=1.0, target_largest=2.0)
    rows = list(csv.DictReader(io.StringIO(front_csv(front))))
    assert [rows[0][name] for name in UNSEEN_COLUMNS] == ["", "", "yes", "", ""]
    assert [rows[1][name] for name in UNSEEN_COLUMNS] == ["0.3", "0.02", "no", "-1.5", "2.5"]
    assert list(rows[0])[:5] == ["index", "complexity", "loss", "score", "formula"]


def test_a_note_reaches_the_log_and_the_page_and_none_takes_no_room() -> None:
    assert "note" not in progress_record(event(1.0, MEAN))
    assert progress_record(replace(event(0.0, MEAN), note="compiling"))["note"] == "compiling"
