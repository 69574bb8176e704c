"""The tree itself: values, complexity, calculus, plain data, limits."""

from __future__ import annotations

import copy
import json
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
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
from gmeql.formula.operators import OPERATORS, get_operator
from gmeql.formula.registration import register_operator, unregister_operator
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


# --- values


@given(expressions())
def test_value_is_that_of_the_obvious_evaluation(expression: Expression) -> None:
    X = rows(n=12)
    with np.errstate(all="ignore"):
        expected = np.array([obvious(expression.root, row) for row in X], float)
    np.testing.assert_allclose(expression(X), expected, rtol=1e-13)


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


# --- nodes


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


# --- limits


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


# --- complexity


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


# --- constants and columns


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


# --- derivatives


@pytest.mark.parametrize("name", [name for name, op in OPERATORS.items() if op.arity == 1 and not op.is_dense])
def test_derivative_of_every_function(name: str) -> None:
    X = np.linspace(0.15, 0.85, 9)[:, None]
    expression = Expression(Call(name, (call("mul", 0.9, x1),)))
    step = 1e-6
    numeric = (expression(X + step) - expression(X - step)) / (2 * step)
    np.testing.assert_allclose(expression.diff("x1")(X), numeric, rtol=1e-7)


@settings(max_examples=100)
@given(expressions(protected=False), st.integers(0, 2))
def test_derivative_matches_differences(expression: Expression, column: int) -> None:
    X = rows(n=40)
    derivative = expression.diff(column)
    steps = []
    for h in (1e-4, 2e-4):
        up, down = X.copy(), X.copy()
        up[:, column] += h
        down[:, column] -= h
        with np.errstate(all="ignore"):
            steps.append((expression(up) - expression(down)) / (2 * h))
    values, slopes = expression(X), derivative(X)
    with np.errstate(all="ignore"):
        better = (4 * steps[0] - steps[1]) / 3
        # where differences of two widths agree they can be trusted, and rounding does not swamp them
        scale = np.maximum(np.abs(better), 1e-6 * np.abs(values))
        trusted = np.isfinite(slopes) & np.isfinite(better) & (np.abs(steps[0] - steps[1]) < 1e-4 * scale)
        trusted &= comparable(expression, X)
        assert (np.abs(slopes - better) <= 1e-3 * scale + 1e-9 * np.abs(values) + 1e-12)[trusted].all()


def test_derivatives_read_well() -> None:
    assert str(Expression(call("square", x1)).diff("x1")) == "2*x1"
    assert str(Expression(call("add", x1, x2)).diff("x1")) == "1"
    assert str(Expression(call("mul", x1, x2)).diff("x1")) == "x2"
    assert str(Expression(call("exp", call("mul", -2.0, x1))).diff("x1")) == "-2*exp(-2*x1)"
    assert str(Expression(call("sin", x2)).diff("x1")) == "0"
    assert str(Expression(call("abs", x1)).diff("x1")) == "x1/abs(x1)"


def test_derivative_of_a_users_operator() -> None:
    register_operator("cosine_twin", lambda xp, x: xp.sin(x), derivative=lambda xp, x: xp.cos(x))
    try:
        assert str(Expression(call("cosine_twin", call("mul", 3.0, x1))).diff("x1")) == "3*cos(3*x1)"
    finally:
        unregister_operator("cosine_twin")


def test_derivative_that_cannot_be_written_says_so() -> None:
    slope = lambda xp, x: xp.where(x > 0, 2 * x, 0 * x)  # noqa: E731
    register_operator("half_square", lambda xp, x: xp.where(x > 0, x * x, 0 * x), derivative=slope)
    try:
        with pytest.raises(ValueError, match="'where'"):
            Expression(call("half_square", x1)).diff("x1")
    finally:
        unregister_operator("half_square")


# --- building


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


# --- plain data


@given(expressions())
def test_plain_data_round_trip(expression: Expression) -> None:
    again = Expression.from_dict(json.loads(json.dumps(expression.to_dict(), allow_nan=False)))
    assert again == expression
    assert str(again) == str(expression) and again.exact() == expression.exact()
    np.testing.assert_array_equal(again(rows()), expression(rows()))


def test_plain_data_is_flat() -> None:
    data = Expression(call("sqrt", call("add", x1, 1.5), protected=True), ("a",)).to_dict()
    assert data == {
        "names": ["a"],
        "nodes": [
            {"variable": 0},
            {"constant": 1.5},
            {"call": "add", "args": [0, 1]},
            {"call": "sqrt", "args": [2], "protected": True},
        ],
    }


GOOD = {"names": ["a"], "nodes": [{"variable": 0}, {"constant": 1.5}, {"call": "add", "args": [0, 1]}]}


