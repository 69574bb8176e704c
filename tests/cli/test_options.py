"""Arguments that several commands share."""

from __future__ import annotations

import shlex

import pytest

from gmeql.cli.options import listed, typed_command


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        (" , ", []),
        ("x", ["x"]),
        ("x, v ,w", ["x", "v", "w"]),
        ('"speed, m/s", t', ["speed, m/s", "t"]),
        ("+,-,*,/", ["+", "-", "*", "/"]),
    ],
)
def test_names_between_commas(text, names):
    assert listed(text) == names


def test_the_command_is_repeated_as_a_person_would_type_it(monkeypatch):
    monkeypatch.setattr("sys.argv", ["gmeql", "solve", "--json", "y'' = -y", "--ics=y(0)=1, y'(0)=0", "--out=a b"])
    assert typed_command() == """gmeql solve "y'' = -y" "--ics=y(0)=1, y'(0)=0" '--out=a b'"""
    monkeypatch.setattr("sys.argv", ["gmeql", "solve", "y' = $y"])
    assert shlex.split(typed_command())[2] == "y' = $y" and '"y' not in typed_command()
