"""The command line as a whole: help, completion, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from command_line import run_gmeql
from gmeql.cli import main
from gmeql.cli.choices import words
from gmeql.cli.exits import DEBUG_VARIABLE


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom gmeql import cli\n"
        "try:\n    cli.main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'polars', 'jax', 'numba', 'sympy', 'sklearn', 'scipy', 'starlette'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "heavy: []" and "doctor" in done.stdout


def test_a_path_that_leads_nowhere_is_told_before_anything_heavy_is_loaded(tmp_path):
    """Two seconds and more of imports stood before the words 'no such file'."""
    tries = [
        ["fit", "none.csv", "-t", "y"], ["classify", "none.csv", "-t", "y"], ["dynamics", "none.csv", "-t", "t", "-s", "x"],
        ["field", "none.csv"], ["resume", "none"], ["refine", "none", "x"], ["show", "none"], ["alternatives", "none"],
        ["predict", "none", "none.csv"],
    ]  # fmt: skip
    code = (
        "import sys\n"
        "from gmeql.cli import main\n"
        f"for words in {tries}:\n"
        "    try:\n"
        "        main(words)\n"
        "    except SystemExit as ended:\n"
        "        heavy = [name for name in ('sklearn', 'sympy', 'scipy.stats', 'jax') if name in sys.modules]\n"
        "        print(words[0], ended.code, heavy)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    codes = {"fit": 2, "classify": 2, "dynamics": 2, "field": 2}
    assert done.stdout.splitlines() == [f"{words[0]} {codes.get(words[0], 4)} []" for words in tries]


def test_a_command_that_reads_a_table_begins_without_what_scikit_learn_hardly_uses():
    """`gmeql fit` took twice the processor time of the regressor to begin."""
    code = "import sys, gmeql.runs.checks, gmeql.runs.execute; print([n for n in ('pandas', 'scipy.stats') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


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
        (["fit", "{table}", "-t", "y", "--jobs", "-5"], 2, "--jobs: -5 threads cannot work; give 1 or more, or -1"),
        (["fit", "{table}", "-t", "y", "--sheet", "s"], 2, "has no sheet 's': it is no workbook"),
        (["classify", "{table}", "-t", "y", "--jobs", "-5"], 2, "--jobs: -5 threads cannot work"),
        (["classify", "{table}", "-t", "y", "--seed", "-1"], 2, "--seed"),
        (["classify", "{table}", "-t", "y", "--max-candidates", "0"], 2, "--max-candidates"),
        (["classify", "{table}", "-t", "y", "--max-complexity", "0"], 2, "--max-complexity: 0 is too small"),
        (["classify", "{table}", "-t", "y", "--max-time", "-1"], 2, "--max-time: -1.0 is too small"),
        (["dynamics", "{table}", "-t", "a", "-s", "y", "--max-time", "nan"], 2, "--max-time: nan is not a number"),
        (["field", "{table}", "--max-time", "0"], 2, "--max-time: 0.0 is too small"),
        (["solve", "y' = y", "--max-time", "0"], 2, "--max-time: 0.0 is too small"),
        (["dynamics", "{table}", "-t", "a", "-s", "y", "--jobs", "0"], 2, "--jobs: 0 threads cannot work"),
        (["dynamics", "{table}", "-t", "a", "-s", "y", "--functions", ""], 2, "--functions: none is given"),
        (["dynamics", "{table}", "-t", "a", "-s", "y", "--inputs", "y"], 2, "--inputs names 'y', a state"),
        (["field", "{table}", "--seed", "4294967296"], 2, "--seed"),
        (["solve", "y' = y", "--format", "latex", "--json"], 2, "leave --format out"),
        (["predict", "{folder}", "{table}", "--json", "--out", "o.csv"], 2, "leave one of them out"),
        (["show", "{folder}", "--table", "{table}"], 2, "--table belongs to --format spreadsheet"),
        (["show", "{folder}", "--format", "latex", "--json"], 2, "leave --format out"),
        (["fit", "{table}", "-t", "y", "--method", "magic"], 2, "one of fitted, paper, released"),
        (["fit", "{table}", "-t", "y", "--loss", "cubic"], 2, "one of squared, huber"),
        (["fit", "{table}", "-t", "y", "--selection", "prettiest"], 2, "one of best, accurate, simple, validation"),
        (["fit", "{table}", "-t", "y", "--device", "abacus"], 2, "one of auto, cpu, gpu"),
        (["fit", "{table}", "-t", "y", "--decimal", ";"], 2, "one of ., ,"),
        (["fit", "{table}", "-t", "y", "--functions", "sinn"], 2, "unknown operator"),
        (["fit", "{table}", "-t", "y", "--method", "paper", "--functions", "sin"], 2, "use --method fitted"),
        (["fit", "{table}", "-t", "y", "--method", "released", "--forbid", "sin"], 2, "--forbid"),
        (["fit", "{table}", "-t", "y", "--method", "paper", "--weights", "b"], 2, "knows no weights"),
        (["fit", "{table}", "-t", "y", "--columns", "q"], 2, "no such column"),
        (["fit", "{table}", "-t", "y", "--pin", "a+"], 2, "cannot be read"),
        (["fit", "{table}", "-t", "y", "--pin", "__import__('os')"], 2, "not a function"),
        (["fit", "{table}", "-t", "y", "--pin", "q*a"], 2, "there is no column 'q'"),
        (["fit", "{table}", "-t", "y", "--config", "none.toml"], 2, "no such file"),
        (["fit", "{table}", "-t", "y", "--frobnicate"], 2, "No such option"),
        (["resume", "{folder}"], 4, "not a run folder"),
        (["resume", "{table}"], 4, "not a run folder"),
        (["show", "{folder}/none.json"], 4, "none.json"),
        (["show", "{table}"], 4, "line.csv"),
        (["predict", "{folder}", "{table}"], 4, "no model.json"),
        (["show", "{folder}", "--format", "braille"], 2, "one of text, exact"),
        (["show", "{folder}", "--format", "numpy"], 2, "one of text, exact"),
        (["bench", "nothing"], 2, "nothing"),
        (["bench", "paper", "--method", "magic"], 2, "one of fitted, paper, released"),
        (["paper", "--budget", "huge"], 2, "--budget"),
        (["nonsense"], 2, "No such command"),
    ],
)
def test_every_mistake_is_one_line_and_a_code(arguments, code, words, table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    filled = [word.format(table=table, folder=tmp_path) for word in arguments]
    run_gmeql(*filled, expect=code)
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if line.startswith("gmeql:")]
    assert out == "" and len(lines) == 1 and words in lines[0] and "Traceback" not in err


def test_ctrl_c_before_a_search_has_begun_is_told_and_no_success(table, monkeypatch, capsys):
    """It ended with 0 and without a word, which a script takes for a formula."""

    def pressed(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("gmeql.tables.read.read", pressed)
    run_gmeql("fit", str(table), "-t", "y", expect=130)
    assert capsys.readouterr().err == "interrupted\n"


def test_an_unexpected_failure_is_code_1_without_traceback(table, tmp_path, monkeypatch, capsys):
    def broken(*arguments, **options):
        raise ZeroDivisionError("a bug\nover two lines")

    monkeypatch.setattr("gmeql.tables.read.read", broken)
    monkeypatch.delenv(DEBUG_VARIABLE, raising=False)
    run_gmeql("fit", str(table), "-t", "y", expect=1)
    assert capsys.readouterr().err.startswith("gmeql: ZeroDivisionError: a bug over two lines")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("fit {table} --target ", ["a", "b", "y"]),
        ("show x --format l", ["latex"]),
        ("fit x --loss h", ["huber"]),
        ("pre", ["predict"]),
    ],
)
def test_the_shell_completes_commands_formats_and_columns(words, offered, table, monkeypatch, capsys):
    typed = f"gmeql {words.format(table=table)}"
    monkeypatch.setenv("_GMEQL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(typed.count(" ")))
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out.split() == offered


def test_broken_pipe_is_no_failure(finished):
    command = f"{sys.executable} -m gmeql show {finished} --json | true"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, check=False, env=os.environ
    )
    assert done.returncode == 0 and b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("command", "option"),
    [("fit", "method"), ("fit", "selection"), ("fit", "loss"), ("fit", "device"), ("fit", "decimal")]
    + [("show", "format"), ("bench", "method"), ("paper", "budget")],
)
def test_the_help_of_a_choice_names_every_word(command, option, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "300")
    run_gmeql(command, "--help")
    out = capsys.readouterr().out
    (line,) = (line for line in out.splitlines() if line.lstrip("│* ").startswith(f"--{option} "))
    assert "{choices}" not in out and all(word in line for word in words(option))


def test_a_warning_is_one_line_told_once(tmp_path, monkeypatch, capsys):
    table = tmp_path / "rows.csv"
    table.write_text("mass,y\n" + "".join(f"{i},{3 * i}\n" for i in range(1, 20)))
    monkeypatch.chdir(tmp_path)
    run_gmeql("fit", str(table), "--target", "y", "--template", "k*mas", "--max-candidates", "50")
    told = [line for line in capsys.readouterr().err.splitlines() if "mas is no column" in line]
    assert len(told) == 1 and told[0].startswith("note: template")
