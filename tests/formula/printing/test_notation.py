"""Numbers and names as people and languages read them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, Variable
from gmeql.formula.printing.notation import (
    four_digits,
    display_names,
    identifiers,
    number_text,
    round_constant,
)
from random_trees import NAMES, call

x1, x2, x3 = (Variable(i) for i in range(3))


def text(root: Node) -> str:
    return str(Expression(root, NAMES))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.2000000001, "1.2"),
        (3.0, "3"),
        (1.5e-7, "1.5e-07"),
        (math.pi, "3.1416"),
        (3.14159265, "3.14159265"),
        (123456.0, "123456"),
        (123456.70000123, "123460"),
        (123456.7, "123456.7"),
        (2.99792458e8, "299792458"),
        (2.9979e8, "2.9979e+08"),
        (6.022140760001e23, "6.0221e+23"),
        (6.02214076e23, "6.02214076e+23"),
        (0.00012345600001, "0.00012346"),
        (99999.600001234, "100000"),
        (-0.1 - 0.2, "-0.3"),
        (1e-300, "1e-300"),
        (5e-324, "5e-324"),
    ],
)
def test_constants_are_rounded_for_people(value: float, expected: str) -> None:
    assert text(Constant(value)) == expected


def test_numbers() -> None:
    assert round_constant(round_constant(1.234567890123)) == round_constant(1.234567890123) == 1.2346
    assert number_text(0.1 + 0.2) == "0.30000000000000004"


def test_names_that_repeat_or_are_empty_stay_apart() -> None:
    assert display_names(["a", "a", "", "a (2)", "\n"]) == ("a", "a (3)", "column 3", "a (2)", "column 5")
    expression = Expression(call("add", x1, call("mul", 2.0, x2), x3), ("a", "a", ""))
    assert str(expression) == "a + 2*`a (2)` + `column 3`"
    assert len(expression.sympy().free_symbols) == 3


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["x1", "x2"], ["x1", "x2"]),
        (["a b", "a_b", "a-b"], ["a_b_2", "a_b", "a_b_3"]),
        (["ｘ1", "x1"], ["x_1", "x1"]),
        (["", ""], ["x1", "x2"]),
        (["2nd", "_"], ["x_2nd", "x2"]),
        (["x", "x", "x"], ["x", "x_2", "x_3"]),
    ],
)
def test_identifiers(names: Sequence[str], expected: list[str]) -> None:
    made = identifiers(names, lambda name: re.fullmatch("[a-z][a-z0-9_]*", name) is not None)
    if names[0] == "ｘ1":
        assert made[1] == "x1" and made[0] != "x1" and made[0].isascii()
    else:
        assert list(made) == expected


def test_many_repeated_names_take_no_time() -> None:
    names = identifiers(["x"] * 50_000, str.isidentifier)
    assert len(set(names)) == 50_000
    assert len(set(display_names(["x"] * 50_000))) == 50_000


def test_a_figure_has_four_digits_and_no_power_of_ten_where_one_can_read_without():
    """Live tables and lists wrote 1.417e+05 where the table at the end of a fit wrote 141700."""
    assert [four_digits(value) for value in (141_734.0, 0.0, 999_960.0, 1e-4)] == ["141700", "0", "1e+06", "0.0001"]
    assert four_digits(math.inf) == "not finite"
