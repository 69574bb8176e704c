"""A formula as a SymPy object, and as SymPy draws it over several lines."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from gmeql.formula.limits import WHOLE_EXPONENT_LIMIT
from gmeql.formula.nodes import Call, Constant, Leaf, fold
from gmeql.formula.operators import EXPONENTS, Operator, get_operator
from gmeql.formula.printing.notation import GREEK, Formula, shown, symbol_names, text_names
from gmeql.formula.printing.writing import differs_when_protected

_INTEGER_DEGREE = 1000
"""Above this polynomial degree whole constants go to SymPy as floats: it would expand 2**degree digit by digit."""


@dataclass(frozen=True, slots=True)
class _Form:
    """SymPy form of a part, its value where it is a number, and whether a protected form is spelled out in it."""

    sympy: Any
    value: float | None = None
    protected: bool = False


def to_sympy(expression: Formula, rounded: bool = False) -> Any:
    """SymPy form, built from objects; symbols are plain `sympy.Symbol` of the column names (see `symbol_names`).

    A protected form is spelled out with Abs, Max, Min and Piecewise. One that holds another appears as a function
    `protected_...`, which `lambdify` and `evalf` compute: SymPy takes nested maxima apart without end.
    """
    import sympy

    root = shown(expression) if rounded else expression.root
    names = symbol_names(expression.names)
    exact_integers = fold(root, lambda leaf: 1.0, _degree) <= _INTEGER_DEGREE

    def number(value: float) -> _Form:
        if not math.isfinite(value):
            return _Form(sympy.nan if math.isnan(value) else sympy.oo if value > 0 else -sympy.oo, value)
        if value.is_integer() and (abs(value) <= 1 or (exact_integers and abs(value) <= 1e6)):
            return _Form(sympy.Integer(int(value)), value)
        return _Form(sympy.Float(value), value)

    def leaf(node: Leaf) -> _Form:
        return number(node.value) if isinstance(node, Constant) else _Form(sympy.Symbol(names[node.index]))

    def call(node: Call, args: list[_Form]) -> _Form:
        operator = get_operator(node.operator)
        protected = node.protected and differs_when_protected(operator)
        values = [arg.value for arg in args if arg.value is not None]
        if len(values) == len(args):
            with np.errstate(all="ignore"):
                function = operator.protected if protected else operator.natural
                return number(float(function(np, *map(np.float64, values))))
        forms = [arg.sympy for arg in args]
        nested = any(arg.protected for arg in args)
        if any(form in (sympy.nan, sympy.oo, -sympy.oo, sympy.zoo) for form in forms):
            return _Form(sympy.nan)  # SymPy refuses to compare with what is not a number
        if protected and nested:
            return _Form(_computed_function(operator, protected=True)(*forms), protected=True)
        if protected:
            return _Form(operator.protected_sympy(*forms), protected=True)
        if node.operator == "pow" and (exponent := args[1].value) is not None:
            is_half = (2 * exponent).is_integer() and abs(exponent) <= WHOLE_EXPONENT_LIMIT
            forms[1] = sympy.Rational(int(2 * exponent), 2) if is_half else sympy.Float(exponent)
        form = operator.sympy(*forms)
        if operator.is_user_defined and getattr(form, "name", None) == operator.name:
            form = _computed_function(operator, protected=False)(*forms)  # registered without a SymPy form
        return _Form(form, protected=nested)

    return fold(root, leaf, call).sympy


def to_drawing(expression: Formula, target: str) -> str:
    """`target` = formula over several lines as on paper, constants rounded.

    SymPy draws names as letters with marks and indices: a column `sidebar` becomes `side` with a bar. Here only single
    letters and Greek ones are drawn so, as in x1, v_max or theta; words stay words, and names that are no words, as x+1,
    are those of the text.
    """
    import sympy
    from sympy.printing.pretty.pretty import PrettyPrinter
    from sympy.printing.pretty.pretty_symbology import pretty_use_unicode
    from sympy.printing.pretty.stringpict import prettyForm

    names = zip(symbol_names(expression.names), text_names(expression.names), strict=True)
    spelled = {symbol: name for symbol, name in names if symbol != name}

    class Drawing(PrettyPrinter):  # type: ignore[misc]
        def _print_Symbol(self, symbol: Any, bold_name: bool = False) -> Any:
            if symbol.name in spelled:
                return prettyForm(spelled[symbol.name])
            is_letter = re.fullmatch(r"([^\W\d_])(_?\d+|_[^\W_]+)?", symbol.name) or symbol.name in GREEK
            return super()._print_Symbol(symbol, bold_name) if is_letter else prettyForm(symbol.name)

    with sympy.evaluate(False):  # which multiplies numbers out, as exp(a*(b - x)) into exp(a*b)*exp(-a*x)
        drawn = to_sympy(expression, rounded=True)
    equation = sympy.Eq(sympy.Symbol(target), drawn, evaluate=False)
    before = pretty_use_unicode(True)
    try:
        return str(Drawing({"use_unicode": True, "wrap_line": False, "order": "none"}).doprint(equation))
    finally:
        pretty_use_unicode(before)


@functools.cache  # lambdify wants one implementation per name
def _computed_function(operator: Operator, protected: bool) -> Any:
    """A SymPy function without a closed form, which `lambdify` and `evalf` compute by the operator itself."""
    from sympy.utilities.lambdify import implemented_function

    function = operator.protected if protected else operator.natural

    def compute(*args: Any) -> Any:
        value = function(np, *(np.asarray(arg, dtype=float) for arg in args))
        return float(value) if np.ndim(value) == 0 else value

    return implemented_function(f"protected_{operator.name}" if protected else operator.name, compute)


def _degree(node: Call, degrees: list[float]) -> float:
    if node.operator == "mul":
        return sum(degrees)
    if node.operator == "pow" and isinstance(node.args[1], Constant):
        return max(1.0, abs(node.args[1].value)) * degrees[0]
    return max(degrees) * max(1.0, EXPONENTS.get(node.operator, 1.0))
