"""Tables as islands see them: losses in the target's units, formulas in the user's columns; which columns matter."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.search.data.readings import PLAIN, READINGS
from gmeql.search.symmetries.views import View
from gmeql.search.data.viewed import ViewedTable, relevance


def data(n: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 2, (n, 3))
    return X, 0.3 * X[:, 0] + 0.2 * X[:, 1], rng.uniform(0.5, 1.5, n)


def ratio_view() -> View:
    """x1/x2, large, and x3 as columns; the target divided by x1."""
    large = build("mul", Constant(1000.0), build("div", Variable(0), Variable(1)))
    return View((large, Variable(2)), Variable(0))


@pytest.mark.parametrize("view", [View.raw(3), ratio_view()], ids=["raw", "ratio"])
def test_what_an_island_finds_is_a_formula_of_the_raw_columns(view: View) -> None:
    """A formula of the island's inputs for its reading predicts, restored, what inverting by hand gives."""
    X, y, weights = data()
    table = ViewedTable.of(view, X, y, weights, all_readings=True)
    assert set(table.readings) >= {PLAIN, "square", "log", "sin"}
    columns = np.array([1, 0])
    root: Node = build("add", Constant(0.1), build("mul", Constant(0.2), build("mul", Variable(0), Variable(1))))
    inputs = table.inputs[columns]
    found = 0.1 + 0.2 * inputs[0] * inputs[1]  # what it predicts of the reading
    by_hand = {
        PLAIN: found * table.scale,
        "square": np.sqrt(found) * table.scale,
        "log": np.exp(found) * table.scale,
        "sin": np.arcsin(found),
    }
    for reading, target in by_hand.items():
        formula = Expression(table.formula(root, columns, reading), ("a", "b", "c"))
        np.testing.assert_allclose(formula(X), target * view.factors(X), rtol=1e-10, err_msg=reading)
        np.testing.assert_allclose(table.predicted(found, reading, X), formula(X), rtol=1e-10, err_msg=reading)


@pytest.mark.parametrize("view", [View.raw(3), ratio_view()], ids=["raw", "ratio"])
def test_units_turn_an_islands_loss_into_the_targets_own(view: View) -> None:
    """The weighted mean squared error of a reading that is slightly off, against that of the target."""
    X, y, weights = data()
    table = ViewedTable.of(view, X, y, weights, all_readings=True)
    error = 1e-6 * np.random.default_rng(1).standard_normal(len(y))
    factors = view.factors(X)
    for name, (target, own) in table.readings.items():
        scale = 1.0 if name in ("sin", "cos") else table.scale
        moved = READINGS[name].forward((y + error) / factors / scale)
        loss = np.average((moved - target) ** 2, weights=own)  # fits divide weights by their mean
        assert loss * table.units[name] == pytest.approx(np.mean(weights * error**2), rel=1e-3), name


@pytest.mark.filterwarnings("error")
def test_tiny_targets_have_no_readings_whose_weights_are_beyond_a_float() -> None:
    X, y, weights = data()
    table = ViewedTable.of(View.raw(X.shape[1]), X, 1e-160 * (1.0 + y**2), weights, all_readings=True)
    assert PLAIN in table.readings and all(np.isfinite(own).all() for _, own in table.readings.values())


def test_columns_that_a_view_made_are_brought_near_one() -> None:
    X, y, weights = data()
    table = ViewedTable.of(ratio_view(), X, y, weights, all_readings=False)
    assert list(table.readings) == [PLAIN]
    assert table.sizes[0] > 500 and table.sizes[1] == 1.0  # a column near 1 keeps its frequencies
    assert np.sqrt(np.mean(table.inputs[0] ** 2)) == pytest.approx(1.0)
    raw = ViewedTable.of(View.raw(3), 1000 * X, y, weights, all_readings=False)
    assert raw.sizes.tolist() == [1.0] * 3  # the user's own columns stay as they are


def test_relevance_is_the_explained_share_of_the_variance() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4000, 3))
    found = relevance(X, X[:, 0] ** 2 + 0.5 * X[:, 1], np.ones(4000))
    shares = np.array([4 / 45, 1 / 12, 0.0])  # variances of x² and x/2
    np.testing.assert_allclose(found, shares / shares.sum(), atol=0.05)  # bins lose a little


def test_relevance_of_noise_and_of_constants_is_nothing() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 1, 500), np.ones(500)])
    assert (relevance(X, rng.standard_normal(500), np.ones(500)) < 0.03).all()
    assert relevance(X, np.ones(500), np.ones(500)).tolist() == [0.0, 0.0]
    long = rng.uniform(0, 1, (50_000, 1))
    assert relevance(long, long[:, 0], np.ones(50_000))[0] > 0.98  # judged on some of the rows


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("all_readings", [True, False])
def test_a_factor_of_zeros_and_ones_leaves_out_the_rows_it_silences(all_readings: bool) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 4, 200) > 0, rng.uniform(1, 2, 200)]).astype(float)
    y = X[:, 0] * X[:, 1] ** 2
    table = ViewedTable.of(View((Variable(1),), Variable(0)), X, y, np.ones(200), all_readings=all_readings)
    target, weights = table.readings[PLAIN]
    assert ("log" in table.readings) == all_readings
    np.testing.assert_array_equal(weights == 0, X[:, 0] == 0)
    np.testing.assert_allclose(target[X[:, 0] == 1] * table.scale, X[X[:, 0] == 1, 1] ** 2)
    silent = ViewedTable.of(View((Variable(1),), Variable(0)), 0 * X, y, np.ones(200), all_readings=all_readings)
    assert np.isfinite(silent.scale)
