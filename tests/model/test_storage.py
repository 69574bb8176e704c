"""Files: what is saved comes back, what is harmed is refused, and a full disk costs nothing that was saved before."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fuzz_model_files import example_model
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.model import storage
from gmeql.model.front import Front, FrontMember
from gmeql.model.storage import (
    NewerFormatError,
    StorageError,
    checkpoint_files,
    data_hash,
    decode_state,
    encode_state,
    load_checkpoint,
    load_model,
    save_checkpoint,
    save_model,
    write_atomic,
)

STATE = {
    "random": {"state": 2**127 + 5, "words": np.arange(8, dtype=np.uint64)},
    "elites": [np.linspace(0, 1, 12).reshape(3, 4), {"loss": float("inf"), "names": ["a", "b"]}],
    "spent": 12.5,
    "done": False,
    "nothing": None,
}


def equal(a, b) -> bool:
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return isinstance(b, list) and len(a) == len(b) and all(map(equal, a, b))
    return type(a) is type(b) and (a == b or a != a)


class TestWriting:
    def test_old_content_stays_when_writing_fails(self, tmp_path: Path, monkeypatch) -> None:
        path = tmp_path / "file"
        write_atomic(path, b"old")

        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(storage.os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            write_atomic(path, b"new")
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["file"]

    def test_the_file_is_flushed_before_it_is_renamed(self, tmp_path: Path, monkeypatch) -> None:
        order = []
        monkeypatch.setattr(storage.os, "fsync", lambda fd: order.append("fsync"))
        monkeypatch.setattr(storage.os, "replace", lambda a, b: order.append("replace"))
        write_atomic(tmp_path / "file", b"x")
        assert order == ["fsync", "replace", "fsync"]

    def test_only_regular_files_within_the_limit_are_read(self, tmp_path: Path) -> None:
        (tmp_path / "big").write_bytes(b"x" * 11)
        with pytest.raises(StorageError, match="11 bytes"):
            storage.read_limited(tmp_path / "big", 10)
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(StorageError, match="regular"):
            storage.read_limited(tmp_path / "pipe", 10)
        with pytest.raises(StorageError, match="No such file"):
            storage.read_limited(tmp_path / "none", 10)


class TestModelFiles:
    def test_round_trip(self, tmp_path: Path) -> None:
        model = example_model()
        save_model(tmp_path / "m.json", model)
        again = load_model(tmp_path / "m.json")
        assert [list(f) for f in again.fronts] == [list(f) for f in model.fronts]
        assert again.parameters == model.parameters
        assert (again.feature_names, again.selected, again.target_columns) == (("a", "b", "c"), (1,), None)
        assert (again.candidates, again.seconds, again.n_features) == (1234, 2.5, 3)

    @given(
        st.recursive(
            st.floats(-1e300, 1e300).map(Constant) | st.integers(0, 2).map(Variable),
            lambda inner: (
                st.tuples(st.sampled_from(["sin", "exp", "sqrt", "log"]), st.tuples(inner), st.booleans())
                | st.tuples(st.sampled_from(["add", "mul", "div", "pow"]), st.tuples(inner, inner), st.just(False))
            ).map(lambda parts: Call(*parts)),
            max_leaves=20,
        ),
        st.lists(st.text(max_size=10), min_size=3, max_size=3),
    )
    def test_any_formula_reads_and_computes_the_same_after_saving(self, root, names) -> None:
        expression = Expression(root, tuple(names))
        member = FrontMember(expression, 0.5, expression.complexity, 0.0, 0)
        front = Front.from_members([member], rows=9, target_spread=1, target_largest=1)
        model = replace(example_model(), fronts=(front,), selected=(0,), feature_names=tuple(names))
        with tempfile.TemporaryDirectory() as folder:
            save_model(Path(folder) / "m.json", model)
            (again,) = load_model(Path(folder) / "m.json").fronts[0]
        assert str(again) == str(expression) and again.expression.exact() == expression.exact()
        X = np.array([[0.5, -1.5, 3.0], [2.0, 0.0, -1.0]])
        np.testing.assert_array_equal(again(X), expression(X))

    def test_a_newer_version_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "m.json"
        save_model(path, example_model())
        path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
        with pytest.raises(NewerFormatError, match="upgrade gmeql"):
            load_model(path)

    def test_a_changed_number_is_noticed(self, tmp_path: Path) -> None:
        path = tmp_path / "m.json"
        save_model(path, example_model())
        path.write_text(path.read_text().replace("1.25", "1.26"))
        with pytest.raises(StorageError, match="checksum"):
            load_model(path)

    def test_a_folder_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(StorageError, match="cannot be written"):
            save_model(tmp_path / "none" / "m.json", example_model())

    @pytest.mark.parametrize("count", [500, pytest.param(20_000, marks=pytest.mark.slow)])
    def test_hostile_files_run_nothing_and_are_refused(self, count: int, tmp_path: Path) -> None:
        program = Path(__file__).parents[1] / "fuzz_model_files.py"
        answer = subprocess.run(
            [sys.executable, str(program), str(count), "0"], capture_output=True, text=True, cwd=tmp_path, check=True
        )
        found = json.loads(answer.stdout)
        assert found["crafted"] >= 200 and found["mutated"] == count
        assert found["events"] == [], "code ran, or a file was opened for writing"
        assert found["wrong"] == [], "something other than a StorageError was raised"
        assert found["refused"] + found["loaded"] >= found["crafted"] + count
        assert found["refused"] > found["loaded"] > 0
        assert found["slowest"] < 2.0 and found["megabytes"] < 256
        assert os.listdir(tmp_path) == []


class TestState:
    def test_round_trip(self) -> None:
        assert equal(STATE, decode_state(encode_state(STATE)))

    @given(
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats()
            | st.text(st.characters(exclude_categories=["Cs"]))
            | hnp.arrays(
                st.sampled_from([np.float64, np.float32, np.int64, np.uint32, np.uint64, np.int8, np.bool_]),
                hnp.array_shapes(min_dims=0, min_side=0),
            ),
            lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
            max_leaves=10,
        )
    )
    def test_any_state_of_scalars_and_arrays_comes_back(self, state) -> None:
        assert equal(state, decode_state(encode_state(state)))

    def test_views_and_byte_orders_come_back_as_values(self) -> None:
        array = np.arange(24, dtype=">f8").reshape(4, 6)[::2, ::-1]
        np.testing.assert_array_equal(decode_state(encode_state([array]))[0], array)

    @pytest.mark.parametrize(
        "state",
        [{"a": object()}, {"a": np.array(["x"])}, {"a": np.array([object()])}, {1: 2}, {"__array__": "a0"}, {"a": 1j}],
    )
    def test_what_cannot_be_stored_is_named(self, state) -> None:
        with pytest.raises(TypeError, match="state"):
            encode_state(state)

    def test_every_flipped_bit_and_truncation_is_noticed(self) -> None:
        data = encode_state({"a": np.arange(3), "b": [1.5, float("inf")]})
        for place in range(len(data)):
            for bit in range(8):
                harmed = bytearray(data)
                harmed[place] ^= 1 << bit
                with pytest.raises(StorageError) as caught:
                    decode_state(bytes(harmed))
                assert not isinstance(caught.value, NewerFormatError)
            with pytest.raises(StorageError):
                decode_state(data[:place])
        with pytest.raises(StorageError):
            decode_state(data + b"\0")

    @pytest.mark.parametrize(
        "tree",
        [
            {"__array__": "a7"},
            {"__array__": 1},
            {"__array__": "a0", "more": 1},
            {"__float__": "1.0"},
            {"x": 1},  # leaves an array unused
        ],
    )
    def test_forged_trees_are_refused(self, tree) -> None:
        from safetensors.numpy import save

        text = np.frombuffer(json.dumps(tree).encode(), dtype=np.uint8)
        body = save({"tree": text, "a0": np.zeros(2)})
        with pytest.raises(StorageError):
            decode_state(storage._checkpoint_header(body, 1) + body)

    def test_a_newer_checkpoint_is_named(self) -> None:
        body = b"anything"
        with pytest.raises(NewerFormatError, match="upgrade"):
            decode_state(storage._checkpoint_header(body, 2) + body)


class TestCheckpoints:
    def test_three_generations_newest_first(self, tmp_path: Path) -> None:
        for number in range(6):
            save_checkpoint(tmp_path / "run", {"number": number})
        assert len(checkpoint_files(tmp_path / "run")) == 3
        assert load_checkpoint(tmp_path / "run") == ({"number": 5}, [])

    def test_no_folder_or_an_empty_one_is_no_checkpoint(self, tmp_path: Path) -> None:
        assert load_checkpoint(tmp_path) is None
        assert load_checkpoint(tmp_path / "none") is None

    @pytest.mark.parametrize("seed", range(20))
    def test_harm_goes_back_one_generation(self, tmp_path: Path, seed: int) -> None:
        rng = np.random.default_rng(seed)
        for number in range(3):
            save_checkpoint(tmp_path, {"number": number, "array": rng.random(50)})
        newest = checkpoint_files(tmp_path)[0]
        data = bytearray(newest.read_bytes())
        if seed % 2:
            data = data[: rng.integers(len(data))]
        else:
            data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        newest.write_bytes(data)
        state, problems = load_checkpoint(tmp_path)
        assert state["number"] == 1
        assert len(problems) == 1 and newest.name in problems[0]
        save_checkpoint(tmp_path, {"number": 3})
        assert load_checkpoint(tmp_path)[0] == {"number": 3}

    def test_all_generations_harmed_says_so(self, tmp_path: Path) -> None:
        save_checkpoint(tmp_path, {"number": 0})
        checkpoint_files(tmp_path)[0].write_bytes(b"")
        with pytest.raises(StorageError, match="no generation"):
            load_checkpoint(tmp_path)

    def test_a_newer_generation_is_not_passed_over(self, tmp_path: Path) -> None:
        save_checkpoint(tmp_path, {"number": 0})
        (tmp_path / "checkpoint-00000009.gmeql").write_bytes(storage._checkpoint_header(b"x", 2) + b"x")
        with pytest.raises(NewerFormatError):
            load_checkpoint(tmp_path)

    def test_leftovers_of_a_kill_are_cleared(self, tmp_path: Path) -> None:
        leftover = tmp_path / ".checkpoint-00000001.gmeql.abc.tmp"
        leftover.write_bytes(b"half")
        (tmp_path / "notes.txt").write_text("mine")
        save_checkpoint(tmp_path, {})
        assert not leftover.exists()
        assert (tmp_path / "notes.txt").exists()

    def test_a_full_disk_leaves_the_generations_before(self, tmp_path: Path, monkeypatch) -> None:
        save_checkpoint(tmp_path, {"number": 0})

        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(storage.os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            save_checkpoint(tmp_path, {"number": 1})
        monkeypatch.undo()
        assert load_checkpoint(tmp_path) == ({"number": 0}, [])
        assert len(os.listdir(tmp_path)) == 1


class TestDataHash:
    def test_it_sees_every_change_and_no_layout(self) -> None:
        rng = np.random.default_rng(0)
        X, y = rng.random((5, 3)), rng.random(5)
        base = data_hash(X, y, None, ("a", "b", "c"))
        assert base == data_hash(np.asfortranarray(X), y, None, ["a", "b", "c"])
        changed = X.copy()
        changed[2, 1] = np.nextafter(changed[2, 1], 2)
        others = [
            data_hash(changed, y, None, ("a", "b", "c")),
            data_hash(X, y[::-1], None, ("a", "b", "c")),
            data_hash(X, y, np.ones(5), ("a", "b", "c")),
            data_hash(X, y, None, ("a", "b", "d")),
            data_hash(X.reshape(3, 5), y, None, ("a", "b", "c")),
        ]
        assert len({base, *others}) == 6
