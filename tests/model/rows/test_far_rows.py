"""Rows far from a formula: as many as there are, where they matter and are no factors."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.model.rows.far_rows import (
    are_gross,
    behind_gaps,
    lie_alone,
    rows_far_away,
    size_grows,
    spread_grows,
    varies_by_factors,
)


def test_outliers_are_counted_where_they_matter(rng: np.random.Generator) -> None:
    residuals = rng.standard_normal(300)
    assert rows_far_away(residuals).sum() == 0
    residuals[:5] = 100.0
    assert rows_far_away(residuals).sum() == 5
    residuals[:140] = 100.0
    assert rows_far_away(residuals).sum() == 0


def test_outliers_on_one_side_are_seen_behind_the_mean_they_pull(rng: np.random.Generator) -> None:
    y = 2 * rng.uniform(0, 5, 200) + 1
    y[:20] += 40
    assert rows_far_away(y - y.mean()).sum() == 20


def test_errors_that_are_factors_are_no_outliers_and_grow_with_the_prediction(rng: np.random.Generator) -> None:
    predicted = rng.uniform(1, 100, 300)
    y = predicted * np.exp(rng.standard_normal(300))
    far = rows_far_away(y - predicted)
    assert far.any() and varies_by_factors(predicted, y, far) and size_grows(predicted, y - predicted)
    slipped = np.where(np.arange(300) == 7, -5.0, y)
    assert not varies_by_factors(predicted, slipped, far)
    assert not size_grows(predicted, rng.standard_normal(300))


def test_errors_in_proportion_to_the_prediction_are_no_outliers(rng: np.random.Generator) -> None:
    """Of rates of a reaction, measured to 10 %, the four largest were."""
    predicted = 3e9 * np.exp(-6600 / rng.uniform(280, 400, 60))
    residuals = 0.1 * predicted * rng.standard_normal(60)
    far = rows_far_away(residuals)
    assert far.any() and spread_grows(predicted, residuals, far) and spread_grows(-predicted, residuals, far)
    assert not spread_grows(predicted, residuals, np.zeros(60, bool))
    struck = rng.standard_normal(60)
    struck[:4] = 50.0
    assert not spread_grows(predicted, struck, rows_far_away(struck))


def test_what_a_heavy_tail_reaches_is_no_outlier() -> None:
    """Of 20 rows with t-distributed errors five were called outliers."""
    found = {"t2": 0, "log-normal": 0, "struck": 0}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.choice([20, 40, 80]))
        struck = rng.standard_normal(n)
        struck[: n * 3 // 10] += 20 * rng.choice([-1, 1], n * 3 // 10)
        tails = {"t2": rng.standard_t(2, n), "log-normal": np.exp(1.5 * rng.standard_normal(n)), "struck": struck}
        for kind, errors in tails.items():
            found[kind] += are_gross(errors, rows_far_away(errors))
    assert found["t2"] <= 2 and found["log-normal"] <= 4 and found["struck"] == 40


def test_rows_behind_a_wide_gap_are_outliers_beside_skewed_errors_too() -> None:
    """Two houses with a digit too many were taken for the tail of the others' errors."""
    found = {"costs": 0, "struck": 0}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        errors = rng.exponential(1.0, 150)
        struck = errors.copy()
        struck[:2] += [110, 190]
        for kind, each in (("costs", np.exp(1.2 * rng.standard_normal(150))), ("struck", struck)):
            found[kind] += are_gross(each, rows_far_away(each))
    assert found["struck"] >= 39 and found["costs"] <= 2


def test_a_gap_is_measured_by_how_fast_the_tail_below_it_falls() -> None:
    """Of 200 rows with errors that fall exponentially, two beyond all of them were hardly ever told as outliers."""
    found = {"t1": 0, "log-normal": 0, "exponential": 0, "struck": 0, "counts struck": 0, "counts": 0}
    for seed in range(60):
        rng = np.random.default_rng(seed)
        tails = {"t1": rng.standard_t(1, 200), "log-normal": np.exp(1.5 * rng.standard_normal(200))}
        tails |= {"exponential": rng.exponential(1.0, 200), "counts": rng.poisson(1.5, 200).astype(float)}
        for kind in ("exponential", "counts"):
            struck = tails[kind].copy()
            struck[:2] += 40.0
            tails["struck" if kind == "exponential" else "counts struck"] = struck
        for kind, errors in tails.items():
            found[kind] += are_gross(errors, rows_far_away(errors))
    assert found["struck"] >= 30 and found["counts struck"] >= 55
    assert found["t1"] <= 4 and found["log-normal"] <= 2 and found["exponential"] == 0 and found["counts"] == 0


def test_a_row_lies_alone_where_its_neighbours_do_not_lie_there_with_it(rng: np.random.Generator) -> None:
    X = rng.uniform(1, 9, (80, 1))
    errors = 0.1 * rng.standard_normal(80)
    struck = errors + np.where(np.arange(80) == 5, 9.0, 0.0)
    (far,) = behind_gaps(struck, rows_far_away(struck))
    assert np.flatnonzero(far).tolist() == [5] and lie_alone(X, struck, far)
    steep = errors + np.exp(3 * (X[:, 0] - 8))
    assert not lie_alone(X, steep, rows_far_away(steep)) and not behind_gaps(errors, rows_far_away(errors))


def test_few_rows_far_off_are_outliers_among_many(rng: np.random.Generator) -> None:
    errors = rng.standard_normal(20_000)
    errors[:12] += 90.0
    assert are_gross(errors, rows_far_away(errors))
    assert are_gross(np.r_[np.zeros(20), 5.0], np.arange(21) == 20) and not are_gross(errors, np.zeros(20_000, bool))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("unit", [2.0**-900, 2.0**1000])
def test_units_do_not_matter(unit: float, rng: np.random.Generator) -> None:
    residuals = rng.standard_normal(300)
    residuals[:5] = 100.0
    far = rows_far_away(unit * residuals)
    assert far.sum() == 5 and are_gross(unit * residuals, far)
    assert rows_far_away(np.zeros(9)).sum() == 0
