"""Every form of a formula: how it reads, that it computes the same numbers, and that no column name acts."""

from __future__ import annotations

import ast
import ctypes
import html
import json
import re
import runpy
import shutil
import subprocess
import sys
import types
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import MAX_DEPTH, MAX_NODES, Call, Constant, Node, Variable
from gmeql.formula.registration import register_operator, unregister_operator
from gmeql.formula.printing.export import EXPORTS, export
from gmeql.formula.printing.notation import (
    display_names,
    identifiers,
    is_plain_name,
    number_text,
    round_constant,
    symbol_names,
)
from gmeql.formula.printing.sympy import to_sympy
from random_trees import NAMES, all_parts_finite, call, comparable, expressions, plain_constants, rows

x1, x2, x3 = (Variable(i) for i in range(3))
COMPILER = shutil.which("gcc") or shutil.which("cc")


def text(root: Node) -> str:
    return str(Expression(root, NAMES))


# --- how it reads


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (
            call("add", call("mul", 0.8, call("cube", x1)), call("mul", 0.9, call("square", x2)), call("mul", 1.2, x3)),
            "0.8*x1**3 + 0.9*x2**2 + 1.2*x3",
        ),
        (call("sqrt", call("add", 1.3, call("mul", 1.2, call("div", x2, x1)))), "sqrt(1.3 + 1.2*x2/x1)"),
        (call("mul", 1.2, call("sin", call("mul", 1.1, x1)), call("cos", call("mul", 0.9, x2))),
         "1.2*sin(1.1*x1)*cos(0.9*x2)"),
        (call("add", x1, call("mul", -1, x2)), "x1 - x2"),
        (call("add", x1, call("neg", x2)), "x1 - x2"),
        (call("sub", x1, call("mul", -2, x2)), "x1 + 2*x2"),
        (call("add", call("mul", -1, x1), 2.0), "2 - x1"),
        (call("add", call("neg", x1), call("neg", x2)), "-x1 - x2"),
        (call("sub", x1, call("sub", x2, x3)), "x1 - (x2 - x3)"),
        (call("add", x1, call("add", x2, x3)), "x1 + x2 + x3"),
        (call("add", x1, -3.0), "x1 - 3"),
        (call("neg", call("add", x1, x2)), "-(x1 + x2)"),
        (call("neg", call("neg", x1)), "x1"),
        (call("mul", -1.0, call("add", x1, x2)), "-(x1 + x2)"),
        (call("mul", call("neg", x1), call("neg", x2)), "x1*x2"),
        (call("mul", x1, 2.0), "2*x1"),
        (call("mul", 1.0, x1), "x1"),
        (call("mul", 1.0, 1.0), "1"),
        (call("mul", -1.0, 1.0), "-1"),
        (call("mul", 1.00000001, x1), "x1"),
        (call("mul", x1, call("inv", x2)), "x1/x2"),
        (call("inv", call("mul", x1, x2)), "1/(x1*x2)"),
        (call("div", x1, call("div", x2, x3)), "x1*x3/x2"),
        (call("div", call("div", x1, x2), x3), "x1/(x2*x3)"),
        (call("div", call("add", x1, 1.0), call("add", x2, 1.0)), "(x1 + 1)/(x2 + 1)"),
        (call("mul", call("inv", x1), call("inv", x2)), "1/(x1*x2)"),
        (call("square", call("add", x1, x2)), "(x1 + x2)**2"),
        (call("square", call("mul", x1, x2)), "(x1*x2)**2"),
        (call("square", call("square", x1)), "(x1**2)**2"),
        (call("square", call("neg", x1)), "(-x1)**2"),
        (call("neg", call("square", x1)), "-x1**2"),
        (call("square", call("sin", x1)), "sin(x1)**2"),
        (call("pow", x1, 2.0), "x1**2"),
        (call("pow", x1, -2.0), "1/x1**2"),
        (call("pow", x1, 0.5), "sqrt(x1)"),
        (call("pow", x1, -0.5), "1/sqrt(x1)"),
        (call("pow", x1, 1.37), "x1**1.37"),
        (call("pow", 2.0, x1), "2**x1"),
        (call("pow", -2.0, x1), "(-2)**x1"),
        (call("pow", x1, call("neg", x2)), "x1**(-x2)"),
        (call("pow", x1, call("add", x2, 1.0)), "x1**(x2 + 1)"),
        (call("pow", call("pow", x1, x2), x3), "(x1**x2)**x3"),
        (call("exp", call("neg", call("square", x1))), "exp(-x1**2)"),
        (call("id", call("add", x1, x2)), "x1 + x2"),
        (call("mul", call("id", call("add", x1, x2)), x3), "(x1 + x2)*x3"),
        (call("abs", call("sub", x1, x2)), "abs(x1 - x2)"),
        (call("sqrt", x1, protected=True), "sqrt(abs(x1))"),
        (call("div", x1, x2, protected=True), "x1/x2"),
        (call("add", x1, x2, x3, protected=True), "x1 + x2 + x3"),
        (Constant(-2.5), "-2.5"),
        (Constant(0.0), "0"),
    ],
)  # fmt: skip
def test_text_reads_as_a_person_writes(root: Node, expected: str) -> None:
    assert text(root) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.2000000001, "1.2"),
        (3.0, "3"),
        (1.5e-7, "1.5e-07"),
        (3.14159265, "3.1416"),
        (123456.0, "123456"),
        (123456.7, "123460"),
        (2.99792458e8, "2.9979e+08"),
        (6.02214076e23, "6.0221e+23"),
        (0.000123456, "0.00012346"),
        (99999.6, "100000"),
        (-0.1 - 0.2, "-0.3"),
        (1e-300, "1e-300"),
        (5e-324, "5e-324"),
    ],
)
def test_constants_are_rounded_for_people(value: float, expected: str) -> None:
    assert text(Constant(value)) == expected