def damaged(*path: object, to: object) -> dict[str, object]:
    data = copy.deepcopy(GOOD)
    target: object = data
    for step in path[:-1]:
        target = target[step]  # type: ignore[index]
    target[path[-1]] = to  # type: ignore[index]
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "mapping"),
        ([], "mapping"),
        ({"names": []}, "mapping with 'names' and 'nodes'"),
        (damaged("extra", to=1), "mapping with 'names' and 'nodes'"),
        (damaged("names", to="a"), "'names' must be a list"),
        (damaged("names", to=[]), "x"),
        (damaged("names", to=[1]), "must be texts"),
        (damaged("nodes", to=[]), "'nodes' must be a list of 1"),
        (damaged("nodes", to={}), "'nodes' must be a list"),
        (damaged("nodes", to=[{"constant": 1.0}] * (MAX_NODES + 1)), "'nodes' must be a list"),
        (damaged("nodes", 0, to=None), "node 0: must be a mapping"),
        (damaged("nodes", 0, to={}), "node 0: must hold"),
        (damaged("nodes", 0, to={"variable": 5}), "uses column 5"),
        (damaged("nodes", 0, to={"variable": -1}), "node 0: .*index"),
        (damaged("nodes", 0, to={"variable": 0, "constant": 1}), "node 0: must hold"),
        (damaged("nodes", 1, to={"constant": math.nan}), "node 1: .*finite"),
        (damaged("nodes", 1, to={"constant": "1.5"}), "node 1: .*finite"),
        (damaged("nodes", 1, to={"constant": [1.5]}), "node 1: .*finite"),
        (damaged("nodes", 1, to={"constant": 10**400}), "node 1: .*finite"),
        (damaged("nodes", 2, "call", to="os.system"), "node 2: unknown operator"),
        (damaged("nodes", 2, "call", to="a" * 10**6), "node 2: 'call' must name"),
        (damaged("nodes", 2, "call", to=["add"]), "node 2: 'call' must name"),
        (damaged("nodes", 2, "call", to="sum"), "node 2: .*network node"),
        (damaged("nodes", 2, "call", to="sin"), "node 2: .*takes 1"),
        (damaged("nodes", 2, "args", to=[0, 2]), "node 2: .*earlier nodes"),
        (damaged("nodes", 2, "args", to=[0, -1]), "node 2: .*earlier nodes"),
        (damaged("nodes", 2, "args", to=[0, True]), "node 2: .*earlier nodes"),
        (damaged("nodes", 2, "args", to=[0, 1.0]), "node 2: .*earlier nodes"),
        (damaged("nodes", 2, "args", to=[0, 0]), "node 2: node 0 is an argument of two"),
        (damaged("nodes", 2, "args", to="01"), "node 2: 'args' must be a list"),
        (damaged("nodes", 2, "protected", to=1), "node 2: 'protected'"),
        (damaged("nodes", 2, to={"call": "sin", "args": [0]}), "node 1 is not an argument"),
    ],
)
def test_damaged_data_is_refused(data: object, message: str) -> None:
    if message == "x":  # no names given means the default ones
        assert Expression.from_dict(data).names == ("x1",)
        return
    with pytest.raises(ValueError, match=message) as caught:
        Expression.from_dict(data)
    assert len(str(caught.value)) < 500


def test_deep_data_is_refused() -> None:
    nodes: list[dict[str, object]] = [{"variable": 0}]
    nodes += [{"call": "sin", "args": [i]} for i in range(MAX_DEPTH)]
    with pytest.raises(ValueError, match=f"at most {MAX_DEPTH} levels"):
        Expression.from_dict({"names": ["a"], "nodes": nodes})


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just("add")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["names", "nodes", "call", "args", "constant", "variable"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@settings(max_examples=300)
@given(expressions(), st.data())
def test_mutated_data_loads_or_is_refused_cleanly(expression: Expression, data: st.DataObject) -> None:
    plain = expression.to_dict()
    number = data.draw(st.integers(0, len(plain["nodes"]) - 1))
    entry = plain["nodes"][number]
    key = data.draw(st.sampled_from([*entry, "protected", "extra"]))
    entry[key] = data.draw(json_values)
    try:
        loaded = Expression.from_dict(plain)
    except ValueError:
        return
    assert Expression.from_dict(loaded.to_dict()) == loaded


def test_leaves_and_fold_walk_left_to_right() -> None:
    root = call("add", 1.0, call("mul", 2.0, x1), 3.0)
    assert leaves(root) == [Constant(1), Constant(2), x1, Constant(3)]
    seen: list[object] = []
    fold(root, seen.append, lambda node, _: seen.append(node.operator))
    assert seen == [Constant(1), Constant(2), x1, "mul", Constant(3), "add"]


def test_importing_expressions_loads_nothing_heavy() -> None:
    code = (
        "import sys, gmeql.formula.expression, gmeql.network.drawing\n"
        "from gmeql.formula.expression import Expression\nfrom gmeql.formula.nodes import Variable\n"
        "str(Expression(Variable(0))), Expression(Variable(0)).latex(), Expression(Variable(0)).export('python')\n"
        "assert not {'jax', 'sympy', 'numba', 'torch', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@given(st.lists(any_constants, min_size=1, max_size=5))
def test_hash_of_an_unpickled_tree_is_fresh(values: list[float]) -> None:
    root = call("add", x1, *values)
    assert hash(pickle.loads(pickle.dumps(root))) == hash(root)  # noqa: S301
    guarded = call("sqrt", root, protected=True)
    assert pickle.loads(pickle.dumps(guarded)) == guarded  # noqa: S301
