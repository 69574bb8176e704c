"""`gmeql predict` and `gmeql show` from outside, with one target and with several."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from command_line import run_gmeql
from gmeql import GMEQLRegressor
from gmeql.cli.choices import formats


def test_predict_keeps_rows_and_empties_what_is_missing(finished, tmp_path, capsys):
    data = tmp_path / "new.csv"
    data.write_text("b;a\n1;2\n;3\n2;4\n")
    run_gmeql("predict", str(finished), str(data))
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "prediction" and float(lines[1]) == pytest.approx(8.0) and float(lines[3]) == pytest.approx(16.0)
    assert lines[2] in ("", '""') and "1 of 3 predictions is empty" in err
    run_gmeql("predict", str(finished / "model.json"), str(data), "--out", str(tmp_path / "none" / "p.csv"), expect=4)
    assert capsys.readouterr().err.endswith(f"gmeql: {tmp_path / 'none' / 'p.csv'}: No such file or directory\n")
    run_gmeql("predict", str(finished / "model.json"), str(data), "--append", "--out", str(tmp_path / "p.csv"))
    assert (tmp_path / "p.csv").read_text().startswith("a,b,prediction\n")
    run_gmeql("predict", str(finished), str(data), "--json")
    assert json.loads(capsys.readouterr().out)["prediction"][1] is None


@pytest.mark.parametrize("form", formats())
def test_show_in_every_form(finished, form, capsys):
    run_gmeql("show", str(finished), "--format", form)
    assert capsys.readouterr().out.strip()


def test_show_the_front(finished, capsys):
    run_gmeql("show", str(finished))
    assert "complexity" in capsys.readouterr().out
    run_gmeql("show", str(finished), "--json")
    assert json.loads(capsys.readouterr().out)["front"]
    run_gmeql("show", str(finished), "--index", "0")
    assert capsys.readouterr().out.strip()


def test_a_model_without_names_takes_the_first_columns_and_needs_enough_of_them(tmp_path, capsys):
    X = np.random.default_rng(0).uniform(1, 3, (30, 2))
    GMEQLRegressor(max_candidates=300, max_time=None, random_state=0).fit(X, X[:, 0] + X[:, 1]).save(
        tmp_path / "m.json"
    )
    (tmp_path / "wide.csv").write_text("p,q,r\n1,2,9\n3,4,9\n")
    run_gmeql("predict", str(tmp_path / "m.json"), str(tmp_path / "wide.csv"))
    assert [float(cell) for cell in capsys.readouterr().out.split()[1:]] == pytest.approx([3.0, 7.0])
    (tmp_path / "narrow.csv").write_text("p\n1\n3\n")
    run_gmeql("predict", str(tmp_path / "m.json"), str(tmp_path / "narrow.csv"), expect=2)
    assert "narrow.csv: has 1 columns, the formula needs 2" in capsys.readouterr().err


@pytest.fixture(scope="module")
def partly_used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose formula, 3*c*b, uses two of the table's six columns: text and target stand between them."""
    folder = tmp_path_factory.mktemp("partly")
    rng = np.random.default_rng(5)
    a, b, c, d = rng.uniform(1, 3, (4, 30))
    lines = [f"x{i},{a[i]},{c[i]},{3 * c[i] * b[i]},{b[i]},{d[i]}" for i in range(30)]
    (folder / "t.csv").write_text("\n".join(["label,a,c,target,b,d", *lines]) + "\n")
    arguments = ("-t", "target", "--drop", "a", "--max-candidates", "600", "--out", str(folder / "run"), "--quiet")
    run_gmeql("fit", str(folder / "t.csv"), *arguments)
    assert GMEQLRegressor.load(folder / "run" / "model.json").expression_.variables == (0, 1)
    return folder / "run"


def test_predict_needs_only_the_columns_that_the_formula_uses(partly_used, tmp_path, capsys):
    (tmp_path / "few.csv").write_text("b,c\n2,1.5\n1.5,2\n")
    run_gmeql("predict", str(partly_used), str(tmp_path / "few.csv"), "--append")
    assert capsys.readouterr().out.splitlines()[0] == "c,b,prediction"
    (tmp_path / "one.csv").write_text("b,d\n2,1\n1.5,2\n")
    run_gmeql("predict", str(partly_used), str(tmp_path / "one.csv"), expect=2)
    assert (
        "column 'c'" in (err := capsys.readouterr().err)
        and "'b'" not in err.split("the formula needs it; the table has")[0]
    )
    (tmp_path / "none.csv").write_text("d,e\n2,1\n1.5,2\n")
    run_gmeql("predict", str(partly_used), str(tmp_path / "none.csv"), expect=2)
    assert "lacks the columns 'c', 'b'" in capsys.readouterr().err