def test_numbers() -> None:
    assert round_constant(round_constant(1.23456789)) == round_constant(1.23456789) == 1.2346
    assert number_text(0.1 + 0.2) == "0.30000000000000004"


def test_exact_text_keeps_digits_order_and_protection() -> None:
    exact = lambda root: Expression(root, NAMES).exact()  # noqa: E731
    assert exact(call("mul", 1.2000000001, call("div", x2, x1))) == "1.2000000001*(x2/x1)"
    assert exact(call("add", x1, call("add", x2, x3))) == "x1 + (x2 + x3)"
    assert exact(call("div", call("sqrt", x1, protected=True), x2, protected=True)) == (
        "protected_div(protected_sqrt(x1), x2)"
    )
    assert exact(call("sin", x1, protected=True)) == "sin(x1)"  # its protected reading is the natural one


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


def test_python_source_reads_well() -> None:
    root = call("add", call("mul", 0.5, call("square", x1)), call("sin", x2))
    assert Expression(root, ("mass", "c")).export("python") == (
        "import numpy as np\n\n# 0.5*mass**2 + sin(c)\n\n\ndef formula(mass, c):\n"
        '    """Value of the formula for numbers or arrays, one argument per column."""\n'
        "    mass = np.asarray(mass, dtype=float)\n    c = np.asarray(c, dtype=float)\n"
        "    return 0.5*mass**2 + np.sin(c)\n"
    )


def test_spreadsheet_cells_and_signs() -> None:
    sheet = lambda root, names=NAMES: Expression(root, names).export("spreadsheet")  # noqa: E731
    assert sheet(call("neg", call("square", x1))) == "=-(A2^2)"
    assert sheet(call("sub", x1, call("square", x2))) == "=A2-B2^2"
    assert sheet(call("log", call("mul", 1.5e-7, x1))) == "=LN(1.5E-07*A2)"
    wide = tuple(f"x{i}" for i in range(800))
    assert [sheet(Variable(i), wide) for i in (25, 26, 701, 702)] == ["=Z2", "=AA2", "=ZZ2", "=AAA2"]


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


def test_unknown_formats_are_refused() -> None:
    for wrong in ("fortran", "", None, 3):
        with pytest.raises(ValueError, match="unknown export format .*known: text, exact, sympy, latex"):
            export(Expression(x1), wrong)  # type: ignore[arg-type]


