"""A sum taken apart and written again is the same sum."""

from __future__ import annotations

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Variable
from gmeql.formula.parsing import parse_tree
from gmeql.formula.simplify import simplify
from gmeql.formula.terms import exchanged, split_sum, write_sum

NAMES = ("x", "y")


def test_constant_and_terms() -> None:
    constant, terms = split_sum(simplify(parse_tree("3*x**2 - y/x + 2", NAMES)))
    x, y = Variable(0), Variable(1)
    assert constant == 2.0 and sorted(factor for factor, _ in terms) == [-1.0, 3.0]
    assert {3.0: {x: 2.0}, -1.0: {y: 1.0, x: -1.0}} == dict(terms)
    assert split_sum(parse_tree("x - 5", NAMES)) == (-5.0, [(1.0, {x: 1.0})])
    assert split_sum(Constant(4.0)) == (4.0, [])


def test_what_is_added_is_written_first() -> None:
    constant, terms = split_sum(simplify(parse_tree("2 - y/x + 3*x**2", NAMES)))
    assert str(Expression(write_sum(constant, terms), NAMES)) == "3*x**2 + 2 - y/x"
    assert str(Expression(write_sum(-1.0, [(1.0, {Variable(0): 1.0})]), NAMES)) == "x - 1"


def test_an_exchanged_base_joins_one_that_is_there() -> None:
    x, y = Variable(0), Variable(1)
    assert exchanged({x: 2.0, y: 1.0}, y, x) == {x: 3.0}
