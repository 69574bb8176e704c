"""What is known asked of every group's formula: one group that breaks a rule is enough."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gmeql.formula.parsing import parse_tree
from gmeql.knowledge.knowledge import Knowledge, read_knowledge
from gmeql.knowledge.of_groups import GroupsKnowledge
from gmeql.knowledge.scene import Scene

SCENE = Scene(("x",), ((0.0, 2.0),), 1.0)


def known(own: list[list[float]], **rules: object) -> GroupsKnowledge:
    (found,) = read_knowledge(["x"], **rules)
    assert found is not None
    return GroupsKnowledge.of(replace(found, scene=SCENE), 1, np.array(own))


def tree(text: str):
    return parse_tree(text, ["x", "k1", "k2"])


@pytest.mark.parametrize(("slopes", "kept"), [([1.0, 2.0], True), ([1.0, -2.0], False)])
def test_every_group_must_keep_a_constraint(slopes: list[float], kept: bool) -> None:
    asked = known([[slope, 0.0] for slope in slopes], constraints=["increasing in x"])
    assert asked.admits(tree("k1*x")) and asked.keeps(tree("k1*x")) == kept
    ((_, verdict),) = asked.verdicts(tree("k1*x"))
    assert verdict.holds == kept
    soft = known([[slope, 0.0] for slope in slopes], constraints=["soft increasing in x"])
    assert (soft.price(tree("k1*x")) == 1.0) == kept


def test_a_formula_without_own_constants_is_asked_once() -> None:
    asked = known([[1.0, 0.0]] * 5, constraints=["output >= 0"])
    assert len(list(asked.in_groups(tree("x**2")))) == 1
    assert len(list(asked.in_groups(tree("x**2 + k1")))) == 5
    assert asked.keeps(tree("x**2")) and not asked.keeps(tree("x**2 - k1"))


def test_units_of_shared_and_own_constants() -> None:
    asked = known([[2.0, 3.0]] * 2, units={"x": "s"}, target_units="m", constant_units=["m", "s"])
    root = tree("k1*x + 4.5*x**2 + k2")
    assert asked.keeps_units(root)
    assert [str(unit) for unit in asked.units_of_constants(root)] == ["m/s**2", "1"]
    assert {column: str(unit) for column, unit in asked.units_of_own(root).items()} == {1: "m/s", 2: "m"}
    plain = known([[2.0, 3.0]] * 2, units={"x": "s"}, target_units="s")
    assert not plain.keeps_units(tree("x**2 + k1")) and plain.keeps_units(tree("k1*x"))
    assert not plain.admits(tree("x**2 + k1"))


def test_held_constants_are_numbered_among_the_shared_ones() -> None:
    asked = known([[2.0, 3.0]], units={"x": "s"}, target_units="s**2")
    root = tree("k1*x**2 + 3*x**2")
    held = {tuple(asked.held_constants(root))}
    assert held == {(0, 2)}  # both exponents; the factor 3 and k1 are free
    assert isinstance(asked, Knowledge)
