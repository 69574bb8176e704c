"""Spreadsheet formulas: cells, limits, and that a spreadsheet computes the value."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from exported_formulas import assert_agrees
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node, Variable
from gmeql.formula.parsing import parse_tree
from gmeql.formula.printing.spreadsheet import cells_used, to_spreadsheet
from random_trees import NAMES, call, expressions, rows
from thinned import examples

x1, x2, x3 = (Variable(i) for i in range(3))


def test_spreadsheet_cells_and_signs() -> None:
    sheet = lambda root, names=NAMES: Expression(root, names).export("spreadsheet")  # noqa: E731
    assert sheet(call("neg", call("square", x1))) == "=-(A2^2)"
    assert sheet(call("sub", x1, call("square", x2))) == "=A2-B2^2"
    assert sheet(call("log", call("mul", 1.5e-7, x1))) == "=LN(1.5E-07*A2)"
    wide = tuple(f"x{i}" for i in range(800))
    assert [sheet(Variable(i), wide) for i in (25, 26, 701, 702)] == ["=Z2", "=AA2", "=ZZ2", "=AAA2"]


def test_spreadsheet_reads_days_and_categories_from_the_sheets_own_columns() -> None:
    root = parse_tree("2*a + 3*b + c", ("a", "b", "c"))
    formula = Expression(root, ("day since 2024-01-31", 'kind=a "b"', "y2"))
    sheet = ["y2", "kind", "day"]
    assert to_spreadsheet(formula, sheet) == '=2*(C2-DATE(2024,1,31))+3*N(B2="a ""b""")+A2'
    assert cells_used(formula, sheet) == {"C2": "day", "B2": "kind", "A2": "y2"}
    with pytest.raises(ValueError, match="the sheet has no column 'day since 2024-01-31'"):
        to_spreadsheet(formula, ["y2", "kind", "date"])


def test_spreadsheet_limits_are_stated() -> None:
    with pytest.raises(ValueError, match="too long for a spreadsheet"):
        Expression(call("add", *[call("mul", 1.23456789, x1)] * 1000)).export("spreadsheet")
    nested: Node = x1
    for _ in range(70):
        nested = call("sin", nested)
    with pytest.raises(ValueError, match="nested too deeply"):
        Expression(nested).export("spreadsheet")
    protected: Node = x1
    for _ in range(30):
        protected = call("div", protected, protected if protected is x1 else x2, protected=True)
    with pytest.raises(ValueError, match="too long for a spreadsheet"):
        Expression(protected).export("spreadsheet")
    with pytest.raises(ValueError, match="16384 columns"):
        Expression(Variable(20_000)).export("spreadsheet")


class Sheet:
    """A spreadsheet's reading of a formula, its odd precedence included: a sign binds tighter than ^, ^ goes left."""

    functions: dict[str, Callable[..., Any]] = {
        "IF": np.where, "AND": np.logical_and, "OR": np.logical_or, "MIN": np.minimum, "MAX": np.maximum,
        "LN": np.log, "ASIN": np.arcsin, "ACOS": np.arccos, "ATAN": np.arctan, "NA": lambda: np.nan,
    } | {name: getattr(np, name.lower()) for name in "SIN COS SQRT EXP TANH ABS SIGN".split()}  # fmt: skip

    def __init__(self, formula: str, X: np.ndarray) -> None:
        assert formula[0] == "="
        self.tokens = re.findall(r"\d+\.?\d*(?:E[+-]?\d+)?|[A-Z]+\d+|[A-Z]+|<=|[-+*/^(),<]", formula[1:])
        assert "".join(self.tokens) == formula[1:]
        self.X = X

    def value(self) -> Any:
        with np.errstate(all="ignore"):
            result = self.comparison()
        assert not self.tokens
        return result

    def take(self, *expected: str) -> str | None:
        return self.tokens.pop(0) if self.tokens and self.tokens[0] in expected else None

    def chain(self, inner: Callable[[], Any], operations: dict[str, Callable[..., Any]]) -> Any:
        result = inner()
        while sign := self.take(*operations):
            result = operations[sign](result, inner())
        return result

    def comparison(self) -> Any:
        return self.chain(self.sum, {"<": np.less, "<=": np.less_equal})

    def sum(self) -> Any:
        return self.chain(self.product, {"+": np.add, "-": np.subtract})

    def product(self) -> Any:
        return self.chain(self.power, {"*": np.multiply, "/": np.divide})

    def power(self) -> Any:
        return self.chain(self.signed, {"^": np.power})

    def signed(self) -> Any:
        return -self.signed() if self.take("-") else self.atom()

    def atom(self) -> Any:
        token = self.tokens.pop(0)
        if token == "(":
            result = self.comparison()
            assert self.take(")")
            return result
        if token[0].isdigit():
            return np.float64(token)
        if token[-1] == "2" and token[:-1] in "ABC":
            return self.X[:, "ABC".index(token[:-1])]
        assert self.take("(")
        args = []
        while not self.take(")"):
            args.append(self.comparison())
            self.take(",")
        return self.functions[token](*args)


@examples(150)
@given(expressions())
def test_spreadsheet_computes_the_value(expression: Expression) -> None:
    try:
        formula = expression.export("spreadsheet")
    except ValueError as error:
        assert "for a spreadsheet" in str(error)
        return
    assert_agrees(expression, Sheet(formula, rows()).value(), rows())
