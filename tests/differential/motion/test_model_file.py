from __future__ import annotations

import json

import pytest

from gmeql.differential.motion.measured import Columns
from gmeql.differential.motion.model_file import StoredMotion, load_motion, save_motion
from gmeql.differential.motion.proposals import proposed, state_front
from gmeql.differential.motion.systems import SystemFront, fit_system
from gmeql.model.files.model_file import checksum_of
from gmeql.model.files.storage import NewerFormatError, StorageError
from motions import NAMES, hunters_motion, tree


@pytest.fixture
def saved(tmp_path):
    motion = hunters_motion(0.05)
    front = SystemFront.of([fit_system(motion, (tree("1.2*x - 0.9*x*y"), tree("1.1*x*y - 0.9*y")))], NAMES)
    fronts = tuple(state_front(motion, j, proposed(motion, j, [tree("2*x*y"), tree("2*x + 2*x*y")])) for j in (0, 1))
    stored = StoredMotion({"order": 1}, Columns(NAMES, (), 1, False), fronts, front, 0, 12, 3.5)
    path = tmp_path / "motion.json"
    save_motion(path, stored)
    return path, stored


def test_what_is_saved_loads(saved):
    path, stored = saved
    assert load_motion(path) == stored


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"selected": 7}, "selected must be a whole number"),
        ({"order": 3}, "order must be a whole number from 1 to 2"),
        ({"inputs": ["u"]}, "columns differ"),
        ({"systems": []}, "systems must be a list of 1"),
        ({"measured": 3}, "measured must be a list of texts"),
        ({"seconds": "1"}, "seconds must be a finite number"),
        ({"extra": 1}, "exactly the fields"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(saved, change, message):
    path, _ = saved
    envelope = json.loads(path.read_text())
    envelope["payload"] |= change
    envelope["checksum"] = checksum_of(envelope["payload"])
    path.write_text(json.dumps(envelope))
    with pytest.raises(StorageError, match=message):
        load_motion(path)


def test_other_files_are_refused(saved):
    path, _ = saved
    envelope = json.loads(path.read_text())
    path.write_text(json.dumps(envelope | {"version": 99}))
    with pytest.raises(NewerFormatError):
        load_motion(path)
    path.write_text(json.dumps(envelope | {"format": "gmeql-model"}))
    with pytest.raises(StorageError, match="not a gmeql-dynamics file"):
        load_motion(path)
