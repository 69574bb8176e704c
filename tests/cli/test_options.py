"""Arguments that several commands share."""

from __future__ import annotations

import io
import json
import shlex
import sys

import pytest

from command_line import LINE, run_gmeql
from gmeql.cli.app import _command
from gmeql.cli.options import READING, typed_command


def test_the_command_is_repeated_as_a_person_would_type_it(monkeypatch):
    monkeypatch.setattr("sys.argv", ["gmeql", "solve", "--json", "y'' = -y", "--ics=y(0)=1, y'(0)=0", "--out=a b"])
    assert typed_command() == """gmeql solve "y'' = -y" "--ics=y(0)=1, y'(0)=0" '--out=a b'"""
    monkeypatch.setattr("sys.argv", ["gmeql", "solve", "y' = $y"])
    assert shlex.split(typed_command())[2] == "y' = $y" and '"y' not in typed_command()


@pytest.mark.parametrize(
    ("command", "without"),
    [
        ("fit", set()),
        ("classify", set()),
        ("dynamics", set()),
        ("predict", set()),
        ("field", {"keep_codes", "text_as_missing"}),
        ("show", {"keep_codes", "text_as_missing"}),
    ],
)
def test_every_command_that_reads_a_table_can_be_told_how(command, without):
    options = {option.name: option.help for option in _command().commands[command].params}
    assert set(READING) & set(options) == set(READING) - without and "reading" not in options


STRANGE = "x1;x2;y\n" + "".join(f"{i},250;{i * i % 7},125;1\n" for i in range(1, 4)) + "2,500;n/a?;1\n"
"""Decimal commas that may as well stand between thousands, and text among numbers."""


def test_a_new_table_is_read_as_its_options_say(finished, tmp_path, capsys):
    path = tmp_path / "strange.csv"
    path.write_text(STRANGE.replace("x1", "a").replace("x2", "b"))
    reading = ("--delimiter", ";", "--decimal", ",")
    run_gmeql("predict", str(finished), str(path), *reading, expect=2)
    assert "--text-as-missing" in capsys.readouterr().err
    run_gmeql("predict", str(finished), str(path), *reading, "--text-as-missing", "--json")
    *values, last = json.loads(capsys.readouterr().out)["prediction"]
    assert values == pytest.approx([2.5 * (i + 0.25) + 3 * (i * i % 7 + 0.125) for i in range(1, 4)]) and last is None
    run_gmeql("predict", str(finished), str(path), "--delimiter", "ab", expect=2)
    assert "is not one character" in capsys.readouterr().err


def test_classes_and_motions_are_read_as_the_options_say(tmp_path, capsys, monkeypatch):
    """What goes wrong is told behind the reading, before any search."""
    classes = "1|x\n2|x\n3|x\n".encode("utf-16")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(classes)))
    reading = ("--delimiter", "|", "--no-header", "--encoding", "utf-16")
    run_gmeql("classify", "-", "-t", "x2", *reading, expect=2)
    assert "column 'x2' holds 'x' alone" in capsys.readouterr().err
    path = tmp_path / "motion.csv"
    path.write_text(
        "t x\n" + "".join(f"{i} -9999\n" for i in range(3)) + "".join(f"{i} {i % 5}\n" for i in range(3, 15))
    )
    run_gmeql("dynamics", str(path), "-t", "t", "-s", "x", "--delimiter", "space", "--order", "7", expect=2)
    told = capsys.readouterr().err
    assert "3 cells of -9999, far from all others: they count as missing" in told and "3 of 15 rows left out" in told
    run_gmeql("dynamics", str(path), "-t", "t", "-s", "x", "--keep-codes", "--order", "7", expect=2)
    assert "-9999" not in capsys.readouterr().err


def test_settings_of_a_file_and_the_environment_still_say_how_a_fit_reads(tmp_path, capsys, monkeypatch):
    path = tmp_path / "line.csv"
    path.write_text(LINE.replace(",", "|"))
    monkeypatch.setenv("GMEQL_DELIMITER", ";")
    run_gmeql("fit", str(path), "-t", "y", "--delimiter", "|", "--columns", "c", expect=2)
    assert "'a', 'b', 'y'" in capsys.readouterr().err
