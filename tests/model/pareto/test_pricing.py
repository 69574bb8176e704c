"""Formulas that everybody knows: a member of a front that is one of them has their price, whatever its constants."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.nodes import Constant, Variable, build
from gmeql.formula.parsing import parse_tree
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.model.pareto.pricing import repriced, term_shapes
from gmeql.search.config import SearchConfig
from gmeql.search.data.rows import SearchRows
from gmeql.search.front.plain_sums import judged_sums
from judged_fronts import judged

NAMES = ("x1", "x2")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("x1*x2", "2.9*x1*x2", True),
        ("3*x1/(x1 + 1.2)", "2.7*x1/(x1 + 0.9)", True),
        ("x1*x2", "2.9*x1*x2 + 1", False),
        ("x1*x2", "2.9*x1/x2", False),
        ("4 - 0.5*x2", "1.1*x2 + 3", True),
    ],
)
def test_shapes_know_no_constants(one: str, other: str, same: bool) -> None:
    shapes = [term_shapes(parse_tree(text, NAMES)) for text in (one, other)]
    assert (shapes[0] == shapes[1]) is same


@pytest.mark.parametrize("law", ["3*x1*x2", "x1*x2"])
def test_a_rounded_law_is_not_displaced_by_itself_with_fitted_constants(law: str, rng: np.random.Generator) -> None:
    X = rng.uniform(1, 5, (60, 2))
    y = (3.0 if law.startswith("3") else 1.0) * X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(60)
    front = judged(X, y, law)
    rows = SearchRows.of(X, y, config=SearchConfig(), names=NAMES)
    sums = judged_sums(front, rows)  # type: ignore[arg-type]
    assert any(term_shapes(m.expression.root) == term_shapes(build("mul", Variable(0), Variable(1))) for m in sums)
    best = front.with_sums(sums).select()
    assert str(best) == law and best.outlook is not None and best.outlook.nats is not None
    assert best.outlook.nats < 6


def test_what_is_not_known_keeps_its_own_price(rng: np.random.Generator) -> None:
    X = rng.uniform(1, 5, (60, 2))
    front: Front = judged(X, X[:, 0] + rng.standard_normal(60), "1.01*x1")
    line = FrontMember(front[1].expression, 1.0, 3, 0.0, -1, front[1].outlook)
    members, others = repriced(front.members, [line])
    assert members == front.members and others == [line]
    assert term_shapes(Constant(2.0)) == {Constant(0.0)}
