"""Places of a formula and what would have to stand there."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.nodes import Variable
from gmeql.formula.parsing import parse_tree
from gmeql.search.direct.going_on.holes import holes
from gmeql.search.direct.table import DirectTable


@pytest.mark.parametrize(
    "text",
    [
        "a*sin(b) + 3.1*c",
        "exp(a/(b + 1.5)) - c",
        "sqrt(a*b + c)/2",
        "log(a + b)*c - (a - c)**2",
        "tanh(a*b/9) + atan(c)",
    ],
)
def test_a_place_filled_with_its_own_target_is_the_target(text: str) -> None:
    """A column that holds the target of a place, put there, makes the formula the table's target."""
    X = np.random.default_rng(3).uniform(0.5, 4, (200, 3))
    table = DirectTable(X, X[:, 0] * X[:, 1] - 2 * X[:, 2] + 40, np.ones(200))
    root = parse_tree(text, "abc")
    places = list(holes(root, table))
    assert len(places) > 5
    for place in places:
        extended = DirectTable(np.column_stack([table.X, place.values]), table.y, table.weights)
        assert extended.error(place.restore(Variable(3))) < 1e-7
