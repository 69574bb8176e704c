"""Formula text is read without being run."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from hypothesis import given

from gmeql.formula.canonical import evaluate
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node, Variable, leaves, used_columns
from gmeql.formula.parsing import FIRST_CALL, FIRST_NAME, parse_formula, parse_open_form, parse_tree
from random_trees import call, comparable, expressions, plain_constants, rows

a, b = Variable(0), Variable(1)
NAMES = ["x1", "x2", "gamma", "I", "E_n"]


def read(text: str) -> sympy.Expr:
    return parse_formula(text, NAMES)


@pytest.mark.parametrize(
    "text, value",
    [
        ("1/2*x1", 0.5 * 0.7),
        ("-x1**2", -(0.7**2)),
        ("x1 ** (-4)", 0.7**-4),
        ("2*pi*x1/E", 2 * np.pi * 0.7 / np.e),
        ("1/(gamma-1)*I", 1.4 / (2.5 - 1)),
        ("E_n*tanh(x1)+asin(x1)-arccos(x1)", 3.1 * np.tanh(0.7) + np.arcsin(0.7) - np.arccos(0.7)),
        ("log(x2)+ln(x2)+sqrt(x2)+abs(-x2)", 2 * np.log(1.3) + np.sqrt(1.3) + 1.3),
        ("harmonic(x1)", float(sympy.harmonic(sympy.Float(0.7)))),
        ("x1**x2", 0.7**1.3),
    ],
)
def test_reads_and_evaluates(text: str, value: float) -> None:
    columns = {"x1": 0.7, "x2": 1.3, "gamma": 2.5, "I": 1.4, "E_n": 3.1}
    assert evaluate(read(text), columns) == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize(
    "text",
    [
        "9**9**9**9",
        "1.0001**(9**9)",
        "exp(exp(exp(9)))",
        "harmonic(10**9)",
        "__import__('os').system('true')",
        "x1.__class__",
        "(lambda: 1)()",
        "[1][0]",
        "f'{x1}'",
        "x1 if x2 else 1",
        "sin(x1, x2)",
        "sin(x=x1)",
        "x1^2",
        "1/0",
        "sqrt(-1)",
        "1e999",
        "True",
        "'x1'",
        "unknown + 1",
        "gamma(x1)",
        "-" * 9000 + "x1",
        "(" * 500 + "x1" + ")" * 500,
        "x1 +" * 4000 + "x1",
        "",
    ],
)
def test_refuses_what_is_not_arithmetic(text: str) -> None:
    with pytest.raises(ValueError, match="formula|harmonic"):
        read(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a*sin(b)", call("mul", a, call("sin", b))),
        ("`flow rate`^2/b", call("div", call("pow", Variable(2), 2.0), b)),
        ("-a + -3", call("add", call("mul", -1.0, a), -3.0)),
        ("+a", a),
        ("ln(a)", call("log", a)),
        ("9**9**9", call("pow", 9.0, call("pow", 9.0, 9.0))),  # read, never computed
    ],
)
def test_trees_are_read_as_written(text: str, expected: Node) -> None:
    assert parse_tree(text, ["a", "b", "flow rate"]) == expected


@given(expressions(constants=plain_constants, protected=False))
def test_printed_formulas_read_back(expression: Expression) -> None:
    again = expression.with_root(parse_tree(str(expression), expression.names))
    keep = comparable(expression, rows())
    np.testing.assert_allclose(again(rows())[keep], expression(rows())[keep], rtol=1e-9)


def test_names_of_any_kind_read_back() -> None:
    names = ("<b>", "x`y", "a ^ b", "=1+1", "class", "lambda", "None", "sin", "column_in_backticks_0")
    expression = Expression(call("add", *(Variable(i) for i in range(len(names)))), names)
    assert parse_tree(expression.exact(), names).size == 2 * len(names) - 1
    *known, _ = range(len(names))  # the last hides behind the first
    assert used_columns(parse_tree(expression.exact(), names)) == tuple(known)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q", "there is no column 'q'; columns are a, b"),
        ("pi*a", "there is no column 'pi'"),
        ("sine(a)", "'sine' is not a function"),
        ("mul(a)", "'mul' does not take one argument"),
        ("a +", r"'a \+' cannot be read \(invalid syntax\); write it like"),
        ("`a b`[0]", "contains '`a b`\\[0\\]'"),
        ("1e999*a", "numbers up to"),
        ("sin(" * 201 + "a" + ")" * 201, "levels deep|cannot be read"),
    ],
)
def test_what_is_no_tree_says_why(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_tree(text, ["a", "b", "a b"])


def test_open_forms_hold_functions_and_names() -> None:
    form = parse_open_form("a*sin(b*f(x, `flow rate`)) + a", ["x", "flow rate"])
    assert form.names == ("a", "b") and form.calls == (("f", (Variable(0), Variable(1))),)
    found = {leaf.index for leaf in leaves(form.root) if isinstance(leaf, Variable)}
    assert found == {FIRST_CALL, FIRST_NAME, FIRST_NAME + 1}
    with pytest.raises(ValueError, match="no other functions"):
        parse_open_form("f(g(x))", ["x"])


def test_d_is_the_derivative_by_a_column() -> None:
    found = Expression(parse_tree("D(x1**2*sin(x2), x1) + D(D(x1**3, x1), x1)", ["x1", "x2"]), ("x1", "x2"))
    X = np.random.default_rng(0).uniform(0.5, 2.0, (10, 2))
    assert np.allclose(found(X), 2 * X[:, 0] * np.sin(X[:, 1]) + 6 * X[:, 0])
    assert str(Expression.from_dict(found.to_dict())) == str(found) and "D(" not in str(found)
    assert np.allclose(found.diff("x1")(X), 2 * np.sin(X[:, 1]) + 6)


@pytest.mark.parametrize("text", ["D(x1)", "D(x1, 2)", "D(x1, x1 + x2)", "D(x1, x2, x1)"])
def test_a_d_that_says_not_what_by_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="'D' does not take|the column to differentiate by"):
        parse_tree(text, ["x1", "x2"])
