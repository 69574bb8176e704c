"""The command line from outside: what goes to stdout, what to stderr, and every exit code."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gmeql.cli import commands
from gmeql.runs.folder import Run, reproduce_command
from gmeql.runs.settings import ConfigError, FitSettings, resolve
from malformed_tables import REFUSED

DATA = Path(__file__).parents[2] / "data"
LINE = "a,b,y\n" + "".join(f"{i},{i * i % 7},{2.5 * i + 3 * (i * i % 7)}\n" for i in range(1, 13))


def gmeql(*arguments: str, expect: int = 0) -> None:
    """Run the command line in this process."""
    with pytest.raises(SystemExit) as ended:
        commands.main(list(arguments))
    assert ended.value.code == expect


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "line.csv"
    path.write_text(LINE)
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder of a small fit."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "line.csv").write_text(LINE)
    gmeql(
        "fit", str(folder / "line.csv"), "-t", "y", "--max-candidates", "600", "--out", str(folder / "run"), "--quiet"
    )
    return folder / "run"


# ------------------------------------------------------------------------------------------------- fit and its folder


def test_fit_prints_the_formula_alone_on_stdout(table, tmp_path, capsys):
    gmeql("fit", str(table), "--target", "y", "--max-candidates", "600", "--out", str(tmp_path / "run"))
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
        "report.html",
    }
    description = json.loads((finished / "run.json").read_text())
    assert description["state"] == "done" and description["seed"] == 0 and description["versions"]["numpy"]
    assert description["data"]["fingerprint"] == Run.open(finished).training().fingerprint
    lines = [json.loads(line) for line in (finished / "progress.jsonl").read_text().splitlines()]
    assert lines and lines[-1]["candidates"] >= 0 and lines[-1]["front"]
    assert (finished / "front.csv").read_text().startswith("index,complexity,loss,score,formula\n0,")
    assert not list(finished.rglob("*.tmp"))


def test_the_same_seed_and_candidates_give_the_same_model(table, tmp_path):
    for name in ("one", "two"):
        gmeql(
            "fit", str(table), "-t", "y", "--max-candidates", "600", "--seed", "3", "--out", str(tmp_path / name), "-q"
        )
    assert (tmp_path / "one" / "front.csv").read_text() == (tmp_path / "two" / "front.csv").read_text()


def test_fit_json_is_one_object(table, tmp_path, capsys):
    gmeql("fit", str(table), "-t", "y", "--max-candidates", "600", "--out", str(tmp_path / "run"), "--json", "--quiet")
    out, err = capsys.readouterr()
    record = json.loads(out)
    assert record["formula"] and record["r2"] > 0.999999 and record["front"] and record["state"] == "done"
    assert Path(record["report"]).is_file() and Path(record["model"]).is_file()
    assert err == ""


def test_a_second_fit_into_the_same_folder_is_refused(table, finished, capsys):
    before = (finished / "model.json").read_bytes()
    gmeql("fit", str(table), "-t", "y", "--out", str(finished), "-q", expect=4)
    assert "holds a run already" in capsys.readouterr().err
    assert (finished / "model.json").read_bytes() == before


def test_standard_input(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LINE.encode("utf-16"))))
    gmeql("fit", "-", "-t", "y", "--max-candidates", "300", "--out", str(tmp_path / "run"), "-q")
    assert capsys.readouterr().out.startswith("y = ")
    assert Run.open(tmp_path / "run").description()["data"]["source"] == "standard input"


# ------------------------------------------------------------------------------------------------- using it


def test_resume_goes_on(finished, tmp_path, capsys):
    import shutil

    run = tmp_path / "again"
    shutil.copytree(finished, run)
    gmeql("resume", str(run), "--max-candidates", "1200", "--json", "--quiet")
    record = json.loads(capsys.readouterr().out)
    assert record["formula"] and Run.open(run).description()["state"] == "done"


def test_predict_keeps_rows_and_empties_what_is_missing(finished, tmp_path, capsys):
    data = tmp_path / "new.csv"
    data.write_text("b;a\n1;2\n;3\n2;4\n")
    gmeql("predict", str(finished), str(data))
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "prediction" and float(lines[1]) == pytest.approx(8.0) and float(lines[3]) == pytest.approx(16.0)
    assert lines[2] in ("", '""') and "1 of 3 predictions are empty" in err
    gmeql("predict", str(finished / "model.json"), str(data), "--append", "--out", str(tmp_path / "p.csv"))
    assert (tmp_path / "p.csv").read_text().startswith("a,b,prediction\n")
    gmeql("predict", str(finished), str(data), "--json")
    assert json.loads(capsys.readouterr().out)["prediction"][1] is None


@pytest.mark.parametrize("form", commands.TEXT_FORMATS)
def test_show_in_every_form(finished, form, capsys):
    gmeql("show", str(finished), "--format", form)
    assert capsys.readouterr().out.strip()


def test_show_the_front(finished, capsys):
    gmeql("show", str(finished))
    assert "complexity" in capsys.readouterr().out
    gmeql("show", str(finished), "--json")
    assert json.loads(capsys.readouterr().out)["front"]
    gmeql("show", str(finished), "--index", "0")
    assert capsys.readouterr().out.strip()


def test_pinned_and_forbidden_parts(table, tmp_path, capsys):
    gmeql(
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
    gmeql("predict", str(tmp_path / "run"), str(model_data))


def test_doctor(capsys):
    gmeql("doctor", "--json")
    record = json.loads(capsys.readouterr().out)
    assert record["cores"] >= 1 and record["versions"]["gmeql"] and record["devices"]


# ------------------------------------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["fit"], 2, "Missing argument"),
        (["fit", "{table}"], 2, "--target takes one of 'a', 'b', 'y'"),
        (["fit", "{table}", "-t", "z"], 2, "there is no such column"),
        (["fit", "missing.csv", "-t", "y"], 2, "no such file"),
        (["fit", "{table}", "-t", "y", "--max-time", "soon"], 2, "--max-time"),
        (["fit", "{table}", "-t", "y", "--max-time", "0"], 2, "--max-time"),
        (["fit", "{table}", "-t", "y", "--seed", "-1"], 2, "--seed"),
        (["fit", "{table}", "-t", "y", "--jobs", "0"], 2, "--jobs"),
        (["fit", "{table}", "-t", "y", "--method", "magic"], 2, "one of fitted, paper, released"),
        (["fit", "{table}", "-t", "y", "--functions", "sinn"], 2, "unknown operator"),
        (["fit", "{table}", "-t", "y", "--columns", "q"], 2, "no such column"),
        (["fit", "{table}", "-t", "y", "--pin", "a+"], 2, "can be read"),
        (["fit", "{table}", "-t", "y", "--pin", "__import__('os')"], 2, "not a function"),
        (["fit", "{table}", "-t", "y", "--pin", "q*a"], 2, "there is no column 'q'"),
        (["fit", "{table}", "-t", "y", "--config", "none.toml"], 2, "no such file"),
        (["fit", "{table}", "-t", "y", "--frobnicate"], 2, "No such option"),
        (["resume", "{folder}"], 4, "not a run folder"),
        (["show", "{folder}/none.json"], 4, "none.json"),
        (["show", "{table}"], 4, "line.csv"),
        (["predict", "{folder}", "{table}"], 4, "no model.json"),
        (["bench", "nothing"], 2, "nothing"),
        (["paper", "--budget", "huge"], 2, "--budget"),
        (["nonsense"], 2, "No such command"),
    ],
)
def test_every_mistake_is_one_line_and_a_code(arguments, code, words, table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    filled = [word.format(table=table, folder=tmp_path) for word in arguments]
    gmeql(*filled, expect=code)
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if line.startswith("gmeql:")]
    assert out == "" and len(lines) == 1 and words in lines[0] and "Traceback" not in err


def test_a_bad_cell_names_row_column_and_mend(tmp_path, capsys):
    path = tmp_path / "bad.csv"
    path.write_text("a,y\n1,2\nx,3\n4,5\n")
    gmeql("fit", str(path), "-t", "y", expect=2)
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
    gmeql("fit", "table.csv", "--target", target, expect=2)
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("gmeql: table.csv") and err.count("\n") == 1 and "\x1b" not in err
    assert any(word in err for word in words.split("|"))
    assert row is None or f"row {row}" in err
    assert column is None or column in err
    assert not Path("gmeql-runs").exists()


def test_an_unexpected_failure_is_code_1_without_traceback(table, tmp_path, monkeypatch, capsys):
    def broken(*arguments, **options):
        raise ZeroDivisionError("a bug\nover two lines")

    monkeypatch.setattr("gmeql.tables.read.read", broken)
    monkeypatch.delenv(commands.DEBUG_VARIABLE, raising=False)
    gmeql("fit", str(table), "-t", "y", expect=1)
    assert capsys.readouterr().err.startswith("gmeql: ZeroDivisionError: a bug over two lines")


def test_no_formula_within_the_budget_is_code_3(table, tmp_path, monkeypatch, capsys):
    from gmeql.runs.execute import Outcome

    monkeypatch.setattr("gmeql.cli.foreground.execute", lambda run, **options: Outcome(None, "failed", "nothing"))
    gmeql("fit", str(table), "-t", "y", "--out", str(tmp_path / "run"), "-q", expect=3)
    out, err = capsys.readouterr()
    assert out == "" and "no formula was found" in err


def test_a_folder_that_cannot_be_written_is_code_4(table, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    gmeql("fit", str(table), "-t", "y", "--out", str(tmp_path / "file" / "run"), "-q", expect=4)
    assert "cannot be written" in capsys.readouterr().err


def test_changed_data_is_not_resumed(finished, tmp_path, capsys):
    import shutil

    run = tmp_path / "changed"
    shutil.copytree(finished, run)
    description = json.loads((run / "run.json").read_text())
    description["data"]["fingerprint"] = "0" * 64
    (run / "run.json").write_text(json.dumps(description))
    gmeql("resume", str(run), "-q", expect=4)
    assert "is not the data" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"format": "gmeql-run", "version": 99}', '{"format": "gmeql-run"}']
)
def test_a_damaged_description_is_a_storage_error(content, tmp_path, capsys):
    (tmp_path / "run.json").write_text(content)
    gmeql("resume", str(tmp_path), expect=4)
    assert "Traceback" not in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------- processes


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom gmeql import cli\n"
        "try:\n    cli.main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'polars', 'jax', 'numba', 'sympy', 'sklearn', 'scipy', 'starlette'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "heavy: []" and "doctor" in done.stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [("fit {table} --target ", ["a", "b", "y"]), ("show x --format l", ["latex"]), ("pre", ["predict"])],
)
def test_the_shell_completes_commands_formats_and_columns(words, offered, table, monkeypatch, capsys):
    typed = f"gmeql {words.format(table=table)}"
    monkeypatch.setenv("_GMEQL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(typed.count(" ")))
    with pytest.raises(SystemExit):
        commands.main([])
    assert capsys.readouterr().out.split() == offered


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_what_was_found(number, code, tmp_path):
    path = tmp_path / "noisy.csv"
    path.write_text("a,y\n" + "".join(f"{i / 7},{(i * 7919 % 101) / 10 + i}\n" for i in range(60)))
    run = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-m", "gmeql", "fit", str(path), "-t", "y", "--max-time", "300", "--out", str(run)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    log = run / "progress.jsonl"
    for _ in range(1200):
        if log.exists() and log.stat().st_size:
            break
        time.sleep(0.1)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "gmeql resume" in err and "Traceback" not in err
    assert Run.open(run).description()["state"] == "stopped"
    assert (run / "model.json").is_file() and (run / "front.csv").is_file()


# ------------------------------------------------------------------------------------------------- settings


def test_flags_beat_the_environment_beats_the_file(tmp_path):
    path = tmp_path / "fit.toml"
    path.write_text('[fit]\nmax-time = 1\nseed = 1\nfunctions = ["sin", "add"]\ntarget = "y"\n')
    environment = {"GMEQL_SEED": "2", "GMEQL_MAX_TIME": "2", "GMEQL_CONFIG": str(path)}
    settings = resolve({"max_time": 3.0, "drop": None}, environment=environment)
    assert (settings.max_time, settings.seed, settings.functions, settings.target) == (3.0, 2, ("sin", "add"), "y")
    assert resolve({}, file=path, environment={}).max_time == 1.0
    assert resolve({"max_candidates": 10}, environment={}).max_time is None
    assert resolve({"max_candidates": 10, "max_time": 5}, environment={}).max_time == 5.0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("max_tine = 3", "did you mean max_time"),
        ("seed = 'x'", "not a whole number"),
        ("seed = 1.5", "not a whole number"),
        ("seed = true", "not a whole number"),
        ("max_time = nan", "not a number"),
        ("max_time = inf", "too large"),
        ("header = 'perhaps'", "neither true nor false"),
        ("functions = [1]", "not a list of names"),
        ("method = 'other'", "one of fitted"),
        ("target = 3", "not text"),
        ("= 3", "not TOML"),
    ],
)
def test_a_wrong_file_names_the_setting(content, words, tmp_path):
    path = tmp_path / "fit.toml"
    path.write_text(content)
    with pytest.raises(ConfigError, match=words) as caught:
        resolve({}, file=path, environment={})
    assert str(path) in str(caught.value)


def test_settings_survive_the_run_folder():
    settings = FitSettings(target="y", columns=("a,b", "c"), pin=("sin(c)",), functions=("add", "sin"), seed=7)
    assert FitSettings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


def test_the_command_to_repeat_a_run_reads_back():
    settings = FitSettings(
        target="the y", columns=("a,b", "c"), forbid=("sin", "c*c"), max_time=None, max_candidates=5, header=False
    )
    description = {"settings": settings.to_dict(), "data": {"source": "my data.csv", "target": "the y"}}
    import shlex

    words = shlex.split(reproduce_command(description))
    assert words[:5] == ["gmeql", "fit", "my data.csv", "--target", "the y"]
    assert words[words.index("--columns") + 1] == '"a,b",c' and settings.split_names('"a,b",c') == ("a,b", "c")
    assert words.count("--forbid") == 2 and "--no-header" in words and words[-2:] == ["--seed", "0"]


def test_broken_pipe_is_no_failure(finished):
    command = f"{sys.executable} -m gmeql show {finished} --json | true"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, check=False, env=os.environ
    )
    assert done.returncode == 0 and b"Traceback" not in done.stderr
