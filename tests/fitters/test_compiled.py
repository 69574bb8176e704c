"""Compiled functions stay on disk until a source of their folder, or a number they take in, changes."""

from __future__ import annotations

import errno
import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core import caching

from gmeql.fitters import compiled, opcodes
from gmeql.fitters.compiled import can_be_kept, is_on_disk, sources_key

CALLEE = """
from gmeql.fitters.compiled import compiled

@compiled()
def shift(x):
    return x + {shift}
"""
CALLER = """
from gmeql.fitters.compiled import compiled
from {package}.callee import shift

@compiled()
def twice(x):
    return shift(shift(x))
"""
PART = """
from numba import float64, int64, types
from gmeql.fitters.compiled import part

@part(types.Tuple((float64, int64))(float64[::1], int64))
def first_and_shifted(numbers, x):
    return numbers[0], x + {shift}
"""
CALLER_OF_PART = """
from gmeql.fitters.compiled import compiled
from {package}.callee import first_and_shifted

@compiled()
def twice(numbers, x):
    first, once = first_and_shifted(numbers, x)
    return first + first_and_shifted(numbers, once)[1]
"""


def write_package(folder: Path, shift: int, *, callee: str = CALLEE, caller: str = CALLER) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "__init__.py").write_text("")
    (folder / "callee.py").write_text(callee.format(shift=shift))
    (folder / "caller.py").write_text(caller.format(package=folder.name))


def load(package: str):
    """The caller, imported as a new process would."""
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        del sys.modules[name]
    sources_key.cache_clear()
    importlib.invalidate_caches()
    return importlib.import_module(f"{package}.caller").twice


def test_a_change_of_what_is_called_in_another_file_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain Numba would go on with the old callee here: the caller's own file does not change."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    folder = tmp_path / "gmeql_test_sources"
    write_package(folder, 1)
    twice = load(folder.name)
    assert not is_on_disk(twice) and twice(10) == 12 and is_on_disk(twice)
    again = load(folder.name)
    assert again is not twice and is_on_disk(again) and again(10) == 12 and again.stats.cache_hits
    write_package(folder, 5)
    changed = load(folder.name)
    assert not is_on_disk(changed) and changed(10) == 20 and not changed.stats.cache_hits


def test_a_part_is_called_by_its_address_and_there_before_who_calls_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller alone is not enough: taken from disk without its part, it would end the process."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    folder = tmp_path / "gmeql_test_parts"
    options = dict(callee=PART, caller=CALLER_OF_PART)
    numbers = np.array([0.5, 7.0])
    write_package(folder, 1, **options)
    twice = load(folder.name)
    assert not is_on_disk(twice) and twice(numbers, 10) == 12.5 and is_on_disk(twice)
    (code,) = twice.inspect_llvm().values()
    assert "first_and_shifted" in code and not re.search(r"^define .*first_and_shifted", code, re.MULTILINE)
    again = load(folder.name)
    assert again is not twice and again(numbers, 10) == 12.5 and again.stats.cache_hits
    write_package(folder, 5, **options)
    assert load(folder.name)(numbers, 10) == 20.5


def test_functions_are_compiled_one_by_one_without_those_they_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that several processes can share the work; whoever comes then finds each of them on disk."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    monkeypatch.setattr(compiled, "_WANTED", [])
    folder = tmp_path / "gmeql_test_alone"
    write_package(folder, 1, callee=PART, caller=CALLER_OF_PART)
    numbers = np.array([0.5, 7.0])
    called: list[object] = []
    twice = load(folder.name)
    (part,) = compiled.parts_of(folder)
    compiled.compile_alone(twice, lambda: called.append(twice(numbers, 10)))
    assert not called and is_on_disk(twice) and not is_on_disk(part.dispatcher)
    compiled.compile_alone(part.dispatcher, lambda: part.dispatcher.compile(part.signature))
    assert is_on_disk(part.dispatcher)
    compiled._WANTED.clear()
    again = load(folder.name)
    assert again(numbers, 10) == 12.5 and again.stats.cache_hits


def test_a_part_takes_numbers_of_other_types_as_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = tmp_path / "gmeql_test_part_types"
    write_package(folder, 1, callee=PART, caller=CALLER_OF_PART)
    assert load(folder.name)(np.array([0.5]), np.int16(-3)) == -0.5


def test_a_function_that_cannot_be_written_to_disk_computes_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: Numba alone would raise at the first call."""
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = tmp_path / "gmeql_test_full_disk"
    write_package(folder, 1)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(caching.IndexDataCacheFile, "save", full)
    twice = load(folder.name)
    assert can_be_kept(twice) and twice(10) == 12 and not is_on_disk(twice)


def test_without_a_folder_to_keep_functions_in_they_are_compiled_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = tmp_path / "gmeql_test_no_folder"
    write_package(folder, 1)
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    twice = load(folder.name)
    assert not can_be_kept(twice) and twice(10) == 12 and not is_on_disk(twice)


def test_what_was_compiled_for_another_processor_is_not_on_disk_for_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machines of a cluster may share a home; Numba passes over files of another processor."""
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = tmp_path / "gmeql_test_processors"
    write_package(folder, 1)
    twice = load(folder.name)
    assert twice(10) == 12 and is_on_disk(twice)
    monkeypatch.setattr(type(twice.targetctx.codegen()), "magic_tuple", lambda self: ("another", "processor"))
    assert not is_on_disk(twice)


def test_the_key_is_that_of_all_sources_and_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_package(tmp_path, 1)

    def key() -> str:
        sources_key.cache_clear()
        return sources_key(tmp_path)

    first = key()
    assert key() == first
    (tmp_path / "callee.py").write_text(CALLEE.format(shift=2))
    assert key() != first
    (tmp_path / "callee.py").write_text(CALLEE.format(shift=1))
    assert key() == first
    monkeypatch.setattr(opcodes, "MAX_NODES", opcodes.MAX_NODES + 1)
    assert key() != first


@pytest.mark.parametrize("folder", ["fitters/kernel", "search/sampling"])
def test_a_folder_of_compiled_functions_calls_nobody_elses(folder: str) -> None:
    """The key covers one folder, so what its functions call must stand in it, and their numbers in keyed modules."""
    keyed = {"gmeql.fitters.opcodes", "gmeql.fitters.method", "gmeql.fitters.result", "gmeql.formula.limits"}
    harmless = {"gmeql.fitters.compiled", "gmeql.formula.operators", "gmeql.network.architecture"}  # nothing compiled
    own = "gmeql." + folder.replace("/", ".")
    root = Path(compiled.__file__).parents[1] / folder
    for path in sorted(root.glob("*.py")):
        imported = [
            line.split()[1] for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("from gmeql")
        ]
        assert all(name in keyed | harmless or name.startswith(own) for name in imported), path.name
