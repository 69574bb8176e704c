"""Formulas that are right but for one part, and what is put there."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Variable, build
from gmeql.formula.parsing import parse_tree
from gmeql.network.families import FunctionSet
from gmeql.search.config import SearchConfig
from gmeql.search.direct.going_on.filled import plainer, propose
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.islands.portfolio import allowed_functions

FUNCTIONS = allowed_functions(SearchConfig())


def table_of(truth: str, names: str, *found: str, low: float = 0.5, high: float = 4.0) -> DirectTable:
    rng = np.random.default_rng(3)
    X = rng.uniform(low, high, (600, len(names)))
    y = Expression(parse_tree(truth, names), tuple(names))(X)
    return DirectTable(X, y, np.ones(600), found=tuple(parse_tree(text, names) for text in found))


def proposed(table: DirectTable, functions: FunctionSet = FUNCTIONS, seconds: float = 0.3) -> list:
    return list(propose(table, functions=functions, effort=Effort(seconds), rng=np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("truth", "names", "found"),
    [
        ("m*B*sin(t) - g*w*cos(p)", "mBtgwp", "m*B*sin(t) - 6.21*cos(p)"),
        ("m*B*sin(t) - g*w*cos(p)", "mBtgwp", "m*B*sin(t)"),
        ("a*exp(-b*r) - c/r**6", "abcr", "0.83*a - 0.81*a*tanh(0.64*b*r) - c/r**6"),
        ("(b/a + c)*sqrt(d) + e*d - sqrt(f)", "abcdef", "1.0033*(b/a + 0.995*c)*sqrt(d) + 1.0007*e*d - 2.07"),
        ("sqrt(a**2 + b*c/d)*e", "abcde", "e*sqrt(a**2 + 1.7)"),
        ("exp(a)*(b - c/d + log(c))", "abcd", "exp(a)*(b - 0.3)"),
    ],
)
def test_the_part_that_is_missing_is_seen(truth: str, names: str, found: str) -> None:
    table = table_of(truth, names, found)
    roots = proposed(table)
    assert roots and table.error(roots[0]) < 1e-9


def test_nothing_is_proposed_where_nothing_is_exact() -> None:
    table = table_of("a*b + c", "abc")
    noisy = DirectTable(
        table.X, table.y + np.random.default_rng(1).normal(size=600), table.weights, found=(Variable(0),)
    )
    assert proposed(noisy) == []
    assert proposed(table) == []  # no formula was found yet
    right_elsewhere = table_of("a*sin(b*c)**2 + cos(a/c)*exp(b/a)", "abc", "a + b", "a*b")
    assert proposed(right_elsewhere) == []


def test_parts_are_made_of_allowed_functions() -> None:
    table = table_of("a*sin(b) + sqrt(c)", "abc", "sqrt(c) + a")
    assert proposed(table)
    assert proposed(table, FunctionSet(("add", "sub", "mul", "div", "sqrt"))) == []


def test_constants_bent_by_what_is_missing_become_plain() -> None:
    bent = build("mul", Constant(-0.4951), build("pow", Variable(0), Constant(1.981)))
    assert plainer(bent) == build("mul", Constant(-0.5), build("square", Variable(0)))
    assert plainer(Constant(7.4)) == Constant(7.4)
