"""A tree as a product: the factors multiply to its value, and the writing order is that of people."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, Variable, leaves, row_values
from gmeql.formula.products import (
    as_product,
    is_sum,
    new_terms,
    nicest_factor,
    power_of,
    split_terms,
    with_gathered_factors,
    write_product,
    writing_order,
)
from random_trees import NAMES, call, comparable, plain_constants, rows, trees

x, y, z = (Variable(i) for i in range(3))


@given(trees(constants=plain_constants))
def test_factors_multiply_to_the_value(root: Node) -> None:
    X = np.abs(rows(n=20))
    coefficient, powers = as_product(root)
    with np.errstate(all="ignore"):
        factors = [Expression(base, NAMES)(X) ** exponent for base, exponent in powers.items()]
        value = coefficient * np.prod(np.array([np.ones(len(X)), *factors]), axis=0)
    expression = Expression(root, NAMES)
    keep = comparable(expression, X) & np.isfinite(value)
    np.testing.assert_allclose(value[keep], expression(X)[keep], rtol=1e-9)


def test_factors_of_one_base_are_merged() -> None:
    root = call("div", call("mul", -2.0, call("cube", x), y), call("mul", 4.0, call("sqrt", x), call("neg", y)))
    assert as_product(root) == (0.5, {x: 2.5})
    assert as_product(call("add", x, y)) == (1.0, {call("add", x, y): 1.0})
    assert as_product(call("mul", x, y, protected=True)) == (1.0, {call("mul", x, y, protected=True): 1.0})
    assert math.isnan(as_product(call("div", x, 0.0))[0])


def test_powers_of_numbers_that_are_none() -> None:
    assert power_of(2.0, 3.0) == 8.0
    assert all(math.isnan(power_of(*pair)) for pair in ((0.0, -1.0), (1e300, 2.0), (-2.0, 0.5)))


def test_the_factor_that_leaves_most_whole_numbers() -> None:
    assert nicest_factor(0.0, [0.3, 0.1, 0.2]) == 0.1
    assert nicest_factor(2.0, [3.7]) == 2.0  # none does: the constant wins


def test_order_of_writing() -> None:
    terms = [y, call("square", x), x, call("cube", x), call("mul", y, z), call("exp", Constant(2.0))]
    assert sorted(terms, key=writing_order) == [call("cube", x), call("square", x), x, *sorted(
        [y, call("mul", y, z)], key=repr
    ), call("exp", Constant(2.0))]  # fmt: skip


@pytest.mark.parametrize("name", ["add", "sub"])
def test_sums(name: str) -> None:
    assert is_sum(call(name, x, y)) and not is_sum(call(name, x, y, protected=True)) and not is_sum(x)


@pytest.mark.parametrize(
    ("coefficient", "powers", "expected"),
    [
        (3.0, {x: 2.0, y: -1.0}, "3*x**2/y"),
        (-1.0, {x: 1.0}, "-x"),
        (-1.0, {x: -1.0}, "-1/x"),
        (2.0, {}, "2"),
        (1.0, {y: 1.0, x: 0.5}, "y*sqrt(x)"),
    ],
)
def test_products_are_written_with_what_divides_below(
    coefficient: float, powers: dict[Node, float], expected: str
) -> None:
    assert str(Expression(write_product(coefficient, powers), ("x", "y", "z"))) == expected


def test_a_sum_is_its_terms_with_their_coefficients() -> None:
    root = call("sub", call("add", call("mul", 2.0, x), call("sin", y)), call("sub", 3.0, call("mul", x, y)))
    assert split_terms(root) == [(2.0, x), (1.0, call("sin", y)), (-3.0, Constant(1.0)), (1.0, call("mul", x, y))]
    guarded = Call("add", (x, y), protected=True)
    assert split_terms(guarded) == [(1.0, guarded)]


def test_terms_that_are_not_known_yet() -> None:
    roots = [call("add", call("mul", 2.0, x), call("sin", y)), call("add", call("sin", y), call("exp", x))]
    assert new_terms(roots, [x], most=9) == [call("sin", y), call("exp", x)]
    assert new_terms(roots, [x], most=1) == [call("sin", y)]


def test_constants_of_a_product_are_gathered_and_no_value_changes():
    x, y = Variable(0), Variable(1)
    scaled = Call(
        "mul", (Constant(2.0**40), Call("mul", (Constant(0.3), Call("mul", (y, Call("mul", (Constant(2.0**-9), x)))))))
    )
    root = Call("sub", (Call("sin", (scaled,)), scaled))
    gathered = with_gathered_factors(root)
    assert [leaf.value for leaf in leaves(gathered) if isinstance(leaf, Constant)] == [0.3 * 2.0**31] * 2
    X = np.random.default_rng(0).normal(size=(100, 2))
    np.testing.assert_array_equal(row_values(gathered, ("x", "y"), X), row_values(root, ("x", "y"), X))
    assert with_gathered_factors(Call("mul", (Constant(2.0), Call("mul", (Constant(0.5), x))))) == x
    assert with_gathered_factors(Call("mul", (Constant(2.0), Constant(0.5)))) == Constant(1.0)
