"""What happens to a table before a search sees it, and back."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from gmeql.formula.bounds import Bounds
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.model.fit.preparation import prepare
from gmeql.search.events import Member, Progress
from gmeql.search.judging.deferred import Deferred, carried
from gmeql.search.judging.outlook import Outlook


def ordinary() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(3).uniform(1, 2, (50, 2))
    return X, 3.0 * X[:, 0] / X[:, 1]


def test_scales_are_powers_of_two_and_undone_exactly() -> None:
    X, y = ordinary()
    data = prepare(X * 2.0**300, y * 2.0**-400)
    assert data.is_scaled
    np.testing.assert_array_equal(np.sort(np.ldexp(data.y, data.target_exponent)), np.sort(y * 2.0**-400))
    plain = prepare(X, y)
    assert not plain.is_scaled
    assert data.target_spread == pytest.approx(plain.target_spread * 2.0**-400, rel=1e-12)


def test_order_of_rows_does_not_matter() -> None:
    X, y = ordinary()
    order = np.random.default_rng(0).permutation(len(y))
    a, b = prepare(X, y), prepare(X[order], y[order])
    np.testing.assert_array_equal(a.X, b.X)
    np.testing.assert_array_equal(a.y, b.y)


def test_blocks_of_sorted_data_are_fair_samples() -> None:
    x = np.linspace(0, 1, 1000)
    data = prepare(x[:, None], x)
    assert abs(data.X[:200].mean() - 0.5) < 0.07


def test_equal_rows_become_weight() -> None:
    X = np.array([[1.0], [2.0], [1.0], [-0.0], [0.0]])
    data = prepare(X, np.array([5.0, 6.0, 5.0, 7.0, 7.0]))
    weights = dict(zip(data.X[:, 0].tolist(), (data.weight * 5 / 3).tolist(), strict=True))
    assert weights == pytest.approx({1.0: 2.0, 2.0: 1.0, 0.0: 2.0})
    assert data.rows == 5


def test_rows_count_by_kish_when_weights_are_not_counts() -> None:
    X, y = ordinary()
    assert prepare(X, y, np.full(50, 0.3)).rows == pytest.approx(50)
    assert prepare(X, y, np.r_[np.full(49, 1e-9), 0.5]).rows == pytest.approx(1, rel=1e-3)


def test_members_and_events_come_back_in_the_users_units() -> None:
    X, y = ordinary()
    data = prepare(X * 2.0**300, y * 2.0**-400, names=("a", "b"))
    ratio = Expression(Call("mul", (Constant(3.0), Call("div", (Variable(0), Variable(1))))), ("a", "b"))
    scaled = Member(ratio, 0.25, ratio.complexity)
    member = data.restore_member(scaled)
    users = np.ldexp(data.X, np.array(data.column_exponents))
    np.testing.assert_allclose(member.expression(users), np.ldexp(ratio(data.X), data.target_exponent), rtol=1e-12)
    assert member.loss == np.ldexp(0.25, data.target_exponent) and member.complexity == member.expression.complexity
    event = data.restore_progress(Progress(1.0, 10, 10.0, 1, (scaled,), scaled))
    assert event.best == event.front[0] == member
    plain = prepare(X, y)
    assert plain.restore_member(scaled) is scaled


def test_what_a_member_promises_comes_back_in_them_whether_it_is_known_yet_or_not() -> None:
    X, y = ordinary()
    data = prepare(X, y * 2.0**-400)
    outlook = Outlook(0.5, 0.1, False, 2.0, Bounds(-1.0, 4.0, True))
    member = Member(Expression(Variable(0), ("x1", "x2")), 0.5, 1, outlook)
    late = data.restore_member(replace(member, outlook=Deferred(lambda: outlook)))
    assert isinstance(carried(late), Deferred)
    assert late.outlook == data.restore_member(member).outlook == outlook.scaled(data.target_exponent)


def test_rows_of_no_weight_go_and_some_row_must_count() -> None:
    X, y = ordinary()
    weight = np.r_[np.zeros(10), np.ones(40)]
    assert len(prepare(X, y, weight).y) == 40 and prepare(X, y, weight).weight is None
    with pytest.raises(ValueError, match="zero for every row"):
        prepare(X, y, np.zeros(50))
    assert len(prepare(np.repeat(X, 2, axis=0), np.repeat(y, 2), merge=False).y) == 100


def test_scales_join_constants_where_nearly_equal_terms_are_subtracted() -> None:
    """Langevin's law of tiny moments: a shorter form rounds otherwise, and 1/tanh(u) - 1/u keeps little but rounding."""
    rng = np.random.default_rng(0)
    X = np.exp(rng.uniform(np.log([1e-23, 0.1, 10]), np.log([1e-21, 10, 1000]), (200, 3)))
    data = prepare(X, X[:, 0] * X[:, 1] / X[:, 2])
    m, field, heat = (Variable(j) for j in range(3))
    u = Call("div", (Call("mul", (Constant(7.1), Call("mul", (m, field)))), heat))
    law = Call("sub", (Call("inv", (Call("tanh", (u,)),)), Call("inv", (u,))))
    restored = data.restore_expression(Expression(law, ("m", "B", "T")))
    assert "*" in str(restored) and not re.search(r"\d\*\d", str(restored))