@given(expressions())
def test_every_written_form_is_well_formed(expression: Expression) -> None:
    ElementTree.fromstring(expression.export("mathml"))
    latex = expression.latex()
    assert latex.count("{") == latex.count("}") and latex.count(r"\left") == latex.count(r"\right")
    ast.parse(expression.export("python"))
    ast.parse(expression.exact(), mode="eval")
    ast.parse(str(expression), mode="eval")
    assert json.loads(expression.export("json")) == expression.to_dict()


# --- that all forms compute the same numbers


def assert_agrees(expression: Expression, other: Any, X: np.ndarray, rtol: float = 1e-12, **options: Any) -> None:
    keep = comparable(expression, X, **options)
    other = np.broadcast_to(np.asarray(other, float), (len(X),))
    np.testing.assert_allclose(other[keep], expression(X)[keep], rtol=rtol, err_msg=expression.exact())


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


@settings(max_examples=150)
@given(expressions(constants=plain_constants, protected=False))
def test_text_computes_the_value(expression: Expression) -> None:
    X = rows()
    # constants of few digits stay as they are, so that the rounded text computes the same
    assert_agrees(expression, text_value(str(expression), X), X)
    assert_agrees(expression, text_value(expression.exact(), X), X)


@given(expressions(protected=False))
def test_exact_text_computes_the_value(expression: Expression) -> None:
    assert_agrees(expression, text_value(expression.exact(), rows()), rows())


@settings(max_examples=100)
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


def test_sympy_computes_protected_readings_inside_others() -> None:
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
    rounded = to_sympy(Expression(call("mul", 1.23456789, x1)), rounded=True)
    assert rounded == sympy.Float(1.2346) * a


def test_sympy_does_not_expand_towers_of_powers() -> None:
    node: Node = call("add", call("mul", 3.0, x1), 0.0)
    for _ in range(40):
        node = call("pow", call("mul", 3.0, node), 60.0)
    Expression(node).sympy()  # 3**(60**40) as an integer would never end


def test_sympy_of_constants_that_are_not_finite() -> None:
    import sympy

    assert Expression(call("add", x1, call("log", -1.0))).sympy() is sympy.nan
    assert Expression(call("div", 1.0, 0.0)).sympy() == sympy.oo


def run_python(source: str, folder: Path) -> Callable[..., Any]:
    path = folder / "exported.py"
    path.write_text(source, encoding="utf-8")
    return runpy.run_path(str(path))["formula"]


@settings(max_examples=150)
@given(expressions())
def test_python_source_computes_the_value(tmp_path_factory: pytest.TempPathFactory, expression: Expression) -> None:
    X = rows()
    formula = run_python(expression.export("python"), tmp_path_factory.getbasetemp())
    with np.errstate(all="ignore"):
        values = np.broadcast_to(formula(*X.T), (len(X),))
        assert_agrees(expression, values, X)
        np.testing.assert_array_equal(np.isnan(values), np.isnan(expression(X)))
        assert_agrees(expression, [formula(*row) for row in X[:5]] + list(values[5:]), X)


def test_python_source_takes_whole_numbers(tmp_path: Path) -> None:
    formula = run_python(Expression(call("pow", x1, -2.0)).export("python"), tmp_path)
    assert formula(2) == 0.25 and formula(np.array([1, 4])).tolist() == [1.0, 0.0625]


def compile_c(source: str, folder: Path) -> Callable[[np.ndarray], np.ndarray]:
    path, library = folder / "formula.c", folder / f"formula{len(list(folder.iterdir()))}.so"
    path.write_text(source, encoding="ascii")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-parentheses", "-pedantic", "-O0"]
    subprocess.run([str(COMPILER), *flags, "-shared", "-fPIC", str(path), "-o", str(library), "-lm"], check=True)
    function = ctypes.CDLL(str(library)).formula
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.POINTER(ctypes.c_double)]
    pointer = ctypes.POINTER(ctypes.c_double)
    return lambda X: np.array([function(np.ascontiguousarray(row).ctypes.data_as(pointer)) for row in X])


