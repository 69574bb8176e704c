"""What the rows can know: steps, silly constants and cancelling digits are refused, smooth laws are not."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.formula.simplify import simplify
from gmeql.search.polish.knowable import gentler, is_knowable
from gmeql.search.polish.scoring import JudgedRows

NAMES = ("t", "day")
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.uniform(-3.0, 3.0, 120), RNG.integers(0, 12, 120)]).astype(float)


def knowable(formula: str, noise: float = 0.1) -> bool:
    """Judged on rows that the formula fits up to noise."""
    root = parse_tree(formula, NAMES)
    target = Expression(root, NAMES)(X) + noise * RNG.standard_normal(len(X))
    rows = JudgedRows.of(X, target, None, NAMES)
    return is_knowable(root, float(np.mean((Expression(root, NAMES)(X) - target) ** 2)), rows)


@pytest.mark.parametrize(
    "formula",
    [
        "exp(-1.9233e+114*day)",
        "2*tanh(6.2551e+14*t) + t",
        "tanh(1e9*t - 1.31e9)",
        "3/(1 + exp(-1e6*(t - 0.77)))",
        "1/(1 + 1e15*day)",
        "day/(day + 1e-13)",
        "t + atan(1e20*t)",
        "sqrt(1e24 + t) - 1e12",
        "day + 0.001*t**20",
        "day + ((t/3)**2)**19.7",
        "2 + day*tanh(1.15*t)**1438",
    ],
)
def test_what_nobody_can_know_is_refused(formula: str) -> None:
    assert not knowable(formula)


@pytest.mark.parametrize(
    "formula",
    [
        "exp(-0.5*day)",
        "2*tanh(3*t) + t",
        "3/(1 + exp(-4*(t - 0.77)))",
        "1/(1 + 15*day)",
        "day/(day + 2)",
        "1e9*t + 3e8*day",
        "atan(t)",
        "1e-9/(t**2 + 1)",
        "(t + 5)**12",
        "t + 4**day",
    ],
)
def test_laws_that_the_rows_show_are_knowable(formula: str) -> None:
    value = Expression(parse_tree(formula, NAMES), NAMES)(X)
    assert knowable(formula, noise=0.05 * float(np.std(value)))


def test_an_exact_formula_is_taken_as_it_is() -> None:
    root = parse_tree("2*tanh(6.2551e+14*t) + t", NAMES)
    rows = JudgedRows.of(X, Expression(root, NAMES)(X), None, NAMES)
    assert is_knowable(root, 0.0, rows) and not is_knowable(root, 1e-6, rows)


@pytest.mark.parametrize(
    "formula", ["2*tanh(6.2551e+14*t) + t", "tanh(1e9*t - 1.31e9)", "3/(1 + exp(-1e6*(t - 0.77)))"]
)
def test_a_jump_that_many_rows_show_has_a_gentler_form_that_is_knowable(formula: str) -> None:
    root = parse_tree(formula, NAMES)
    value = Expression(root, NAMES)(X)
    rows = JudgedRows.of(X, value + 0.1 * RNG.standard_normal(len(X)), None, NAMES)
    other = simplify(gentler(root, 0.01, rows))
    assert is_knowable(other, 0.01, rows) and not is_knowable(root, 0.01, rows)
    assert np.abs(Expression(other, NAMES)(X) - value).max() < 0.02
    assert max(map(abs, Expression(other, NAMES).constants)) < 1e5


def test_a_step_through_one_row_stays_refused() -> None:
    far = X.copy()
    far[:, 1] = np.where(np.arange(len(X)) == 0, 0.0, far[:, 1] + 1.0)
    root = parse_tree("5*exp(-1e9*day)", NAMES)
    rows = JudgedRows.of(far, Expression(root, NAMES)(far) + 0.1 * RNG.standard_normal(len(X)), None, NAMES)
    assert not is_knowable(gentler(root, 0.01, rows), 0.01, rows)
