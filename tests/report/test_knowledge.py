"""What the report states of units and constraints."""

from __future__ import annotations

from dataclasses import replace

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.knowledge.knowledge import read_knowledge
from gmeql.knowledge.scene import Scene
from gmeql.report.knowledge import kept_lines, unit_texts

NAMES = ("h", "t")
SCENE = Scene(NAMES, ((0.0, 1.0), (0.0, 1.0)), 1.0)


def expression(text: str) -> Expression:
    return Expression(parse_tree(text, NAMES), NAMES)


def test_units_of_constants() -> None:
    (known,) = read_knowledge(NAMES, units=["m", "s"], target_units="m", constant_units="m/s**2")
    assert unit_texts(expression("h - 4.9*t**2"), known) == ["m/s**2", "1"]
    (strict,) = read_knowledge(NAMES, units=["m", "s"], target_units="m")
    assert unit_texts(expression("h - 4.9*t**2"), strict) == ["breaks the units"] * 2
    assert unit_texts(expression("h"), None) == []


def test_how_surely_things_are_kept() -> None:
    (known,) = read_knowledge(
        NAMES,
        units=["m", "s"],
        target_units="m",
        template="f(h, t)",
        constraints=["output >= 0", "terms <= 1", "soft increasing in t"],
    )
    assert known is not None
    known = replace(known, scene=SCENE)
    assert kept_lines(expression("h**2 - 2*h*h + h**2"), known) == [
        "The units do not agree.",
        "It has the form f(h, t).",
        "output >= 0: kept on 10,000 points.",
        "terms <= 1: broken.",
        "soft increasing in t: guaranteed by interval arithmetic.",
    ]
    assert "soft increasing in t: not shown to hold." in kept_lines(expression("h - t"), known)
    assert "output >= 0: guaranteed by interval arithmetic." in kept_lines(expression("h**2"), known)
    assert kept_lines(expression("h"), None) == []
