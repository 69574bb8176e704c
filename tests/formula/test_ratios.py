"""Formulas as one fraction: same value, and nothing that grows without end."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable, build
from gmeql.formula.ratios import as_ratio
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
