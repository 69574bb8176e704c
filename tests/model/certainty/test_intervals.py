"""Intervals of constants against their theory."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.formula.parsing import parse_tree
from gmeql.model.certainty.intervals import PredictionBasis, constant_intervals, prediction_interval
from gmeql.search.losses.converging import converged
from gmeql.search.losses.losses import find_loss
from gmeql.search.losses.robust import robust_weights
from thinned import thinned

X1 = Variable(0)


class Lines:
    """Rows around a line, and the line fitted to them."""

    def line(self, rng: np.random.Generator, rows: int = 40) -> tuple[np.ndarray, np.ndarray]:
        x = rng.uniform(0, 3, rows)
        return x[:, None], 1.5 + 2.5 * x + 0.3 * rng.standard_normal(rows)

    def fitted_line(self, X: np.ndarray, y: np.ndarray, w: np.ndarray | None = None) -> Expression:
        coefficients = np.polynomial.polynomial.polyfit(X[:, 0], y, 1, w=None if w is None else np.sqrt(w))
        root = Call("add", (Constant(coefficients[0]), Call("mul", (Constant(coefficients[1]), X1))))
        return Expression(root, ("x1",))


class TestIntervals(Lines):
    def test_a_line_has_the_textbook_intervals(self) -> None:
        from scipy import stats

        X, y = self.line(np.random.default_rng(0))
        expected = stats.linregress(X[:, 0], y)
        offset, slope = constant_intervals(self.fitted_line(X, y), X, y, level=0.9)
        assert slope.standard_error == pytest.approx(expected.stderr, rel=1e-6)
        assert offset.standard_error == pytest.approx(expected.intercept_stderr, rel=1e-6)
        half = stats.t.ppf(0.95, len(y) - 2) * expected.stderr
        assert (slope.low, slope.high) == pytest.approx((expected.slope - half, expected.slope + half))

    @pytest.mark.parametrize(("method", "tolerance"), [("jacobian", 0.03), ("bootstrap", 0.07)])
    def test_intervals_cover_as_often_as_they_say(self, method: str, tolerance: float) -> None:
        rng = np.random.default_rng(11)
        runs = 400 if method == "jacobian" else 20
        covered = 0
        for _ in range(runs):
            X, y = self.line(rng)
            _, slope = constant_intervals(self.fitted_line(X, y), X, y, level=0.9, method=method, resamples=40)
            covered += slope.low <= 2.5 <= slope.high
        assert abs(covered / runs - 0.9) < tolerance + 2 * math.sqrt(0.09 / runs)

    def test_weights_count_like_repeated_rows_in_the_fit(self) -> None:
        rng = np.random.default_rng(1)
        X, y = self.line(rng)
        w = rng.uniform(0.5, 2.0, len(y))
        (_, slope) = constant_intervals(self.fitted_line(X, y, w), X, y, sample_weight=w)
        design = np.column_stack([np.ones(len(y)), X[:, 0]])
        residual = y - design @ np.linalg.lstsq(design * np.sqrt(w)[:, None], y * np.sqrt(w), rcond=None)[0]
        variance = np.sum(w * residual**2) / (len(y) - 2) * np.linalg.inv(design.T @ (design * w[:, None]))[1, 1]
        assert slope.standard_error == pytest.approx(math.sqrt(variance), rel=1e-5)

    @pytest.mark.parametrize("unit", [1e-100, 1e100])
    def test_extreme_units(self, unit: float) -> None:
        X, y = self.line(np.random.default_rng(0))
        plain = constant_intervals(self.fitted_line(X, y), X, y)
        scaled_line = self.fitted_line(X, y)
        scaled_line = scaled_line.with_constants([c * unit for c in scaled_line.constants])
        scaled = constant_intervals(scaled_line, X, y * unit)
        for a, b in zip(plain, scaled, strict=True):
            assert b.standard_error == pytest.approx(a.standard_error * unit, rel=1e-6)

    def test_a_rounded_constant_keeps_the_interval_of_the_estimate(self) -> None:
        X, y = self.line(np.random.default_rng(0))
        line = self.fitted_line(X, y)
        rounded = line.with_constants([line.constants[0] + 0.1, 2.5])
        for item, plain in zip(constant_intervals(rounded, X, y), constant_intervals(line, X, y), strict=True):
            assert (item.low + item.high) / 2 == pytest.approx((plain.low + plain.high) / 2)
        assert constant_intervals(rounded, X, y)[1].value == 2.5

    def test_a_constant_the_data_do_not_determine_is_infinite(self) -> None:
        root = Call("add", (Constant(1.7), Constant(2.2), Call("mul", (Constant(3.1), X1))))
        X, y = self.line(np.random.default_rng(0))
        a, b, slope = constant_intervals(Expression(root, ("x1",)), X, y)
        assert math.isinf(a.standard_error) and math.isinf(b.standard_error)
        assert math.isfinite(slope.standard_error)

    def test_errors_say_what_to_do(self) -> None:
        X, y = self.line(np.random.default_rng(0))
        line = self.fitted_line(X, y)
        with pytest.raises(ValueError, match="level"):
            constant_intervals(line, X, y, level=95)
        with pytest.raises(ValueError, match="bootstrap"):
            constant_intervals(line, X, y, method="guess")
        with pytest.raises(ValueError, match="more rows"):
            constant_intervals(line, X[:2], y[:2])
        assert constant_intervals(Expression(X1, ("x1",)), X, y) == ()


class TestPredictionIntervals(Lines):
    def test_a_line_has_the_textbook_interval(self) -> None:
        from scipy import stats

        X, y = self.line(np.random.default_rng(0))
        line, new = self.fitted_line(X, y), np.array([[0.3], [10.0]])
        low, high = prediction_interval(line, X, y, new, level=0.9)
        design, row = np.column_stack([np.ones(len(y)), X[:, 0]]), np.column_stack([np.ones(2), new[:, 0]])
        spread = math.sqrt(np.sum((y - line(X)) ** 2) / (len(y) - 2))
        leverage = np.einsum("ik,kl,il->i", row, np.linalg.inv(design.T @ design), row)
        half = stats.t.ppf(0.95, len(y) - 2) * spread * np.sqrt(1 + leverage)
        np.testing.assert_allclose(low, line(new) - half, rtol=1e-9)
        np.testing.assert_allclose(high, line(new) + half, rtol=1e-9)

    def test_they_cover_the_next_measurement_as_often_as_they_say(self) -> None:
        rng = np.random.default_rng(5)
        covered = []
        for _ in range(200):
            X, y = self.line(rng, rows=12)
            new, measured = self.line(rng, rows=20)
            low, high = prediction_interval(self.fitted_line(X, y), X, y, new)
            covered.append(np.mean((low <= measured) & (measured <= high)))
        assert np.mean(covered) == pytest.approx(0.95, abs=3 * np.std(covered) / math.sqrt(200))

    def test_units_and_formulas_without_constants(self) -> None:
        X, y = self.line(np.random.default_rng(0))
        line = self.fitted_line(X, y)
        huge = line.with_constants([c * 1e100 for c in line.constants])
        low, _ = prediction_interval(line, X, y, X)
        np.testing.assert_allclose(prediction_interval(huge, X, y * 1e100, X)[0], low * 1e100, rtol=1e-6)
        low, high = prediction_interval(Expression(X1, ("x1",)), X, X[:, 0] + 1.0, X)
        np.testing.assert_allclose((high - low) / 2, 2.0210754, rtol=1e-6)  # Student's t with 40 degrees of freedom
        with pytest.raises(ValueError, match="level"):
            prediction_interval(line, X, y, X, level=95)

    def test_a_basis_goes_through_plain_data(self) -> None:
        X, y = self.line(np.random.default_rng(0))
        basis = PredictionBasis.of(self.fitted_line(X, y), X, y)
        again = PredictionBasis.from_dict(json.loads(json.dumps(basis.to_dict())), basis.expression)
        np.testing.assert_array_equal(again.interval(X), basis.interval(X))

    @pytest.mark.parametrize(("loss", "outliers"), [("robust", 0.0), ("robust", 0.1), ("huber", 0.0)])
    def test_under_a_loss_that_weighs_rows_they_hold_for_those_that_count(self, loss: str, outliers: float) -> None:
        """Both losses have 95 % efficiency; standard errors of weighted least squares alone would be 11 % too small."""
        rng = np.random.default_rng(3)
        stated, rows = [], []
        for _ in range(40):
            X, y = self.line(rng, rows=80)
            wrong = rng.random(80) < outliers
            y = y + np.where(wrong, rng.uniform(50, 90, 80), 0.0)
            line = self.fitted_line(X[~wrong], y[~wrong])
            for _ in range(8):
                weights = robust_weights(loss, line(X) - y, y, explained=True)
                line = self.fitted_line(X, y, weights)
            found = constant_intervals(line, X, y, loss=loss)
            stated.append(found[1].standard_error)
            new, measured = self.line(rng, rows=40)
            low, high = prediction_interval(line, X, y, new, loss=loss)
            rows.append(np.mean((low <= measured) & (measured <= high)))
        counting = 80 * (1 - outliers)
        expected = 0.3 / math.sqrt(0.75 * counting) / math.sqrt(0.95)  # the variance of x is 3**2/12
        assert np.mean(stated) == pytest.approx(expected, rel=0.05)
        assert np.mean(rows) == pytest.approx(0.95, abs=0.02)

    @pytest.mark.parametrize("loss", ["robust", "absolute"])
    def test_of_few_rows_they_hold_as_often(self, loss: str) -> None:
        """A fit by eight rows leaves residuals that are smaller than the errors, above all where few of them count."""
        rng = np.random.default_rng(8)
        held, inside = [], []
        for _ in range(120):
            X, y = self.line(rng, rows=8)
            line = self.least_absolute(X, y)
            for _ in range(8 if loss != "absolute" else 0):
                line = self.fitted_line(X, y, robust_weights(loss, line(X) - y, y, explained=True))
            found = constant_intervals(line, X, y, loss=loss)
            held += [item.low <= value <= item.high for item, value in zip(found, (1.5, 2.5), strict=True)]
            new, measured = self.line(rng)
            low, high = prediction_interval(line, X, y, new, loss=loss)
            inside.append(np.mean((low <= measured) & (measured <= high)))
        assert 0.9 < np.mean(held) < 0.98
        assert 0.9 < np.mean(inside) < 0.98

    def least_absolute(self, X: np.ndarray, y: np.ndarray) -> Expression:
        """The line with the least sum of absolute residuals: it goes through two of the rows."""
        first, second = np.triu_indices(len(y), 1)
        slopes = (y[second] - y[first]) / (X[second, 0] - X[first, 0])
        offsets = y[first] - slopes * X[first, 0]
        best = np.argmin(np.sum(np.abs(offsets[:, None] + slopes[:, None] * X[:, 0] - y), axis=1))
        root = Call("add", (Constant(float(offsets[best])), Call("mul", (Constant(float(slopes[best])), X1))))
        return Expression(root, ("x1",))


def line_by(loss: str, seed: int, n: int) -> tuple[Expression, np.ndarray, np.ndarray, tuple[float, float]]:
    """A line fitted by a loss to the first n rows of a table of its kind, the table, and the true factor and offset."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 3, (n + 100, 1))
    mean, true = 2.1 * X[:, 0] + 1.3, (2.1, 1.3)
    if loss == "poisson":
        y = rng.poisson(mean).astype(float)
    elif loss == "logistic":
        y, true = (rng.random(len(X)) < 1 / (1 + np.exp(2.3 - 1.4 * X[:, 0]))).astype(float), (1.4, -2.3)
    elif loss == "quantile:0.8":
        y, true = mean + rng.standard_normal(len(X)), (2.1, 1.3 + 0.8416)
    else:
        y = mean + rng.standard_normal(len(X))
    root, _ = converged(parse_tree("1.23*a + 0.77", ("a",)), X[:n], y[:n], np.ones(n), find_loss(loss))
    return Expression(root, ("a",)), X, y, true