@pytest.mark.skipif(COMPILER is None, reason="no C compiler (gcc or cc) is installed")
@settings(max_examples=40)
@given(expressions())
def test_c_source_computes_the_value(tmp_path_factory: pytest.TempPathFactory, expression: Expression) -> None:
    X = rows()
    values = compile_c(expression.export("c"), tmp_path_factory.mktemp("c"))(X)
    assert_agrees(expression, values, X)


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


@settings(max_examples=150)
@given(expressions())
def test_spreadsheet_computes_the_value(expression: Expression) -> None:
    try:
        formula = expression.export("spreadsheet")
    except ValueError as error:
        assert "for a spreadsheet" in str(error)
        return
    assert_agrees(expression, Sheet(formula, rows()).value(), rows())


@settings(max_examples=12)
@given(expressions())
def test_jax_computes_the_value(expression: Expression) -> None:
    import jax

    X = rows()
    formula = expression.export("jax")
    with jax.enable_x64(True):
        values = np.asarray(formula(X))
    assert values.dtype == np.float64
    assert_agrees(expression, values, X)
    single = np.asarray(formula(X.astype(np.float32)))
    assert single.dtype == np.float32
    same = np.all(X.astype(np.float32) == X, axis=1)
    Xs = X.astype(np.float32).astype(float)
    assert same.sum() < len(X)
    assert_agrees(expression, single, Xs, rtol=1e-5, precision=np.float32)


def test_jax_has_gradients() -> None:
    import jax

    expression = Expression(call("mul", call("pow", x1, 2.0), call("sin", x2)))
    gradient = jax.grad(lambda row: expression.export("jax")(row))(np.array([-1.5, 0.5], np.float32))
    expected = [expression.diff(i)(np.array([[-1.5, 0.5]]))[0] for i in range(2)]
    np.testing.assert_allclose(gradient, expected, rtol=1e-5)


@given(expressions())
def test_numpy_callable_computes_the_value(expression: Expression) -> None:
    np.testing.assert_array_equal(expression.export("numpy")(rows()), expression(rows()))


def test_torch_computes_the_value() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    check_torch(torch)


def test_torch_export_over_a_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """The path through the export, over a module that answers with NumPy as PyTorch would."""

    class Tensor(np.ndarray):
        device = "cpu"

        def is_floating_point(self) -> bool:
            return bool(np.issubdtype(self.dtype, np.floating))

        def to(self, dtype: Any) -> Any:
            return self.astype(dtype)

    stand_in = types.ModuleType("torch")
    words = "sin cos sqrt exp log tanh arcsin arccos arctan abs sign where clip ones_like broadcast_to float64".split()
    for word in words:
        setattr(stand_in, word, getattr(np, word))
    stand_in.as_tensor = lambda data, dtype=None, device=None: np.asarray(data, dtype).view(Tensor)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    check_torch(stand_in)


def check_torch(torch: Any) -> None:
    X = np.abs(rows())
    for root in (
        call("add", call("mul", 0.5, call("pow", x1, 3.0)), call("sqrt", call("sub", x2, 9.0), protected=True)),
        call("div", call("log", x1, protected=True), call("sin", x3), protected=True),
        call("mul", call("asin", x1, protected=True), call("exp", call("tanh", x2))),
        Constant(2.0),
    ):
        expression = Expression(root, NAMES)
        with np.errstate(all="ignore"):
            values = np.asarray(expression.export("torch")(torch.as_tensor(X)))
        np.testing.assert_allclose(values, expression(X), rtol=1e-12)
    assert np.asarray(Expression(x1, NAMES).export("torch")(torch.as_tensor([[1, 2, 3]]))).dtype == np.float64


def test_torch_missing_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="pip install torch"):
        Expression(x1).export("torch")


@given(expressions())
def test_json_reads_back(expression: Expression) -> None:
    assert Expression.from_dict(json.loads(expression.export("json"))) == expression


# --- large trees


