"""The table of formats: each works, knows users' operators, and lets no column name act."""

from __future__ import annotations

import ast
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from exported_formulas import COMPILER, compile_c, run_python
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Variable
from gmeql.formula.printing.export import EXPORTS, export
from gmeql.formula.printing.notation import (
    is_plain_name,
    symbol_names,
)
from gmeql.formula.registration import register_operator, unregister_operator
from random_trees import NAMES, call, expressions, rows

x1, x2, x3 = (Variable(i) for i in range(3))


def test_unknown_formats_are_refused() -> None:
    for wrong in ("fortran", "", None, 3):
        with pytest.raises(ValueError, match="unknown export format .*known: text, exact, sympy, latex"):
            export(Expression(x1), wrong)  # type: ignore[arg-type]


def test_every_format_has_an_entry_that_works() -> None:
    expression = Expression(call("add", x1, 1.5))
    for format in EXPORTS:
        if format != "torch":
            assert export(expression, format) is not None


@given(expressions())
def test_every_written_form_is_well_formed(expression: Expression) -> None:
    ElementTree.fromstring(expression.export("mathml"))
    latex = expression.latex()
    assert latex.count("{") == latex.count("}") and latex.count(r"\left") == latex.count(r"\right")
    ast.parse(expression.export("python"))
    ast.parse(expression.exact(), mode="eval")
    ast.parse(str(expression), mode="eval")
    assert json.loads(expression.export("json")) == expression.to_dict()


@given(expressions())
def test_json_reads_back(expression: Expression) -> None:
    assert Expression.from_dict(json.loads(expression.export("json"))) == expression


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
