"""Formulas refitted to rows and judged by loss and description length."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Variable
from gmeql.search.polish.cutting import prune
from gmeql.search.polish.polishing import polish
from gmeql.search.polish.scoring import JudgedRows, clean, description_length, length_in_nats, refit, unseen_length
from judged_rows import NAMES, rows, show, x
from random_trees import call


def test_weighted_rows_decide() -> None:
    X = np.random.default_rng(0).uniform(0.2, 3, (100, 3))
    target = 2 * X[:, 0]
    target[:50] += 5.0
    weights = np.r_[np.full(50, 1e-12), np.ones(50)]
    data = JudgedRows.of(X, target, weights, NAMES)
    (fitted,) = refit([call("mul", 1.0, x)], data, keep_recognised=False)
    assert Expression(fitted.root, NAMES).constants[0] == pytest.approx(2.0, rel=1e-6)


def test_formulas_that_cannot_be_fitted_are_left_out() -> None:
    data = rows(lambda X: X[:, 0])
    assert refit([call("log", call("mul", -1.0, x))], data) == []
    assert prune(call("log", call("mul", -1.0, x)), data) == []
    assert polish(call("sqrt", call("sub", -5.0, x)), data) == []
    assert clean(call("mul", 1e300, 1e300, x), data) is None


def test_constant_target() -> None:
    data = rows(lambda X: np.full(len(X), 4.0))
    (fitted,) = refit([Constant(1.0)], data, keep_recognised=False)
    assert show(fitted.root) == "4" and data.spread == 4.0


def test_the_description_length_by_hand() -> None:
    """N/2 log(loss N/(N - K)) + K/2 log N + 2 per unit of complexity."""
    data = rows(lambda X: 2 * X[:, 0], n=50, noise=0.5)
    root = call("add", call("mul", 1.2345678, x), 0.98765432)  # two loose constants
    n, loss, complexity = 50, 0.3, Expression(root, NAMES).complexity
    by_hand = 25 * math.log(loss * n / (n - 2)) + math.log(n) + 2 * complexity
    assert description_length(root, loss, data) == pytest.approx(by_hand, rel=1e-12)
    rounded = call("add", call("mul", 1.2, x), 1.0)
    assert description_length(rounded, loss, data) < description_length(root, loss, data)
    assert length_in_nats(math.log(loss * n / (n - 2)), 2, complexity, n_rows=n) == pytest.approx(by_hand, rel=1e-12)


def test_no_freedom_or_no_loss_is_infinitely_long() -> None:
    data = rows(lambda X: X[:, 0], n=3)
    two = call("add", call("mul", 1.2345678, x), 0.98765432)
    assert description_length(two, 0.1, data) == math.inf
    assert description_length(x, math.nan, data) == description_length(x, math.inf, data) == math.inf
    assert math.isfinite(description_length(x, 0.1, data))


def test_losses_at_rounding_level_count_alike() -> None:
    data = rows(lambda X: X[:, 0])
    assert description_length(x, 0.0, data) == description_length(x, data.floor, data)
    assert data.is_exact(0.0) and data.is_exact(data.floor) and not data.is_exact(1e-12)


def test_recognised_constants_are_held_where_asked() -> None:
    data = rows(lambda X: 2.2 * X[:, 0])
    (held,) = refit([call("mul", 2.0, x)], data)
    (free,) = refit([call("mul", 2.0, x)], data, keep_recognised=False)
    assert Expression(held.root, NAMES).constants == (2.0,)
    assert Expression(free.root, NAMES).constants[0] == pytest.approx(2.2)
    assert free.loss < held.loss


def test_positive_parts_are_seen_on_the_rows() -> None:
    data = rows(lambda X: X[:, 0])
    assert data.is_positive(x) and not data.is_positive(call("sub", x, 1.0))


def test_clean_drops_the_sixteenth_digit() -> None:
    data = rows(lambda X: X[:, 0])
    assert clean(call("mul", 0.1 + 0.2, x), data) == call("mul", 0.3, x)


def test_formulas_with_more_own_constants_than_the_rows_are_measured_too() -> None:
    judged = rows(lambda X: 2 * X[:, 0])
    with_own = call("add", call("mul", Constant(2.0), x), Variable(5))
    assert math.isfinite(unseen_length(with_own, 0.1, judged))
