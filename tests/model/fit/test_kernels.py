"""Kernels are compiled once, in another process, by one of those who need them; nobody waits for the dead or for ever."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

import searches
from gmeql.fitters import compiled
from gmeql.model.fit import kernels
from gmeql.model.fit.fitting import run_search
from gmeql.model.fit.preparation import prepare
from gmeql.search.config import SearchConfig
from gmeql.search.events import Progress

fcntl = pytest.importorskip("fcntl")

HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The code of processes that would have been started, and a first call to come."""
    codes: list[str] = []
    monkeypatch.setattr(kernels, "_python", lambda code: codes.append(code) or nullcontext())
    kernels.keep_kernels.cache_clear()
    yield codes
    kernels.keep_kernels.cache_clear()


@contextmanager
def held(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that compiles into a folder, as far as anyone can see."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-c", HOLDER, str(folder / kernels.LOCK_NAME)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(("on_disk", "processes"), [(False, 1), (True, 0)])
def test_kernels_are_compiled_in_another_process_and_only_once(
    on_disk: bool, processes: int, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that compiles rounds otherwise than those that load: a budget of candidates must not depend on it."""
    monkeypatch.setattr(compiled, "is_on_disk", lambda function: on_disk)
    for _ in range(2):
        run_search(prepare(*searches.parabola()), config=SearchConfig(max_candidates=50, n_jobs=1), seed=0)
    assert len(started) == processes


def test_kernels_that_cannot_be_kept_are_left_to_whoever_calls_them(
    started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "can_be_kept", lambda function: False)
    kernels.keep_kernels()
    assert not started


def test_what_another_process_compiled_meanwhile_is_not_compiled_again(
    started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[bool] = []
    monkeypatch.setattr(kernels, "_are_on_disk", lambda: bool(looks) or looks.append(True) or False)
    kernels.keep_kernels()
    assert looks and not started


def test_who_comes_second_waits_until_the_first_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with held(tmp_path) as first:
        waits: list[float] = []

        def sleep(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 3:
                first.kill()
                first.wait()

        monkeypatch.setattr(kernels.time, "sleep", sleep)
        with kernels._alone_in(tmp_path) as turn:
            assert len(waits) == 3 and not turn.is_done_by_another()  # it died over it
            with pytest.raises(OSError), (tmp_path / kernels.LOCK_NAME).open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with (tmp_path / kernels.LOCK_NAME).open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # given back


def test_who_waited_does_not_compile_again_what_never_reaches_the_disk(
    tmp_path: Path, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a crowd of processes would compile one after the other, each for itself, and wait for minutes."""
    alone_in = kernels._alone_in
    monkeypatch.setattr(kernels, "_are_on_disk", lambda: False)
    monkeypatch.setattr(kernels, "_alone_in", lambda _: alone_in(tmp_path))
    with held(tmp_path) as first:

        def sleep(seconds: float) -> None:
            os.utime(tmp_path / kernels.LOCK_NAME)  # as one does that has finished
            first.kill()
            first.wait()

        monkeypatch.setattr(kernels.time, "sleep", sleep)
        kernels.keep_kernels()
    assert not started
    kernels.keep_kernels.cache_clear()
    kernels.keep_kernels()  # nobody was at it meanwhile
    assert len(started) == 1


def test_nobody_waits_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "LONGEST_WAIT", 0.05)
    monkeypatch.setattr(kernels, "LOOK_EVERY", 0.01)
    with held(tmp_path) as first, kernels._alone_in(tmp_path):
        assert first.poll() is None


def test_a_folder_that_cannot_be_written_to_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with kernels._alone_in(tmp_path / "file"):
        pass
    assert (tmp_path / "file").read_text() == "no folder"


def test_while_kernels_are_missing_a_first_look_is_told_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = prepare(*searches.parabola())
    config = SearchConfig(max_candidates=300, n_jobs=1)
    fronts, notes = [], []
    for missing in (False, True):
        monkeypatch.setattr("gmeql.model.fit.fitting.are_missing", lambda missing=missing: missing)
        events: list[Progress] = []
        stops = [lambda event, events=events: events.append(event) or True]  # it is asked again when there is a result
        fronts.append(run_search(data, config=config, seed=0, callbacks=stops).front)
        notes.append([event.note for event in events])
    assert notes == [[""], [kernels.COMPILING, ""]]
    assert [str(member) for member in fronts[0]] == [str(member) for member in fronts[1]]


def test_what_is_compiled_already_is_not_called_where_its_parts_are_nowhere() -> None:
    """A first search that was killed leaves some kernels on disk: the processes that compile the others must live."""
    kernels.keep_kernels()
    code = (
        "from gmeql.model.fit import kernels; kernels._compile_one('gmeql.fitters.kernel.levenberg_marquardt.fit_many')"
    )
    subprocess.run([sys.executable, "-c", code], env=kernels.same_packages(), check=True)


def test_a_search_calls_no_other_functions_and_none_for_other_arguments_than_those_that_are_compiled_side_by_side():
    """What is not among them is compiled when all others are done, one after the other.

    The process that is asked keeps them itself: sources that changed since these tests began are others to it.
    """
    code = (
        "import gc\n"
        "import numpy as np\n"
        "from numba.core.dispatcher import Dispatcher\n"
        "from gmeql.model.fit import kernels\n"
        "from gmeql.search.islands.tried import TriedStructures\n"
        "kernels.keep_kernels()\n"
        "for _ in kernels._smallest_search().run(): pass\n"
        "first, second = TriedStructures(8), TriedStructures(8)\n"
        "first.add(np.arange(1, 5, dtype=np.uint64)); second.merge(*first.known())\n"  # as later generations do
        "called = [each for each in gc.get_objects() if isinstance(each, Dispatcher) and each.overloads]\n"
        "known = {id(function): call for function, call in kernels._kernels().values()}\n"
        "print([each.py_func.__name__ for each in called if id(each) not in known and each.stats.cache_path])\n"
        "kernels._compile_structure(); kernels._count_choices(); kernels._count_tries(); kernels._raise_counts()\n"
        "print({len(each.overloads) for each in called})\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=kernels.same_packages(), check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["[]", "{1}"]
