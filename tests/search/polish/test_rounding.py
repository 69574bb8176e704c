"""Constants rounded as far as the data allow."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node
from gmeql.search.polish.recognition import all_recognised
from gmeql.search.polish.rounding import snap
from gmeql.search.polish.scoring import JudgedRows
from judged_rows import NAMES, rows, scored, x, y
from random_trees import call


def test_noise_lets_constants_be_short_but_only_as_far_as_it_hides_them() -> None:
    data = rows(lambda X: 1.5 * X[:, 0] + 0.8 * X[:, 1], noise=0.1, n=400)
    root = call("add", call("mul", 1.4, x), call("mul", 0.9, y))
    raw = scored(root, data)
    raw_constants = Expression(raw.root, NAMES).constants
    assert not all_recognised(raw.root)
    final = snap(raw, data)
    assert all_recognised(final.root) and final.length <= raw.length
    np.testing.assert_allclose(Expression(final.root, NAMES).constants, raw_constants, atol=0.05)
    assert final.loss < 1.02 * raw.loss


def test_exact_data_are_rounded_all_at_once() -> None:
    data = rows(lambda X: X[:, 0] / 3 + math.pi * X[:, 1] - 0.25)
    root = call("add", call("mul", 1 / 3 + 1e-10, x), call("mul", math.pi - 1e-10, y), -0.25 + 1e-10)
    final = snap(scored(root, data), data)
    assert sorted(Expression(final.root, NAMES).constants) == pytest.approx([-0.25, 1 / 3, math.pi], rel=1e-15)
    assert all_recognised(final.root)


def test_a_spent_budget_rounds_nothing() -> None:
    data = rows(lambda X: 1.5 * X[:, 0], noise=0.1)
    raw = scored(call("mul", 1.4, x), data)
    assert snap(raw, data, lambda: True) is raw and snap(raw, data) is not raw


def test_a_number_that_is_too_far_off_for_the_data_is_not_taken() -> None:
    data = rows(lambda X: 1.4567 * X[:, 0], noise=1e-4)
    (constant,) = Expression(snap(scored(call("mul", 1.0, x), data), data).root, NAMES).constants
    assert constant == pytest.approx(1.4567, rel=1e-4)


def test_a_factor_that_noise_cannot_tell_from_one_is_gone() -> None:
    """1.02*x and x have as few constants that were fitted, but the second is shorter."""
    data = rows(lambda X: X[:, 0] / (1 + X[:, 1]), noise=0.1, n=400)
    final = snap(scored(call("div", call("mul", 1.02, x), call("add", 0.98, y)), data), data)
    (offset,) = Expression(final.root, NAMES).constants
    assert offset == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(("errors", "is_one"), [(2.0, True), (6.0, False)])
def test_under_noise_one_is_likelier_than_its_neighbours(errors: float, is_one: bool) -> None:
    """At two standard errors from 1 a constant is 1 and not the nearest decimal; at six it is no longer."""
    data = rows(lambda X: X[:, 0] / (X[:, 1] ** 2 + 1), noise=0.1, n=400)
    root = call("div", x, call("add", call("square", y), 1.0))
    slope = x_slope(root, data)
    error = math.sqrt(scored(root, data).loss / np.sum(slope**2))
    held = data.target - slope * (slope @ (data.target - values(root, data))) / np.sum(slope**2)
    data = replace(data, target=held + errors * error * slope)
    start = scored(call("div", x, call("add", call("square", y), 1.2)), data)
    (offset,) = Expression(snap(start, data).root, NAMES).constants
    assert (offset == 1.0) == is_one and abs(offset - 1.0) < (errors + 3.0) * error


def test_digits_cost_under_noise_and_exponents_do_not() -> None:
    """1 is free, 2 and a half cost little, 1.03 nearly what a fitted constant does; where the fit is exact none does."""
    data = rows(lambda X: X[:, 0], noise=0.1, n=400)
    prices = [data.recognised_nats(call("add", x, value), 1.0) for value in (1.0, 2.0, 1.5, 1.03)]
    assert prices == sorted(prices) and prices[0] == 0.0 and prices[-1] == pytest.approx(0.5 * math.log(400) - 1.0)
    assert data.recognised_nats(call("pow", x, 3.0), 1.0) == 0.0
    assert data.recognised_nats(call("add", x, 1.03), 0.0) == 0.0


def values(root: Node, data: JudgedRows) -> np.ndarray:
    return Expression(root, NAMES)(data.X)


def x_slope(root: Node, data: JudgedRows) -> np.ndarray:
    """By the offset of the denominator, the formula's only constant."""
    return -(values(root, data) ** 2) / data.X[:, 0]
