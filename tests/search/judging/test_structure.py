"""What structures cost, and which formulas are sums of columns."""

from __future__ import annotations

import math

import pytest

from gmeql.formula.limits import LAW_EXPONENTS
from gmeql.formula.nodes import Constant, Node, Variable, build, tree_complexity
from gmeql.search.judging.structure import POWER_LAW_NATS, linear_columns, power_columns, structure_nats

x, y = Variable(0), Variable(1)
sum_of_both = build("add", Constant(0.3), build("mul", Constant(2.5), x), build("mul", Constant(-1.5), y))


@pytest.mark.parametrize(
    ("root", "columns"),
    [
        (Constant(2.0), set()),
        (x, {0}),
        (sum_of_both, {0, 1}),
        (build("div", build("neg", sum_of_both), Constant(3.0)), {0, 1}),
        (build("mul", Constant(2.0), build("sub", x, y)), {0, 1}),
        (build("mul", x, y), None),
        (build("div", Constant(1.0), x), None),
        (build("add", x, build("sin", y)), None),
        (build("pow", x, Constant(2.0)), None),
    ],
)
def test_sums_of_columns_are_told_from_other_formulas(root: Node, columns: set[int] | None) -> None:
    assert linear_columns(root) == columns


def test_a_sum_costs_what_names_its_columns_where_that_is_less() -> None:
    assert structure_nats(sum_of_both, 4, node_cost=1.0) == pytest.approx(math.log(6) + math.log(5))
    longer = build("add", sum_of_both, build("mul", Constant(2.0), Variable(2)))
    assert structure_nats(longer, 4, node_cost=1.0) == structure_nats(sum_of_both, 4, node_cost=1.0)
    assert structure_nats(sum_of_both, 10_000, node_cost=1.0) == tree_complexity(sum_of_both)
    assert structure_nats(build("sin", x), 4, node_cost=1.5) == 1.5 * tree_complexity(build("sin", x))


@pytest.mark.parametrize(
    ("root", "columns"),
    [
        (build("mul", Constant(2.0), x, y), {0, 1}),
        (build("div", build("square", x), build("mul", Constant(3.0), y)), {0, 1}),
        (build("sqrt", build("mul", x, y)), {0, 1}),
        (build("pow", x, Constant(1.5)), {0}),
        (build("pow", x, Constant(1.4)), None),
        (build("pow", x, Constant(6.0)), None),
        (build("mul", x, build("sin", y)), None),
        (build("sin", x), None),
        (build("add", build("mul", x, y), Constant(1.0)), None),
        (build("sqrt", build("add", x, y)), None),
        (Constant(2.0), None),
    ],
)
def test_power_laws_are_told_from_other_formulas(root: Node, columns: set[int] | None) -> None:
    assert power_columns(root) == columns


def test_a_power_law_costs_what_names_its_columns_and_exponents_where_that_is_less() -> None:
    law = build("div", build("mul", Constant(0.5), build("square", x), y), build("mul", Variable(2), Variable(3)))
    exponents = 4 * math.log(len(LAW_EXPONENTS))
    stated = math.log(5) + math.log(math.comb(4, 2)) + exponents + POWER_LAW_NATS
    assert structure_nats(law, 4, node_cost=2.0) == pytest.approx(stated)
    assert structure_nats(law, 10_000, node_cost=1.0) == tree_complexity(law)
    odd = build("div", law, build("exp", build("sqrt", Variable(2))))
    assert structure_nats(odd, 4, node_cost=2.0) == 2.0 * tree_complexity(odd) > stated
