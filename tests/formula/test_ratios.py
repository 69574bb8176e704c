"""Formulas as one fraction: same value, and nothing that grows without end."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable, build
from gmeql.formula.ratios import as_ratio
from gmeql.formula.simplify import simplify
from random_trees import N_VARIABLES, trees
from thinned import examples

X = np.random.default_rng(3).uniform(0.5, 2.0, (40, N_VARIABLES))
NAMES = tuple(f"x{i}" for i in range(N_VARIABLES))


@examples(200)
@given(trees(st.floats(0.5, 3.0), protected=False))
def test_the_value_is_kept(root):
    fraction = as_ratio(root)
    if fraction is None:
        return
    with np.errstate(all="ignore"):
        before, after = Expression(root, NAMES)(X), Expression(fraction, NAMES)(X)
    good = np.isfinite(before) & np.isfinite(after) & (np.abs(before) < 1e6)
    # multiplying out may cancel digits; most rows keep most of theirs
    close = np.isclose(before[good], after[good], rtol=1e-5, atol=1e-7)
    assert close.mean() > 0.8 if good.sum() > 5 else True


def test_long_products_are_given_up():
    total = build("add", *(Variable(i) for i in range(3)), Constant(1.0))
    assert as_ratio(Call("mul", (build("pow6", total), build("pow6", total)))) is None


@given(st.floats(0.5, 2.0))
def test_what_cancels_is_gone(value):
    x = Variable(0)
    root = build(
        "div", build("mul", Constant(value), x, build("add", x, Constant(1.0))), build("add", build("square", x), x)
    )
    assert as_ratio(root) == Constant(value)


def test_a_sum_that_divides_another_is_gone():
    """n*(V1*log(V2) - V1*log(V1) - V2*log(V1) + V2*log(V2))/(V1 + V2) was the formula of a gas that expands."""
    x, y = Variable(0), Variable(1)
    total, difference = build("add", x, y), build("sub", build("log", y), build("log", x))
    times = [build("mul", each, other) for each in (x, y) for other in (build("log", y), build("neg", build("log", x)))]
    found = as_ratio(build("div", build("add", *times), total))
    assert found is not None and simplify(found) == simplify(difference)
    cubes, square = build("sub", build("cube", x), build("cube", y)), build("square", build("add", x, y))
    assert str(Expression(as_ratio(build("div", build("sub", x, y), cubes)), NAMES)) == "1/(x0**2 + x0*x1 + x1**2)"
    assert as_ratio(build("div", square, build("add", x, y, Constant(1.0)))) is not None
