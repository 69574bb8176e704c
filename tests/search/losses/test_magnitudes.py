"""Targets of many magnitudes are told from heavy tails and from noise, and every row of them counts."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.model.fit.preparation import prepare
from gmeql.search.config import SearchConfig
from gmeql.search.data.readings import PLAIN, read_target
from gmeql.search.data.rows import SearchRows
from gmeql.search.judging.soundness import excursion
from gmeql.search.losses.magnitudes import WIDEST, magnitudes, ordinary_size
from gmeql.search.polish.scoring import JudgedRows

RNG = np.random.default_rng(0)
X = RNG.uniform(-20, 20, (300, 1))
LAW = np.exp(3 * X[:, 0]) + 5


@pytest.mark.parametrize(
    "y",
    [
        RNG.normal(size=500),
        RNG.standard_cauchy(500),
        np.exp(2 * RNG.normal(size=500)),
        RNG.integers(0, 3, 500).astype(float),
        np.zeros(500),
        10.0 ** RNG.uniform(-9, 0, 500) + 1e-3 * RNG.normal(size=500),
    ],
)
def test_heavy_tails_counts_and_noise_are_not_many_magnitudes(y: np.ndarray) -> None:
    assert magnitudes(y) is None


@pytest.mark.parametrize("decades", np.linspace(0.5, 12, 24))
@pytest.mark.parametrize("largest", [1.0, 1e9])
def test_rows_that_are_alike_are_told_without_sorting_them(
    decades: float, largest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    y = np.append(10.0 ** np.linspace(0, decades, 60), largest)
    found, size = magnitudes(y), ordinary_size(y)
    monkeypatch.setattr("gmeql.search.losses.magnitudes._are_alike", lambda size, many=0.0: False)
    slowly = magnitudes(y)
    assert ordinary_size(y) == size and (found is None) == (slowly is None)
    assert found is None or slowly is None or (found == slowly).all()


def test_sizes_are_relative_to_the_largest_and_bounded() -> None:
    found = magnitudes(-(10.0 ** np.linspace(-150, 100, 50)))
    assert found is not None
    assert found.max() == 1.0 and found.min() == 1 / WIDEST


@pytest.mark.parametrize("largest", [1e-19, 1e-13, 1.0, 1e19, 1e60])
def test_a_search_takes_targets_over_more_magnitudes_than_squares_have(largest: float) -> None:
    """Planck's law far beyond its peak."""
    data = prepare(X, largest * np.exp(-30 * np.abs(X[:, 0])), names=("x",))
    rows = SearchRows.of(data.X, data.y, sample_weight=data.weight, config=SearchConfig())
    assert magnitudes(np.array([5e-324, 1.0, 1e308])) is not None  # their quotient is no number
    assert np.isfinite(rows.weights).all() and (rows.weights * rows.y**2).max() > 1e-300


def test_every_row_counts_by_its_own_size() -> None:
    """The formula without its offset is exact on the largest rows, and five times too small on the others."""
    data = prepare(X, LAW, names=("x",))
    assert data.weight is not None
    rows = JudgedRows.of(data.X, data.y, data.weight, ("x",))
    scale = 2.0**-data.target_exponent
    for formula, exact in ((f"{scale!r}*exp(3*x)", False), (f"{scale!r}*(exp(3*x) + 5)", True)):
        residual = Expression(parse_tree(formula, ("x",)), ("x",))(data.X) - data.y
        assert rows.is_exact(float(np.average(residual**2, weights=rows.weights))) == exact
    assert data.target_largest < 1e-3 * LAW.max()  # rounding is that of rows as they count


def test_a_few_huge_rows_do_not_make_the_others_vanish() -> None:
    """They count by their own size; the others by the error in the unit that the target has for most rows."""
    y = 100 * np.sin(X[:, 0])
    y[:3] = [1e17, -1e56, 4e140]
    data = prepare(X, y, names=("x",))
    assert data.target_exponent == 0 and data.weight is not None
    small = np.abs(data.y) <= np.median(np.abs(data.y))
    assert np.ptp(data.weight[small]) == 0 and data.weight[~small].max() <= data.weight[small][0]
    relative = np.sqrt(data.weight) * np.abs(data.y)
    assert relative.max() < 1.5 * np.median(relative[~small])


def test_ordinary_targets_keep_their_weights() -> None:
    assert prepare(X, X[:, 0] ** 2, names=("x",)).weight is None


def test_the_target_itself_is_always_a_reading() -> None:
    weights = 1 / LAW**2
    found = read_target(LAW / LAW.max(), weights / weights.mean())
    assert PLAIN in found and "log" in found


def test_values_between_the_rows_may_leave_the_range_of_such_a_target() -> None:
    root = parse_tree("exp(4*x)", ("x",))
    assert excursion(root, X, LAW) == 0.0
    assert excursion(root, X, X[:, 0]) > 0.0
    assert excursion(parse_tree("log(x)", ("x",)), X, LAW) == np.inf
