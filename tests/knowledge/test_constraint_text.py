"""Constraints from text: every form of the table is read, written again the same way, and refused with a reason."""

from __future__ import annotations

from typing import Any

import pytest

from gmeql.knowledge.constraint_text import MAX_LENGTH, read_constraint
from gmeql.knowledge.constraints import CONSTRAINTS, Bounded, Limit, Monotone, Point

NAMES = ("x", "y", "flow rate")


@pytest.mark.parametrize("form", [form for _, forms in CONSTRAINTS.values() for form in forms.split(" / ")])
@pytest.mark.parametrize("soft", ["", "soft "])
def test_every_form_of_the_table(form: str, soft: str) -> None:
    found = read_constraint(soft + form, NAMES)
    assert found.soft is bool(soft)
    assert read_constraint(found.text(), NAMES) == found


def test_classes_and_numbers() -> None:
    assert read_constraint("decreasing in flow rate", NAMES) == Monotone(column="flow rate", rises=False)
    assert read_constraint("-1.5e-3 <= output <= 2", NAMES) == Bounded(low=-1.5e-3, high=2.0)
    assert read_constraint("f(0, 1, 2) = 3", NAMES) == Point(at=(("x", 0.0), ("y", 1.0), ("flow rate", 2.0)), value=3.0)
    assert read_constraint("f → 0 as x → -inf", NAMES) == Limit(column="x", towards=float("-inf"), value=0.0)
    assert read_constraint(Monotone(column="x"), NAMES) == Monotone(column="x")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("rising in x", "cannot be read"),
        ("increasing in q", "no column"),
        ("output >= 2 for 3 <= x <= 1", "lower end"),
        ("finite for x >= 0", "both ends"),
        ("f(0) = 1", "1 values for 3 columns"),
        ("blub in sin <= 0", "no function"),
        ("functions of x: blub", "no function"),
        (7, "must be text"),
        ("x" * (MAX_LENGTH + 1), "longer than"),
    ],
)
def test_refusals(given: Any, says: str) -> None:
    with pytest.raises(ValueError) as caught:
        read_constraint(given, NAMES)
    assert says in str(caught.value)
