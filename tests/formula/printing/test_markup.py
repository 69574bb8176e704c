"""Text, LaTeX and MathML: how they read, and that text computes the value."""

from __future__ import annotations

import ast
import html
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from exported_formulas import assert_agrees
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node, Variable
from random_trees import NAMES, call, expressions, plain_constants, rows
from thinned import examples

x1, x2, x3 = (Variable(i) for i in range(3))


def test_exact_text_keeps_digits_order_and_protection() -> None:
    exact = lambda root: Expression(root, NAMES).exact()  # noqa: E731
    assert exact(call("mul", 1.2000000001, call("div", x2, x1))) == "1.2000000001*(x2/x1)"
    assert exact(call("add", x1, call("add", x2, x3))) == "x1 + (x2 + x3)"
    assert exact(call("div", call("sqrt", x1, protected=True), x2, protected=True)) == (
        "protected_div(protected_sqrt(x1), x2)"
    )
    assert exact(call("sin", x1, protected=True)) == "sin(x1)"  # its protected form is the natural one


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (call("div", call("mul", 1.2, x2), x1), r"\frac{1.2\, x_{2}}{x_{1}}"),
        (call("sqrt", call("add", 1.0, x1)), r"\sqrt{1 + x_{1}}"),
        (call("square", call("sin", x1)), r"\sin^{2}\left(x_{1}\right)"),
        (call("mul", 1.5e-7, x1), r"1.5 \cdot 10^{-7}\, x_{1}"),
        (call("mul", x1, call("pow", 2.0, x2)), r"x_{1} \cdot 2^{x_{2}}"),
        (call("exp", call("neg", x1)), r"e^{-x_{1}}"),
        (call("abs", x1), r"\left|x_{1}\right|"),
        (call("square", call("add", x1, x2)), r"\left(x_{1} + x_{2}\right)^{2}"),
        (call("square", call("exp", x1)), r"\left(e^{x_{1}}\right)^{2}"),
        (call("asin", x1), r"\arcsin\left(x_{1}\right)"),
        (call("inv", call("add", x1, x2)), r"\frac{1}{x_{1} + x_{2}}"),
        (call("pow", 1e-9, x1), r"\left(1 \cdot 10^{-9}\right)^{x_{1}}"),
    ],
)
def test_latex(root: Node, expected: str) -> None:
    assert Expression(root, NAMES).latex() == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("x", "x"),
        ("x1", "x_{1}"),
        ("m_0", "m_{0}"),
        ("v_max", r"v_{\mathrm{max}}"),
        ("alpha", r"\alpha"),
        ("theta2", r"\theta_{2}"),
        ("mass", r"\mathrm{mass}"),
        ("temp12", r"\mathrm{temp}_{12}"),
        ("50%_$&#", r"\mathrm{50\%\_\$\&\#}"),
        (r"\input{/etc/passwd}", r"\mathrm{\backslash input\{/etc/passwd\}}"),
        ("<b>", r"\mathrm{\lt b\gt }"),
        ("a b", r"\mathrm{a\ b}"),
    ],
)
def test_latex_names(name: str, expected: str) -> None:
    assert Expression(x1, (name,)).latex() == expected


def test_latex_tells_look_alike_names_apart() -> None:
    assert Expression(call("add", x1, x2), ("x1", "x_1")).latex() == r"x_{1} + \mathrm{x\_1}"


def test_names_are_shown_as_given() -> None:
    names = ("petal length (cm)", "mass", "Größe", "<b>", "=1+1", "x`y", "temp °C")
    shown = str(Expression(call("add", *(Variable(i) for i in range(len(names)))), names))
    assert shown == "`petal length (cm)` + mass + Größe + `<b>` + `=1+1` + `x``y` + `temp °C`"
    for name in names:
        mathml = Expression(x1, (name,)).export("mathml")
        assert "".join(ElementTree.fromstring(mathml).itertext()) == name
        assert html.escape(name) in mathml


class TextValue(ast.NodeVisitor):
    """Value of our text, whose grammar is that of Python, without running it."""

    operations: dict[type, Callable[..., Any]] = {  # noqa: RUF012
        ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide, ast.Pow: np.power,
    }  # fmt: skip
    words = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}  # noqa: RUF012

    def __init__(self, columns: dict[str, np.ndarray]) -> None:
        self.columns = columns

    def visit_Expression(self, node: ast.Expression) -> Any:
        return self.visit(node.body)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        return self.operations[type(node.op)](self.visit(node.left), self.visit(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        assert isinstance(node.op, ast.USub)
        return -self.visit(node.operand)

    def visit_Call(self, node: ast.Call) -> Any:
        assert isinstance(node.func, ast.Name)
        return getattr(np, self.words.get(node.func.id, node.func.id))(*map(self.visit, node.args))

    def visit_Name(self, node: ast.Name) -> Any:
        return self.columns[node.id]

    def visit_Constant(self, node: ast.Constant) -> Any:
        return np.float64(node.value)


def text_value(written: str, X: np.ndarray) -> Any:
    columns = {name: X[:, i] for i, name in enumerate(NAMES)}
    with np.errstate(all="ignore"):
        return TextValue(columns).visit(ast.parse(written, mode="eval"))


@examples(150)
@given(expressions(constants=plain_constants, protected=False))
def test_text_computes_the_value(expression: Expression) -> None:
    X = rows()
    # constants of few digits stay as they are, so that the rounded text computes the same
    assert_agrees(expression, text_value(str(expression), X), X)
    assert_agrees(expression, text_value(expression.exact(), X), X)


@given(expressions(protected=False))
def test_exact_text_computes_the_value(expression: Expression) -> None:
    assert_agrees(expression, text_value(expression.exact(), rows()), rows())


def test_two_words_in_a_product_have_a_sign_between_them() -> None:
    names = ("speed", "grip", "x")
    product = Expression(call("mul", 2.0, x1, x2, call("sin", x3)), names)
    assert product.latex() == r"2\, \mathrm{speed} \cdot \mathrm{grip}\, \sin\left(x\right)"
    mathml = product.export("mathml")
    assert "<mi>speed</mi><mo>&#xB7;</mo><mi>grip</mi><mo>&#x2062;</mo>" in mathml
    squares = Expression(call("mul", call("square", x1), call("square", x2)), names)
    assert squares.latex() == r"\mathrm{speed}^{2} \cdot \mathrm{grip}^{2}" and "&#xB7;" in squares.export("mathml")
    letters = Expression(call("mul", x1, x2), ("a", "b"))
    assert letters.latex() == r"a\, b" and "&#xB7;" not in letters.export("mathml")
