"""The outlook of a front: errors on rows left out, support by rows, guaranteed bounds; and its plain form."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gmeql.formula.bounds import Bounds
from gmeql.formula.nodes import Constant, Variable, build, evaluate
from gmeql.formula.parsing import parse_tree
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums import linear
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.judging.outlook import Outlook, outlooks, paired_z
from gmeql.search.judging.structure import luck_factor
from gmeql.search.losses.losses import find_loss

x = Variable(0)


def test_a_true_gain_is_supported_and_a_lucky_one_is_not(rng: np.random.Generator) -> None:
    X = rng.uniform(0, 1, (200, 1))
    y = 3 * X[:, 0] + 0.1 * rng.standard_normal(200)
    y[7] += 50.0  # one row that a spike explains
    spike = build(
        "div", Constant(0.05), build("add", build("square", build("sub", x, Constant(float(X[7, 0])))), Constant(1e-3))
    )
    mean, line, lucky = outlooks([Constant(float(y.mean())), build("mul", Constant(3.0), x), spike], X, y)
    assert mean.support == math.inf
    assert lucky.support < 1.5
    clean, sure = outlooks([Constant(1.5), build("mul", Constant(3.0), x)], X[8:], y[8:])
    assert sure.support > 5 and sure.error == pytest.approx(0.1, rel=0.3)
    assert 0 < sure.standard_error < 0.02 < clean.error


def test_bounds_hold_over_the_ranges_of_the_columns(rng: np.random.Generator) -> None:
    X = rng.uniform(1, 2, (50, 1))
    y = 1 / X[:, 0]
    tame, wild = outlooks([build("inv", x), build("inv", build("sub", x, Constant(1.5)))], X, y)
    assert tame.bounds.finite and 0.49 < tame.bounds.low <= tame.bounds.high < 1.01 and not tame.pole
    assert not wild.bounds.finite and wild.pole


def test_the_same_rows_give_the_same_outlook(rng: np.random.Generator) -> None:
    X = rng.uniform(0, 1, (80, 2))
    y = X[:, 0] + rng.standard_normal(80)
    assert outlooks([x], X, y) == outlooks([x], X, y)


def test_it_goes_through_plain_data() -> None:
    outlook = Outlook(0.5, 0.01, False, math.inf, Bounds(-math.inf, 2.0, True))
    assert Outlook.from_dict(outlook.to_dict()) == outlook
    shrunk = replace(outlook, freedom=2.5, nats=1.5)
    assert Outlook.from_dict(shrunk.to_dict()) == shrunk
    assert Outlook.from_dict(Outlook(math.inf, math.inf, True, -math.inf, Bounds(0.0, 1.0, False)).to_dict()).pole


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("error", -1.0, "at least 0"),
        ("error", "1", "finite number"),
        ("support", math.nan, "finite number"),
        ("pole", 1, "true or false"),
        ("extra", 1, "exactly the fields"),
    ],
)
def test_damaged_data_are_refused(field: str, value: Any, message: str) -> None:
    data = Outlook(0.5, 0.01, False, 3.0, Bounds(0.0, 1.0, True)).to_dict() | {field: value}
    with pytest.raises(ValueError, match=message):
        Outlook.from_dict(data)


def test_a_scaled_target_scales_it() -> None:
    outlook = Outlook(0.5, 0.25, False, 3.0, Bounds(-1.0, math.inf, True)).scaled(3)
    assert (outlook.error, outlook.standard_error, outlook.support) == (4.0, 2.0, 3.0)
    assert (outlook.bounds.low, outlook.bounds.high) == (-8.0, math.inf)


def test_a_target_at_the_end_of_the_numbers_leaves_bounds_open() -> None:
    outlook = Outlook(0.5, 0.25, False, 3.0, Bounds(-1.5, 1.5, True)).scaled(1024)
    assert (outlook.error, outlook.bounds.low, outlook.bounds.high) == (2.0**1023, -math.inf, math.inf)


def test_few_rows_of_many_magnitudes_support_a_law_that_meets_them_all() -> None:
    """Periods of the planets: the line's squared error is that of one planet, yet the power law is a thousand times closer."""
    distance = np.array([0.387, 0.723, 1.0, 1.524, 5.203, 9.537, 19.19, 30.07])
    period = 365.25 * distance**1.5
    slope, offset = np.polyfit(distance, period, 1)
    line, law = (period - slope * distance - offset) ** 2, (1e-4 * period) ** 2
    difference = line - law
    plain = difference.mean() / (difference.std() / np.sqrt(8))
    assert plain < 4 < 8 < paired_z(line, law, np.ones(8))
    assert paired_z(law, line, np.ones(8)) < 0  # the other way round nothing is gained


