"""Laws of motion in folders: trajectories of a table, records."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.runs.motion import RECORD, read_record, trajectories, write_record
from gmeql.runs.settings import ConfigError
from gmeql.tables.read import read

ROWS = b"t,q,u,run\n" + b"".join(b"%d,%d,%d,%d\n" % (i % 8, i * i, -i, i // 8) for i in range(16))


def test_runs_of_one_experiment_become_a_list_and_rows_with_a_gap_are_left_out():
    table = read(ROWS + b"8,,3,1\n", name="runs.csv")
    X, t, u = trajectories(table, "t", ["q"], ["u"], "run")
    assert [len(part) for part in X] == [8, 8] and np.array_equal(t[0], np.arange(8.0))
    assert X[1][0, 0] == 64 and u[1][0, 0] == -8
    X, t, u = trajectories(table, "t", ["q"])
    assert X.shape == (16, 1) and u is None


def test_a_table_without_a_whole_row_is_refused():
    with pytest.raises(ConfigError, match="no row has a time and every state"):
        trajectories(read(b"t,q\n1,\n,2\n3,\n,4\n", name="gaps.csv"), "t", ["q"])


def test_records_are_read_back_and_other_files_are_none(tmp_path):
    record = {"state": "done", "reason": "", "states": ["q"], "source": "a", "created": "b", "equations": ["q' = q"]}
    write_record(tmp_path / "run", record)
    assert read_record(tmp_path / "run") == record
    assert read_record(tmp_path / "none") is None
    (tmp_path / "run" / RECORD).write_text('{"state": 3}')
    assert read_record(tmp_path / "run") is None
    (tmp_path / "run" / RECORD).write_text("[")
    assert read_record(tmp_path / "run") is None
