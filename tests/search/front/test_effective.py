"""Members of a front at the least of the effective variance: the fit alone, groups' own constants, what the caller fits."""

from __future__ import annotations

import math

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.search.config import SearchConfig
from gmeql.search.front.effective import least_effective_member
from gmeql.search.losses.effective import InputErrors, least_effective
from gmeql.search.polish.scoring import Scored
from gmeql.search.search import Search


def test_a_member_is_led_where_its_constants_are_led() -> None:
    rng = np.random.default_rng(1)
    t = rng.uniform(0, 3, 300)
    X, y = (t + 0.5 * rng.standard_normal(300))[:, None], 1.5 * t + 0.7 + 0.2 * rng.standard_normal(300)
    errors = InputErrors(np.full((300, 1), 0.5), np.full(300, 0.2))
    rows = Search(X, y, names=("x",), config=SearchConfig(max_candidates=100), errors=errors)._state.rows
    flat = parse_tree("1.1*x + 1", ["x"])
    root, own = least_effective_member(Scored(flat, math.inf, math.inf), rows, None)
    assert own is None and root == least_effective(flat, X, y, rows.given_weights, errors)
    assert abs(Expression(root, ("x",)).constants[0] - 1.5) < 0.2
    other = parse_tree("2*x", ["x"])
    assert least_effective_member(Scored(flat, math.inf, math.inf), rows, lambda _: other) == (other, None)
