"""`gmeql solve`."""

from __future__ import annotations

import json

from command_line import run_gmeql

OSCILLATOR = ("solve", "y'' = -y", "--ics", "y(0)=0, y'(0)=1", "--jobs", "1")


def test_the_solution_on_stdout_and_the_proof_on_stderr(capsys):
    run_gmeql(*OSCILLATOR)
    shown = capsys.readouterr()
    assert shown.out == "y = sin(x)\n"
    assert shown.err.splitlines()[-1] == "proven: equation and conditions vanish identically"


def test_other_forms(capsys):
    run_gmeql(*OSCILLATOR, "--format", "latex", "-q")
    assert capsys.readouterr().out == "y = \\sin{\\left(x \\right)}\n"
    run_gmeql(*OSCILLATOR, "--json", "-q")
    record = json.loads(capsys.readouterr().out)
    assert record["proven"] and record["solution"] == {"y": "sin(x)"} and record["front"][-1]["proven"]
    run_gmeql(*OSCILLATOR, "--format", "word", expect=2)
    assert "one of text, sympy, latex" in capsys.readouterr().err


def test_a_report_where_one_is_wanted(tmp_path, capsys):
    run_gmeql(*OSCILLATOR, "--out", str(tmp_path / "run"))
    assert capsys.readouterr().err.splitlines()[-1] == f"report: {tmp_path / 'run' / 'report.html'}"
    assert "proven: equation and conditions" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


def test_no_closed_form_is_a_clear_no_with_its_own_exit_code(capsys):
    run_gmeql(
        "solve", "y' = x^2 + y^2", "--ics", "y(0)=0", "--domain", "0..1", "--max-candidates", "300", "-q", expect=3
    )
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("no closed form was found") and "largest residual" in shown.err


def test_bad_input_is_one_line(capsys):
    for arguments in (
        ("y = 3",),
        ("y' = y", "--ics", "y(0)=1, y(1)=9"),
        ("y' = exec(y)",),
        ("y' = y", "--max-time", "0"),
    ):
        run_gmeql("solve", *arguments, expect=2)
        error = capsys.readouterr().err.strip()
        assert error.startswith("gmeql: ") and "\n" not in error
