"""Poles among the rows: the law of a target that has them is chosen, one put beside a few rows is not."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.search.judging.outlook import Outlook
from judged_fronts import judged


@pytest.mark.parametrize("seed", range(5))
def test_the_law_of_a_target_with_poles_is_chosen_instead_of_a_constant(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-10, 10, (1000, 5))
    y = -X[:, 0] / (X[:, 1] * X[:, 4]) + np.cos(X[:, 0] * X[:, 2])  # most of the law, and not all of it
    front = judged(X, y, "-x1/(x2*x5)")
    chosen = front.select("best")
    assert chosen.complexity > 1
    assert chosen.outlook is not None and chosen.outlook.pole and chosen.outlook.pole_seen
    assert Outlook.from_dict(chosen.outlook.to_dict()) == chosen.outlook
    t = rng.uniform(0, 3, (100, 1))
    slope = np.tan(t[:, 0]) + 0.01 * rng.standard_normal(100)
    assert judged(t, slope, "sin(x1)/cos(x1)").select("best").complexity > 1


def test_the_row_next_to_a_pole_does_not_hide_the_rows_that_follow_it(rng: np.random.Generator) -> None:
    X = rng.uniform(0, 3, (200, 1))
    X[0, 0] = 1.37 + 1e-6  # a million there, a hundred at most elsewhere
    y = 1 / (X[:, 0] - 1.37) + 0.01 * rng.standard_normal(200)
    front = judged(X, y, "1.00001/(x1 - 1.37)")
    assert front.select("best").complexity > 1


def test_a_pole_that_few_rows_pay_for_is_not_the_targets(rng: np.random.Generator) -> None:
    X = rng.uniform(0, 3, (200, 1))
    y = 2 * X[:, 0] + 0.1 * rng.standard_normal(200)
    slip = int(np.argmin(np.abs(X[:, 0] - 1.4)))
    y[slip] += 40.0
    pole = float(X[slip, 0]) - 1e-3 / 40
    for text in (f"2*x1 + 0.001/(x1 - {pole!r})", "2*x1 + 0.001/(x1 - 1.5)", f"3/(x1 - {pole!r})"):
        front = judged(X, y, "2*x1", text)
        assert front.select("best").complexity < 5
        outlook = next((m.outlook for m in front if "/" in str(m)), None)
        assert outlook is None or outlook.doubtful_pole
