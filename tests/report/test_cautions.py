"""What to be careful about: each sentence where it belongs, and none on a plain fit."""

from __future__ import annotations

import re

import numpy as np

from gmeql.formula.bounds import Bounds
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.model.rows.weighing import counted_rows
from gmeql.report.cautions import cautions, errors_grow
from gmeql.search.judging.outlook import Outlook
from gmeql.tables import read as tables

x = Variable(0)


def said(
    root: Node, X: np.ndarray, y: np.ndarray, *, pole: bool = False, loss: str = "squared", freedom: float | None = None
) -> str:
    names = tuple(f"x{k + 1}" for k in range(X.shape[1]))
    expression = Expression(root, names)
    member = FrontMember(
        expression, 1.0, 1, 0.0, 0, Outlook(1.0, 0.1, pole, 1.0, Bounds(0.0, 1.0, True), freedom=freedom)
    )
    data = tables.Training(X, y, names, "y", None, np.arange(len(y)), (), "x")
    front = Front.from_members([member], rows=len(y), target_spread=float(y.std()), target_largest=float(abs(y).max()))
    counted = counted_rows(front, X, y, loss=loss)
    return " ".join(cautions(member, data, expression(X), counted, exact=False))


def test_a_plain_fit_needs_no_caution_and_a_pole_does(rng: np.random.Generator) -> None:
    X = rng.uniform(1, 2, (100, 1))
    y = 3 * X[:, 0] + 0.1 * rng.standard_normal(100)
    line = build("mul", Constant(3.0), x)
    assert said(line, X, y) == ""
    assert "pole" in said(line, X, y, pole=True)


def test_a_divisor_that_rows_may_bring_nearer_to_zero_is_named(rng: np.random.Generator) -> None:
    """`x1/x2` of 200 rows with x2 from 1.1 on, around 5: on fresh rows it erred ten times as much as the mean."""
    ratio = build("div", x, Variable(1))
    X = rng.uniform(3, 7, (200, 2))
    for column, near in ((np.abs(rng.normal(5, 1.5, 200)) + 0.05, True), (rng.uniform(2, 8, 200), False)):
        X[:, 1] = column
        y = X[:, 0] / X[:, 1] + 0.1 * rng.standard_normal(200)
        least = f"It divides by x2, which comes as near to 0 as {column.min():.3g}: on rows that come nearer"
        assert (least in said(ratio, X, y)) is near


def test_constants_the_data_leave_open_are_named(rng: np.random.Generator) -> None:
    X = rng.uniform(1, 2, (100, 1))
    y = 3 * X[:, 0] + 0.1 * rng.standard_normal(100)
    doubtful = build("add", build("mul", Constant(3.0), x), build("mul", Constant(0.0123), build("sin", x)))
    text = said(doubtful, X, y)
    assert "1 of its 2 constants is not distinguishable from 0 (95 % intervals): 0.0123." in text and "0.0123" in text
    twice = said(build("add", build("mul", Constant(1.4), x), build("mul", Constant(1.6), x)), X, y)
    assert "not determined by the data: " in twice and "not distinguishable" in text
    assert "not told" not in said(Constant(0.001), X, rng.standard_normal(100))


def test_outliers_are_counted_where_they_matter(rng: np.random.Generator) -> None:
    X = rng.uniform(1, 2, (100, 1))
    y = 3 * X[:, 0] + 0.1 * rng.standard_normal(100)
    y[3] += 50.0
    line = build("mul", Constant(3.0), x)
    told = said(line, X, y)
    assert (
        "1 row lies far from the others: outliers? " in told
        and " fits the other 99, with a typical error of 0." in told
    )
    assert said(line, X, y, loss="robust") == "1 row lies far from it; the loss gives it no weight."
    assert "far from it; the loss gives it 0." in said(line, X, y, loss="huber")


