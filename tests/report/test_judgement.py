"""What is said of a formula: figures, preference, exactness."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Variable, build
from gmeql.formula.parsing import parse_tree
from gmeql.model.choice.evidence import Rival
from gmeql.model.choice.unmoved import with_unmoved
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.model.rows.weighing import counted_rows
from gmeql.report import judgement
from gmeql.report.judgement import figures, judge, percent
from gmeql.search.config import SearchConfig
from gmeql.search.events import Member
from gmeql.search.judging.outlook import outlooks
from gmeql.search.losses.converging import converged
from gmeql.search.losses.losses import find_loss
from gmeql.search.losses.magnitudes import weights_by_size
from gmeql.search.losses.robust import robust_weights
from gmeql.tables import read as tables
from judged_fronts import judged
from report_pages import front_for, training
from struck_rows import struck_line


def judged_front(data: tables.Training) -> Front:
    """The front of the report's tests, with what its members promise on unseen rows."""
    front = front_for(data)
    found = outlooks([m.expression.root for m in front], data.X, data.y)
    members = [replace(member, outlook=outlook) for member, outlook in zip(front, found, strict=True)]
    return Front.from_members(
        members, rows=front.rows, target_spread=front.target_spread, target_largest=front.target_largest
    )


def test_judgement_follows_the_fit():
    data = training()
    front = judged_front(data)
    best = " ".join(judge(front, len(front) - 1, data))
    assert "99." in best and "on unseen rows about 0.0" in best and " ± " in best
    assert "to predict unseen rows better than its strongest rival" in best and "million" not in best
    worse = " ".join(judge(front, 1, data))
    assert "Formula 2 of the front" in worse and "likely" in worse and "to predict unseen rows better." in worse


def test_exact_formulas_are_called_exact():
    data = training()
    exact = tables.Training(data.X, front_for(data)[-1].expression(data.X), data.names, "y", None, data.rows, (), "x")
    front = judged_front(exact)
    sentences = judge(front, len(front) - 1, exact)
    assert "to rounding" in sentences[0] and "next simpler formula" in sentences[1]


def test_fronts_of_earlier_versions_get_no_odds():
    data = training()
    front = front_for(data)
    text = " ".join(judge(front, len(front) - 1, data))
    assert "next simpler formula" in text and "likely" not in text and "unseen" not in text
    assert "not tried on rows left out" in text


def test_few_rows_promise_nothing():
    """Two rows promised an error, and 20 to 1 that a line is better than the mean; one of three was called an outlier."""
    X = np.array([[4.8], [6.7], [7.4]])
    y = np.array([10.15, 14.2, 16.86])
    few = tables.Training(X, y, ("x1",), "y", None, np.arange(3), (), "x")
    front = judged(X, y, "2.19*x1")
    text = " ".join(judge(front, 1, few))
    assert "3 rows cannot tell formulas apart" in text
    assert "likely" not in text and "unseen" not in text and "outliers" not in text


def test_noise_supports_nothing_beyond_the_mean():
    data = training()
    noise = np.random.default_rng(0).normal(size=len(data.y))
    nothing = tables.Training(data.X, noise, data.names, "y", None, data.rows, (), "x")
    mean = Expression(Constant(float(noise.mean())), data.names)
    (outlook,) = outlooks([mean.root], data.X, noise)
    front = Front.from_members(
        [FrontMember(mean, float(noise.std()), 1, 0.0, 0, outlook)], rows=40, target_spread=1.0, target_largest=3.0
    )
    assert "Nothing was found that the data support beyond the mean" in " ".join(judge(front, 0, nothing))


def test_rivals_about_as_good_are_named(monkeypatch: pytest.MonkeyPatch):
    data = training()
    front = judged_front(data)

    def close(*_: object, among: tuple[int, ...] | None = None, loss: object = None) -> tuple[Rival, ...]:
        return tuple(Rival(k, 0.5, False, 0.55 + 0.05 * k) for k in among or (0, 1))

    monkeypatch.setattr(judgement, "rivals", close)
    assert "Not sure: formula 0 of the front" in (best := " ".join(judge(front, 2, data)))
    assert "is about as good, and formula 1 may be." in best
    assert "Formula 2 of the front" in (other := " ".join(judge(front, 1, data))) and "is about as good." in other


