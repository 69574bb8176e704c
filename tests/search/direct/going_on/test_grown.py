"""Constants that hide a column are known by the residual, under noise too; nothing grows where there is nothing to grow by."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.network.families import FunctionSet
from gmeql.search.direct.going_on.grown import propose
from gmeql.search.direct.table import DirectTable, Effort

NAMES = ("A", "k", "x", "w")


def proposed(law: str, near: str, noise: float, low: float = 0.5, functions: FunctionSet | None = None) -> tuple:
    rng = np.random.default_rng(2)
    X = rng.uniform(low, 3, (800, len(NAMES)))
    truth, root = Expression(parse_tree(law, NAMES), NAMES)(X), parse_tree(near, NAMES)
    y = truth + noise * truth.std() * rng.standard_normal(800)
    table = DirectTable(X, y, np.ones(800), found=(root,))
    table = DirectTable(X, y, np.ones(800), unexplained=table.error(root), found=(root,))
    roots = list(propose(table, functions=functions or FunctionSet(), effort=Effort(0.5), rng=rng))
    return [np.std(Expression(one, NAMES)(X) - truth) / truth.std() for one in roots], roots


@pytest.mark.parametrize(
    ("law", "near", "low"),
    [
        ("A*cos(k*x)", "1.8*cos(k*x)", 0.5),  # a factor before all,
        ("A*cos(k*x)", "cos(k*x)", 0.5),  # which need not be written,
        ("sin(k*x)*exp(-A*w)", "sin(k*x)*exp(-2.1*w)", 0.5),  # inside a function,
        ("A**2*sin(k*x)/w", "3*sin(k*x)", 0.5),  # two of them, with powers,
        ("A*cos(k*x) + w", "0.9*cos(k*x) + w", -3.0),  # and of both signs
    ],
)
def test_columns_take_the_place_of_constants_in_noise(law: str, near: str, low: float) -> None:
    (error, *_), _ = proposed(law, near, 0.1, low)
    assert error < 0.02


def test_nothing_grows_by_chance() -> None:
    assert proposed("A*cos(k*x)", "A*cos(k*x)", 0.2)[1] == []
    assert proposed("A*cos(k*x)", "1.8*cos(k*x)", 0.1, functions=FunctionSet(["add", "cos"]))[1] == []
