"""The one table of the formats in which formulas leave."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from gmeql.formula.plain import to_plain
from gmeql.formula.printing.callables import to_jax, to_numpy, to_torch
from gmeql.formula.printing.code import to_c, to_python
from gmeql.formula.printing.markup import to_exact_text, to_latex, to_mathml, to_text
from gmeql.formula.printing.notation import Formula
from gmeql.formula.printing.spreadsheet import to_spreadsheet
from gmeql.formula.printing.sympy import to_sympy


def to_json(expression: Formula) -> str:
    """The plain data of `Expression.to_dict` as JSON text; `Expression.from_dict` reads it back."""
    return json.dumps(to_plain(expression.root, expression.names), allow_nan=False)


EXPORTS: dict[str, Callable[[Formula], Any]] = {
    "text": to_text,
    "exact": to_exact_text,
    "sympy": to_sympy,
    "latex": to_latex,
    "mathml": to_mathml,
    "python": to_python,
    "numpy": to_numpy,
    "jax": to_jax,
    "torch": to_torch,
    "c": to_c,
    "spreadsheet": to_spreadsheet,
    "json": to_json,
}
"""Every format by name. Each entry maps an Expression to text, or to a callable ("numpy", "jax", "torch") or object."""


def export(expression: Formula, format: str) -> Any:
    """The expression in one of the formats of `EXPORTS`.

    >>> from gmeql.formula.expression import Expression
    >>> from gmeql.formula.nodes import Call, Variable
    >>> export(Expression(Call("sin", (Variable(0),))), "latex")
    '\\\\sin\\\\left(x_{1}\\\\right)'
    """
    function = EXPORTS.get(format) if isinstance(format, str) else None
    if function is None:
        raise ValueError(f"unknown export format {format!r}; known: {', '.join(EXPORTS)}")
    return function(expression)
