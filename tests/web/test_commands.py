"""Commands beside the page: stopped with what they found, queued, left by a server that is gone."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from gmeql.runs.equations import REPORT, RESULT, read_record, write_record
from gmeql.web.commands import Commands, equations_of

RECORD = {
    "kind": "motion", "state": "running", "reason": "", "title": "motion of q", "source": "a", "created": "b",
    "max_time": 1.0, "primes": "''",
}  # fmt: skip
OPEN = ["solve", "--ics=y(0)=0", "--domain=0..1", "--max-time=600", "--jobs=1", "--json"]
TOLD = {"kind": "solution", "title": "y' = x^2 + y^2", "source": "", "max_time": 600.0}


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    return Commands(tmp_path)


def until(commands: Commands, name: str, good) -> dict:
    for _ in range(1200):
        state = commands.state(name)
        assert state is not None
        if good(state):
            return state
        time.sleep(0.05)
    raise AssertionError(f"still {state}")


def test_stop_keeps_what_was_found_and_what_waits_does_not_begin(commands, tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        commands.start(tmp_path / name, [*OPEN, f"--out={tmp_path / name}", "--", "y' = x^2 + y^2"], **TOLD)
    running = until(commands, "first", lambda state: "candidates" in state["said"])
    assert running["state"] == "running" and running["elapsed"] > 0 and not running["report"]
    assert " x1" not in running["said"]  # the person's own names
    assert commands.state("second")["state"] == "queued"
    commands.stop("second")
    assert commands.state("second")["reason"] == "stopped before it began"
    commands.close(seconds=120.0)  # as a server does that ends: it stops them, and waits
    ended = commands.state("first")
    assert ended["state"] == "stopped" and ended["report"] and ended["equations"][0].startswith("y = ")
    assert "No closed form was found" in (tmp_path / "first" / REPORT).read_text(encoding="utf-8")
    commands.wait()
    assert read_record(tmp_path / "second")["state"] == "stopped" and not (tmp_path / "second" / REPORT).exists()


def test_what_fails_says_why(commands, tmp_path):
    (tmp_path / "bad").mkdir()
    commands.start(tmp_path / "bad", ["dynamics", "--json", "none.csv"], **TOLD)
    state = until(commands, "bad", lambda state: state["state"] not in ("queued", "running"))
    assert state["state"] == "failed" and "Missing option '--time'" in state["reason"]


def test_one_that_ends_while_it_is_asked_for_is_not_taken_for_an_earlier_servers(commands, tmp_path, monkeypatch):
    """Its record and whether it runs are read at one moment: in between nobody can end it."""
    (tmp_path / "bad").mkdir()
    looked = []
    monkeypatch.setattr(
        "gmeql.web.commands.read_record", lambda path: looked.append(commands._lock.locked()) or dict(RECORD)
    )
    assert commands.state("bad") is not None and looked == [True]


def test_a_command_whose_folder_is_gone_makes_room_for_the_next(commands, tmp_path):
    with commands._turn:  # it waits, and meanwhile somebody tidies up
        commands.start(tmp_path / "gone", ["solve", "--json", "--", "y = 3"], **TOLD)
        shutil.rmtree(tmp_path / "gone")
    commands.wait()
    assert not commands._commands and commands.state("gone") is None
    commands.close()


def test_what_an_earlier_server_left_has_ended_with_or_without_a_report(commands, tmp_path):
    write_record(tmp_path / "old", RECORD)
    assert commands.state("old")["reason"] == "the server ended before it was done; start it again"
    (tmp_path / "old" / REPORT).write_text("page")
    (tmp_path / "old" / RESULT).write_text('{"reason": "interrupted", "equations": {"q": "-q"}}')
    state = commands.state("old")
    assert state["state"] == "stopped" and state["report"] and state["equations"] == ["q'' = -q"]
    assert [run["formula"] for run in commands.listed()] == ["q'' = -q"]
    assert commands.state("../old") is None and commands.state("none") is None


def test_equations_are_written_by_their_kind():
    assert equations_of({"kind": "field"}, {"equations": {"u": "u_xx"}}) == ["u_t = u_xx"]
    assert equations_of({"kind": "solution"}, {"solution": {"y": "x"}}) == ["y = x"]
    assert equations_of({"kind": "motion"}, {}) == []
