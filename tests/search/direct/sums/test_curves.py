"""Sums of few terms of one column: three with constants inside, known to many digits, and no more than are needed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums.curves import terms_of_curve
from gmeql.search.direct.sums.settling import settled


def found(f: Callable[[np.ndarray], np.ndarray], low: float, high: float, error: float = 1e-12) -> list[Node] | None:
    x = np.random.default_rng(3).uniform(low, high, 300)
    return terms_of_curve(x, f(x), np.full(300, error), FunctionSet(), lambda: False)


def written(nodes: list[Node] | None) -> set[str]:
    return {str(Expression(node, ["x"])) for node in nodes or []}


def test_three_terms_with_constants_inside() -> None:
    terms = found(lambda x: -0.62 * np.exp(-0.057 * x) + 0.41 * np.log(x + 1.6) + 0.44 * np.sin(0.29 * x), 0.1, 30)
    assert len([node for node in terms or [] if not isinstance(node, Constant)]) == 3
    assert {"exp(-0.057*x)", "log(x + 1.6)"} <= written(terms)


def test_two_terms_that_hide_each_other() -> None:
    terms = found(lambda x: 0.6 / (1 + np.exp(-0.2 * (x - 3.2))) + 0.55 * np.exp(-0.0703 * x) + 0.1, 0.1, 30)
    assert written(terms) == {"exp(-0.0703*x)", "tanh(0.1*(x - 3.2))", "1"}


def test_what_hardly_changes_needs_no_offset() -> None:
    terms = found(lambda x: 3.1 * np.exp(-6.7 / x), 275, 570)
    assert written(terms) == {"exp(-6.7/x)"}


def test_nothing_and_a_constant() -> None:
    assert found(lambda x: 1e-13 * x, 1, 2) == []
    assert found(lambda x: 0 * x + 2.5, 1, 2) == [Constant(1.0)]


def test_rows_that_are_not_known_count_for_nothing() -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(0.2, 4, 300)
    errors = np.where(x < 0.5, 1.0, 1e-10)
    values = x**2.3 + np.where(x < 0.5, rng.standard_normal(300), 0.0)
    terms = terms_of_curve(x, values, errors, FunctionSet(), lambda: False)
    assert written(terms) == {"x**2.3"}


def test_constants_that_a_fit_by_normal_equations_leaves_apart_are_settled() -> None:
    x = np.random.default_rng(0).uniform(0.05, 2, 100)[:, None]
    target = 0.46 * np.sin(0.687 * x[:, 0]) + 0.3 * x[:, 0] + 0.1
    nodes = [build("sin", build("mul", Constant(0.7), Variable(0))), Variable(0), Constant(1.0)]
    terms, factors, error = settled(nodes, x, target, np.zeros((100, 0)))
    assert error < 1e-13
    assert factors[:2] == pytest.approx((0.46, 0.3), rel=1e-6)
    assert str(Expression(terms[0], ["x"])) == "sin(0.687*x)"
