"""`gmeql alternatives` from outside."""

from __future__ import annotations

import json

import pytest

from command_line import run_gmeql
from gmeql.cli.exits import USAGE


def test_a_run_and_its_model_list_formulas_with_their_evidence(finished, capsys):
    run_gmeql("alternatives", str(finished), "--json", "-n", "2")
    of_run = json.loads(capsys.readouterr().out)
    assert 1 <= len(of_run) <= 2 and set(of_run[0]) == {"weight", "complexity", "loss", "formula"}
    run_gmeql("alternatives", str(finished / "model.json"), "--json")
    of_model = json.loads(capsys.readouterr().out)
    assert of_model[0]["formula"] == of_run[0]["formula"]
    assert sum(one["weight"] for one in of_model) == pytest.approx(1)
    run_gmeql("alternatives", str(finished))
    assert of_run[0]["formula"] in capsys.readouterr().out


def test_what_has_none_is_said(finished, tmp_path, capsys):
    run_gmeql("alternatives", str(tmp_path / "nothing.json"), expect=4)
    run_gmeql("alternatives", str(finished), "-n", "0", expect=USAGE)
