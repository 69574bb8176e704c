"""Tables that constraints allow: whatever is a formula of them keeps the constraint."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.knowledge.constraint_text import read_constraint
from gmeql.knowledge.knowledge import Knowledge
from gmeql.knowledge.scene import Scene
from gmeql.search.symmetries.stated import stated_view

NAMES = ("x", "t")
X = np.random.default_rng(0).uniform(0.5, 2, (30, 2)) * [1.0, -1.0]
SCENE = Scene(NAMES, ((-2.0, 2.0), (-2.0, 2.0)), 1.0)


@pytest.mark.parametrize("text", ["even in x", "odd in t", "symmetric in x, t", "f(x=0) = 0", "f(t=3) = 0"])
def test_every_formula_of_the_table_keeps_it(text: str) -> None:
    constraint = read_constraint(text, NAMES)
    view = stated_view((constraint,), NAMES, X, X[:, 0])
    assert view is not None
    known = Knowledge(constraints=(constraint,), scene=SCENE)
    for inner in ("a + 1.7*b", "sin(a)*b + 2", "exp(a - b)"):
        assert known.keeps(view.restore(parse_tree(inner, ["a", "b"])))


def test_several_together_and_those_that_give_no_table() -> None:
    both = tuple(read_constraint(text, NAMES) for text in ("odd in x", "even in t"))
    view = stated_view(both, NAMES, X, X[:, 0])
    assert view is not None and [str(Expression(c, NAMES)) for c in view.columns] == ["x**2", "t**2"]
    assert str(Expression(view.factor, NAMES)) == "x"
    for text in ("output >= 0", "soft even in x", "f(x=1, t=2) = 0"):
        assert stated_view((read_constraint(text, NAMES),), NAMES, X, X[:, 0]) is None
    zero = np.vstack([X, [0.0, 1.0]])
    assert stated_view((read_constraint("f(x=0) = 0", NAMES),), NAMES, zero, zero[:, 1]) is None