def test_rows_outside_the_training_range_are_said_or_refused(partly_used, tmp_path, capsys):
    (tmp_path / "far.csv").write_text("b,c,d\n2,2,900\n2,50,1\n2,51,1\n")
    run_gmeql("predict", str(partly_used), str(tmp_path / "far.csv"))
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 4
    assert len(err.splitlines()) == 1 and err.startswith(
        "2 of 3 rows lie outside what the formula was fitted to: c (1."
    )
    run_gmeql("predict", str(partly_used), str(tmp_path / "far.csv"), "--strict", expect=2)
    out, err = capsys.readouterr()
    assert out == "" and "2 of 3 rows lie outside" in err
    run_gmeql("predict", str(partly_used), str(partly_used.parent / "t.csv"), "--strict")
    assert capsys.readouterr().err == ""


def test_the_spreadsheet_formula_names_the_cells_of_the_users_table(partly_used, tmp_path, capsys):
    run_gmeql("show", str(partly_used), "--format", "spreadsheet")
    out, err = capsys.readouterr()
    assert sorted(out.strip().removeprefix("=").split("*")) == ["3", "C2", "E2"]
    assert "C2 is 'c', E2 is 'b'" in err and "English" in err
    assert GMEQLRegressor.load(partly_used / "model.json").export("spreadsheet") == out.strip()
    assert "In the spreadsheet formula, for row 2 under a row of headings, C2 is c, E2 is b;" in (
        partly_used / "report.html"
    ).read_text(encoding="utf-8")
    (tmp_path / "other.csv").write_text("b,z,y,c\n1,2,3,4\n2,3,4,5\n")
    run_gmeql("show", str(partly_used), "--format", "spreadsheet", "--table", str(tmp_path / "other.csv"))
    assert sorted(capsys.readouterr().out.strip().removeprefix("=").split("*")) == ["3", "A2", "D2"]
    (tmp_path / "wrong.csv").write_text("b,z\n1,2\n2,3\n")
    run_gmeql("show", str(partly_used), "-f", "spreadsheet", "--table", str(tmp_path / "wrong.csv"), expect=2)
    assert "the sheet has no column 'c'" in capsys.readouterr().err
    run_gmeql("show", str(partly_used), "-f", "latex", "--table", str(tmp_path / "wrong.csv"), expect=2)


