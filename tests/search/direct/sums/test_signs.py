"""Factors are known by the sign of the target, with the numbers in them, and what they leave is read off."""

from __future__ import annotations

import numpy as np
import pytest

from drawn_tables import Function, drawn_table
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums import signs
from gmeql.search.direct.sums.signs import SIGNS, Signs, numbers_between, propose
from gmeql.search.direct.table import DirectTable, Effort


def proposed(f: Function, functions: FunctionSet | None = None) -> tuple[DirectTable, list]:
    rng = np.random.default_rng(3)
    table = drawn_table(f, 700, 8, rng)
    with np.errstate(all="ignore"):
        return table, list(propose(table, functions=functions or FunctionSet(), effort=Effort(2.0), rng=rng))


@pytest.mark.parametrize(
    ("f", "complexity"),
    [
        (lambda a, b, c, d: (a - 1.31 * b) * np.sqrt(a * c**2 * d - b * d**2 + 2.7 * c), 30),
        (lambda a, b, c: (a - 0.98) * (b * c**2 - a + 0.6 * a * b) ** 0.25, 30),
        (lambda a, b, c, d: (a + b - c + d**3) * np.exp(0.3 * a * b - 1.1 * c), 25),
    ],
)
def test_a_factor_before_something_of_one_sign(f: Function, complexity: int) -> None:
    table, (root,) = proposed(f)
    assert table.error(root) < 1e-9
    assert tree_complexity(root) <= complexity


@pytest.mark.parametrize(
    ("f", "complexity"),
    [
        (lambda a, b, c, d, e: a * np.exp(-b * c) * np.cos(c * d + e), 20),
        (lambda a, b, c, d: a * np.exp(-c / b) * np.sin(2 * np.pi * (c / a - c * d)), 25),
        (lambda a, b, c: a * np.cos((b - a) * c / 2) / (1 + b * c**2), 25),
        (lambda a, b, c, d: np.sin(a * b - c + d) * np.sqrt(a * b + c), 20),
    ],
)
def test_a_wave_before_something_of_one_sign(f: Function, complexity: int) -> None:
    rng = np.random.default_rng(3)
    X = rng.uniform(0.5, 4, (700, f.__code__.co_argcount))
    table = DirectTable(X, f(*X.T), np.ones(700))
    (root,) = propose(table, functions=FunctionSet(), effort=Effort(2.0), rng=rng)
    assert table.error(root) < 1e-9
    assert tree_complexity(root) <= complexity


def test_nothing_is_seen_elsewhere() -> None:
    noise = np.random.default_rng(0)
    for f in (
        lambda a, b: noise.normal(size=len(a)),
        lambda a, b: np.exp(a) + 0 * b,  # of one sign
        lambda a, b: np.sin(a * b + 0.3) + 0.2 * np.cos(a),
    ):
        assert proposed(f)[1] == []
    assert proposed(lambda a, b: (a - 2) * np.sqrt(b), FunctionSet(["add", "mul"]))[1] == []


def test_factors_have_the_sign_of_the_target_on_every_row() -> None:
    X = np.random.default_rng(1).uniform(-3, 3, (300, 3))
    target = -(X[:, 0] - 0.5 * X[:, 1]) * np.exp(X[:, 2] ** 2)
    factors = Signs(X, FunctionSet()).factors_of(target)
    assert "x1 - 0.5*x2" in [str(Expression(node)) for node, _ in factors]
    assert all(abs((np.sign(values) * np.sign(target)).sum()) == 300 for _, values in factors)


def test_only_a_few_targets_are_asked_the_last_of_them_again() -> None:
    X = np.random.default_rng(1).uniform(-3, 3, (300, 2))
    signs, targets = Signs(X, FunctionSet()), [X[:, 0] - c for c in np.linspace(0.3, 0.6, SIGNS.asked + 1)]
    assert all(signs.factors_of(target) and signs.factors_of(target) for target in targets[:-1])
    assert not signs.factors_of(targets[-1])


def test_numbers_of_few_digits_within_an_interval() -> None:
    assert numbers_between(0.91, 1.004) == [1.0, *(k / 100 for k in range(92, 100))]
    assert numbers_between(-0.2, 0.3) == numbers_between(0.5001, 0.5009) == numbers_between(0.0, np.inf) == []


def test_of_very_many_sums_with_the_sign_only_the_plainest_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where columns are nearly constant, tens of thousands of sums change their sign with the target: seconds went by."""
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.uniform(273, 373, 400), *(rng.uniform(0, 3, (3, 400)))])
    y = (X[:, 0] - np.quantile(X[:, 0], 0.3)) * (1 + X[:, 3] ** 2)
    written: list[int] = []
    write = signs._Sums.node
    monkeypatch.setattr(signs._Sums, "node", lambda some, u: written.append(u) or write(some, u))
    found = Signs(X, FunctionSet()).factors_of(y)
    assert len(found) == SIGNS.kept and len(written) < 20 * SIGNS.kept
    assert all(np.abs((np.sign(values) * np.sign(y)).sum()) == len(y) for _, values in found)


def test_the_plainest_are_kept_and_of_those_as_plain_the_first() -> None:
    lengths = np.random.default_rng(0).integers(1, 5, 200).tolist()
    kept = signs._Plainest(10)
    for place, n in enumerate(lengths):
        if kept.has_room(n):
            kept.take(n, Constant(float(place)), np.zeros(0))
    first = sorted(range(200), key=lambda place: lengths[place])[:10]
    assert [node for node, _ in kept.all()] == [Constant(float(place)) for place in first]
