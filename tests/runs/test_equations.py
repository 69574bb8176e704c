"""Differential equations in folders: what tables hold for them, records."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.runs.equations import (
    LOG,
    RECORD,
    RESULT,
    gridded,
    last_line,
    read_gridded,
    read_record,
    read_result,
    time_name,
    trajectories,
    write_record,
)
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


def test_runs_are_told_apart_by_words_and_dates_count_days():
    """Words were no numbers, so that no row belonged to a run."""
    rows = [f"2024-03-{1 + i % 8:02d},{i * i},{'new' if i < 8 else 'old'}" for i in range(16)]
    table = read("\n".join(["day,q,run", *rows, "2024-03-09,3,"]).encode(), name="runs.csv")
    X, t, _ = trajectories(table, "day", ["q"], runs="run")
    assert [len(part) for part in X] == [8, 8] and X[1][0, 0] == 64
    assert np.array_equal(t[1], np.arange(8.0))
    assert time_name(table, "day") == "days of day since 2024-03-01" and time_name(table, "q") == "q"


@pytest.mark.parametrize(
    ("text", "states", "words"),
    [
        (b"t,q\n1,2\n2,x\n3,4\n", ["q"], "row 3, column 'q': 'x' is not a number; .*its row is then left out"),
        (b"t,q\n1,2\nx,3\n3,4\n", ["q"], "row 3, column 't': 'x' is not a number; mend the cell"),
        (b"t,q\n1,2\n2,3\n3,4\n", ["t"], "--states names 't', the times"),
    ],
)
def test_text_and_the_times_among_states_are_refused(text, states, words):
    with pytest.raises(ValueError, match=words):
        trajectories(read(text, name="t.csv"), "t", states)


def test_a_table_without_a_whole_row_is_refused():
    with pytest.raises(ConfigError, match="no row has a time and every state"):
        trajectories(read(b"t,q\n1,\n,2\n3,\n,4\n", name="gaps.csv"), "t", ["q"])


def test_records_are_read_back_and_other_files_are_none(tmp_path):
    texts = dict.fromkeys(("kind", "state", "reason", "title", "source", "created"), "a")
    record = texts | {"max_time": 1.0}
    write_record(tmp_path / "run", record)
    assert read_record(tmp_path / "run") == record
    assert read_record(tmp_path / "none") is None
    (tmp_path / "run" / RECORD).write_text('{"state": 3}')
    assert read_record(tmp_path / "run") is None
    (tmp_path / "run" / RECORD).write_text("[")
    assert read_record(tmp_path / "run") is None


def test_the_result_and_the_last_line_of_a_command_are_read_from_its_folder(tmp_path):
    assert read_result(tmp_path) == {} and last_line(tmp_path) == ""
    (tmp_path / RESULT).write_text('{"equations": {"q": "-q"}}')
    (tmp_path / LOG).write_text("first\n" + "x" * 20_000 + "\nlast \n\n")
    assert read_result(tmp_path) == {"equations": {"q": "-q"}} and last_line(tmp_path) == "last"
    (tmp_path / RESULT).write_text("[1, 2")
    assert read_result(tmp_path) == {}


GRID = [(t, x, 10 * t + x) for t in (0.0, 1.0, 2.0) for x in (0.0, 0.5)]


def long_form(rows) -> bytes:
    return ("t,x,u\n" + "\n".join(",".join(map(str, row)) for row in rows)).encode()


def test_a_table_in_long_form_becomes_a_grid_whatever_the_order_of_its_rows(tmp_path, rng):
    shuffled = [GRID[k] for k in rng.permutation(len(GRID))]
    u, space, t = gridded(read(long_form(shuffled), name="grid.csv"), ["x"], "t")
    np.testing.assert_array_equal(u["u"], [[0, 10, 20], [0.5, 10.5, 20.5]])
    np.testing.assert_array_equal(space[0], [0, 0.5])
    np.testing.assert_array_equal(t, [0, 1, 2])
    np.savez(tmp_path / "grid.npz", u=u["u"], x=space[0], t=t)
    (tmp_path / "grid.csv").write_bytes(long_form(shuffled))
    for name in ("grid.npz", "grid.csv"):
        again, _, _ = read_gridded(str(tmp_path / name), ["x"], "t", ["u"])
        np.testing.assert_array_equal(again["u"], u["u"])


@pytest.mark.parametrize(
    ("rows", "space", "words"),
    [
        (GRID[:-1], ["x"], "2 x x 3 t are 6 points, and the table has 5 rows"),
        ([*GRID, GRID[0]], ["x"], "7 rows at 6 of them"),
        ([*GRID[:-1], (2.0, 0.5, "")], ["x"], "row 7: a cell is empty"),
        (GRID, ["t"], "each column once"),
        (GRID, ["x", "u"], "at least one field"),
    ],
)
def test_what_is_no_grid_is_refused(rows, space, words):
    with pytest.raises(ConfigError, match=words):
        gridded(read(long_form(rows), name="grid.csv"), space, "t")
