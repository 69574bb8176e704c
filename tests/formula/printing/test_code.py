"""Source code in Python and C: how it reads, and that it computes the value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from exported_formulas import COMPILER, assert_agrees, compile_c, run_python
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import MAX_DEPTH, MAX_NODES, Call, Node, Variable
from random_trees import NAMES, call, expressions, rows
from thinned import examples

x1, x2, x3 = (Variable(i) for i in range(3))


def test_python_source_reads_well() -> None:
    root = call("add", call("mul", 0.5, call("square", x1)), call("sin", x2))
    assert Expression(root, ("mass", "c")).export("python") == (
        "import numpy as np\n\n# 0.5*mass**2 + sin(c)\n\n\ndef formula(mass, c):\n"
        '    """Value of the formula for numbers or arrays, one argument per column."""\n'
        "    mass = np.asarray(mass, dtype=float)\n    c = np.asarray(c, dtype=float)\n"
        "    return 0.5*mass**2 + np.sin(c)\n"
    )


@examples(150)
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


@pytest.mark.skipif(COMPILER is None, reason="no C compiler (gcc or cc) is installed")
@examples(15)
@given(expressions())
def test_c_source_computes_the_value(tmp_path_factory: pytest.TempPathFactory, expression: Expression) -> None:
    X = rows()
    values = compile_c(expression.export("c"), tmp_path_factory.mktemp("c"))(X)
    assert_agrees(expression, values, X)


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


def test_calls_of_one_shape_give_one_helper() -> None:
    root = call("add", call("sqrt", x1, protected=True), call("sqrt", x2, protected=True))
    assert Expression(root).export("python").count("def protected_sqrt") == 1
    assert Call("add", (x1, x2)).size == 3
