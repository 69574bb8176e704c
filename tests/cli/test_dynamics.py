"""`gmeql dynamics`."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import run_gmeql

from gmeql import GMEQLDynamics

SMALL = ("--max-candidates", "1000", "--jobs", "1", "-q")


@pytest.fixture
def table(tmp_path):
    t = np.linspace(0.0, 6.0, 30)
    path = tmp_path / "swing.csv"
    rows = zip(t, np.cos(2 * t), -2 * np.sin(2 * t), np.exp(-t / 2), strict=True)
    path.write_text("t,q,v,d\n" + "\n".join(",".join(map(repr, map(float, row))) for row in rows))
    return path


def test_equations_on_stdout_model_and_report_in_a_folder(table, tmp_path, capsys):
    out = tmp_path / "run"
    run_gmeql("dynamics", str(table), "--time", "t", "--states", "q", "--order", "2", "--out", str(out), *SMALL)
    assert capsys.readouterr().out == "q'' = -4*q\n"
    assert GMEQLDynamics.load(out / "model.json").equations() == ["-4*q"]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Phase portrait" in page and page.count("<script") == 2 and '"time": "t"' in page


def test_rows_with_a_missing_cell_are_counted(table, tmp_path, capsys):
    lines = table.read_text().splitlines()
    lines[7], lines[20] = lines[7].rsplit(",", 1)[0] + ",", "," + lines[20].split(",", 1)[1]
    table.write_text("\n".join(lines))
    asked = ("dynamics", str(table), "-t", "t", "-s", "d", "--out", str(tmp_path / "run"), *SMALL[:-1])
    run_gmeql(*asked)
    assert "swing.csv: 2 of 30 rows left out: a cell is missing" in capsys.readouterr().err
    run_gmeql(*asked, "-q")
    assert "left out" not in capsys.readouterr().err


def test_one_json_object_for_programs(table, tmp_path, capsys):
    run_gmeql("dynamics", str(table), "-t", "t", "-s", "d", "--json", "--out", str(tmp_path / "run"), *SMALL)
    record = json.loads(capsys.readouterr().out)
    assert record["equations"] == {"d": "-0.5*d"} and record["reason"] == "exact" and record["systems"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--time", "time", "--states", "q"), "there is no such column"),
        (("--time", "q", "--states", "v"), "times do not increase"),
        (("--time", "t", "--states", ","), "--states is empty"),
        (("--time", "t", "--states", "q", "--order", "3"), "order=3 is not allowed"),
    ],
)
def test_bad_input_is_one_line(table, arguments, message, capsys):
    run_gmeql("dynamics", str(table), *arguments, *SMALL, expect=2)
    shown = capsys.readouterr()
    assert message in shown.err and shown.out == "" and len(shown.err.splitlines()) == 1
