"""Every curve of the table: its tree says what its parts say."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Variable, build
from gmeql.search.sums.curves import SHAPES, Shape, with_positive_widths


@pytest.mark.parametrize("shape", SHAPES)
def test_a_tree_has_the_values_of_its_parts(shape: Shape, rng: np.random.Generator) -> None:
    x = rng.uniform(1, 3, 20)
    inside = shape.inside(x)[::7]
    parts = shape.parts(x, tuple(values[:, None] for values in inside.T))
    factors = rng.uniform(-2, 2, len(parts)).tolist()
    total = sum(factor * np.broadcast_to(part, (len(inside), 20)) for factor, part in zip(factors, parts, strict=True))
    assert len(inside)
    for values, row in zip(inside, total, strict=True):
        tree = shape.tree(Variable(0), factors, tuple(map(float, values)))
        np.testing.assert_allclose(Expression(tree, ("x",))(x[:, None]), row, rtol=1e-9, atol=1e-12)


def test_curves_that_need_positive_values_have_no_place_elsewhere(rng: np.random.Generator) -> None:
    x = rng.normal(size=30)
    with np.errstate(all="raise"):
        grids = [shape.inside(x) for shape in SHAPES]
    assert 5 < sum(len(grid) == 0 for grid in grids) < len(SHAPES)


def test_a_width_is_above_zero() -> None:
    """`exp(-(-(x - 0.894)/0.0945)**2)` was written."""
    peak = build(
        "exp", build("neg", build("square", build("div", build("sub", Variable(0), Constant(2.0)), Constant(-0.5))))
    )
    assert str(Expression(with_positive_widths(peak), ("x",))) == "exp(-((x - 2)/0.5)**2)"
    assert with_positive_widths(Variable(0)) == Variable(0)
