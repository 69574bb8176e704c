"""Trees: nodes, limits, walks, complexity, building."""

from __future__ import annotations

import math
import pickle

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
    build,
    fold,
    leaves,
    tree_complexity,
)
from gmeql.formula.operators import get_operator
from random_trees import NAMES, any_constants, call, comparable, expressions, rows, trees

x1, x2, x3 = (Variable(i) for i in range(3))


def obvious(node: Node, row: np.ndarray) -> float:
    """The slow way: recursion, one row."""
    if isinstance(node, Constant):
        return np.float64(node.value)
    if isinstance(node, Variable):
        return row[node.index]
    args = [obvious(arg, row) for arg in node.args]
    operator = get_operator(node.operator)
    if node.protected:
        return operator.protected(np, *args)
    if node.operator in ("add", "mul"):
        total = args[0]
        for arg in args[1:]:
            total = total + arg if node.operator == "add" else total * arg
        return total
    return operator.natural(np, *args)


@given(expressions())
def test_value_is_that_of_the_obvious_evaluation(expression: Expression) -> None:
    X = rows(n=12)
    with np.errstate(all="ignore"):
        expected = np.array([obvious(expression.root, row) for row in X], float)
    np.testing.assert_allclose(expression(X), expected, rtol=1e-13)


@pytest.mark.parametrize("value", [math.nan, math.inf, "1", None, [1.0, 2.0], True, 10**400, 1j])
def test_constants_must_be_finite_numbers(value: object) -> None:
    with pytest.raises(ValueError, match="finite number"):
        Constant(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("index", [-1, 1.0, "0", None, True, 10**9, pytest.param(10**5000, id="huge")])
def test_variable_numbers_are_checked(index: object) -> None:
    with pytest.raises(ValueError, match="index"):
        Variable(index)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("operator", "args", "message"),
    [
        ("sine", (x1,), "unknown operator"),
        ("sin", (x1, x2), "takes 1 argument"),
        ("div", (x1,), "takes 2 argument"),
        ("add", (x1,), "two or more"),
        ("mul", (), "two or more"),
        ("sum", (x1, x2), "network node"),
        ("prod", (x1, x2), "network node"),
        ("sin", (1.0,), "must be nodes"),
        (None, (x1,), "unknown operator"),
    ],
)
def test_calls_are_checked(operator: str, args: tuple[Node, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Call(operator, args)


def test_aliases_become_the_operators_name() -> None:
    assert Call("+", (x1, x2)) == Call("add", (x1, x2))


def chain(levels: int, operator: str = "sin") -> Node:
    node: Node = x1
    for _ in range(levels - 1):
        node = Call(operator, (node,))
    return node


def test_depth_and_size_are_limited() -> None:
    deepest = chain(MAX_DEPTH)
    assert deepest.depth == MAX_DEPTH
    with pytest.raises(ValueError, match=f"at most {MAX_DEPTH} levels"):
        Call("sin", (deepest,))
    largest = Call("add", (x1,) * (MAX_NODES - 1))
    assert largest.size == MAX_NODES
    with pytest.raises(ValueError, match=f"at most {MAX_NODES} nodes"):
        Call("add", (largest, x1))


def test_shared_parts_count_every_time() -> None:
    node: Node = x1
    with pytest.raises(ValueError, match=f"at most {MAX_NODES} nodes"):
        for _ in range(100):  # 2**100 nodes if it were allowed
            node = Call("add", (node, node))


def test_complexity_counts_nodes_by_weight() -> None:
    assert tree_complexity(x1) == tree_complexity(Constant(3.7)) == 1
    assert tree_complexity(call("add", x1, x2)) == 3
    assert tree_complexity(call("add", x1, x2, x3)) == 5 == tree_complexity(call("add", call("add", x1, x2), x3))
    sin = get_operator("sin").complexity
    assert tree_complexity(call("sin", call("mul", 2.0, x1))) == sin + 3


def test_complexity_is_the_same_for_other_writings() -> None:
    same = [
        (call("pow", x1, 2.0), call("square", x1)),
        (call("pow", x1, 0.5), call("sqrt", x1)),
        (call("add", x1, call("mul", -1.0, x2)), call("sub", x1, x2)),
        (call("add", x1, call("neg", x2)), call("sub", x1, x2)),
        (call("mul", x1, call("inv", x2)), call("div", x1, x2)),
        (call("mul", -1.0, x1), call("neg", x1)),
        (call("id", x1), x1),
    ]
    for one, other in same:
        assert tree_complexity(one) == tree_complexity(other), (one, other)


def test_a_fitted_exponent_costs_more_than_a_whole_one() -> None:
    assert tree_complexity(call("pow", x1, 1.37)) > tree_complexity(call("pow", x1, 3.0))
    assert tree_complexity(call("pow", x1, 17.0)) > tree_complexity(call("pow", x1, 3.0))
    assert tree_complexity(call("pow", 2.0, 2.0)) == get_operator("pow").complexity + 1  # the base is no exponent


@given(trees())
def test_complexity_is_positive_and_grows(root: Node) -> None:
    assert tree_complexity(root) >= 1
    assert tree_complexity(Call("sin", (root,))) > tree_complexity(root)


@given(st.sampled_from(["add", "sub", "mul", "div", "pow"]), trees(protected=False), trees(protected=False))
def test_build_keeps_the_value(operator: str, a: Node, b: Node) -> None:
    X = rows()
    plain, built = Expression(Call(operator, (a, b)), NAMES), Expression(build(operator, a, b), NAMES)
    keep = comparable(plain, X)
    np.testing.assert_allclose(built(X)[keep], plain(X)[keep], rtol=1e-12)


def test_build_drops_the_obvious() -> None:
    zero, one = Constant(0.0), Constant(1.0)
    assert build("add", zero, x1) == build("mul", one, x1) == build("div", x1, one) == build("sub", x1, zero) == x1
    assert build("mul", zero, x1) == zero
    assert build("add", Constant(2), Constant(3)) == Constant(5)
    assert build("pow", x1, Constant(2)) == call("square", x1)
    assert build("neg", build("neg", x1)) == x1
    assert build("log", Constant(-1.0)) == call("log", -1.0)


def test_leaves_and_fold_walk_left_to_right() -> None:
    root = call("add", 1.0, call("mul", 2.0, x1), 3.0)
    assert leaves(root) == leaves(root) == (Constant(1), Constant(2), x1, Constant(3))
    assert leaves(call("sub", x2, root)) == (x2, *leaves(root))  # whose parts remember theirs
    seen: list[object] = []
    fold(root, seen.append, lambda node, _: seen.append(node.operator))
    assert seen == [Constant(1), Constant(2), x1, "mul", Constant(3), "add"]


@given(st.lists(any_constants, min_size=1, max_size=5))
def test_hash_of_an_unpickled_tree_is_fresh(values: list[float]) -> None:
    root = call("add", x1, *values)
    assert hash(pickle.loads(pickle.dumps(root))) == hash(root)  # noqa: S301
    guarded = call("sqrt", root, protected=True)
    assert pickle.loads(pickle.dumps(guarded)) == guarded  # noqa: S301
