"""Who waits for kernels, for whom, and that no clock counts it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gmeql.fitters import waiting
from gmeql.search.clock import Clock
from gmeql.search.config import SearchConfig

pytest.importorskip("fcntl")

HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that compiles into a folder, as far as anyone can see."""
    command = [sys.executable, "-c", HOLDER, str(folder / waiting.LOCK_NAME)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_turn_is_one_process_s_until_it_is_over_or_dead(tmp_path: Path) -> None:
    turn = waiting.Turn.of(tmp_path)
    assert turn is not None
    with held(tmp_path) as other:
        assert turn.is_taken() and turn.take() is None and waiting.is_taken_in(tmp_path)
        other.kill()
        other.wait()
        assert not turn.is_taken() and not turn.is_done()  # it died over it
    file = turn.take()
    assert file is not None and turn.is_taken() and turn.take() is None
    waiting.say_done(file)
    os.close(file)
    assert not turn.is_taken() and turn.is_done()


def test_where_there_is_no_folder_nobody_has_a_turn(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    assert waiting.Turn.of(tmp_path / "file") is None
    assert not waiting.is_taken_in(tmp_path / "none") and not (tmp_path / "none").exists()
    assert (tmp_path / "file").read_text() == "no folder"


def test_what_another_process_compiles_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there: list[bool] = []
    monkeypatch.setattr(waiting.time, "sleep", lambda seconds: there.append(True))
    with held(tmp_path):
        waiting.wait_for(lambda: len(there) == 3, tmp_path)
    assert len(there) == 3


def test_nobody_waits_for_the_dead_nor_for_ever_nor_for_himself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting.wait_for(lambda: False, tmp_path)
    with held(tmp_path) as other:
        monkeypatch.setattr(waiting.time, "sleep", lambda seconds: (other.kill(), other.wait()))
        waiting.wait_for(lambda: False, tmp_path)
    monkeypatch.setattr(waiting.time, "sleep", lambda seconds: None)
    with held(tmp_path):
        monkeypatch.setattr(waiting, "LONGEST_WAIT", 0.01)
        waiting.wait_for(lambda: False, tmp_path)
        monkeypatch.setattr(waiting, "LONGEST_WAIT", 600.0)
        monkeypatch.setattr(waiting, "_compiles", True)
        waiting.wait_for(lambda: False, tmp_path)


def test_no_clock_counts_what_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(waiting.time, "perf_counter", lambda: now[0])
    clock = Clock.start(SearchConfig(max_time=10.0))
    began = waiting.moment()
    now[0] += 2.0
    with waiting.uncounted():
        now[0] += 30.0
        with waiting.uncounted():  # a part of what is loaded
            now[0] += 30.0
        assert waiting.moment() == began + 2.0 and not clock.is_late()
    now[0] += 1.0
    assert waiting.moment() == began + 3.0 and clock.elapsed() == 3.0
    now[0] += 8.0
    assert clock.is_late()


def test_the_clock_stands_still_until_the_last_thread_has_what_it_waits_for() -> None:
    began, go_on, is_in = waiting.moment(), threading.Event(), threading.Event()

    def wait() -> None:
        with waiting.uncounted():
            is_in.set()
            go_on.wait()

    thread = threading.Thread(target=wait)
    with waiting.uncounted():
        stopped = waiting.moment()
        thread.start()
        is_in.wait()
    assert waiting.moment() == stopped >= began
    go_on.set()
    thread.join()
    assert waiting.moment() >= stopped
