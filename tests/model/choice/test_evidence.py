"""Chances of the best formula against its rivals: bounded by what was measured, in step with the data."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.model.choice.evidence import Calibration, Rival, alternative_weights, rivals
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums import linear
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.judging.outlook import left_out_costs, outlooks, paired_z
from judged_fronts import judged

x = Variable(0)


def front_of(roots: list[Node], X: np.ndarray, y: np.ndarray) -> Front:
    expressions = [Expression(root, ("x1",)) for root in roots]
    losses = [float(np.sqrt(np.mean((e(X) - y) ** 2))) for e in expressions]
    members = [
        FrontMember(e, loss, e.complexity, 0.0, 0, outlook)
        for e, loss, outlook in zip(expressions, losses, outlooks(roots, X, y), strict=True)
    ]
    return Front.from_members(members, rows=len(y), target_spread=y.std(), target_largest=abs(y).max())


@pytest.fixture
def line(rng: np.random.Generator) -> tuple[Front, np.ndarray, np.ndarray]:
    X = rng.uniform(0, 1, (200, 1))
    y = 3 * X[:, 0] + 0.3 * rng.standard_normal(200)
    slope = float(X[:, 0] @ y / (X[:, 0] @ X[:, 0]))
    return front_of([Constant(float(y.mean())), build("mul", Constant(slope), x)], X, y), X, y


def test_a_clear_gain_is_likely_but_never_beyond_what_was_measured(line: tuple) -> None:
    front, X, y = line
    (mean,) = rivals(front, X, y)
    assert mean.index == 0 and not mean.longer and mean.z > 5
    assert 0.95 < mean.chance <= 1 - 0.5 / Calibration().tables
    assert Calibration(tables=10).chance(math.inf, longer=False) == pytest.approx(0.95)
    assert Calibration(tables=10).chance(-math.inf, longer=False) == pytest.approx(0.05)


def test_z_is_that_of_rows_left_out(line: tuple) -> None:
    front, X, y = line
    (mean,) = rivals(front, X, y)
    n, slopes = len(y), X[:, 0]
    left_out_mean = [y[i] - np.delete(y, i).mean() for i in range(n)]
    rest = [np.delete(np.arange(n), i) for i in range(n)]
    left_out_line = [y[i] - slopes[i] * (slopes[k] @ y[k]) / (slopes[k] @ slopes[k]) for i, k in enumerate(rest)]
    expected = paired_z(np.square(left_out_mean), np.square(left_out_line), np.ones(n))
    assert mean.z == pytest.approx(expected, rel=1e-6)


def test_chances_rise_with_the_evidence_and_differ_by_length() -> None:
    calibration = Calibration()
    for longer in (False, True):
        chances = [calibration.chance(z, longer=longer) for z in (-3.0, 0.0, 3.0)]
        assert chances == sorted(chances) and len(set(chances)) == 3
    assert calibration.chance(0.0, longer=True) > 0.5
    assert (
        calibration.chance(math.inf, longer=True) < 0.97 < calibration.chance(math.inf, longer=False)
    )  # some are right


def test_a_constant_that_says_nearly_the_same_is_a_rival(rng: np.random.Generator) -> None:
    X = rng.uniform(0, 1, (100, 1))
    y = 5 + 0.3 * X[:, 0] + rng.standard_normal(100)
    slope, offset = np.polyfit(X[:, 0], y, 1)
    line = build("add", Constant(offset), build("mul", Constant(slope), x))
    (rival,) = rivals(front_of([Constant(float(y.mean())), line], X, y), X, y)
    assert rival.chance < 0.95


def test_formulas_that_say_the_same_and_formulas_with_a_pole_are_no_rivals(rng: np.random.Generator) -> None:
    X = rng.uniform(0, 1, (100, 1))
    y = 3 * X[:, 0] + 0.3 * rng.standard_normal(100)
    slope = float(X[:, 0] @ y / (X[:, 0] @ X[:, 0]))
    base = build("mul", Constant(slope), x)
    same = build("add", base, Constant(1e-3))
    pole = build(
        "add", base, build("div", Constant(1e-4), build("sub", x, Constant(float(np.sort(X[:, 0])[50:52].mean()))))
    )
    members = list(front_of([base], X, y)) + [
        FrontMember(m.expression, 0.9**k * front_of([base], X, y)[0].loss, m.complexity, 0.0, 0, m.outlook)
        for k, m in enumerate([front_of([same], X, y)[0], front_of([pole], X, y)[0]], start=1)
    ]
    front = Front.from_members(members, rows=100, target_spread=y.std(), target_largest=abs(y).max())
    assert len(front) == 3 and front.select("best").index == 0
    assert rivals(front, X, y) == ()


def test_a_term_more_that_changes_little_is_a_rival_and_is_harder_to_beat_than_the_mean(
    rng: np.random.Generator,
) -> None:
    """Heavy tails: one column more changes values by a tenth of the typical error, and nobody knows whether for the better."""
    X = np.column_stack([rng.lognormal(0, 1, 200), rng.standard_normal(200)])
    y = 2 * X[:, 0] + rng.standard_t(1.5, 200)
    front = judged(X, y, "2.08*x1", "2.08*x1 + 0.22*x2")
    assert [m.complexity for m in front] == [1, 3, 7] and front.select("best").index == 1
    assert [rival.index for rival in rivals(front, X, y)] == [2, 0]


def test_what_says_the_same_is_told_by_the_rows_that_are_no_outliers(rng: np.random.Generator) -> None:
    X = rng.uniform(1, 9, (150, 1))
    y = 32 * X[:, 0] + 0.6 * rng.standard_normal(150)
    y[:12] += rng.choice([-500.0, 500.0], 12)
    slope, offset = np.polyfit(X[:, 0], y, 1)
    front = judged(X, y, "33*x1", f"{slope}*x1 + {offset}")
    assert len(front) == 3 and len(rivals(front, X, y)) == 2


def test_a_front_nobody_looked_ahead_for_has_no_rivals(line: tuple) -> None:
    front, X, y = line
    bare = [FrontMember(m.expression, m.loss, m.complexity, 0.0, 0) for m in front]
    old = Front.from_members(bare, rows=front.rows, target_spread=1.0, target_largest=4.0)
    assert rivals(old, X, y) == ()


def test_weights_are_normalised_odds_without_the_hopeless(line: tuple) -> None:
    front, _, _ = line
    found = (Rival(0, 0.0, False, 0.5), Rival(7, 5.0, True, 0.99))
    assert alternative_weights(front, found) == {1: 0.5, 0: 0.5}
    assert alternative_weights(front, ()) == {1: 1.0}


def test_many_columns_chosen_from_more_are_no_rival_of_the_one_that_counts() -> None:
    """Thirty rows of forty-five columns, of which one says something: eleven more err less with rows left out, by luck."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 45))
    y = 2 * X[:, 3] + rng.standard_normal(30)
    names = tuple(f"g{k}" for k in range(45))
    sums = linear.propose(
        DirectTable(X, y, np.ones(30)), functions=FunctionSet(), effort=Effort(1.0), rng=np.random.default_rng(0)
    )
    roots = [Constant(float(y.mean())), *list(sums)[:12:11]]
    members = [
        FrontMember(Expression(root, names), 0.0, 0, 0.0, 0, outlook)
        for root, outlook in zip(roots, outlooks(roots, X, y), strict=True)
    ]
    members = [replace(m, loss=float(np.sqrt(np.mean((m.expression(X) - y) ** 2)))) for m in members]
    front = Front.from_members(members, rows=30, target_spread=y.std(), target_largest=abs(y).max())
    assert front.select("best").expression.variables == (3,) and len(front) == 3
    (rival,) = rivals(front, X, y, among=(2,))
    assert members[2].outlook.left_out < 0.8 * members[1].outlook.left_out and rival.chance > 0.75


def test_rows_left_out_of_a_shrunk_sum_err_as_much_as_it_promises(line: tuple) -> None:
    front, X, y = line
    mean, best = front
    assert best.outlook is not None
    promised = replace(best.outlook, error=1.1 * best.loss, luck=1.0, freedom=1.7)
    shrunk = replace(front, members=(mean, replace(best, outlook=promised)))
    (rival,) = rivals(shrunk, X, y)
    squares = (best.expression(X) - y) ** 2
    left_out_mean = left_out_costs(mean.expression.root, X, y, np.ones(len(y)))
    luck = mean.outlook.luck**2
    assert rival.z == pytest.approx(paired_z(luck * left_out_mean, 1.21 * squares, np.ones(len(y))))
