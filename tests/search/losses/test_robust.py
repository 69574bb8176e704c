"""Robust weights against their formulas, and what they are for: a line under a third of wrong rows."""

from __future__ import annotations

import numpy as np
import pytest
from thinned import thinned

from gmeql import GMEQLRegressor
from gmeql.search.losses.losses import LOSSES
from gmeql.search.losses.robust import (
    BISQUARE_CUT,
    HUBER_CUT,
    WEIGHTS,
    bisquare,
    huber,
    least_absolute_line,
    robust_weights,
    middle_of,
    scale_of,
)


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


@pytest.mark.parametrize("n", [1, 2, 3, 10, 101])
def test_the_middle_is_the_median_to_the_last_digit(n: int, rng: np.random.Generator) -> None:
    values = rng.standard_cauchy(n)
    assert middle_of(values) == np.median(values) and middle_of(np.append(values, np.inf)) == np.median(
        [*values, np.inf]
    )
    assert np.isnan(middle_of(np.append(values, np.nan))) and np.isnan(middle_of(values[:0]))


def test_nothing_is_forgotten_before_something_is_explained() -> None:
    residual = np.array([0.1, -0.1, 0.05, 0.0, 100.0])
    y = np.arange(5.0)
    assert robust_weights("robust", residual, y, explained=True)[-1] == 0.0
    assert 0 < robust_weights("robust", residual, y, explained=False)[-1] < 0.1
    assert robust_weights("robust", np.append(residual[:-1], np.nan), y, explained=True)[-1] == 0.0


def wrong_line(seed: int, share: float, signs: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """2 x1 + 1 of three columns, with a share of the rows moved by 20 to a side."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (200, 3))
    y = 2 * X[:, 0] + 1 + 0.1 * rng.standard_normal(200)
    wrong = rng.choice(200, int(200 * share), replace=False)
    y[wrong] += rng.choice(signs, len(wrong)) * 20
    return X, y


@pytest.mark.parametrize("seed", range(5))
def test_the_least_absolute_line_goes_through_the_middle(seed: int) -> None:
    X, y = wrong_line(seed, 0.4, (1,))
    X = np.column_stack([X, np.full(200, 7.0)])  # a column that says nothing has no factor
    line = least_absolute_line(X, y, np.ones(200))
    assert line is not None and line[:4] == pytest.approx([1.1, 2, 0, 0], abs=0.1) and line[4] == 0
    assert least_absolute_line(X[:19], y[:19], np.ones(19)) is None


@pytest.mark.parametrize(
    ("loss", "share", "signs", "seed"),
    thinned([
        ("huber", 0.08, (-1, 1), 3),
        ("robust", 0.08, (-1, 1), 3),
        ("robust", 0.3, (-1, 1), 3),
        ("robust", 0.3, (1,), 0),
        ("robust", 0.35, (1,), 1),
    ], quick=(0, 3)),
)  # fmt: skip
def test_a_line_is_found_under_gross_outliers(loss: str, share: float, signs: tuple[int, ...], seed: int) -> None:
    X, y = wrong_line(seed, share, signs)
    model = GMEQLRegressor(max_candidates=3_000, max_time=None, random_state=0, loss=loss, n_jobs=1).fit(X, y)
    probe = np.array([[0.0, 0, 0], [1.0, 0, 0]])
    at_zero, at_one = model.predict(probe)
    assert at_zero == pytest.approx(1.0, abs=0.1) and at_one - at_zero == pytest.approx(2.0, abs=0.05)