# ------------------------------------------------------------------------------------------------- several targets


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a model of two targets, a + b and a*b, of columns a and b."""
    X = pd.DataFrame(np.random.default_rng(0).uniform(0.5, 5.5, (30, 2)), columns=["a", "b"])
    Y = pd.DataFrame({"sum": X["a"] + X["b"], "area": X["a"] * X["b"]})
    path = tmp_path_factory.mktemp("several") / "model.json"
    GMEQLRegressor(max_candidates=600, max_time=None, random_state=0).fit(X, Y).save(path)
    return path


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "new.csv"
    path.write_text("b,a\n2,3\n4,\n1,5\n")
    return path


def test_predict_has_a_column_for_each_target(several, rows, tmp_path, capsys):
    run_gmeql("predict", str(several), str(rows))
    out, err = capsys.readouterr()
    head, first, second, third = out.splitlines()
    assert head == "prediction of sum,prediction of area" and second == ","
    assert [float(cell) for cell in first.split(",")] == pytest.approx([5.0, 6.0])
    assert [float(cell) for cell in third.split(",")] == pytest.approx([6.0, 5.0])
    assert err == "1 of 3 predictions is empty: a value is missing\n"
    run_gmeql("predict", str(several), str(rows), "--append", "--out", str(tmp_path / "p.csv"))
    assert (tmp_path / "p.csv").read_text().startswith("a,b,prediction of sum,prediction of area\n")


def test_predict_json_has_a_list_for_each_target(several, rows, capsys):
    run_gmeql("predict", str(several), str(rows), "--json")
    record = json.loads(capsys.readouterr().out)
    assert record["prediction of sum"] == [pytest.approx(5.0), None, pytest.approx(6.0)]
    assert record["prediction of area"] == [pytest.approx(6.0), None, pytest.approx(5.0)]


def test_predict_by_index_takes_one_for_all_or_one_for_each(several, rows, capsys):
    model = GMEQLRegressor.load(several)
    chosen = model.selected_index_
    run_gmeql("predict", str(several), str(rows), "--index", f"0,{chosen[1]}")
    first = capsys.readouterr().out.splitlines()[1].split(",")
    assert float(first[0]) == pytest.approx(model.front_[0][0]([[3.0, 2.0]])[0]) and float(first[1]) == pytest.approx(6)
    run_gmeql("predict", str(several), str(rows), "--index", "0")
    first = capsys.readouterr().out.splitlines()[1].split(",")
    assert [float(cell) for cell in first] == pytest.approx([front[0]([[3.0, 2.0]])[0] for front in model.front_])


@pytest.mark.parametrize(
    ("index", "words"), [("x", "whole number"), ("-1", "whole number"), ("0,0,0", "2 with commas"), ("99", "0 to")]
)
def test_an_index_that_is_none_is_refused(index, words, several, capsys):
    run_gmeql("show", str(several), f"--index={index}", expect=2)
    assert words in capsys.readouterr().err


def test_show_each_targets_front(several, capsys):
    run_gmeql("show", str(several))
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "sum" in lines and "area" in lines and sum("complexity" in line for line in lines) == 2
    chosen = [line for line in lines if line.startswith("▶")]
    assert chosen[0].endswith("a + b") and chosen[1].endswith("a*b")


@pytest.mark.parametrize("form", formats())
def test_show_each_targets_formula_in_every_form(several, form, capsys):
    run_gmeql("show", str(several), "--format", form)
    expected = [str(text) for text in GMEQLRegressor.load(several).export(form)]
    assert capsys.readouterr().out == "".join(text + "\n" for text in expected)


def test_show_json_lists_the_targets(several, capsys):
    run_gmeql("show", str(several), "--json")
    first, second = json.loads(capsys.readouterr().out)["targets"]
    assert first["formula"] == "a + b" and second["formula"] == "a*b"
    assert first["front"][first["index"]]["formula"] == "a + b"


def test_predict_averages_over_the_best_formulas(several, rows, capsys):
    """As `average` does: mean, low and high of each target; with one formula alone it does not go."""
    run_gmeql("predict", str(several), str(rows), "--average", "3")
    head, first, second, _ = capsys.readouterr().out.splitlines()
    names = [f"prediction of {target}{end}" for target in ("sum", "area") for end in ("", " low", " high")]
    assert head == ",".join(names)
    expected = GMEQLRegressor.load(several).average(pd.DataFrame({"a": [3.0], "b": [2.0]}), 3)
    assert [float(cell) for cell in first.split(",")] == pytest.approx([v[0] for each in expected for v in each])
    assert second == ",,,,,"
    run_gmeql("predict", str(several), str(rows), "--average", "3", "--index", "0", expect=2)
    assert "leave one of them out" in capsys.readouterr().err


def test_a_kind_that_the_fit_did_not_know_is_said_or_refused(tmp_path, capsys):
    """Prices of Berlin were those of Aachen, without a word."""
    X = pd.DataFrame({"t": np.arange(30.0), "town=Bonn": np.arange(30) % 2, "town=Ulm": 1 - np.arange(30) % 2})
    model = GMEQLRegressor(max_candidates=200, max_time=None, random_state=0).fit(X, X["t"] + 5 * X["town=Bonn"])
    model.save(tmp_path / "m.json")
    (tmp_path / "new.csv").write_text("t,town\n1,Bonn\n2,Berlin\n3,\n4,Ulm\n")
    run_gmeql("predict", str(tmp_path / "m.json"), str(tmp_path / "new.csv"))
    out, err = capsys.readouterr()
    assert [float(cell) for cell in out.split()[1:]] == pytest.approx([6, 2, 3, 4])
    told = "2 of 4 rows have a town that the formula does not know ('Berlin', empty)"
    assert err == f"{told}: they count as none of Bonn, Ulm\n"
    run_gmeql("predict", str(tmp_path / "m.json"), str(tmp_path / "new.csv"), "--strict", expect=2)
    assert told in capsys.readouterr().err


def test_codes_of_a_missing_value_are_not_predicted_from(tmp_path, capsys):
    """The table that a fit had read without its three cells of -999 was predicted with them: a power of -22,960 kW."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"density": rng.uniform(1, 1.3, 40), "area": rng.uniform(20, 90, 40)})
    model = GMEQLRegressor(max_candidates=300, max_time=None, random_state=0).fit(X, X["density"] * X["area"])
    model.save(tmp_path / "m.json")
    (tmp_path / "new.csv").write_text("density,area\n-999,30\n1.2,50\n1.1,200\n")
    run_gmeql("predict", str(tmp_path / "m.json"), str(tmp_path / "new.csv"))
    out, err = capsys.readouterr()
    values = out.splitlines()[1:]
    assert values[0] in ("", '""') and [float(cell) for cell in values[1:]] == pytest.approx([60, 220], rel=1e-6)
    assert "column 'density' has 1 cell of -999, far from what the formula was fitted to: it counts as missing" in err
    assert "1 of 3 predictions is empty" in err and "1 of 3 rows lies outside" in err
    run_gmeql("predict", str(tmp_path / "m.json"), str(tmp_path / "new.csv"), "--keep-codes")
    out, err = capsys.readouterr()
    assert float(out.splitlines()[1]) == pytest.approx(-29970, rel=1e-6) and "2 of 3 rows lie outside" in err
