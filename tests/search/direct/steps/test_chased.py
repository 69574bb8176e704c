"""What steps leave is read as a function of a sum of few out of very many terms."""

from __future__ import annotations

import numpy as np
import pytest

from drawn_tables import Function, drawn_table
from gmeql.formula.nodes import build, Constant, Variable
from gmeql.network.families import FunctionSet
from gmeql.search.direct.steps.chased import Chased
from gmeql.search.direct.steps.nested import Steps
from gmeql.search.direct.table import DirectTable


def chased(f: Function, functions: FunctionSet | None = None) -> tuple[DirectTable, Chased]:
    table, given = drawn_table(f, 800, 6, np.random.default_rng(1)), functions or FunctionSet()
    return table, Chased(table.X, given, Steps(table.X, given).products, lambda: False)


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b, c: np.sqrt(a**3 * b - 2.3 * c**4 * b / a),
        lambda a, b, c: -np.log(a**3 * b - 2.3 * c**2 * b),
        lambda a, b, c: 1 / (1.7 * a**3 * b - c**2 / b + 3),
    ],
)
def test_functions_of_sums_of_rare_terms(f: Function) -> None:
    table, chase = chased(f)
    assert min(table.error(root) for root in chase.formulas(table.y, float(np.sign(table.y.mean())))) < 1e-9
    _, without = chased(f, FunctionSet(["add", "mul", "sin"]))
    assert list(without.formulas(table.y, 1.0)) == []


def test_a_root_beside_terms_of_any_kind() -> None:
    table, chase = chased(lambda a, b, c: a / b - 0.7 * c - np.sqrt(a**3 / b + 2.1 * c**2 + 9))
    a, b, c = table.X.T
    beside = [(Constant(1.0), np.ones(len(a))), (Variable(2), c), (build("div", Variable(0), Variable(1)), a / b)]
    (root,) = chase.beside_root(table.y, beside)
    assert table.error(root) < 1e-9
