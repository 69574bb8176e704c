"""With what weight rows count in a judgement."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql import GMEQLRegressor
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Variable, build
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.model.rows.weighing import counted_rows
from gmeql.search.losses.losses import LOSSES

X = np.linspace(0, 5, 50)[:, None]


def front_of(*roots, y: np.ndarray) -> Front:
    expressions = [Expression(root, ("x",)) for root in roots]
    members = [
        FrontMember(e, float(np.median(np.abs(e(X) - y))) + 1e-3, e.complexity, 0.0, k)
        for k, e in enumerate(expressions)
    ]
    return Front.from_members(members, rows=50, target_spread=float(y.std()), target_largest=float(abs(y).max()))


@pytest.mark.parametrize("loss", LOSSES)
def test_given_weights_are_kept_and_the_loss_adds_its_own(loss: str, rng: np.random.Generator) -> None:
    y = 2 * X[:, 0] + 0.1 * rng.standard_normal(50)
    y[7] = 400.0
    given = np.where(np.arange(50) < 10, 3.0, 1.0)
    counted = counted_rows(front_of(build("mul", Constant(2.0), Variable(0)), y=y), X, y, given, loss=loss)
    np.testing.assert_allclose(counted.given, given / given.mean())
    assert counted.weights.mean() == pytest.approx(1.0)
    outlier = np.arange(50) == 7
    if counted.by_the_loss:
        assert counted.share(outlier) < 0.02 and counted.left_out == (counted.share(outlier) == 0)
    else:
        assert counted.share(outlier) == pytest.approx(3 / given.sum()) and counted.left_out == 0


def test_only_some_losses_weigh_rows(rng: np.random.Generator) -> None:
    y = 2 * X[:, 0] + rng.standard_t(2, 50)
    front = front_of(build("mul", Constant(2.0), Variable(0)), y=y)
    assert not counted_rows(front, X, y, loss="squared").by_the_loss
    assert counted_rows(front, X, y, loss="robust").by_the_loss and counted_rows(front, X, y, loss="huber").by_the_loss


@pytest.mark.parametrize("loss", ["huber", "robust"])
def test_a_fit_ends_with_the_weights_that_its_front_tells(loss: str) -> None:
    """The loss of the front's table is the typical error of the sentence beside it."""
    rng = np.random.default_rng(1)
    columns = rng.uniform(0, 10, (120, 2))
    y = 2 * columns[:, 0] + 1 + 0.3 * rng.standard_normal(120)
    y[:12] += 150.0
    model = GMEQLRegressor(loss=loss, max_candidates=2000, max_time=None, random_state=0, n_jobs=1).fit(columns, y)
    counted = counted_rows(model.front_, columns, y, loss=loss)
    for member in model.front_:
        typical = np.sqrt(np.average((member(columns) - y) ** 2, weights=counted.weights))
        assert typical == pytest.approx(member.loss, rel=2e-3)
