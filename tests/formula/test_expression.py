"""A formula over named columns: values, names, constants, calculus by name, forms."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import (
    MAX_DEPTH,
    MAX_NODES,
    Call,
    Constant,
    Node,
    Variable,
)
from random_trees import NAMES, call, expressions, rows

x1, x2, x3 = (Variable(i) for i in range(3))


def test_values_of_the_papers_formulas() -> None:
    X = np.array([[1.0, 2.0, 3.0], [0.5, 0.25, 2.0]])
    b1 = call("add", call("mul", 0.8, call("cube", x1)), call("mul", 0.9, call("square", x2)), call("mul", 1.2, x3))
    np.testing.assert_allclose(Expression(b1)(X), 0.8 * X[:, 0] ** 3 + 0.9 * X[:, 1] ** 2 + 1.2 * X[:, 2], rtol=1e-15)
    b8 = call("sqrt", call("add", 1.3, call("mul", 1.2, call("div", x2, x1))))
    np.testing.assert_allclose(Expression(b8, NAMES)(X), np.sqrt(1.3 + 1.2 * X[:, 1] / X[:, 0]), rtol=1e-15)


def test_constant_formula_has_a_value_per_row() -> None:
    result = Expression(Constant(2.5), NAMES)(np.zeros((4, 3)))
    assert result.tolist() == [2.5] * 4
    result[0] = 1.0  # a fresh array, not a view of one number
    assert Expression(Constant(2.5), NAMES)(np.zeros((0, 3))).shape == (0,)


def test_value_does_not_share_memory_with_the_data() -> None:
    X = np.ones((3, 1))
    Expression(x1)(X)[:] = 7.0
    assert X.tolist() == [[1.0]] * 3


def test_outside_the_domain_is_nan_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    root = call("log", x1)
    assert math.isnan(Expression(root)(np.array([[-1.0]]))[0])
    assert Expression(call("log", x1, protected=True))(np.array([[-math.e]]))[0] == pytest.approx(1.0)
    assert not recwarn.list


@pytest.mark.parametrize("X", [np.zeros(3), np.zeros((2, 2)), np.zeros((1, 2, 3))])
def test_data_of_the_wrong_shape_is_refused(X: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"X must have shape \[rows, 3\].*x1"):
        Expression(x3, NAMES)(X)


def test_frames_are_taken(rng: np.random.Generator) -> None:
    pandas = pytest.importorskip("pandas")
    X = rng.normal(size=(5, 2))
    assert Expression(call("add", x1, x2))(pandas.DataFrame(X)).tolist() == (X[:, 0] + X[:, 1]).tolist()


def test_names_are_checked() -> None:
    with pytest.raises(ValueError, match="uses column 2, but there are only 1"):
        Expression(x3, ("a",))
    with pytest.raises(ValueError, match="single text"):
        Expression(x1, "x1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be texts"):
        Expression(x1, (3,))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="root must be"):
        Expression("x1")  # type: ignore[arg-type]
    assert Expression(x3).names == ("x1", "x2", "x3")


def test_equality_and_hash_follow_the_content() -> None:
    one, other = (Expression(call("add", x1, 2.0), ("a",)) for _ in range(2))
    assert one == other and hash(one) == hash(other)
    assert one != Expression(call("add", x1, 2.0), ("b",))
    assert one.root != call("add", x1, 2.0, protected=True)
    assert one.root != call("add", 2.0, x1)
    assert len({one, other}) == 1


def test_nothing_can_be_changed() -> None:
    expression = Expression(call("add", x1, 2.0))
    for target, name in ((expression, "root"), (expression.root, "args"), (x1, "index"), (Constant(1), "value")):
        with pytest.raises((AttributeError, TypeError)):
            setattr(target, name, None)


def chain(levels: int, operator: str = "sin") -> Node:
    node: Node = x1
    for _ in range(levels - 1):
        node = Call(operator, (node,))
    return node


@pytest.mark.parametrize("root", [chain(MAX_DEPTH), chain(MAX_DEPTH, "exp"), Call("add", (x1,) * (MAX_NODES - 1))])
def test_the_largest_trees_work_from_a_deep_stack(root: Node) -> None:
    def everything() -> None:
        expression = Expression(root)
        assert expression == Expression.from_dict(expression.to_dict())
        assert pickle.loads(pickle.dumps(expression)) == expression  # noqa: S301
        assert copy.deepcopy(expression) == expression
        assert hash(expression) == hash(copy.deepcopy(expression))
        assert len(str(expression)) > 100 and len(expression.exact()) > 100 and len(repr(expression.root)) > 100
        assert len(expression.latex()) > 100 and len(expression.export("mathml")) > 100
        assert expression.complexity > MAX_DEPTH - 1
        expression(np.ones((3, 1)))
        expression.subs({0: 1.0})

    def deep(levels: int) -> None:
        if levels:
            deep(levels - 1)
        else:
            everything()

    deep(sys.getrecursionlimit() // 3)


@given(expressions())
def test_constants_round_trip(expression: Expression) -> None:
    assert expression.with_constants(expression.constants) == expression
    doubled = expression.with_constants([2 * value for value in expression.constants])
    assert doubled.constants == tuple(2 * value for value in expression.constants)
    assert doubled.variables == expression.variables


def test_constants_stand_in_reading_order() -> None:
    expression = Expression(call("add", call("mul", 1.0, x2), call("pow", call("sin", call("mul", 2.0, x1)), 3.0), 4.0))
    assert expression.constants == (1.0, 2.0, 3.0, 4.0)
    assert expression.variables == (0, 1)
    changed = expression.with_constants([5, 6, 7, 8])
    assert changed.constants == (5.0, 6.0, 7.0, 8.0)
    assert changed.names == expression.names


@pytest.mark.parametrize("values", [[], [1.0, 2.0], [math.nan]])
def test_wrong_constants_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError):
        Expression(call("add", x1, 1.0)).with_constants(values)


def test_subs_fixes_columns_and_folds() -> None:
    expression = Expression(call("add", call("sin", call("mul", 2.0, x1)), x2), ("angle", "offset"))
    fixed = expression.subs({"angle": 0.25})
    assert fixed == Expression(call("add", math.sin(0.5), x2), ("angle", "offset"))
    X = rows()[:, :2]
    at = np.column_stack([np.full(len(X), 0.25), X[:, 1]])
    np.testing.assert_allclose(fixed(X), expression(at), rtol=1e-15)


@given(expressions(), st.floats(0.1, 3.0))
def test_subs_keeps_the_value(expression: Expression, number: float) -> None:
    X = rows()
    at = X.copy()
    at[:, 1] = number
    np.testing.assert_allclose(expression.subs({"x2": number})(X), expression(at), rtol=1e-12)


def test_subs_leaves_what_is_not_finite_unfolded() -> None:
    expression = Expression(call("log", x1)).subs({0: -1.0})
    assert expression.root == call("log", -1.0)
    assert math.isnan(expression([[0.0]])[0])


def test_columns_by_name_or_number() -> None:
    expression = Expression(call("mul", x1, x2), ("a", "a"))
    with pytest.raises(ValueError, match="2 columns are called 'a'"):
        expression.diff("a")
    assert expression.diff(1).root == x1
    with pytest.raises(ValueError, match="unknown column 'b'"):
        expression.diff("b")
    with pytest.raises(ValueError, match="within 0..1"):
        expression.subs({2: 1.0})


def test_importing_expressions_loads_nothing_heavy() -> None:
    code = (
        "import sys, gmeql.formula.expression, gmeql.network.drawing\n"
        "from gmeql.formula.expression import Expression\nfrom gmeql.formula.nodes import Variable\n"
        "str(Expression(Variable(0))), Expression(Variable(0)).latex(), Expression(Variable(0)).export('python')\n"
        "assert not {'jax', 'sympy', 'numba', 'torch', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_notebooks_show_the_formula_typeset() -> None:
    expression = Expression(call("div", x1, x2))
    assert expression._repr_html_().startswith("<math")
    assert expression._repr_latex_() == r"$\displaystyle \frac{x_{1}}{x_{2}}$"
    assert repr(expression) == "Expression('x1/x2')"


def test_digits_may_be_told_late_and_are_asked_for_once():
    asked = []
    half = Expression(Call("mul", (Constant(0.512345678912), Variable(0))))
    late = half.with_late_digits(lambda: asked.append(1) or (2,))
    assert late == half and late([[2.0]]).tolist() == half([[2.0]]).tolist() and not asked
    assert str(late) == "0.51*x1" and late.digits == (2,) and late.to_dict()["digits"] == [2] and asked == [1]
    unknown = half.with_late_digits(lambda: None)
    assert str(unknown) == str(half) and unknown.digits is None
    with pytest.raises(ValueError, match="digits"):
        str(half.with_late_digits(lambda: (0,)))