def test_errors_that_grow_with_a_positive_target_are_seen(rng: np.random.Generator) -> None:
    predicted = np.exp(rng.uniform(0, 5, 300))
    for y, grows in (
        (predicted * np.exp(0.2 * rng.standard_normal(300)), True),
        (np.abs(predicted + rng.standard_normal(300)) + 1e-3, False),
        (predicted * (1 + 0.2 * rng.standard_normal(300)) - 10.0, False),
    ):
        assert errors_grow(predicted, y, predicted - y) == grows
    assert not errors_grow(np.full(300, 3.0), predicted, predicted - 3.0)


def test_errors_in_proportion_to_a_wide_target_are_no_outliers(rng: np.random.Generator) -> None:
    X = 10.0 ** rng.uniform(-1, 2, (2000, 1))
    y = 3 * X[:, 0] * (1 + 0.01 * rng.standard_normal(2000))
    line = build("mul", Constant(3.0), x)
    assert said(line, X, y) == "The errors grow with the target: try its logarithm as the target."
    y[:20] *= 1.5
    assert "20 rows lie far from it: outliers? loss='robust'" in said(line, X, y)


def test_a_third_of_wrong_rows_is_seen_behind_the_formula_they_pull(rng: np.random.Generator) -> None:
    X = rng.uniform(-3, 3, (200, 1))
    y = 2 * X[:, 0] + 1 + 0.1 * rng.standard_normal(200)
    y[:70] += 20 * rng.choice([-1, 1], 70)
    told = said(Constant(float(y.mean())), X, y)
    assert re.search(
        r"70 rows lie far from the others: outliers\? (2|1\.9)\S*\*x1 \+ (1|0\.9)\S* fits the other 130", told
    ), told
    assert "outliers" not in said(Constant(0.0), X, np.where(rng.random(200) < 0.7, 0.0, 5 + X[:, 0]))
    assert "outliers" not in said(Constant(5.0), X, X[:, 0] ** 3 + rng.standard_normal(200))


def test_a_target_that_varies_by_factors_has_no_outliers(rng: np.random.Generator) -> None:
    y = np.exp(1.5 * rng.standard_normal(150))
    text = said(Constant(float(y.mean())), rng.uniform(0, 1, (150, 1)), y)
    assert "try its logarithm" in text and "outliers" not in text
    y = 10 + 0.5 * rng.standard_normal(150)
    y[:8] += 100
    assert "8 rows lie far from the others: outliers? 10" in said(Constant(10.0), rng.uniform(0, 1, (150, 1)), y)


def test_noise_that_is_a_factor_is_no_outlier_on_either_side(rng: np.random.Generator) -> None:
    X = rng.uniform(1, 10, (400, 2))
    law = 2 * X[:, 0] ** 1.5 / X[:, 1]
    root = build("div", build("mul", Constant(2.0), build("pow", x, Constant(1.5))), Variable(1))
    text = said(root, X, law * np.exp(0.5 * rng.standard_normal(400)))
    assert "varies by factors: try its logarithm as the target, or loss='robust'" in text and "outliers?" not in text


def test_one_slip_of_the_pen_is_an_outlier_and_no_factor(rng: np.random.Generator) -> None:
    y = rng.uniform(0.7, 2.4, 60)
    y[17] *= 100
    assert "1 row lies far from the others: outliers?" in said(Constant(float(y.mean())), rng.uniform(1, 5, (60, 1)), y)


def test_a_curve_over_the_few_values_of_a_code_is_a_guess(rng: np.random.Generator) -> None:
    X = np.column_stack([rng.choice([101.0, 204.0, 305.0, 411.0], 200), rng.standard_normal(200)])
    y = (X[:, 0] / 100) ** 2 + X[:, 1] + 0.1 * rng.standard_normal(200)
    square = build("add", build("mul", Constant(1e-4), build("square", x)), Variable(1))
    assert "x1 takes only 4 different values, so its curve between them is a guess" in said(square, X, y)
    assert "different values" not in said(build("mul", x, Variable(1)), X, X[:, 0] * X[:, 1] + rng.standard_normal(200))
    codes = np.tile(np.arange(1.0, 9.0), 25)[:, None]
    assert "x1 takes only 8 different values" in said(build("square", x), codes, y)
    assert "different values" not in said(build("square", x), codes[:8], codes[:8, 0] ** 2 + rng.standard_normal(8))


