"""Rule "validation": rows kept from the search choose the simplest formula that is as good there as the best."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.model.pareto.validation import simplest_valid
from gmeql.search.losses.losses import LOSSES
from judged_fronts import judged


def test_the_simplest_within_a_standard_error_wins_and_rows_without_weight_say_nothing(
    rng: np.random.Generator,
) -> None:
    X = rng.uniform(0, 3, (200, 1))
    y = 2 * X[:, 0] + 0.1 * rng.standard_normal(200)
    members = judged(X[:100], y[:100], "2*x1", "2*x1 + 0.001*cos(9*x1)").members
    kept, values = X[100:], y[100:].copy()
    weights = np.ones(100)
    weights[:10], values[:10] = 0.0, 1e6
    assert simplest_valid(members, kept, values, weights, LOSSES["squared"], 1e-14) is members[1]
    assert simplest_valid(members, kept, y[100:], None, LOSSES["absolute"], 1e-14) is members[1]


def test_formulas_without_values_there_are_an_error(rng: np.random.Generator) -> None:
    X = rng.uniform(1, 3, (50, 1))
    members = judged(X, np.log(X[:, 0]), "log(x1)").members[1:]
    with pytest.raises(ValueError, match="finite on the validation rows"):
        simplest_valid(members, -X, X[:, 0], None, LOSSES["squared"], 1e-14)
