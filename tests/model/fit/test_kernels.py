"""Kernels are compiled once, in another process, by one of those who need them: what a search needs first before it begins,
the others beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import searches
from gmeql.fitters import compiled, waiting
from gmeql.model.fit import kernels
from gmeql.model.fit.fitting import run_search
from gmeql.model.fit.preparation import prepare
from gmeql.search.config import SearchConfig
from gmeql.search.events import Progress

pytest.importorskip("fcntl")


class Process:
    """One that would have been started: it holds what it was given open, as a child does, until it is over."""

    def __init__(self, *files: int) -> None:
        self.files = [os.dup(file) for file in files]

    def wait(self) -> None:
        pass

    def end(self, *, says_so: bool) -> None:
        for file in self.files:
            if says_so:
                waiting.say_done(file)
            os.close(file)
        self.files = []


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[Process]]:
    """The processes that would have been started, and a first call to come; nothing is on disk."""
    processes: list[Process] = []
    monkeypatch.setattr(kernels, "_python", lambda code, *files: processes.append(Process(*files)) or processes[-1])
    monkeypatch.setattr(kernels, "_are_on_disk", lambda where="": False)
    monkeypatch.setattr(compiled, "common_folder", lambda: tmp_path)
    forget()
    yield processes
    forget()
    for process in processes:
        process.end(says_so=False)


def forget() -> None:
    """As in a process that has just begun."""
    kernels.keep_kernels.cache_clear()
    kernels.keep_first_kernels.cache_clear()
    kernels.begin_to_compile.cache_clear()


def while_waiting(monkeypatch: pytest.MonkeyPatch, *steps: object) -> list[float]:
    """Let something happen at each look whether kernels are there; how often there was one."""
    waits: list[float] = []
    todo = iter(steps)

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        next(todo)()  # type: ignore[operator]

    monkeypatch.setattr(kernels.time, "sleep", sleep)
    return waits


def test_kernels_are_compiled_in_another_process_and_only_once(
    started: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that compiles rounds otherwise than those that load: a budget of candidates must not depend on it."""
    waits = while_waiting(monkeypatch, lambda: None, lambda: started[0].end(says_so=True))
    kernels.keep_kernels()
    assert len(started) == 1 and len(waits) == 2
    kernels.keep_kernels()
    assert len(started) == 1


def test_kernels_that_are_on_disk_start_no_process(started: list[Process], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_are_on_disk", lambda where="": True)
    kernels.begin_to_compile()
    kernels.keep_first_kernels()
    kernels.keep_kernels()
    assert not started


def test_a_search_begins_when_what_it_needs_first_is_there(
    started: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    there: list[str] = []
    monkeypatch.setattr(kernels, "_are_on_disk", lambda where="": where in there)
    waits = while_waiting(monkeypatch, lambda: None, lambda: there.append(kernels.FIRST))
    kernels.keep_first_kernels()
    assert len(waits) == 2 and started[0].files  # the others are being compiled
    assert all(name.startswith(kernels.FIRST) for name in list(kernels._kernels())[:13])


def test_kernels_that_cannot_be_kept_are_left_to_whoever_calls_them(
    started: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "can_be_kept", lambda function: False)
    kernels.keep_kernels()
    assert not started


def test_what_was_begun_early_is_waited_for_and_not_begun_again(
    started: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels.begin_to_compile()
    forget()
    kernels.begin_to_compile()  # as in another process
    assert len(started) == 1
    while_waiting(monkeypatch, lambda: started[0].end(says_so=True))
    kernels.keep_kernels()
    assert len(started) == 1


def test_who_comes_second_compiles_what_the_first_died_over(
    started: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels.begin_to_compile()
    ends = [lambda: started[0].end(says_so=False), lambda: started[1].end(says_so=False)]
    waits = while_waiting(monkeypatch, *ends)
    kernels.keep_kernels()
    assert len(started) == 2 and len(waits) == 2  # once: what kills two kills a third


def test_who_waited_does_not_compile_again_what_never_reaches_the_disk(
    started: list[Process], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else a crowd of processes would compile one after the other, each for itself, and wait for minutes."""
    turn = waiting.Turn.of(tmp_path)
    assert turn is not None
    first = turn.take()
    assert first is not None

    def finish() -> None:
        waiting.say_done(first)
        os.close(first)

    while_waiting(monkeypatch, finish)
    kernels.keep_kernels()
    assert not started
    kernels.keep_kernels.cache_clear()
    while_waiting(monkeypatch, lambda: started[0].end(says_so=True))
    kernels.keep_kernels()  # nobody was at it meanwhile
    assert len(started) == 1


def test_nobody_waits_for_ever(started: list[Process], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LONGEST_WAIT", 0.05)
    monkeypatch.setattr(waiting, "LOOK_EVERY", 0.01)
    kernels.keep_kernels()
    assert started[0].files


def test_where_there_are_no_locks_everybody_compiles_everything(
    started: list[Process], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr(compiled, "common_folder", lambda: tmp_path / "file")
    waited: list[Process] = []
    monkeypatch.setattr(Process, "wait", lambda process: waited.append(process))
    kernels.keep_first_kernels()
    assert waited == started and len(started) == 1 and not started[0].files


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
    assert notes == [[""], [waiting.COMPILING, ""]]
    assert [str(member) for member in fronts[0]] == [str(member) for member in fronts[1]]


COLD = """
import sys
import numpy as np
import searches
from gmeql.model.fit import kernels
from gmeql.model.fit.fitting import run_search
from gmeql.model.fit.preparation import prepare
from gmeql.search.config import SearchConfig
seen = []
X, y = searches.parabola()
front = run_search(
    prepare(X, y + np.sin(9 * X[:, 0])), config=SearchConfig(max_candidates=600, n_jobs=1), seed=0,
    callbacks=[lambda event: seen.append(kernels._are_on_disk()) and False],
).front
print(repr([(str(member.expression), member.loss) for member in front]))
from gmeql.fitters.kernel.levenberg_marquardt import fit_many
from gmeql.search.sampling.draw import draw_candidates
print([sum(each.stats.cache_misses.values()) for each in (fit_many, draw_candidates)])
"""


@pytest.mark.slow
def test_on_a_new_machine_a_budget_of_candidates_gives_what_it_gives_later(tmp_path: Path) -> None:
    """The first search begins before all kernels are there, waits for the others and compiles none itself; a second one that
    is killed at once, and a third beside it, change nothing."""
    environment = {**kernels.same_packages(), "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", COLD]
    killed = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    first = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    killed.kill()
    killed.wait()
    told = [process.communicate()[0] for process in first]
    later = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert told == [later, later]
    assert later.splitlines()[1] == "[0, 0]"


KILLED = """
import os, signal
from gmeql.fitters import compiled, waiting
from gmeql.model.fit import kernels
python, processes = kernels._python, []
kernels._python = lambda *given, **others: processes.append(python(*given, **others)) or processes[0]
kernels.begin_to_compile()
while not any(compiled.is_on_disk(each) for each, _ in kernels._kernels().values()):
    pass
os.kill(processes[0].pid, signal.SIGKILL)
while waiting.is_taken_in(compiled.common_folder()):
    pass
print(kernels._are_on_disk())
"""


@pytest.mark.slow
def test_nobody_waits_for_what_a_killed_process_has_forked(tmp_path: Path) -> None:
    """Its children go on until nothing is left to compile, but do not have the turn."""
    environment = {**kernels.same_packages(), "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", KILLED], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


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
