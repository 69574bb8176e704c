"""Outer forms: read, refused, put together; open and closed constants."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.formula.parsing import parse_tree
from gmeql.knowledge.templates import (
    NamedConstant,
    close_constants,
    open_constants,
    put_in,
    read_template,
    template_from_dict,
)

NAMES = ("x", "y", "z")


def test_functions_constants_and_bounds() -> None:
    template = read_template("a*exp(-b*f(x)) + g(y, z)", NAMES, {"a": (0, None)})
    assert template.functions == {"f": 1, "g": 2}
    assert template.constants == (NamedConstant("a", 0.0, math.inf), NamedConstant("b"))
    assert template.constants[0].clip(-3.0) == 0.0 and template.constants[1].clip(-3.0) == -3.0


def test_put_together_it_computes_the_form() -> None:
    template = read_template("a*f(x)**2 + f(y + z)*g(z)", NAMES)
    f, g = parse_tree("2*u + 1", ["u"]), parse_tree("sin(u)", ["u"])
    X = np.random.default_rng(0).uniform(1, 2, (20, 3))
    x, y, z = X.T
    found = Expression(template.compose([f, g], [Constant(3.0)]), NAMES)(X)
    assert np.allclose(found, 3 * (2 * x + 1) ** 2 + (2 * (y + z) + 1) * np.sin(z))
    half = template.compose([None, g], [Constant(3.0)])
    assert np.array_equal(Expression(template.fill(half, 0, f), NAMES)(X), found)
    assert template.uses(0) == 2 and template.uses(1) == 1 and len(template.arguments_of(0)) == 2


def test_pi_and_numbers_are_no_constants_to_fit() -> None:
    template = read_template("f(x)*pi + 3/2", NAMES)
    assert template.constants == ()
    assert float(Expression(template.compose([Variable(0)], []), NAMES)([[1.0, 0, 0]])[0]) == math.pi + 1.5


@pytest.mark.parametrize(
    ("text", "constants", "says"),
    [
        ("f(x", None, "cannot be read"),
        ("f(x) + f(x, y)", None, "1 arguments in one place"),
        ("f(g(x))", None, "no other functions"),
        ("f(a*x)", None, "no constants"),
        ("f(2)", None, "no column"),
        ("exp(x, y)", None, "does not take 2 arguments"),
        ("f(x)", {"a": (0, 1)}, "no constant of the template"),
        ("a*f(x)", {"a": (1, 0)}, "below the upper"),
        ("a*f(x)", {"a": 3}, "must be a pair"),
        ("__import__('os').system('x')", None, "not arithmetic"),
        (7, None, "must be text"),
    ],
)
def test_refusals(text: Any, constants: Any, says: str) -> None:
    with pytest.raises(ValueError) as caught:
        read_template(text, NAMES, constants)
    assert says in str(caught.value)


def test_plain_data_and_back() -> None:
    template = read_template("a*f(x) + b", NAMES, {"a": (0, 10)})
    assert template_from_dict(template.to_dict()) == template


def test_open_and_closed_constants() -> None:
    tree = parse_tree("2*u**2 + 3*u**1.5 + v", ["u", "v"])
    opened, values = open_constants(tree, 100)
    assert values == [2.0, 3.0, 1.5]  # the whole exponent is part of the structure
    assert close_constants(opened, 100, values) == tree
    assert put_in(Call("add", (Variable(0), Variable(100))), [Variable(7)]) == Call("add", (Variable(7), Variable(100)))


def test_the_derivative_of_a_free_function_is_that_of_what_it_turns_out_to_be() -> None:
    template = read_template("D(a*f(x), x) + f(y)", NAMES)
    X = np.random.default_rng(0).uniform(1, 2, (20, 3))
    f = parse_tree("u**3", ["u"])
    found = Expression(template.compose([f], [Constant(2.0)]), NAMES)(X)
    assert np.allclose(found, 6 * X[:, 0] ** 2 + X[:, 1] ** 3)
    half = template.compose([None], [Constant(2.0)])
    assert np.allclose(Expression(template.fill(half, 0, f), NAMES)(X), found)
    assert template_from_dict(template.to_dict()) == template
