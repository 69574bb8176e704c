"""Arguments that several commands share."""

from __future__ import annotations

import pytest

from gmeql.cli.options import listed


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
