"""Products and quotients of two columns: found among others, and only where a column may divide."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.network.families import FunctionSet
from gmeql.search.config import SearchConfig
from gmeql.search.data.rows import SearchRows
from gmeql.search.front.leaderboard import Leaderboard
from gmeql.search.front.plain_sums import judged_sums
from gmeql.search.sums.products import plain_products

ALL = FunctionSet(None)
NAMES = ("a", "b", "c", "d")
LAWS = {
    "a product": lambda X: 0.8 * X[:, 0] * X[:, 2],
    "a product and a level": lambda X: 3.0 - 0.2 * X[:, 1] * X[:, 3],
    "a quotient": lambda X: 2.5 * X[:, 3] / X[:, 0],
    "a quotient and a level": lambda X: 7.0 + X[:, 1] / X[:, 2],
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_every_one_is_found_with_its_constants(law: object, rng: np.random.Generator) -> None:
    X = rng.uniform(1, 5, (40, 4))
    truth = law(X)  # type: ignore[operator]
    y = truth + 0.2 * truth.std() * rng.standard_normal(40)
    best, *_ = plain_products(X, y, np.ones(40), ALL)
    expression = Expression(best.root, NAMES)
    assert len(expression.variables) == 2 and best.nats < 5
    assert np.sqrt(np.mean((expression(X) - truth) ** 2)) < 0.1 * truth.std()


def test_what_may_not_divide_or_is_not_allowed_is_left_out(rng: np.random.Generator) -> None:
    X = np.column_stack([rng.uniform(1, 5, 50), rng.uniform(-1, 1, 50), rng.uniform(0.001, 1, 50)])
    found = plain_products(X, rng.standard_normal(50), np.ones(50), FunctionSet(("div",)))
    assert {str(Expression(c.root)).split("/")[1].split()[0] for c in found} == {"x1"}
    assert plain_products(X, X[:, 0], np.ones(50), FunctionSet(("add", "sin"))) == []
    assert plain_products(X[:, :1], X[:, 0], np.ones(50), ALL) == []
    assert plain_products(X[:3], X[:3, 0], np.ones(3), ALL) == []
    assert plain_products(np.rint(X), X[:, 0], np.ones(50), ALL) == []


def test_they_are_judged_beside_the_front_for_few_nats(rng: np.random.Generator) -> None:
    X = rng.uniform(1, 5, (40, 4))
    y = 0.8 * X[:, 0] * X[:, 2] + 2 * rng.standard_normal(40)
    rows = SearchRows.of(X, y, config=SearchConfig())
    board = Leaderboard.start(rows.config, rows)
    board.look_out(rows)
    products = [m for m in judged_sums(board.front(rows), rows) if m.expression.variables == (0, 2) and "*" in str(m)]
    assert any(m.outlook is not None and m.outlook.nats is not None and m.outlook.nats < 5 for m in products)


@pytest.mark.parametrize("scale", [1e200, 1e308])
def test_numbers_beyond_all_range_are_no_product_and_no_warning(scale: float, rng: np.random.Generator) -> None:
    for curve in plain_products(scale * rng.uniform(0.1, 1, (60, 3)), rng.standard_normal(60), np.ones(60), ALL):
        assert np.isfinite(Expression(curve.root).constants).all()
