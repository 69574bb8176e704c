"""Sums, products, exponentials and logarithms of parts in normal form: known forms, values that stay."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, Variable
from gmeql.formula.normal_form import (
    as_sum,
    merge_sums,
    negated,
    never,
    normal_exponential,
    normal_logarithm,
    normal_product,
    normal_sum,
    raised,
    scaled_sum,
)
from random_trees import call

x, y = Variable(0), Variable(1)
X = np.random.default_rng(4).uniform(0.2, 3.0, (20, 2))


def always(node: Node) -> bool:
    return True


def text(node: Node) -> str:
    return str(Expression(node, ("x", "y")))


def values(node: Node) -> np.ndarray:
    return np.broadcast_to(Expression(node, ("x", "y"))(X), len(X))


def test_a_sum_comes_apart_into_what_it_was_made_of() -> None:
    terms: dict[Node, float] = {x: 2.0, call("sin", y): -3.0}
    assert as_sum(normal_sum(0.5, terms, never), never) == (0.5, terms)
    assert as_sum(Constant(4.0), never) == (4.0, {})


def test_equal_terms_merge_and_those_that_cancel_go() -> None:
    assert merge_sums([x, call("mul", 2.0, x), Constant(1.0), Constant(0.5)], never) == (1.5, {x: 3.0})
    assert merge_sums([x, negated(x, never)], never) == (0.0, {})


def test_what_all_terms_share_is_taken_out_where_that_is_shorter() -> None:
    shared = {call("mul", call("exp", x), y): 2.0, call("exp", x): 3.0}
    node = normal_sum(0.0, shared, never)
    np.testing.assert_allclose(values(node), np.exp(X[:, 0]) * (2.0 * X[:, 1] + 3.0))
    assert text(node).count("exp") == 1


def test_a_factor_is_multiplied_in() -> None:
    assert text(scaled_sum(-2.0, 1.0, {x: 3.0}, never)) == text(normal_sum(-2.0, {x: -6.0}, never))
    assert negated(negated(call("add", x, 1.0), never), never) == call("add", x, 1.0)


def test_fractional_powers_of_products_need_their_signs() -> None:
    product = call("mul", 4.0, x, y)
    assert raised(product, 0.5, always) == (2.0, {x: 0.5, y: 0.5})
    assert raised(product, 0.5, never) == (2.0, {call("mul", x, y): 0.5})
    assert raised(product, -2.0, never) == (1.0 / 16.0, {x: -2.0, y: -2.0})


def test_exponentials_join() -> None:
    assert text(normal_product(2.0, {call("exp", x): 1.0, call("exp", y): -1.0}, never)) == "2*exp(x - y)"


def test_exponents_that_are_logarithms_become_powers() -> None:
    node = normal_exponential(math.log(3.0), {call("log", x): 2.0, y: 1.0}, never)
    assert text(node) == "3*x**2*exp(y)"
    np.testing.assert_allclose(
        values(normal_exponential(0.0, {call("mul", x, call("log", y)): 1.5}, never)), X[:, 1] ** (1.5 * X[:, 0])
    )


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (call("mul", 3.0, call("exp", call("mul", 2.0, x))), lambda x, y: np.log(3.0) + 2.0 * x),
        (call("pow", x, Constant(3.0)), lambda x, y: 3.0 * np.log(x)),
        (call("mul", 2.0, x, y), lambda x, y: np.log(2.0) + np.log(x * y)),
        (call("mul", call("exp", call("add", y, call("mul", -1.0, x))), x), lambda x, y: np.log(x) + y - x),
        (call("add", call("mul", 5.0, x), call("mul", 5.0, y), 3.0), lambda x, y: np.log(x + y + 0.6) + np.log(5.0)),
    ],
)
def test_logarithms_of_products_and_powers(node: Node, expected) -> None:
    np.testing.assert_allclose(values(normal_logarithm(node, never)), expected(*X.T))


def test_overflow_is_an_arithmetic_error() -> None:
    with pytest.raises(ArithmeticError, match="overflowed"):
        normal_product(math.inf, {x: 1.0}, never)
    with pytest.raises(ArithmeticError, match="overflowed"):
        normal_sum(0.0, {x: math.inf}, never)