def test_copies_of_rows_are_told_and_are_no_pattern(rng: np.random.Generator) -> None:
    X = rng.uniform(0, 4, (40, 1))
    y = X[:, 0] ** 2 + 0.8 * rng.standard_normal(40)
    text = said(build("square", x), np.tile(X, (5, 1)), np.tile(y, 5))
    assert "160 of the 200 rows are copies of others" in text and "pattern" not in text
    assert said(build("square", x), X, y) == ""
    few = rng.integers(0, 5, (300, 2)).astype(float)
    assert "copies" not in said(x, few, few[:, 0] + rng.integers(0, 3, 300))


def test_rows_in_an_order_that_no_column_tells(rng: np.random.Generator) -> None:
    X = rng.standard_normal((200, 1))
    drifting = 50 + 0.2 * np.arange(200) + rng.standard_normal(200)
    text = said(Constant(70.0), X, drifting)
    assert "Errors of neighbouring rows are alike, as in a time series" in text and "more time" not in text
    assert said(Constant(70.0), X, rng.permutation(drifting)) == ""


def test_a_constant_that_another_makes_up_for_is_told_from_0_where_the_rows_miss_it(rng: np.random.Generator) -> None:
    """The factor of `0.493*exp(0.0182*day)` was "not distinguishable from 0", and without the term 20 nats are lost."""
    X = rng.uniform(0, 400, (300, 1))
    root = build("add", build("mul", Constant(0.5), build("exp", build("mul", Constant(0.018), x))), Constant(4000.0))
    y = Expression(root, ("x1",))(X) + 250 * rng.standard_normal(300)
    assert "not distinguishable" not in said(root, X, y)
    flat = 4000 + 250 * rng.standard_normal(300)
    assert "1 of its 3 constants is not distinguishable from 0" in said(root, X, flat)


def test_rows_sorted_by_the_target_are_no_series(rng: np.random.Generator) -> None:
    """Neighbours are alike in such a table whatever the formula, and it told as much as 3 rows."""
    x1 = np.repeat([0.0, 1.0], 100)
    y = x1 + rng.standard_normal(200)
    order = np.argsort(y)
    X = np.column_stack([x1, rng.standard_normal(200)])[order]
    for root in (Constant(float(y.mean())), x):
        assert said(root, X, y[order]) == ""
    rising = np.column_stack([np.arange(200.0), X[:, 1]])
    assert "as in a time series" in said(Constant(float(y.mean())), rising, y[order])


def test_columns_that_drift_as_the_target_does_tell_as_much_as_few_rows(rng: np.random.Generator) -> None:
    """Two random walks: their regression explains much, and nothing of another walk."""
    walks = np.cumsum(rng.standard_normal((200, 2)), axis=0)
    slope = np.polyfit(walks[:, 0], walks[:, 1], 1)
    line = build("add", build("mul", Constant(float(slope[0])), x), Constant(float(slope[1])))
    text = said(line, walks[:, :1], walks[:, 1])
    worth = re.search(r"as much as (\d+) other rows: columns that drift", text)
    assert worth is not None and int(worth[1]) <= 20
    assert "columns that drift" not in said(Constant(0.0), walks[:, :1], walks[:, 1])


def test_counts_ask_for_their_loss(rng: np.random.Generator) -> None:
    X = rng.uniform(0, 4, (300, 1))
    y = rng.poisson(2 + 5 * X[:, 0]).astype(float)
    root = build("add", build("mul", Constant(5.0), Variable(0)), Constant(2.0))
    assert "loss='poisson'" in said(root, X, y)
    assert "loss='poisson'" not in said(root, X, y, loss="poisson")
    assert "loss='poisson'" not in said(root, X, np.rint(2 + 5 * X[:, 0] + rng.standard_normal(300)))


