"""Checkpoints: states come back bit by bit, harm goes back one generation, a full disk costs nothing saved before."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gmeql.model.files import storage
from gmeql.model.files.checkpoint import (
    checkpoint_files,
    checkpoint_header,
    data_hash,
    decode_state,
    encode_state,
    load_checkpoint,
    save_checkpoint,
)
from gmeql.model.files.storage import NewerFormatError, StorageError
from thinned import examples

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


class TestState:
    def test_round_trip(self) -> None:
        assert equal(STATE, decode_state(encode_state(STATE)))

    @examples(20)
    @given(
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats()
            | st.text()
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
            decode_state(checkpoint_header(body, 1) + body)

    def test_a_newer_checkpoint_is_named(self) -> None:
        body = b"anything"
        with pytest.raises(NewerFormatError, match="upgrade"):
            decode_state(checkpoint_header(body, 2) + body)


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

    def test_a_generation_that_cannot_be_read_is_passed_over(self, tmp_path: Path) -> None:
        save_checkpoint(tmp_path, STATE)
        (tmp_path / "checkpoint-00000002.gmeql").symlink_to(tmp_path / "gone")
        state, problems = load_checkpoint(tmp_path)
        assert equal(STATE, state) and "cannot be read" in problems[0]

    def test_all_generations_harmed_says_so(self, tmp_path: Path) -> None:
        save_checkpoint(tmp_path, {"number": 0})
        checkpoint_files(tmp_path)[0].write_bytes(b"")
        with pytest.raises(StorageError, match="no generation"):
            load_checkpoint(tmp_path)

    def test_a_newer_generation_is_not_passed_over(self, tmp_path: Path) -> None:
        save_checkpoint(tmp_path, {"number": 0})
        (tmp_path / "checkpoint-00000009.gmeql").write_bytes(checkpoint_header(b"x", 2) + b"x")
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
