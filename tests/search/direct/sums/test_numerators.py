"""Terms that are one fraction are written as one, and others stay."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node, build
from gmeql.formula.parsing import parse_tree
from gmeql.search.direct.sums.numerators import over_one_line
from gmeql.search.direct.table import DirectTable

X = np.random.default_rng(0).uniform(0.1, 4.0, (50, 2))
NAMES = ("x", "t")
TABLE = DirectTable(X, X[:, 0], np.ones(50))


def term(above: str, below: str = "") -> Node:
    """As methods write it: a product with the inverse of what stands below the line."""
    over = [build("inv", parse_tree(below, NAMES))] if below else []
    return build("mul", *(parse_tree(part, NAMES) for part in above.split(" ")), *over)


def joined(terms: list[tuple[str, ...]], factors: list[float]) -> set[Node]:
    return set(over_one_line([term(*one) for one in terms], factors, TABLE))


@pytest.mark.parametrize(
    ("terms", "factors", "written"),
    [
        # -0.7*x**2/(x + 1.25)
        (
            [("exp(-t)",), ("x exp(-t)",), ("exp(-t)", "x + 1.25")],
            [0.875, -0.7, -1.09375],
            [("x**2 exp(-t)", "x + 1.25")],
        ),
        # 2*x/(x + 3), beside another term
        ([("1", "x + 3"), ("sin(t)",), ("1",)], [-6.0, 1.0, 2.0], [("x", "x + 3"), ("sin(t)",)]),
        # 0.5*x**2/(x**2 + 2)
        ([("1", "x**2 + 2"), ("1",)], [-1.0, 0.5], [("x**2", "x**2 + 2")]),
    ],
)
def test_terms_that_are_one_fraction(
    terms: list[tuple[str, ...]], factors: list[float], written: list[tuple[str, ...]]
) -> None:
    assert {str(Expression(node, NAMES)) for node in joined(terms, factors)} == {
        str(Expression(term(*one), NAMES)) for one in written
    }


def test_constants_that_were_fitted_apart_are_one() -> None:
    assert len(joined([("exp(-0.3*t)",), ("exp(-0.30000000001*t)", "x + 3")], [2.0, -6.0])) == 1


def test_other_terms_stay() -> None:
    terms: list[tuple[str, ...]] = [("1", "x + 3"), ("x",), ("exp(-t)",)]
    assert joined(terms, [-6.0, 2.0, 1.0]) == {term(*one) for one in terms}
    terms = [("exp(-t)", "x + 3"), ("1",)]  # not of one function
    assert joined(terms, [-6.0, 2.0]) == {term(*one) for one in terms}