def test_a_gain_that_one_row_makes_has_little_support(rng: np.random.Generator) -> None:
    square = rng.standard_normal(200) ** 2
    other = square.copy()
    other[3] += 500.0
    assert 0 < paired_z(other, square, np.ones(200)) < 2.0


def test_a_row_far_from_all_others_does_not_hide_that_the_others_gain(rng: np.random.Generator) -> None:
    """One district is ten times as large as any other: its error alone is the mean, and its standard error as well."""
    square = rng.standard_normal(200) ** 2
    other = 4.0 * square
    other[3] += 500.0
    difference = other - square
    plain = difference.mean() / (difference.std() / np.sqrt(200))
    assert plain < 2.5 < 6 < paired_z(other, square, np.ones(200))
    other[5] -= 500.0  # lost again on another row
    assert paired_z(other, square, np.ones(200)) < 2.5


def test_the_promise_holds_for_columns_chosen_from_many() -> None:
    """Eight of forty columns that explain thirty rows of noise best: with rows left out they err by far too little."""
    promised, left_out, met = [], [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((2030, 40)), rng.standard_normal(2030)
        table = DirectTable(X[:30], y[:30], np.ones(30), 1.0)
        functions = FunctionSet()
        root = list(linear.propose(table, functions=functions, effort=Effort(1.0), rng=rng))[7]
        (found,) = outlooks([root], X[:30], y[:30])
        promised.append(found.error)
        left_out.append(found.left_out)
        fresh = evaluate(root, lambda k, X=X: X[30:, k], np.float64, np)
        met.append(float(np.sqrt(np.mean((fresh - y[30:]) ** 2))))
    assert np.mean(left_out) < 0.6 * np.mean(met)
    assert 0.75 * np.mean(met) < np.mean(promised) < 1.5 * np.mean(met)


@pytest.mark.parametrize("law", [0.0, 0.5])
def test_no_more_error_is_promised_than_values_would_have_that_say_nothing(law: float) -> None:
    """Twelve of sixty columns drawn towards 0 on 25 rows: stating which takes 31 nats, and three times the error that came
    was promised."""
    promised, met = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((2025, 60))
        y = X @ (law * rng.standard_normal(60)) + rng.standard_normal(2025)
        few = np.argsort(-np.abs(X[:25].T @ y[:25]))[:12]
        slopes = np.linalg.solve(X[:25, few].T @ X[:25, few] + 10 * np.eye(12), X[:25, few].T @ y[:25])
        root = build(
            "add", *(build("mul", Constant(float(b)), Variable(int(k))) for b, k in zip(slopes, few, strict=True))
        )
        promised.append(outlooks([root], X[:25], y[:25])[0].error)
        met.append(float(np.sqrt(np.mean((X[25:, few] @ slopes - y[25:]) ** 2))))
    assert 0.9 * np.mean(met) < np.mean(promised) < 1.6 * np.mean(met)


def test_luck_is_counted_in_the_unit_of_the_loss() -> None:
    assert luck_factor(10.0, 100, 0.5) == pytest.approx(math.exp(0.1))
    assert luck_factor(10.0, 100, 0.5, find_loss("relative")) == pytest.approx(math.exp(0.2))
    assert luck_factor(10.0, 100, 0.5, find_loss("poisson")) == pytest.approx(1.2)
    assert luck_factor(1e9, 10, 0.5) < math.inf and luck_factor(5.0, 10, math.inf) == luck_factor(5.0, 10, 0.0) == 1.0
    read = Outlook.from_dict(Outlook(1.0, 0.1, False, 2.0, Bounds(0.0, 1.0, True), 1.25).to_dict())
    assert read.luck == 1.25 and read.left_out == 0.8
    with pytest.raises(ValueError, match="luck"):
        Outlook.from_dict(read.to_dict() | {"luck": 0.5})


def test_forms_in_pure_numbers_are_what_is_stated(rng: np.random.Generator) -> None:
    """A long product around a short form pays for the short one, in luck and in the length of the front."""
    X = rng.uniform(1, 2, (100, 3))
    y = X[:, 0] * X[:, 1] ** 2 * (1 + X[:, 2]) + 0.3 * rng.standard_normal(100)
    names = ["a", "b", "c"]
    root, form = parse_tree("a*b**2*(c + 1.01)", names), parse_tree("c + 1.01", names)
    (plain,), (stated,) = outlooks([root], X, y), outlooks([root], X, y, stated=[form])
    assert plain.nats is None and stated.nats is not None and stated.nats < 5
    assert stated.left_out == pytest.approx(plain.left_out) and stated.luck < plain.luck
    assert Outlook.from_dict(stated.to_dict()) == stated
    with pytest.raises(ValueError, match="nats"):
        Outlook.from_dict(stated.to_dict() | {"nats": -1})
