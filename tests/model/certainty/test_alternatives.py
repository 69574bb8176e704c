"""Alternatives: distinct, weighed as their description lengths say, averaged with what the structure leaves open."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gmeql.formula.bounds import Bounds
from gmeql.formula.expression import Expression
from gmeql.formula.limits import LAW_EXPONENTS
from gmeql.formula.parsing import parse_tree
from gmeql.model.certainty.alternatives import alternatives, averaged
from gmeql.model.choice.unmoved import with_unmoved
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.search.config import SearchConfig
from gmeql.search.judging.outlook import Outlook
from gmeql.search.judging.structure import POWER_LAW_NATS
from judged_fronts import judged
from struck_rows import struck_line
from thinned import thinned


def member(text: str, loss: float) -> FrontMember:
    expression = Expression(parse_tree(text, ["x"]), ("x",))
    return FrontMember(expression, loss, expression.complexity, 0.0, 0)


@pytest.fixture
def front() -> Front:
    members = [member("1.3", 5.0), member("2.1*x", 1.0), member("2.1*x + 0.7", 0.9)]
    beaten = [member("2.3*x", 1.2), member("1.7*sqrt(x)", 1.05)]
    return Front.from_members(members, rows=50, target_spread=5.0, target_largest=20.0, beaten=beaten)


def test_structures_are_distinct_and_the_best_comes_first(front: Front) -> None:
    found = alternatives(front, 10)
    texts = [str(one.expression) for one in found]
    assert len(texts) == 4 and "2.3*x" not in texts
    assert sum(one.weight for one in found) == pytest.approx(1.0)
    assert [one.weight for one in found] == sorted((one.weight for one in found), reverse=True)


def test_weights_are_the_odds_of_description_lengths(front: Front) -> None:
    by_text = {str(one.expression): one for one in alternatives(front, 10)}
    line, root = by_text["2.1*x"], by_text["1.7*sqrt(x)"]
    nats = 50 * math.log(1.05 / 1.0) + POWER_LAW_NATS + math.log(len(LAW_EXPONENTS))  # both say that the column is in
    assert line.weight / root.weight == pytest.approx(math.exp(nats))


def test_factors_drawn_towards_0_count_as_many_constants_as_they_are_worth() -> None:
    plain = member("1.9*x + 0.5", 1.0)
    known = Outlook(1.1, 0.1, False, 1.0, Bounds(0.0, 1.0, True), freedom=1.4, nats=math.log(2))
    shrunk = replace(plain, outlook=known)
    found = [alternatives(_front([member("2.1*x", 1.02), one]), 2) for one in (plain, shrunk)]
    odds = [next(a for a in each if str(a.expression) == "1.9*x + 0.5").weight for each in found]
    assert odds[1] > odds[0]


def test_a_formula_of_a_few_that_everybody_knows_pays_no_more_for_its_symbols_than_the_choice_counts() -> None:
    """The chosen `2.29*a + 0.535*ulm - 0.803*a*ulm + 1.99`, a line for each of two kinds, was given 0.1 % of the evidence."""
    plain = member("1.9*x/(x + 0.5)", 1.0)
    known = replace(plain, outlook=Outlook(1.1, 0.1, False, 1.0, Bounds(0.0, 1.0, True), nats=math.log(12)))
    shares = [alternatives(_front([member("2.1*x", 1.12), one]), 2) for one in (plain, known)]
    weights = [next(a.weight for a in each if "/" in str(a.expression)) for each in shares]
    assert weights[0] < 0.1 and weights[1] > 0.8


def test_constants_are_counted_as_the_front_counts_them() -> None:
    sine = member("sin(x)", 1.0)  # a factor of 1 was chosen as well, though it is not written
    front = _front([sine, member("2.1*x", 0.9)])
    assert front.n_fitted(sine) == 1
    spread = next(one.spread for one in alternatives(front, 2) if str(one.expression) == "sin(x)")
    assert spread == pytest.approx(math.sqrt(50 / 49))


def _front(members: list[FrontMember]) -> Front:
    return Front.from_members(members, rows=50, target_spread=5.0, target_largest=20.0)


def test_an_average_is_wider_where_formulas_differ(front: Front) -> None:
    found = alternatives(front, 10)
    X = np.array([[1.0], [40.0]])
    mean, low, high = averaged(found, [X] * len(found), 0.95)
    assert ((low < mean) & (mean < high)).all()
    assert high[1] - low[1] > high[0] - low[0]
    assert high[0] - low[0] > 2 * 1.96 * min(one.spread for one in found)


def test_one_formula_alone_has_its_own_errors(front: Front) -> None:
    (one,) = alternatives(front, 1)
    mean, low, high = averaged([one], [np.array([[2.0]])], 0.95)
    assert mean[0] == one.expression(np.array([[2.0]]))[0]
    assert high[0] - low[0] == pytest.approx(2 * 1.959964 * one.spread)


def test_a_formula_without_value_takes_no_part(front: Front) -> None:
    found = alternatives(front, 10)
    mean, _, _ = averaged(found, [np.array([[-1.0]])] * len(found), 0.95)
    assert np.isfinite(mean).all()


def test_what_is_refused(front: Front) -> None:
    with pytest.raises(ValueError, match="n=0"):
        alternatives(front, 0)
    with pytest.raises(ValueError, match="level=2"):
        averaged(alternatives(front, 2), [np.ones((1, 1))] * 2, 2)


@pytest.mark.parametrize("seed", thinned([0, 1, 3], 1))
def test_beside_a_formula_that_outliers_do_not_move_the_other_rows_decide(seed: int) -> None:
    """By squares over all rows the chosen line had 7 % of the evidence and a curve through the outliers the rest."""
    X, y = struck_line(seed)
    front = with_unmoved(judged(X, y, "2.61*x1", "0.378*x1**2"), X, y, None, config=SearchConfig())
    line, *_ = alternatives(front, 5)
    assert line.expression == front.select("best").expression and line.weight > 0.9
    assert line.spread < 0.3 * line.loss
    assert Front.from_dict(front.to_dict()) == replace(front, others=())


def test_rows_as_few_as_constants_know_no_alternatives(front: Front) -> None:
    assert alternatives(replace(front, rows=1.0, members=front.members[1:], others=()), 5) == ()
