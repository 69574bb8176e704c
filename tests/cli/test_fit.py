"""`gmeql fit` and `gmeql resume` from outside: what goes to stdout, what to stderr, what lies in the folder."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from command_line import LINE, run_gmeql
from gmeql import GMEQLRegressor
from gmeql.runs.folder import Run
from malformed_tables import REFUSED


def test_fit_prints_the_formula_alone_on_stdout(table, tmp_path, capsys):
    run_gmeql("fit", str(table), "--target", "y", "--max-candidates", "600", "--out", str(tmp_path / "run"))
    out, err = capsys.readouterr()
    assert out.startswith("y = ") and out.count("\n") == 1
    assert "2.5*a" in out and "3*b" in out
    assert "report.html" in err and "reproduces all 12 rows" in err


def test_the_run_folder_holds_everything(finished):
    assert {path.name for path in finished.iterdir()} == {
        "run.json",
        "data.parquet",
        "progress.jsonl",
        "checkpoints",
        "model.json",
        "front.csv",
        "alternatives.csv",
        "report.html",
    }
    description = json.loads((finished / "run.json").read_text())
    assert description["state"] == "done" and description["seed"] == 0 and description["versions"]["numpy"]
    assert description["data"]["fingerprint"] == Run.open(finished).training().fingerprint
    lines = [json.loads(line) for line in (finished / "progress.jsonl").read_text().splitlines()]
    assert lines and lines[-1]["candidates"] >= 0 and lines[-1]["front"]
    assert (finished / "front.csv").read_text().startswith("index,complexity,loss,score,formula,unseen_error,")
    assert not list(finished.rglob("*.tmp"))


def test_the_same_seed_and_candidates_give_the_same_model(table, tmp_path):
    for name in ("one", "two"):
        run_gmeql(
            "fit", str(table), "-t", "y", "--max-candidates", "600", "--seed", "3", "--out", str(tmp_path / name), "-q"
        )
    assert (tmp_path / "one" / "front.csv").read_text() == (tmp_path / "two" / "front.csv").read_text()


def test_fit_json_is_one_object(table, tmp_path, capsys):
    run_gmeql(
        "fit", str(table), "-t", "y", "--max-candidates", "600", "--out", str(tmp_path / "run"), "--json", "--quiet"
    )
    out, err = capsys.readouterr()
    record = json.loads(out)
    assert record["formula"] and record["r2"] > 0.999999 and record["front"] and record["state"] == "done"
    assert Path(record["report"]).is_file() and Path(record["model"]).is_file()
    assert err == ""


def test_a_second_fit_into_the_same_folder_is_refused(table, finished, capsys):
    before = (finished / "model.json").read_bytes()
    run_gmeql("fit", str(table), "-t", "y", "--out", str(finished), "-q", expect=4)
    assert "holds a run already" in capsys.readouterr().err
    assert (finished / "model.json").read_bytes() == before


def test_standard_input(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LINE.encode("utf-16"))))
    run_gmeql("fit", "-", "-t", "y", "--max-candidates", "300", "--out", str(tmp_path / "run"), "-q")
    assert capsys.readouterr().out.startswith("y = ")
    assert Run.open(tmp_path / "run").description()["data"]["source"] == "standard input"


def test_resume_goes_on(finished, tmp_path, capsys):
    import shutil

    run = tmp_path / "again"
    shutil.copytree(finished, run)
    run_gmeql("resume", str(run), "--max-candidates", "1200", "--json", "--quiet")
    record = json.loads(capsys.readouterr().out)
    assert record["formula"] and Run.open(run).description()["state"] == "done"


def test_pinned_and_forbidden_parts(table, tmp_path, capsys):
    run_gmeql(
        *(
            "fit",
            str(table),
            "-t",
            "y",
            "--max-candidates",
            "600",
            "--pin",
            "a*b",
            "--forbid",
            "sin",
            "--forbid",
            "cos",
        ),
        *("--out", str(tmp_path / "run"), "--json", "-q"),
    )
    record = json.loads(capsys.readouterr().out)
    assert not any("sin" in m["formula"] or "cos" in m["formula"] for m in record["front"])
    assert record["columns"] == ["a", "b"] and "`" not in record["formula"]
    model_data = tmp_path / "new.csv"
    model_data.write_text("a,b\n1,2\n")
    run_gmeql("predict", str(tmp_path / "run"), str(model_data))


def test_a_bad_cell_names_row_column_and_mend(tmp_path, capsys):
    path = tmp_path / "bad.csv"
    path.write_text("a,y\n1,2\nx,3\n4,5\n")
    run_gmeql("fit", str(path), "-t", "y", expect=2)
    err = capsys.readouterr().err
    assert err == (
        f"gmeql: {path}, row 3, column 'a': 'x' is not a number; mend the cell, count such cells as missing with "
        "--text-as-missing, or leave the column out with --drop 'a'\n"
    )


@pytest.mark.parametrize("case", REFUSED)
def test_every_malformed_table_ends_with_code_2_and_one_line(case, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data, target, words, row, column = REFUSED[case]
    Path("table.csv").write_bytes(data)
    run_gmeql("fit", "table.csv", "--target", target, expect=2)
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("gmeql: table.csv") and err.count("\n") == 1 and "\x1b" not in err
    assert any(word in err for word in words.split("|"))
    assert row is None or f"row {row}" in err
    assert column is None or column in err
    assert not Path("gmeql-runs").exists()


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("no formula was found", "the budget is over and no formula was found; give it more --max-time"),
        ("nothing keeps the constraints", "nothing keeps the constraints"),
    ],
)
def test_no_formula_within_the_budget_is_code_3(reason, said, table, tmp_path, monkeypatch, capsys):
    from gmeql.runs.execute import RunOutcome

    monkeypatch.setattr("gmeql.cli.foreground.execute", lambda run, **options: RunOutcome(None, "failed", reason))
    run_gmeql("fit", str(table), "-t", "y", "--out", str(tmp_path / "run"), "-q", expect=3)
    out, err = capsys.readouterr()
    assert out == "" and said in err


def test_a_folder_that_cannot_be_written_is_code_4(table, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    run_gmeql("fit", str(table), "-t", "y", "--out", str(tmp_path / "file" / "run"), "-q", expect=4)
    assert "cannot be written" in capsys.readouterr().err


def test_changed_data_is_not_resumed(finished, tmp_path, capsys):
    import shutil

    run = tmp_path / "changed"
    shutil.copytree(finished, run)
    description = json.loads((run / "run.json").read_text())
    description["data"]["fingerprint"] = "0" * 64
    (run / "run.json").write_text(json.dumps(description))
    run_gmeql("resume", str(run), "-q", expect=4)
    assert "is not the data" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"format": "gmeql-run", "version": 99}', '{"format": "gmeql-run"}']
)
def test_a_damaged_description_is_a_storage_error(content, tmp_path, capsys):
    (tmp_path / "run.json").write_text(content)
    run_gmeql("resume", str(tmp_path), expect=4)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("loss", ["huber", "robust"])
def test_a_loss_that_outliers_move_less(loss, tmp_path, capsys):
    rows = LINE.splitlines()
    rows[5] = rows[5].rsplit(",", 1)[0] + ",900"
    (tmp_path / "outlier.csv").write_text("\n".join(rows) + "\n")
    run_gmeql(
        *("fit", str(tmp_path / "outlier.csv"), "-t", "y", "--loss", loss, "--max-candidates", "600"),
        *("--out", str(tmp_path / "run"), "-q", "--json"),
    )
    assert json.loads(capsys.readouterr().out)["formula"]
    assert Run.open(tmp_path / "run").settings().loss == loss


def test_a_fit_may_keep_the_formulas_of_an_earlier_one_on_the_same_rows(finished, table, tmp_path, capsys):
    known = ("--known", str(finished))
    run_gmeql("fit", str(table), "-t", "y", "--max-candidates", "1", *known, "--out", str(tmp_path / "run"), "--quiet")
    assert GMEQLRegressor.load(tmp_path / "run" / "model.json").front_[-1].loss < 1e-9
    table.write_text(table.read_text() + "50,1,1\n")
    run_gmeql("fit", str(table), "-t", "y", *known, "--out", str(tmp_path / "other"), expect=2)
    assert "was fitted to other rows" in capsys.readouterr().err and not (tmp_path / "other").exists()


def test_a_column_of_words_is_named_once_as_the_table_has_it(tmp_path, capsys):
    rows = "".join(f"{i},{('north', 'south', 'west')[i % 3]},{2 * i + (0, 5, 9)[i % 3]}\n" for i in range(30))
    (tmp_path / "sites.csv").write_text("t,site,y\n" + rows)
    options = ["--target", "y", "--max-candidates", "100", "--jobs", "1", "--out", str(tmp_path / "run")]
    run_gmeql("fit", str(tmp_path / "sites.csv"), *options)
    assert capsys.readouterr().err.splitlines()[0].endswith("sites.csv: 30 rows, explaining y by t, site")


def test_groups_have_constants_of_their_own(tmp_path, capfdbinary):
    def line(i):
        t = 1 + i / 20
        return f"{t},{('red', 'green', 'blue')[i % 3]},{2 * t**2 + (-5, 0, 5)[i % 3]}"

    (tmp_path / "bands.csv").write_text("\n".join(["t,colour,y", *map(line, range(90))]) + "\n")
    run = tmp_path / "run"
    options = ["--target", "y", "--groups", "colour", "--max-candidates", "300", "--jobs", "1", "--out", str(run)]
    run_gmeql("fit", str(tmp_path / "bands.csv"), *options)
    out, said = (text.decode() for text in capfdbinary.readouterr())
    assert out.strip() == "y = 2*t**2 + k1[colour]"
    assert "blue" in said
    assert (run / "groups.csv").read_text().splitlines()[0] == "colour,k1[colour]"
    assert "k1[colour]" in (run / "report.html").read_text()
    (tmp_path / "new.csv").write_text("t,colour\n2,red\n2,pink\n")
    run_gmeql("predict", str(run), str(tmp_path / "new.csv"))
    out, said = (text.decode() for text in capfdbinary.readouterr())
    _, first, second = out.splitlines()
    assert float(first) == pytest.approx(3.0)
    assert second in ("", '""')
    assert "does not know colour pink" in said


def test_errors_of_columns_and_target_reach_the_fit_and_the_report(tmp_path, capsys):
    rng = np.random.default_rng(0)
    t = 2 + rng.standard_normal(150)
    x, y = t + 0.5 * rng.standard_normal(150), 1.5 * t + 0.7 + 0.2 * rng.standard_normal(150)
    data, run = tmp_path / "line.csv", tmp_path / "run"
    data.write_text("x,s,y\n" + "".join(f"{a},0.2,{b}\n" for a, b in zip(x, y, strict=True)))
    options = ["--target", "y", "--max-candidates", "200", "--jobs", "1", "--quiet"]
    errors = ["--y-error", "s", "--x-error", "x=0.5"]
    run_gmeql("fit", str(data), *options, *errors, "--out", str(run))
    model = GMEQLRegressor.load(run / "model.json")
    line = next(m.expression for m in model.front_ if m.complexity == 5)
    assert line.names == ("x",) and line.constants[0] > 1.35  # least squares gives about 1.2
    assert "x=0.5" in (run / "report.html").read_text()
    run_gmeql("resume", str(run), "--max-candidates", "250", "--quiet")
    capsys.readouterr()
    run_gmeql("fit", str(data), *options, "--x-error", "x=0.5", "--out", str(tmp_path / "no"), expect=2)
    assert "--x-error needs --y-error" in capsys.readouterr().err
    run_gmeql("fit", str(data), *options, *errors, "--pin", "x*x", "--out", str(tmp_path / "no"), expect=2)
    assert "cannot be combined with --pin" in capsys.readouterr().err


def test_errors_of_columns_count_in_templates_and_groups(tmp_path):
    rng = np.random.default_rng(0)
    t, shift = 2 + rng.standard_normal(200), np.tile([0.0, 4.0], 100)
    x, y = t + 0.5 * rng.standard_normal(200), 1.5 * t + shift + 0.2 * rng.standard_normal(200)
    data = tmp_path / "lines.csv"
    rows = zip(x, np.where(shift > 0, "up", "down"), y - shift, y, strict=True)
    data.write_text("x,kind,lone,y\n" + "".join(f"{a},{b},{c},{d}\n" for a, b, c, d in rows))
    common = ["--max-candidates", "200", "--jobs", "1", "--quiet", "--y-error", "0.2", "--x-error", "x=0.5"]
    grouped = ["--target", "y", "--groups", "kind", "--drop", "lone", "--functions", "add,mul"]
    inside = ["--target", "lone", "--template", "a*x + b", "--drop", "kind,y"]
    for number, known in enumerate((grouped, inside)):
        run = tmp_path / f"run{number}"
        run_gmeql("fit", str(data), *known, *common, "--out", str(run))
        model = GMEQLRegressor.load(run / "model.json")
        line = next(m.expression for m in model.front_ if m.complexity == 5)
        assert line.constants[0] > 1.38  # least squares gives about 1.2
        assert "x=0.5" in (run / "report.html").read_text()
