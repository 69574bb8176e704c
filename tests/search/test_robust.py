"""Robust weights against their formulas, and what they are for: a line under a third of wrong rows."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql import GMEQLRegressor
from gmeql.search.losses import LOSSES
from gmeql.search.robust import BISQUARE_CUT, HUBER_CUT, WEIGHTS, bisquare, huber, robust_weights, scale_of


def test_every_loss_but_the_squared_one_has_weights() -> None:
    assert set(WEIGHTS) == {name for name, loss in LOSSES.items() if loss.value is None} - {"squared"}


def test_weights_follow_their_formulas() -> None:
    r = np.array([0.0, 1.0, -HUBER_CUT, 4.0, -BISQUARE_CUT, 50.0])
    assert huber(r) == pytest.approx([1, 1, 1, HUBER_CUT / 4, HUBER_CUT / BISQUARE_CUT, HUBER_CUT / 50])
    assert bisquare(r)[[0, 4, 5]].tolist() == [1.0, 0.0, 0.0]
    assert bisquare(r)[3] == pytest.approx((1 - (4 / BISQUARE_CUT) ** 2) ** 2)


def test_the_scale_survives_wrong_rows(rng: np.random.Generator) -> None:
    residual = rng.standard_normal(2000)
    residual[:600] = 1e6
    assert scale_of(residual, residual) < 2.5
    assert scale_of(np.zeros(100), rng.standard_normal(100)) > 0  # most rows are met exactly


def test_nothing_is_forgotten_before_something_is_explained() -> None:
    residual = np.array([0.1, -0.1, 0.05, 0.0, 100.0])
    y = np.arange(5.0)
    assert robust_weights("robust", residual, y, explained=True)[-1] == 0.0
    assert 0 < robust_weights("robust", residual, y, explained=False)[-1] < 0.1
    assert robust_weights("robust", np.append(residual[:-1], np.nan), y, explained=True)[-1] == 0.0


@pytest.mark.parametrize(("loss", "share"), [("huber", 0.08), ("robust", 0.08), ("robust", 0.3)])
def test_a_line_is_found_under_gross_outliers(loss: str, share: float) -> None:
    rng = np.random.default_rng(3)
    X = rng.uniform(-3, 3, (200, 3))
    y = 2 * X[:, 0] + 1 + 0.1 * rng.standard_normal(200)
    wrong = rng.choice(200, int(200 * share), replace=False)
    y[wrong] += rng.choice([-1, 1], len(wrong)) * 20
    model = GMEQLRegressor(max_candidates=20_000, max_time=None, random_state=0, loss=loss, n_jobs=1).fit(X, y)
    probe = np.array([[0.0, 0, 0], [1.0, 0, 0]])
    at_zero, at_one = model.predict(probe)
    assert at_zero == pytest.approx(1.0, abs=0.1) and at_one - at_zero == pytest.approx(2.0, abs=0.05)
