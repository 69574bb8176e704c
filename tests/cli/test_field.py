"""`gmeql field`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import run_gmeql
from heat import T, U, X, long_form

from gmeql import GMEQLField

SMALL = ("--max-candidates", "200", "--jobs", "1", "-q")


@pytest.fixture
def arrays(tmp_path: Path) -> Path:
    path = tmp_path / "heat.npz"
    np.savez(path, u=U, x=X, t=T)
    return path


def test_laws_on_stdout_model_and_report_in_a_folder(arrays, tmp_path, capsys):
    out = tmp_path / "run"
    run_gmeql("field", str(arrays), "--out", str(out), *SMALL)
    assert capsys.readouterr().out == "u_t = 0.3*u_xx\n"
    assert str(GMEQLField.load(out / "model.json")) == "u_t = 0.3*u_xx"
    assert "Simulated against measured" in (out / "report.html").read_text(encoding="utf-8")


def test_a_table_with_a_row_for_each_point_and_time(tmp_path, capsys):
    (tmp_path / "heat.csv").write_text(long_form("when", "place"))
    columns = ("--time", "when", "--space", "place")
    run_gmeql("field", str(tmp_path / "heat.csv"), *columns, "--out", str(tmp_path / "run"), *SMALL)
    assert capsys.readouterr().out == "u_t = 0.3*u_xx\n"


def test_one_json_object_for_programs(arrays, tmp_path, capsys):
    run_gmeql("field", str(arrays), "--fields", "u", "--json", "--out", str(tmp_path / "run"), *SMALL)
    record = json.loads(capsys.readouterr().out)
    assert record["equations"] == {"u": "0.3*u_xx"} and record["score"] > 0.999 and record["fronts"]["u"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--time", "when"), "--time names 'when'; the file holds u, x, t"),
        (("--space", "x,y"), "--space names 'y'"),
        (("--fields", "v"), "--fields names 'v'"),
        (("--order", "9"), "order=9 must be a whole number from 1 to 6"),
    ],
)
def test_bad_input_is_one_line(arrays, arguments, message, capsys):
    run_gmeql("field", str(arrays), *arguments, *SMALL, expect=2)
    shown = capsys.readouterr()
    assert message in shown.err and shown.out == "" and len(shown.err.splitlines()) == 1


def test_what_is_no_file_of_arrays_is_said_and_nothing_is_unpickled(tmp_path, capsys):
    text, pickled = tmp_path / "table.npz", tmp_path / "pickled.npz"
    text.write_text("x,t,u\n1,2,3\n")
    np.savez(pickled, u=np.array([{"a": 1}], dtype=object))
    for path in (text, pickled):
        run_gmeql("field", str(path), *SMALL, expect=2)
        assert "is no file of arrays" in capsys.readouterr().err
    run_gmeql("field", str(tmp_path / "none.npz"), *SMALL, expect=2)
    assert "there is no such file" in capsys.readouterr().err