def deep_tree() -> Node:
    node: Node = x1
    for level in range(MAX_DEPTH // 2 - 1):
        node = call("sin", call("add", node, 0.1 * level))
    return node


def wide_tree() -> Node:
    return call("add", *[call("mul", 0.5, x1, call("sin", x2))] * (MAX_NODES // 6))


@pytest.mark.parametrize("root", [deep_tree(), wide_tree()], ids=["deep", "wide"])
def test_source_of_the_largest_trees_compiles(root: Node, tmp_path: Path) -> None:
    expression = Expression(root, NAMES)
    X = rows(n=6)
    formula = run_python(expression.export("python"), tmp_path)
    np.testing.assert_allclose(formula(*X.T), expression(X), rtol=1e-12)
    if COMPILER:
        np.testing.assert_allclose(compile_c(expression.export("c"), tmp_path)(X), expression(X), rtol=1e-12)


def test_protected_sums_of_many_terms_keep_their_value(tmp_path: Path) -> None:
    root = call("add", *[call("mul", 1e30, x1, 1e30)] * 100, -5.0, protected=True)
    expression = Expression(root, NAMES)
    X = rows(n=6)
    np.testing.assert_allclose(run_python(expression.export("python"), tmp_path)(*X.T), expression(X), rtol=1e-12)


def test_constant_parts_never_divide_by_zero(tmp_path: Path) -> None:
    for root in (call("div", 1.0, 0.0), call("pow", -8.0, 0.5), call("pow", 1e300, 2.0), call("log", 0.0)):
        expression = Expression(call("add", x1, root), NAMES)
        X = rows(n=3)
        np.testing.assert_array_equal(run_python(expression.export("python"), tmp_path)(*X.T), expression(X))
        if COMPILER:
            folder = tmp_path / f"c{abs(hash(root))}"
            folder.mkdir()
            np.testing.assert_array_equal(compile_c(expression.export("c"), folder)(X), expression(X))


# --- operators of users


@pytest.fixture
def own_operators() -> Any:
    import sympy

    register_operator(
        "softplus", lambda xp, x: xp.logaddexp(0.0, x), derivative=lambda xp, x: 1 / (1 + xp.exp(-x)),
        sympy=lambda x: sympy.log(1 + sympy.exp(x)),
    )  # fmt: skip
    register_operator(
        "hypot2",
        lambda xp, a, b: xp.sqrt(a * a + b * b + 1),
        arity=2,
        derivative=lambda xp, a, b: (a / xp.sqrt(a * a + b * b + 1), b / xp.sqrt(a * a + b * b + 1)),
    )
    register_operator(
        "rounded_sine",
        lambda xp, x: xp.sinc(x),
        derivative=lambda xp, x: xp.cos(xp.pi * x) / x - xp.sin(xp.pi * x) / (xp.pi * x * x),
    )
    yield
    for name in ("softplus", "hypot2", "rounded_sine"):
        unregister_operator(name)


def test_users_operators_in_every_form(own_operators: None, tmp_path: Path) -> None:
    import sympy

    expression = Expression(call("add", call("softplus", call("mul", 2.0, x1)), call("hypot2", x1, x2)), NAMES)
    X = rows()
    assert str(expression) == "softplus(2*x1) + hypot2(x1, x2)"
    assert r"\operatorname{softplus}\left(2\, x_{1}\right)" in expression.latex()
    ElementTree.fromstring(expression.export("mathml"))
    np.testing.assert_allclose(run_python(expression.export("python"), tmp_path)(*X.T), expression(X), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(expression.export("jax")(X)), expression(X), rtol=1e-5)
    if COMPILER:
        np.testing.assert_allclose(compile_c(expression.export("c"), tmp_path)(X), expression(X), rtol=1e-12)
    symbols = sympy.symbols("x1 x2 x3")
    softplus = Expression(call("softplus", x1), NAMES)
    np.testing.assert_allclose(sympy.lambdify(symbols, softplus.sympy(), "numpy")(*X.T), softplus(X), atol=1e-15)
    form = Expression(call("hypot2", x1, x2)).sympy()  # registered without a SymPy form: an opaque function
    assert str(form) == "hypot2(x1, x2)"
    values = sympy.lambdify(symbols, form, "numpy")(*X.T)
    np.testing.assert_allclose(values, Expression(call("hypot2", x1, x2), NAMES)(X), rtol=1e-12)
    assert float(form.evalf(subs={"x1": 2, "x2": 2})) == 3.0


def test_operators_without_a_word_elsewhere_say_so(own_operators: None) -> None:
    expression = Expression(call("rounded_sine", x1))
    for format in ("python", "c", "spreadsheet"):
        with pytest.raises(ValueError, match=r"'rounded_sine' cannot be written as .*xp\.sinc"):
            expression.export(format)
    assert str(expression) == "rounded_sine(x1)"
    assert expression.export("numpy")(np.array([[0.5]]))[0] == pytest.approx(np.sinc(0.5))


# --- hostile column names

HOSTILE = (
    "__import__('os').system('touch pwned')",
    "x'); import os; os.system('touch pwned'); ('",
    '"""\nimport os\nos.system("touch pwned")\n"""',
    "x\nimport os; os.system('touch pwned')",
    "x\r\u2028\u2029\x85\x0b\x0cimport os; os.system('touch pwned')",
    "coding: utf_7 +AAo-import os+ADs-os.system('touch pwned')",
    "*/ system(\"touch pwned\"); /*",
    "x \\",
    "??/",
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "]]></style><script>alert(1)</script>",
    "&lt;b&gt;",
    "=cmd|'/C calc'!A0",
    "+1+HYPERLINK(\"http://example.invalid\")",
    "@SUM(1)",
    "\\input{/etc/passwd}",
    "$x$ \\end{document} %",
    "}{\\write18{touch pwned}",
    "`",
    "a`b",
    "",
    " ",
    "\x00",
    "\ud800",
    "\u202eevil\u202c",
    "ｘ1",
    "х1",  # Cyrillic
    "x1",
    "x1 ",
    "lambda",
    "class",
    "np",
    "formula",
    "part_1",
    "protected_sqrt",
    "sin",
    "1",
    "a" * 5000,
    "{0}",
    "%s",
    "😀",
)  # fmt: skip


def surrounded(name: str) -> Expression:
    """A formula whose middle column has that name, and whose other columns collide with it as much as can be."""
    root = call("add", call("mul", 2.0, x1), call("sqrt", x2, protected=True), call("neg", x3))
    return Expression(root, ("x1", name, name))


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_do_nothing(name: str, empty_folder: Path) -> None:
    import sympy

    expression = surrounded(name)
    X = np.abs(rows(n=8))
    expected = 2 * X[:, 0] + np.sqrt(X[:, 1]) - X[:, 2]
    np.testing.assert_allclose(expression(X), expected)

    source = expression.export("python")
    assert source.isascii() and "\r" not in source
    module = ast.parse(source)
    assert [type(node) for node in module.body] == [ast.Import, ast.FunctionDef, ast.FunctionDef]
    np.testing.assert_allclose(run_python(source, empty_folder)(*X.T), expected)

    c_source = expression.export("c")
    assert c_source.isascii() and "\r" not in c_source
    code = re.sub(r"/\*.*?\*/", "", c_source, flags=re.DOTALL)
    assert "pwned" not in code and '"' not in code

    sheet = expression.export("spreadsheet")
    assert re.fullmatch(r"=[A-Z0-9.+\-*^(),]+", sheet)

    form = expression.sympy()
    symbols = sympy.symbols(" ".join(symbol_names(expression.names)))
    np.testing.assert_allclose(sympy.lambdify(symbols, form, "numpy")(*X.T), expected)
    assert all(is_plain_name(symbol.name) for symbol in form.free_symbols) and len(form.free_symbols) == 3
    sympy.lambdify((), form, "numpy")  # even careless use of the symbols runs nothing

    latex = expression.latex()
    assert "<" not in latex and "\n" not in latex
    assert not re.search(r"(?<!\\)[$%#&~]", latex)
    assert not re.search(r"\\(input|write|end|href|def)", latex)

    mathml = expression.export("mathml")
    tags = {element.tag.partition("}")[2] for element in ElementTree.fromstring(mathml).iter()}
    assert tags <= {"math", "mrow", "mi", "mn", "mo", "msub", "msup", "msqrt", "mfrac", "mspace"}
    assert "<script" not in mathml and "<img" not in mathml

    readable = str(expression)
    assert readable.isprintable() and "\n" not in readable
    assert Expression.from_dict(json.loads(expression.export("json"))) == expression
    for format in ("text", "exact", "numpy"):
        export(expression, format)
    assert sorted(path.name for path in empty_folder.iterdir()) == ["exported.py"]


@pytest.mark.skipif(COMPILER is None, reason="no C compiler (gcc or cc) is installed")
def test_c_source_with_hostile_names_compiles(empty_folder: Path) -> None:
    names = tuple(HOSTILE)
    expression = Expression(call("add", *(Variable(i) for i in range(len(names)))), names)
    X = np.abs(np.random.default_rng(0).normal(size=(4, len(names))))
    np.testing.assert_allclose(compile_c(expression.export("c"), empty_folder)(X), X.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(run_python(expression.export("python"), empty_folder)(*X.T), X.sum(axis=1), rtol=1e-12)
    assert not (empty_folder / "pwned").exists()


def test_names_are_shown_as_given() -> None:
    names = ("petal length (cm)", "mass", "Größe", "<b>", "=1+1", "x`y", "temp °C")
    shown = str(Expression(call("add", *(Variable(i) for i in range(len(names)))), names))
    assert shown == "`petal length (cm)` + mass + Größe + `<b>` + `=1+1` + `x``y` + `temp °C`"
    for name in names:
        mathml = Expression(x1, (name,)).export("mathml")
        assert "".join(ElementTree.fromstring(mathml).itertext()) == name
        assert html.escape(name) in mathml


def test_names_that_repeat_or_are_empty_stay_apart() -> None:
    assert display_names(["a", "a", "", "a (2)", "\n"]) == ("a", "a (3)", "column 3", "a (2)", "column 5")
    expression = Expression(call("add", x1, call("mul", 2.0, x2), x3), ("a", "a", ""))
    assert str(expression) == "a + 2*`a (2)` + `column 3`"
    assert len(expression.sympy().free_symbols) == 3


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["x1", "x2"], ["x1", "x2"]),
        (["a b", "a_b", "a-b"], ["a_b_2", "a_b", "a_b_3"]),
        (["ｘ1", "x1"], ["x_1", "x1"]),
        (["", ""], ["x1", "x2"]),
        (["2nd", "_"], ["x_2nd", "x2"]),
        (["x", "x", "x"], ["x", "x_2", "x_3"]),
    ],
)
def test_identifiers(names: Sequence[str], expected: list[str]) -> None:
    made = identifiers(names, lambda name: re.fullmatch("[a-z][a-z0-9_]*", name) is not None)
    if names[0] == "ｘ1":
        assert made[1] == "x1" and made[0] != "x1" and made[0].isascii()
    else:
        assert list(made) == expected


def test_many_repeated_names_take_no_time() -> None:
    names = identifiers(["x"] * 50_000, str.isidentifier)
    assert len(set(names)) == 50_000
    assert len(set(display_names(["x"] * 50_000))) == 50_000


def test_every_format_has_an_entry_that_works() -> None:
    expression = Expression(call("add", x1, 1.5))
    for format in EXPORTS:
        if format != "torch":
            assert export(expression, format) is not None


def test_notebooks_show_the_formula_typeset() -> None:
    expression = Expression(call("div", x1, x2))
    assert expression._repr_html_().startswith("<math")
    assert expression._repr_latex_() == r"$\displaystyle \frac{x_{1}}{x_{2}}$"
    assert repr(expression) == "Expression('x1/x2')"


def test_calls_of_one_shape_give_one_helper() -> None:
    root = call("add", call("sqrt", x1, protected=True), call("sqrt", x2, protected=True))
    assert Expression(root).export("python").count("def protected_sqrt") == 1
    assert Call("add", (x1, x2)).size == 3