def test_a_column_that_holds_the_answer_is_named(rng: np.random.Generator) -> None:
    y = rng.uniform(1, 9, 80)
    X = np.column_stack([4.184 * y + 0.001 * rng.standard_normal(80), rng.uniform(0, 1, 80)])
    root = build("mul", Constant(1 / 4.184), Variable(0))
    assert "x1 alone follows the target" in said(root, X, y)
    assert "alone follows" not in said(root, X[:, [1, 1]], y)


def test_factors_drawn_towards_0_are_told_and_count_for_less(rng: np.random.Generator) -> None:
    X = rng.standard_normal((20, 5))
    y = X.sum(axis=1) + rng.standard_normal(20)
    line = build("add", *(build("mul", Constant(0.9 + 0.01 * k), Variable(k)) for k in range(5)))
    assert "drawn towards 0" in said(line, X, y, freedom=3.0) and "Few rows" not in said(line, X, y, freedom=3.0)
    assert "drawn towards 0" not in said(line, X, y) and "Few rows for 5 constants" in said(line, X, y)
    alone = said(build("mul", Constant(0.9), Variable(0)), X, y, freedom=0.8)
    assert "Its factor is drawn towards 0" in alone and "together" not in alone


def test_rows_beside_a_target_that_is_mostly_0_are_no_outliers(rng: np.random.Generator) -> None:
    X = rng.uniform(1, 2, (200, 1))
    y = np.where(rng.random(200) < 0.7, 0.0, np.exp(2 * rng.standard_normal(200)))
    text = said(build("mul", Constant(float(y.mean()) / 1.5), x), X, y)
    assert f"The target is 0 on {100 * np.mean(y == 0):.0f} % of the rows" in text and "outliers" not in text
    labels = (X[:, 0] > 1.2).astype(float)
    assert "may be two questions" not in said(build("mul", Constant(0.5), x), X, labels)  # a class has no more to it


def test_what_rounding_leaves_of_a_target_in_steps_is_no_pattern_to_look_for(rng: np.random.Generator) -> None:
    X = rng.uniform(0, 4, (150, 2))
    law = build("add", build("mul", Constant(0.8), x), build("mul", Constant(0.4), Variable(1)))
    values = Expression(law, ("x1", "x2"))(X)
    for step, told in ((1.0, "multiples of 1: rounded so, the formula meets 100 %"), (0.5, "multiples of 0.5: ")):
        text = said(law, X, step * np.rint(values / step))
        assert told in text and "more to find" not in text
    bent = np.rint(values + 2 * X[:, 0] ** 2 - 20)
    assert "more to find" in said(build("add", build("mul", Constant(9.0), x), Constant(-25.0)), X, bent)


def test_a_share_of_which_a_formula_makes_more_than_all_is_told(rng: np.random.Generator) -> None:
    X = rng.normal(size=(100, 1))
    y = rng.binomial(20, 1 / (1 + np.exp(-2 * X[:, 0]))) / 20
    line = build("add", build("mul", Constant(0.3), x), Constant(0.5))
    assert "between 0 and 1, the formula beyond that on " in said(line, X, y)
    assert "logistic" not in said(line, X, 2 * y) and "logistic" not in said(Constant(0.5), X, y)


def test_a_column_that_ranks_the_target_is_told_and_a_series_is_not(rng: np.random.Generator) -> None:
    y = rng.standard_normal(60)
    X = np.column_stack([1000 + np.argsort(np.argsort(y)), rng.standard_normal(60)]).astype(float)
    line = build("add", build("mul", Constant(0.05), x), Constant(-51.0))
    told = "x1 numbers the rows in the order of the target"
    assert told in said(line, X, y)
    order = np.argsort(y)
    assert told not in said(line, X[order], y[order]) and told not in said(line, X + 0.5, y)