def with_outliers(share: float = 0.1, noise: float = 0.3) -> tuple[Front, tables.Training]:
    """2 x + 1 with gross errors on one side, and the front that the robust loss makes of it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (200, 1))
    y = 2 * X[:, 0] + 1 + noise * rng.standard_normal(200)
    n = round(share * 200)
    y[:n] += rng.uniform(200, 900, n)
    line = Expression(build("add", Constant(1.0), build("mul", Constant(2.0), Variable(0))), ("x1",))
    weights = robust_weights("robust", line(X) - y, y, explained=True)
    mean = Expression(Constant(float(np.average(y, weights=weights))), ("x1",))
    found = outlooks([mean.root, line.root], X, y, weights)
    members = [
        FrontMember(e, float(np.sqrt(np.average((e(X) - y) ** 2, weights=weights))), e.complexity, 0.0, 0, outlook)
        for e, outlook in zip((mean, line), found, strict=True)
    ]
    front = Front.from_members(members, rows=200, target_spread=float(y.std()), target_largest=float(abs(y).max()))
    return front, tables.Training(X, y, ("x1",), "y", None, np.arange(200), (), "x")


def test_rows_count_in_the_judgement_as_in_the_loss():
    front, data = with_outliers()
    text = " ".join(judge(front, 1, data, loss="robust"))
    assert "explains 99." in text and "20 rows lie far from it; the loss gives them no weight." in text
    assert f"typical error {front[1].loss:.3g}" in text and "very likely" in text and "--loss robust" not in text
    assert "explains nothing" in " ".join(judge(front, 1, data, loss="squared"))


def test_an_exact_formula_of_most_rows_is_not_said_to_meet_all():
    front, data = with_outliers(noise=0.0)
    text = " ".join(judge(front, 1, data, loss="robust"))
    assert text.startswith("It reproduces 180 of the 200 rows to rounding") and "20 rows lie far from it" in text


def test_a_chosen_constant_is_either_sure_or_not(monkeypatch: pytest.MonkeyPatch):
    data = training()
    noise = replace(data, y=np.random.default_rng(0).normal(size=len(data.y)))
    slope, offset = np.polyfit(noise.X[:, 0], noise.y, 1)
    line = build("add", Constant(offset), build("mul", Constant(slope), Variable(0)))
    roots = [Constant(float(noise.y.mean())), line]
    members = []
    for root, outlook in zip(roots, outlooks(roots, noise.X, noise.y), strict=True):
        expression = Expression(root, noise.names)
        members.append(FrontMember(expression, float(np.std(expression(noise.X) - noise.y)), 1, 0.0, 0, outlook))
    front = Front.from_members(members, rows=40, target_spread=1.0, target_largest=3.0)
    assert len(front) == 2 and not front.select("best").expression.variables
    for chance, said in (
        (0.55, "Not sure whether the data say more than the mean"),
        (0.9, "beyond the mean: it"),
    ):
        monkeypatch.setattr(judgement, "rivals", lambda *_, c=chance, **__: (Rival(1, 0.5, True, c),))
        text = " ".join(judge(front, 0, noise))
        assert said in text and ("Nothing was found" in text) != ("Not sure" in text)


def test_a_preference_that_the_promised_errors_contradict_says_why(monkeypatch: pytest.MonkeyPatch):
    data = training()
    front = judged_front(data)
    best = front.select("best").index
    rival = 0 if best else 1
    better = replace(front[rival].outlook, error=0.9 * front[best].outlook.error)
    members = [replace(m, outlook=better) if m.index == rival else m for m in front]
    monkeypatch.setattr(judgement, "rivals", lambda *_, **__: (Rival(rival, 0.5, True, 0.8),))
    monkeypatch.setattr(Front, "select", lambda self, *_: self[best])
    text = " ".join(judge(replace(front, members=tuple(members)), best, data))
    assert "though that one promises a little less error: the difference is within the spread" in text
    assert "promises a little less" not in " ".join(judge(front, best, data))


def test_figures_are_weighted():
    y, predicted = np.array([0.0, 1.0, 10.0]), np.array([0.0, 1.0, 0.0])
    assert figures(predicted, y, np.array([1.0, 1.0, 0.0])).rmse == 0.0
    assert figures(predicted, y).largest_error == 10.0
    assert figures(np.array([0.0, np.nan, 1.0]), y).rmse == np.inf


def test_percent_never_says_100():
    assert [percent(r2) for r2 in (0.5, 0.99983, 0.9998, -1)] == ["50 %", "99.983 %", "99.980 %", "nothing"]
    assert not any("100" in percent(1 - 10**-k) for k in range(1, 15))


def fitted_by(loss: str, y: np.ndarray, X: np.ndarray) -> list[str]:
    """What is said of a line fitted by a loss, beside the best constant."""
    roots = [parse_tree(text, ("a",)) for text in ("1.5", "1.5*a + 0.5")]
    fits = [converged(root, X, y, np.ones(len(y)), find_loss(loss)) for root in roots]
    seen = outlooks([root for root, _ in fits], X, y, loss=find_loss(loss))
    members = [
        FrontMember(Expression(root, ("a",)), least, 0, 0.0, 0, outlook)
        for (root, least), outlook in zip(fits, seen, strict=True)
    ]
    front = Front.from_members(members, rows=len(y), target_spread=float(y.std()), target_largest=9.0, loss=loss)
    data = replace(training(), X=X, y=y, names=("a",), weights=None)
    return judge(front, 1, data, loss=loss)


def test_a_formula_is_told_by_the_loss_it_was_fitted_by(rng: np.random.Generator):
    """Not by the weighted squares that stood for it, and with the error to expect on unseen rows."""
    X = rng.uniform(0.5, 3, (300, 1))
    line = 2 * X[:, 0] + 1
    said = fitted_by("absolute", line + rng.laplace(0, 0.5, 300), X)
    assert said[0].startswith("It has a mean absolute error of 0.5") and "on unseen rows about 0.5" in said[0]
    assert "less than the best constant" in said[0] and "very likely" in said[1]
    said = fitted_by("poisson", rng.poisson(line).astype(float), X)
    assert "mean half deviance of 0.5" in said[0] and "logarithm" not in " ".join(said)
    said = fitted_by("logistic", (rng.random(300) < 1 / (1 + np.exp(4 - line))).astype(float), X)
    assert "mean log loss" in said[0] and "outliers" not in " ".join(said)


def test_formulas_that_promise_less_error_and_were_passed_over_are_told_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
):
    data = training()
    front = judged_front(data)
    best = front.select("best").index
    monkeypatch.setattr(judgement, "rivals", lambda *_, **__: ())
    monkeypatch.setattr(Front, "select", lambda self, *_: self[best])
    for pole, why in (
        (True, "but a denominator passes through zero among the rows or just beyond."),
        (False, "within the spread."),
    ):
        better = replace(front[0].outlook, error=0.5 * front[best].outlook.error, pole=pole)
        members = (replace(front[0], outlook=better), *front.members[1:])
        text = " ".join(judge(replace(front, members=members), best, data))
        assert "Formula 0 of the front promises less error (" in text and why in text
    assert "promises less error" not in " ".join(judge(front, best, data))
    # a sum drawn towards 0 pays for which columns it has, by far more than the spread
    outlook = front[best].outlook
    paid = replace(outlook, error=9.0 * outlook.error, luck=9.0 * outlook.luck, freedom=1.5)
    less = replace(front[0].outlook, error=5.0 * outlook.error, luck=1.0)
    members = [replace(m, outlook={best: paid, 0: less}.get(m.index, m.outlook)) for m in front]
    text = " ".join(judge(replace(front, members=tuple(members)), best, data))
    assert "but with each row left out this one errs less (" in text and "pays for the choice of its columns" in text


@pytest.mark.parametrize("both", [True, False])
def test_a_formula_that_outliers_do_not_move_is_judged_by_the_rows_it_follows(both: bool):
    X, y = struck_line(1, both=both)
    data = tables.Training(X, y, ("x1",), "y", None, np.arange(150), (), "x")
    front = with_unmoved(judged(X, y, "3.1*x1", "0.45*x1**2"), X, y, None, config=SearchConfig())
    best = front.select("best").index
    assert front[best].is_unmoved
    text = " ".join(judge(front, best, data))
    aside = "" if both else " (levels aside)"
    assert (
        f"predict unseen rows that do not lie far off{aside} better" in text
        and "12 rows lie far from the others" in text
    )
    if both:
        assert "Its constants follow the other 138, where its typical error is 0.5" in text
        assert "a search with loss='robust' (--loss robust) gives them no weight, and may find more" in text
        known = replace(front[best], outlook=replace(front[best].outlook, searched_without=True))
        members = tuple(known if member.index == best else member for member in front)
        text = " ".join(judge(replace(front, members=members), best, data))
        assert "where its typical error is 0.5" in text and "; a part of the search left them out." in text
    else:
        assert "Its level is the mean of all rows" in text and "fits the other 138" in text
    assert not (both and "not distinguishable from 0" in text)


def test_formulas_beside_the_chosen_one_do_not_ask_for_more_time_and_say_whether_they_say_the_same():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, (2000, 1))
    y = 0.2 * X[:, 0] ** 3 + 1 + 0.3 * rng.standard_normal(2000)
    data = tables.Training(X, y, ("x1",), "y", None, np.arange(2000), (), "x")
    slope, level = np.polyfit(X[:, 0], y, 1)
    third, start = np.polyfit(X[:, 0] ** 3, y, 1)
    cubed, linear, rest = np.linalg.lstsq(np.column_stack([X**3, X, np.ones(2000)]), y, rcond=None)[0]
    texts_of = f"{slope}*x1 + {level}", f"{third}*x1**3 + {start}", f"{cubed}*x1**3 + {linear}*x1 + {rest}"
    front = judged(X, y, *texts_of)
    assert len(front) == 4
    chosen, texts = front.select("best").index, [" ".join(judge(front, k, data)) for k in range(len(front))]
    assert chosen == 2 and "says nearly the same as formula 2 of the front" in texts[3]
    assert "still show a pattern: it does not say all." in texts[1] and "give it more time" not in texts[1]


def test_a_target_over_many_magnitudes_is_told_in_the_size_of_its_rows():
    """The sentence said "typical error 127" where the front has 1.1e-07, and advised the logarithm for errors that grow."""
    rng = np.random.default_rng(4)
    X = 10 ** rng.uniform([20, 6], [28, 8], (80, 2))
    y = 6.674e-11 * X[:, 0] / X[:, 1] ** 2 * (1 + 0.01 * rng.normal(size=80))
    data = tables.Training(X, y, ("x1", "x2"), "y", None, np.arange(80), (), "x")
    weights = weights_by_size(y, np.ones(80))
    plain = judged(X, y, "6.674e-11*x1/x2**2")
    members = [replace(m, loss=float(np.sqrt(np.average((m.expression(X) - y) ** 2, weights=weights)))) for m in plain]
    front = Front.from_members(members, rows=80, target_spread=plain.target_spread, target_largest=1e-6 * y.max())
    text = " ".join(judge(front, 1, data))
    assert re.search(r"a typical error of (0\.[89]|1\.[01])\d* % of each row's own size on 80 rows", text)
    assert "over many magnitudes" in text and "errors grow" not in text
    counted = counted_rows(front, X, y)
    assert figures(front[1].expression(X), y, counted.weights).rmse == pytest.approx(front[1].loss, rel=1e-12)


def test_figures_of_huge_targets_do_not_overflow():
    y = 1e300 * np.arange(1.0, 20.0)
    found = figures(y * (1 + 1e-3), y)
    assert found.rmse == pytest.approx(1e-3 * 1e300 * np.sqrt(np.mean(np.arange(1.0, 20.0) ** 2)))
    assert 0.999 < found.r2 < 1


def test_the_strongest_rival_is_named_and_what_says_the_same():
    """The list had two formulas that promise as little error as the chosen one; the "next best" was said to be a third. And a
    formula that is cut short had a stop too many: "2.6*exp(…)*(1 - ….\""""
    rng = np.random.default_rng(7)
    X = rng.uniform(1, 3, (200, 2))
    y = 3 * X[:, 0] / X[:, 1] + 0.7 * np.sqrt(X[:, 0]) + 0.3 * rng.normal(size=200)
    names = ("a_column_of_a_name_that_is_long", "another_column_of_a_name_as_long_as_that")
    texts = ("4.5", "3.31*x1/x2 + 0.3*x2", "3*x1/x2 + 0.7*sqrt(x1)", "3.001*x1/x2 + 0.699*x1**0.501 + 0.001")
    roots = [parse_tree(text, ("x1", "x2")) for text in texts]
    members = [
        Member(Expression(root, names), 0.5 - 0.1 * k, 3 * k + 1, replace(outlook, error=0.5 - 0.1 * k))
        for k, (root, outlook) in enumerate(zip(roots, outlooks(roots, X, y), strict=True))
    ]
    front = Front.from_members(members, rows=200, target_spread=float(y.std()), target_largest=float(y.max()))
    rival, counted = Rival(1, 5.0, False, 0.99), counted_rows(front, X, y)
    sentence, same = judgement._beside_the_next_best(front, 2, (rival,), counted)
    assert "better than its strongest rival, formula 1 of the front, " in sentence
    assert same == "Formula 3 says nearly the same as this one."
    assert len(judgement._beside_the_next_best(front, 2, (rival, Rival(3, 5.0, True, 0.99)), counted)) == 1
    data = tables.Training(X, y, names, "y", None, np.arange(200), (), "x")
    text = " ".join(" ".join(judge(front, k, data)) for k in range(4))
    assert "…" in text and "…." not in text
