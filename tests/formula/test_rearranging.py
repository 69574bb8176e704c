"""Products in their shortest form: known forms, and values that stay."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node, Variable, tree_complexity
from gmeql.formula.normal_form import never, normal_product
from gmeql.formula.products import Factors
from gmeql.formula.rearranging import LARGEST_REARRANGED, shortest_product
from random_trees import call

x, y = Variable(0), Variable(1)
X = np.random.default_rng(4).uniform(0.2, 3.0, (20, 2))


def always(node: Node) -> bool:
    return True


def values(node: Node) -> np.ndarray:
    return Expression(node, ("x", "y"))(X)


@pytest.mark.parametrize(
    ("powers", "positive", "expected"),
    [
        ({call("add", call("div", x, y), 1.0): 1.0, y: 1.0}, never, "x + y"),
        ({call("add", x, y): 0.5, x: -0.5}, always, "sqrt(y/x + 1)"),
        ({call("add", x, y): 1.0, x: 1.0}, never, "x*(x + y)"),
        ({call("add", call("div", y, x), 1.0): -1.0, x: -1.0}, never, "1/(x + y)"),
    ],
    ids=["cleared", "taken under the root", "as it was", "cleared below"],
)
def test_known_forms(powers: Factors, positive, expected: str) -> None:
    plain, short = normal_product(1.0, powers, positive), shortest_product(1.0, powers, positive)
    assert str(Expression(short, ("x", "y"))) == expected
    assert tree_complexity(short) <= tree_complexity(plain)
    np.testing.assert_allclose(values(short), values(plain))


def test_a_root_stays_where_signs_are_not_known() -> None:
    powers: Factors = {call("add", x, y): 0.5, x: -0.5}
    assert shortest_product(1.0, powers, never) == normal_product(1.0, powers, never)


def test_long_products_are_written_as_they_come() -> None:
    long = call("add", *(call("sin", call("mul", float(k + 2), x)) for k in range(LARGEST_REARRANGED)))
    powers: Factors = {call("add", call("div", long, y), 1.0): 1.0, y: 1.0}
    assert shortest_product(1.0, powers, never) == normal_product(1.0, powers, never)
