"""Laws with a column in an exponent are seen at once, and nothing else is taken for one."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.customary import customary
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node
from gmeql.formula.parsing import parse_tree
from gmeql.formula.simplify import simplify
from gmeql.network.families import FunctionSet
from gmeql.search.direct.powers.exponents import EXPONENTS, propose
from gmeql.search.direct.table import DirectTable, Effort

Ranges = dict[str, tuple[float, float]]


def proposed(table: DirectTable, functions: FunctionSet | None = None, seconds: float = 1.0) -> list[Node]:
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        return list(propose(table, functions=functions or FunctionSet(), effort=Effort(seconds), rng=rng))


def drawn(formula: str, ranges: Ranges, rows: int = 400) -> DirectTable:
    rng = np.random.default_rng(1)
    X = np.stack([rng.uniform(low, high, rows) for low, high in ranges.values()], axis=1)
    y = Expression(parse_tree(formula, tuple(ranges)), tuple(ranges))(X)
    return DirectTable(X, y, np.ones(rows))


@pytest.mark.parametrize(
    ("formula", "ranges"),
    [
        ("1 - exp(-(t/s)**k)", {"t": (0.1, 5), "s": (1, 5), "k": (0.5, 3)}),  # Weibull: on many rows 1 but for rounding
        ("(m - b)/((x/e)**h + 1) + b", {"b": (0, 1), "m": (3, 5), "x": (0.1, 9), "e": (1, 5), "h": (1, 3)}),
        ("p*r/(1 - (r + 1)**(-n))", {"p": (1, 5), "r": (0.01, 0.2), "n": (5, 30)}),
        ("p*(r/n + 1)**(n*t)", {"p": (1, 5), "r": (0.01, 0.2), "n": (1, 12), "t": (1, 10)}),
        ("a*exp(-b*exp(-c*t))", {"a": (1, 5), "b": (1, 5), "c": (0.1, 1), "t": (0, 9)}),
        ("v/((k/s)**n + 1)", {"v": (1, 5), "s": (0.1, 9), "k": (1, 5), "n": (1, 4)}),
        ("b + a*exp(-(t/s)**k)", {"b": (0, 1), "a": (1, 5), "t": (0.1, 5), "s": (1, 5), "k": (0.5, 2)}),
        ("1/(exp(k*(c - x)) + 1)", {"k": (0.1, 2), "c": (-1, 1), "x": (-3, 3)}),
        ("m*p/((m - p)*exp(-r*t) + p)", {"m": (5, 9), "p": (1, 3), "r": (0.1, 1), "t": (0, 9)}),
        ("1 - (1 - p)**n", {"p": (0.01, 0.5), "n": (1, 9)}),
        ("(y/x + 1)**(-z)", {"x": (1, 5), "y": (1, 5), "z": (0.5, 3)}),
        ("a*b**x + c", {"a": (1, 5), "b": (0.5, 2), "x": (0, 4), "c": (0, 3)}),
    ],
)
def test_a_column_in_an_exponent(formula: str, ranges: Ranges) -> None:
    table = drawn(formula, ranges)
    (root,) = proposed(table)
    assert table.error(root) < 1e-9
    assert str(Expression(customary(simplify(root)), tuple(ranges))) == formula


def test_nothing_is_seen_elsewhere(rng: np.random.Generator) -> None:
    X = rng.uniform(0.5, 3, (400, 4))
    for y in (rng.normal(size=400), rng.uniform(0.1, 0.9, 400), np.full(400, 2.0), np.sin(X[:, 0] * X[:, 1]) + X[:, 2]):
        assert proposed(DirectTable(X, y, np.ones(400))) == []


def test_noise_hides_it(rng: np.random.Generator) -> None:
    table = drawn("1 - (1 - p)**n", {"p": (0.01, 0.5), "n": (1, 9)})
    assert proposed(DirectTable(table.X, table.y + 1e-4 * rng.normal(size=400), table.weights)) == []


def test_what_may_not_be_used_is_not() -> None:
    table = drawn("1 - (1 - p)**n", {"p": (0.01, 0.5), "n": (1, 9)})
    assert proposed(table, FunctionSet(["add", "sub", "mul", "div", "sin"])) == []
    assert proposed(table, seconds=EXPONENTS.seconds / 2) == []
