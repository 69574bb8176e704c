"""SymPy objects: what they are made of, and that they compute the value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from exported_formulas import assert_agrees
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node, Variable
from gmeql.formula.parsing import parse_tree
from gmeql.formula.printing.sympy import to_drawing, to_sympy
from random_trees import NAMES, all_parts_finite, call, expressions, plain_constants, rows
from thinned import examples

x1, x2, x3 = (Variable(i) for i in range(3))


@examples(100)
@given(expressions(protected=False))
def test_sympy_computes_the_value(expression: Expression) -> None:
    check_sympy(expression)


@given(expressions(constants=plain_constants))
def test_sympy_of_protected_operators_computes_the_value(expression: Expression) -> None:
    check_sympy(expression)


def check_sympy(expression: Expression) -> None:
    import sympy

    X = rows()
    X = X[all_parts_finite(expression, X)]
    form = expression.sympy()
    if form.has(sympy.nan, sympy.zoo, sympy.oo):
        assert len(X) == 0 or expression.is_protected  # a branch that is never taken may be infinite
        return
    with np.errstate(all="ignore"):
        values = sympy.lambdify(sympy.symbols("x1 x2 x3"), form, "numpy")(*X.T)
    assert_agrees(expression, values, X)


def test_sympy_computes_protected_forms_inside_others() -> None:
    def guarded(operator: str, *args: Node | float) -> Node:
        return call(operator, *args, protected=True)

    inner = guarded("add", x3, guarded("div", x1, x2))
    root = guarded("add", guarded("mul", 1.1, guarded("pow6", x1)), guarded("div", guarded("square", x2), inner))
    expression = Expression(root, NAMES)
    check_sympy(expression)  # spelled out, the conditions of the outer quotient are more than lambdify can print
    at = {"x1": 2.0, "x2": 3.0, "x3": 0.5}
    np.testing.assert_allclose(float(expression.sympy().evalf(subs=at)), expression([list(at.values())])[0], rtol=1e-12)


def test_sympy_objects() -> None:
    import sympy

    a, b, c = sympy.symbols("x1 x2 x3")
    form = lambda root: Expression(root, NAMES).sympy()  # noqa: E731
    assert form(call("square", x1)) == a**2
    assert form(call("div", x1, x2)) == a / b
    assert form(call("sub", x1, x2)) == a - b
    assert form(call("pow", x1, 0.5)) == sympy.sqrt(a)
    assert form(call("pow", x1, -1.5)) == a ** sympy.Rational(-3, 2)
    assert form(call("pow", x1, 3.0)).args[1] == sympy.Integer(3)
    assert form(call("mul", 2.0, x1)) == 2 * a
    assert form(call("add", x1, 0.1)) == a + sympy.Float(0.1)
    assert float(form(call("mul", 0.1 + 0.2, x1)).args[0]) == 0.1 + 0.2
    assert form(call("abs", x3)) == sympy.Abs(c)
    assert form(x1) == sympy.Symbol("x1") and form(x1).assumptions0 == sympy.Symbol("x1").assumptions0
    rounded = to_sympy(Expression(call("mul", 1.234567890123, x1)), rounded=True)
    assert rounded == sympy.Float(1.2346) * a


def test_sympy_does_not_expand_towers_of_powers() -> None:
    import sympy

    def tower(levels: int) -> Expression:
        node: Node = x1
        for _ in range(levels):
            node = call("pow", call("mul", 3.0, node), 60.0)
        return Expression(node)

    low = tower(2).sympy()
    assert float(low.subs("x1", 0.3)) == pytest.approx(tower(2)([[0.3]])[0], rel=1e-9)
    high = tower(40).sympy()  # 3**(60**40) as an integer would never end
    for form in (low, high):
        assert all(abs(number) <= 60**40 for number in form.atoms(sympy.Integer))  # exponents alone are whole


def test_sympy_of_constants_that_are_not_finite() -> None:
    import sympy

    assert Expression(call("add", x1, call("log", -1.0))).sympy() is sympy.nan
    assert Expression(call("div", 1.0, 0.0)).sympy() == sympy.oo


def test_a_drawing_leaves_words_alone() -> None:
    names = ("sidebar", "x1", "Kanal_online", "theta", "v_max")
    total = Expression(call("add", *(Variable(i) for i in range(2))), names)
    for i in range(2, 5):
        total = total.with_root(call("add", total.root, Variable(i)))
    drawn = to_drawing(total.with_root(call("div", total.root, Variable(1))), "y_hat_total")
    assert "Kanal_online" in drawn and "sidebar" in drawn and "y_hat_total" in drawn
    assert "x₁" in drawn and "θ" in drawn and "vₘₐₓ" in drawn
    assert len(drawn.split("\n")) == 3


def test_a_drawing_has_the_names_of_the_table() -> None:
    """`x+1` was drawn as x with index 1."""
    total = Expression(call("add", Variable(0), call("mul", 2.0, Variable(1))), ("x+1", "petal length (cm)"))
    assert to_drawing(total, "y") == "y = `x+1` + 2⋅`petal length (cm)`"


def test_a_drawing_is_arranged_as_the_text_is() -> None:
    """A peak was drawn around `w/22 - 266/11`, a step as `1 + 190*exp(-0.862*t)`."""
    for text, drawn in (
        ("99.3/(1 + exp(0.109*(45.2 - x)))", "0.109⋅(45.2 - x)"),
        ("40.1*exp(-((x - 532)/22)**2) + 2.98", "⎛x - 532⎞"),
        ("3.1 - 0.4*cos(6.28*x) + 0.0096*x", "y = 3.1 - 0.4⋅cos(6.28⋅x) + 0.0096⋅x"),
    ):
        assert drawn in to_drawing(Expression(parse_tree(text, ("x",)), ("x",)), "y")