@pytest.mark.parametrize("loss", thinned(["poisson", "logistic", "log-cosh", "quantile:0.8", "absolute"], 3))
def test_intervals_hold_under_losses_of_their_own(loss: str) -> None:
    """95 % of them: 100 tables, two constants each, which go together, so that one standard error is 2 %."""
    held, inside = [], []
    for seed in range(100):
        line, X, y, true = line_by(loss, seed, 120)
        found = constant_intervals(line, X[:120], y[:120], loss=loss)
        held += [item.low <= value <= item.high for item, value in zip(found, true, strict=True)]
        basis = PredictionBasis.or_reason(line, X[:120], y[:120], None, loss)
        if isinstance(basis, PredictionBasis):
            low, high = basis.interval(X[120:])
            inside.append(np.mean((low <= y[120:]) & (y[120:] <= high)))
    assert 0.89 < np.mean(held) < 0.99
    if inside:
        assert 0.93 < np.mean(inside) < 0.97


def test_intervals_of_a_target_over_many_magnitudes_are_in_proportion() -> None:
    """Rows count by their own size there, so the interval of a factor holds it and predictions have errors of their own size:
    6.6744e-11 stood beside an interval from 6.6285e-11 to 6.6463e-11, the same error was expected of 1e-6 and of 1e6."""
    rng = np.random.default_rng(3)
    held, covered = 0, []
    for _ in range(60):
        x = 10 ** rng.uniform(-6, 6, (61, 1))
        y = 3.0 * x[:, 0] * (1 + 0.02 * rng.normal(size=61))
        factor = float(np.mean(y[:60] / x[:60, 0]))
        expression = Expression(Call("mul", (Constant(factor), X1)), ("x1",))
        (interval,) = constant_intervals(expression, x[:60], y[:60])
        assert interval.low < factor < interval.high
        held += interval.low < 3.0 < interval.high
        basis = PredictionBasis.of(expression, x[:60], y[:60])
        again = PredictionBasis.from_dict(json.loads(json.dumps(basis.to_dict())), expression)
        low, high = again.interval(x[60:])
        assert (low, high) == basis.interval(x[60:])
        covered.append(bool(low[0] < y[60] < high[0]))
        assert high[0] - low[0] == pytest.approx(0.08 * y[60], rel=0.5)
    assert held >= 52 and np.mean(covered) > 0.85
    with pytest.raises(ValueError, match="sizes"):
        PredictionBasis.from_dict(basis.to_dict() | {"sizes": [0, 1]}, expression)
