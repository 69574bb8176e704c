"""`gmeql classify` from outside: words as classes, a model that predicts, reports, and plain refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from command_line import run_gmeql
from gmeql import GMEQLClassifier


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("classes") / "rings.csv"
    X = rng.uniform(-2, 2, (150, 2))
    rows = [f"{a},{b},{'in' if a * a + b * b < 2 else 'out'}" for a, b in X]
    path.write_text("\n".join(["a,b,where", *rows, "1,,in", "1,1,"]))
    return path


def test_two_classes_have_one_formula_a_report_and_predictions(table, tmp_path, capsys):
    folder = tmp_path / "run"
    budget = ["--max-candidates", "600", "--jobs", "1", "--out", str(folder)]
    run_gmeql("classify", str(table), "--target", "where", *budget, "--json")
    out, err = capsys.readouterr()
    record = json.loads(out)
    assert "150 rows, explaining where by a, b" in err and "2 of 152 rows left out" in err
    assert "'out' for every row would be" in err
    assert record["classes"] == ["in", "out"] and record["rows"] == 150 and record["right"] > 0.9
    assert [one["class"] for one in record["formulas"]] == ["out"]
    assert "logit of where is out" in (folder / "report-1.html").read_text()
    overview = (folder / "report.html").read_text()
    assert 'href="report-1.html"' in overview and f"{record['right']:.1%} of 150 rows" in overview
    assert GMEQLClassifier.load(folder / "model.json").classes_.tolist() == ["in", "out"]
    run_gmeql("predict", str(folder), str(table))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "prediction,chance of in,chance of out" and len(lines) == 153
    told, inside, outside = lines[1].split(",")
    assert float(inside) + float(outside) == pytest.approx(1) and told in ("in", "out")
    assert lines[151] == ",,"
    run_gmeql("show", str(folder), "--format", "text")
    assert capsys.readouterr().out.strip() == record["formulas"][0]["formula"]


def test_what_cannot_be_told_apart_is_said(table, tmp_path, capsys):
    one = tmp_path / "one.csv"
    one.write_text("a,c\n1,x\n2,x\n3,x\n4,x\n5,x\n")
    run_gmeql("classify", str(one), "--target", "c", expect=2)
    assert "column 'c' holds 'x' alone" in capsys.readouterr().err
    run_gmeql("classify", str(table), "--target", "nothing", expect=2)
