"""Random expression trees for property tests, and the rows on which two ways of computing them can be compared."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, Variable, evaluate, fold

N_VARIABLES = 3
NAMES = ("x1", "x2", "x3")
UNARY = (
    "id sin cos sqrt square cube pow4 pow5 pow6 exp log tanh asin acos atan abs inv neg".split()
)  # every unary operator of the table
BINARY = ("sub", "div", "pow")
N_ARY = ("add", "mul")

plain_constants = st.sampled_from([1.0, -1.0, 2.0, 3.0, 0.5, -0.5, 1.2, -2.5, 0.75, 12.0, 1.5e-7, 0.001, -31.25])
any_constants = st.one_of(plain_constants, st.floats(-20, 20, allow_nan=False).map(lambda v: v or 1.0))


def call(operator: str, *args: Node | float, protected: bool = False) -> Call:
    """A call whose plain numbers become constants."""
    return Call(operator, tuple(Constant(a) if isinstance(a, int | float) else a for a in args), protected)


def trees(constants: st.SearchStrategy[float] = any_constants, protected: bool = True) -> st.SearchStrategy[Node]:
    """Trees over three columns of every operator, in natural and (where asked for) protected form."""
    leaf = st.one_of(st.integers(0, N_VARIABLES - 1).map(Variable), constants.map(Constant))
    flag = st.booleans() if protected else st.just(False)

    def grow(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
        one = st.builds(lambda op, a, p: Call(op, (a,), p), st.sampled_from(UNARY), inner, flag)
        two = st.builds(lambda op, a, b, p: Call(op, (a, b), p), st.sampled_from(BINARY), inner, inner, flag)
        many = st.builds(
            lambda op, args, p: Call(op, tuple(args), p),
            st.sampled_from(N_ARY), st.lists(inner, min_size=2, max_size=4), flag,
        )  # fmt: skip
        power = st.builds(lambda a, b: call("pow", a, b), inner, st.sampled_from([2.0, -1.0, 0.5, 3.0, -2.0, 1.5, 0.3]))
        return st.one_of(one, two, many, power)

    return st.recursive(leaf, grow, max_leaves=12)


def expressions(**options: object) -> st.SearchStrategy[Expression]:
    return trees(**options).map(lambda root: Expression(root, NAMES))  # type: ignore[arg-type]


def rows(seed: int = 0, n: int = 60) -> np.ndarray:
    """Rows of both signs and several magnitudes."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.1, 3.0, (n, N_VARIABLES))
    X[n // 3 :: 2] *= rng.choice([-1.0, 1.0], X[n // 3 :: 2].shape)
    X[-5:] *= 20.0
    return X


def value(expression: Expression, X: np.ndarray, dtype: type) -> np.ndarray:
    """The expression in another precision of NumPy."""
    X = X.astype(dtype)
    with np.errstate(all="ignore"):
        result = evaluate(expression.root, lambda i: X[:, i], dtype, np)
    return np.broadcast_to(np.asarray(result, dtype), (len(X),)).astype(np.longdouble)


def comparable(expression: Expression, X: np.ndarray, precision: type = np.float64) -> np.ndarray:
    """Rows where rounding does not decide the result: the next wider type gives the same number, almost, and so does
    another order of terms and factors (1e37 + 3 - 1e37 is 0 in either type, and 3 in another order).

    Elsewhere (cancellation, sines of huge arguments, the edge of a domain) the last bit of one library's logarithm
    decides, and no two ways of computing can be held against each other.
    """
    wider = np.longdouble if precision is np.float64 else np.float64
    narrow, wide = value(expression, X, precision), value(expression, X, wider)
    limit = 1e-14 if precision is np.float64 else 1e-6
    with np.errstate(all="ignore"):
        steady = np.abs(narrow - wide) <= limit * np.abs(wide)
        nudge = 1 + 4 * float(np.finfo(precision).eps)
        constants = [c if c.is_integer() else c * nudge for c in expression.constants]
        nudged = value(expression.with_constants(constants), X * nudge, wider)
        steady &= np.abs(nudged - wide) <= 30 * limit * np.abs(wide)
        turned = value(Expression(_turned(expression.root), expression.names), X, wider)
        steady &= np.abs(turned - wide) <= 30 * limit * np.abs(wide)
    return np.asarray(steady & np.isfinite(wide) & np.isfinite(narrow) & (np.abs(wide) > 1e-30) & (np.abs(wide) < 1e30))


def _turned(root: Node) -> Node:
    """The tree with terms and factors in the opposite order."""

    def visit(node: Call, args: list[Node]) -> Node:
        return Call(node.operator, tuple(args[::-1] if node.operator in N_ARY else args), node.protected)

    return fold(root, lambda leaf: leaf, visit)


def all_parts_finite(expression: Expression, X: np.ndarray) -> np.ndarray:
    """Rows where no part of the formula leaves its domain."""
    finite = np.ones(len(X), bool)

    def visit(node: Call, _: list[None]) -> None:
        nonlocal finite
        finite = finite & np.isfinite(Expression(node, expression.names)(X))

    fold(expression.root, lambda leaf: None, visit)
    return finite
