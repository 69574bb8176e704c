"""Constants that people write: chosen where the rows cannot tell them from fitted ones, and nowhere else."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.model.choice.plain_constants import plain_constants, with_plain_constants
from gmeql.search.config import SearchConfig
from gmeql.search.polish.scoring import JudgedRows, refit
from judged_fronts import judged

NAMES = ("x1", "x2")


def formula(text: str) -> Expression:
    return Expression(parse_tree(text, NAMES), NAMES)


def fitted(text: str, X: np.ndarray, y: np.ndarray) -> Expression:
    """A formula with constants led to the least squares."""
    rows = JudgedRows.of(X, y, None, NAMES)
    start = formula(text)
    start = start.with_constants([c * 1.0007 if abs(c) != 1.0 else c for c in start.constants])
    (found,) = refit([start.root], rows, keep_recognised=False)
    return Expression(found.root, NAMES)


@pytest.fixture
def X() -> np.ndarray:
    return np.random.default_rng(1).uniform(0.5, 9.0, (100, 2))


LAWS = ["3*x1 - 0.5*x2", "1.8*x1 + 32", "12*x1/(x1 + 3)", "5*exp(-0.4*x1) + 1.5", "4.9*x1**2 + x2", "2.5*x1*x2"]


@pytest.mark.parametrize("decimals", [2, 5])
@pytest.mark.parametrize("law", LAWS)
def test_laws_of_rounded_rows_have_their_plain_numbers(law: str, decimals: int, X: np.ndarray) -> None:
    y = np.round(formula(law)(X), decimals)
    found = fitted(law, X, y)
    assert found.constants != formula(law).constants  # the rows were rounded
    assert plain_constants(found, X, y, None).constants == formula(law).constants


@pytest.mark.parametrize("law", ["2.9987*x1 - 0.50321*x2", "1.8021*x1 + 32.17", "3.1731*x1*x2"])
def test_other_numbers_that_the_rows_know_stay(law: str, X: np.ndarray) -> None:
    y = np.round(formula(law)(X), 5)
    found = fitted(law, X, y)
    assert plain_constants(found, X, y, None) is found


def test_numbers_that_are_none_seldom_become_plain(X: np.ndarray) -> None:
    """Of factors that could be any, and are known to four digits or to two."""
    rng = np.random.default_rng(3)
    for noise in (3e-3, 0.3):
        became = 0
        for _ in range(100):
            y = rng.uniform(1.0, 10.0) * X[:, 0] + noise * rng.standard_normal(100)
            factor = float(X[:, 0] @ y / (X[:, 0] @ X[:, 0]))
            found = Expression(parse_tree(f"{factor!r}*x1", NAMES), NAMES)
            became += plain_constants(found, X, y, None) is not found
        assert became <= 12


def test_constants_that_stay_move_to_where_the_rows_have_them(X: np.ndarray) -> None:
    """A slope beside a level that is far from all rows: one moves the other."""
    rng = np.random.default_rng(4)
    far = X + 50.0
    y = 2.0 * far[:, 0] + 7.137 + 0.003 * rng.standard_normal(100)
    found = plain_constants(fitted("2*x1 + 7.137", far, y), far, y, None)
    assert found.constants[0] == 2.0
    assert found.constants[1] == pytest.approx(float(np.mean(y - 2.0 * far[:, 0])), rel=1e-9)


def test_a_factor_of_1_is_none(X: np.ndarray) -> None:
    y = np.round(X[:, 0] + 2.5 * X[:, 1], 4)
    found = plain_constants(fitted("1.0002*x1 + 2.5*x2", X, y), X, y, None)
    assert found.constants == (2.5,) and found.complexity < fitted("1.0002*x1 + 2.5*x2", X, y).complexity


def test_rows_too_few_or_no_slopes_leave_all_as_it_is(X: np.ndarray) -> None:
    y = np.round(3.0 * X[:, 0] - 0.5 * X[:, 1], 5)
    found = fitted("3*x1 - 0.5*x2", X, y)
    assert plain_constants(found, X[:5], y[:5], None) is found
    constant = formula("x1 + x2")
    assert plain_constants(constant, X, y, None) is constant
    twice = formula("3.00002*x1 - 1.20001*x1")  # the rows know their difference alone
    assert plain_constants(twice, X, y, None) is twice


def test_the_front_stays_one_and_its_choice_the_choice(X: np.ndarray) -> None:
    y = np.round(3.0 * X[:, 0] - 0.5 * X[:, 1], 5)
    found = fitted("3*x1 - 0.5*x2", X, y)
    factors = [f"{c!r}" for c in found.constants]
    front = judged(X, y, "2.63*x1", f"{factors[0]}*x1 - {factors[1]}*x2")
    plain = with_plain_constants(front, X, y, None, config=SearchConfig())
    assert plain.select("best").expression.constants == (3.0, -0.5) and len(plain) == len(front)
    assert plain[-1].loss == pytest.approx(math.sqrt(np.mean((plain[-1](X) - y) ** 2)))
    assert front[-1].loss < plain[-1].loss < 1.05 * front[-1].loss
    robust = SearchConfig(loss="robust")
    assert with_plain_constants(front, X, y, None, config=robust) is front
    exact = judged(X, 3.0 * X[:, 0] - 0.5 * X[:, 1], "2.63*x1", "3*x1 - 0.5*x2")
    assert with_plain_constants(exact, X, 3.0 * X[:, 0] - 0.5 * X[:, 1], None, config=SearchConfig()) is exact
