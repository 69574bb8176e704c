"""Suites by name."""

from __future__ import annotations

import pytest

from case_files import case, write
from gmeql.evaluation.problems import load_suite


def test_some_problems_of_a_suite_in_the_order_that_is_asked_for(tmp_path) -> None:
    assert [p.name for p in load_suite("paper", ["b5", "b1"])] == ["b5", "b1"]
    path = write(tmp_path / "cases.json", [case(name="one"), case(name="two")])
    assert [p.name for p in load_suite(path)] == ["one", "two"]


def test_what_a_suite_does_not_hold_is_named() -> None:
    with pytest.raises(ValueError, match="has no problem 'b0'"):
        load_suite("paper", ["b1", "b0"])
    with pytest.raises(ValueError, match="cases file that exists"):
        load_suite("missing.json")
