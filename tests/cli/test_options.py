"""Arguments that several commands share."""

from __future__ import annotations

import shlex

from gmeql.cli.options import typed_command


def test_the_command_is_repeated_as_a_person_would_type_it(monkeypatch):
    monkeypatch.setattr("sys.argv", ["gmeql", "solve", "--json", "y'' = -y", "--ics=y(0)=1, y'(0)=0", "--out=a b"])
    assert typed_command() == """gmeql solve "y'' = -y" "--ics=y(0)=1, y'(0)=0" '--out=a b'"""
    monkeypatch.setattr("sys.argv", ["gmeql", "solve", "y' = $y"])
    assert shlex.split(typed_command())[2] == "y' = $y" and '"y' not in typed_command()
