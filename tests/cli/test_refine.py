"""`gmeql refine`: a new run on the rows of an earlier one, with a formula as its first elite."""

from __future__ import annotations

import json

from command_line import run_gmeql
from gmeql.cli.exits import USAGE
from gmeql.runs.folder import Run


def test_a_new_run_goes_on_from_the_formula_and_leaves_the_old_one_alone(finished, tmp_path, capsys):
    before = (finished / "model.json").read_bytes()
    run_gmeql("alternatives", str(finished), "--json")
    formula = json.loads(capsys.readouterr().out)[0]["formula"]
    folder = tmp_path / "again"
    run_gmeql("refine", str(finished), formula, "--max-candidates", "200", "--out", str(folder), "--json", "--quiet")
    record = json.loads(capsys.readouterr().out)
    assert record["formula"] and (finished / "model.json").read_bytes() == before
    again = Run.open(folder)
    assert again.settings().guess == (formula,) and again.continues == finished.resolve()
    assert again.training().fingerprint == Run.open(finished).training().fingerprint


def test_a_formula_that_cannot_be_read_is_refused_before_a_folder_is_made(finished, tmp_path, capsys):
    run_gmeql("refine", str(finished), "nonsense(", "--out", str(tmp_path / "none"), expect=USAGE)
    assert "guess" in capsys.readouterr().err and not (tmp_path / "none").exists()
