"""Whether formulas keep units: known laws do, changed ones do not; constants get the units that make them do."""

from __future__ import annotations

import pytest

from gmeql.formula.nodes import Call, Constant, Node, Variable
from gmeql.formula.parsing import parse_tree
from gmeql.knowledge.consistency import UnitRules, rules_from_dict
from gmeql.knowledge.units import read_unit

NAMES = ("m", "v", "h", "t")
COLUMNS = tuple(map(read_unit, ("kg", "m/s", "m", "s")))


def rules(target: str, *allowed: str) -> UnitRules:
    return UnitRules(COLUMNS, read_unit(target), tuple(map(read_unit, allowed)))


def tree(text: str) -> Node:
    return parse_tree(text, NAMES)


@pytest.mark.parametrize(
    ("text", "target", "keeps"),
    [
        ("0.5*m*v**2", "J", True),
        ("m*v", "J", False),
        ("m*v**2*(1 + h/(v*t))", "J", True),
        ("m*v**2 + 3", "J", False),
        ("m*v**2*sin(h)", "J", False),
        ("m*v**2*sin(h/(v*t))", "J", True),
        ("sqrt(h/v*t)", "s", True),
        ("abs(h) - v*t", "m", True),
        ("(h/v)**1.5/sqrt(t)", "s", True),
        ("(h/v)**(3/2)/t**(1/2)", "s", True),
        ("(h/v)**(3/2)/t**(1/3)", "s", False),
        ("(h/v)**1.4999*t**-0.4999", "s", True),
        ("(h/v)**1.4999*t**-0.4", "s", False),
        ("2**(h/(v*t))", "1", True),
        ("2**h", "1", False),
        ("h**(h/(v*t))", "m", False),
        ("exp(-t*v/h)", "1", True),
        ("1/h", "m", False),
        ("3", "1", True),
        ("3", "m", False),
    ],
)
def test_what_keeps_the_units(text: str, target: str, keeps: bool) -> None:
    assert rules(target).keeps(tree(text)) is keeps


def test_allowed_units_of_constants_count_with_their_powers() -> None:
    fall = rules("m/s", "m/s**2")
    assert fall.keeps(tree("4.43*sqrt(h)")) and fall.keeps(tree("9.81*t + v"))
    assert not fall.keeps(tree("4.43*h")) and not fall.keeps(tree("9.81*m"))
    assert UnitRules(COLUMNS, read_unit("m/s"), None).keeps(tree("4.43*h + 2*sin(3*m)"))


def test_units_of_constants() -> None:
    fall = rules("m/s", "m/s**2")
    found = fall.units_of_constants(tree("4.43*sqrt(h)*(1 + 0.1*h/(v*t)) + 9.81*t**1.0"))
    assert [str(unit) for unit in found] == ["m**(1/2)/s", "1", "1", "m/s**2", "1"]
    any_unit = UnitRules(COLUMNS, read_unit("m/s"), None)
    assert [str(u) for u in any_unit.units_of_constants(tree("4.43*h + 2*sin(3*m)"))] == ["1/s", "m/s", "1/kg"]
    assert rules("J").units_of_constants(tree("0.5*m*v**2")) == (read_unit("1"),) * 2
    assert rules("J").units_of_constants(tree("0.5*m*v**3")) == (None, None)


def test_with_the_units_found_every_equation_holds() -> None:
    any_unit = UnitRules(COLUMNS, read_unit("J"), None)
    root = tree("3*m*v**2 + 2*h*exp(-0.1*t) + 7")
    units = any_unit.units_of_constants(root)
    # a table in which every constant is a column with the unit found keeps the units strictly
    names = [*NAMES, "a", "b", "c", "d"]
    free = parse_tree("a*m*v**2 + b*h*exp(c*t) + d", names)
    a, _, b, c, d = units
    assert UnitRules((*COLUMNS, a, b, c, d), read_unit("J")).keeps(free)  # type: ignore[arg-type]


def test_a_target_that_cannot_be_made_names_the_equation() -> None:
    with pytest.raises(ValueError, match="for kg: 0 = 1"):
        UnitRules(COLUMNS[1:3], read_unit("kg")).check_target(["v", "h"])
    UnitRules(COLUMNS[1:3], read_unit("kg"), (read_unit("kg"),)).check_target(["v", "h"])


def test_parts_and_numbers() -> None:
    own = rules("J")
    assert own.is_number(tree("h/(v*t)")) and not own.is_number(tree("h"))
    assert own.is_sound(tree("h + v*t")) and not own.is_sound(tree("h + t"))


def test_plain_data_and_back() -> None:
    for own in (rules("J", "m/s**2"), UnitRules(COLUMNS, read_unit("m**(1/2)"), None)):
        assert rules_from_dict(own.to_dict()) == own


def test_operators_of_users_want_numbers() -> None:
    assert not rules("m").keeps(Call("tanh", (Variable(2),)))
    assert rules("1").keeps(Call("tanh", (Call("mul", (Constant(2.0), Call("div", (Variable(2), Variable(2))))),)))
