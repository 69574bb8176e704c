"""What is met on an accelerator is a formula of the target, the simplest first, and nothing is met where nothing is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from deep_looks import ALL, EXTENT, REACH, grown, table, values_of_kept
from host_cuda import HostDriver, needs_compiler
from late_cuda import LateDriver

from gmeql.formula.nodes import Node, Variable, calls
from gmeql.network.families import FunctionSet
from gmeql.search.deep import meeting
from gmeql.search.deep.meeting import (
    BOTH_STEPS,
    DEEP,
    Shape,
    _one_step,
    _three_steps,
    _two_steps,
    looked_up,
    propose,
)
from gmeql.search.direct.middle.kernels import MINUS, OVER, PLUS, STAY, TIMES, UNDER
from gmeql.search.direct.middle.meeting import few_rows, stepped
from gmeql.search.direct.table import DirectTable

pytestmark = needs_compiler


def proposed(given: DirectTable, functions: FunctionSet = ALL, **options: object) -> list[Node]:
    goes_on = cast("Callable[[], bool]", options.get("goes_on", lambda: True))
    return list(propose(HostDriver(), given, functions, REACH, goes_on=goes_on))


@pytest.mark.parametrize(
    ("f", "n_columns"),
    [
        (lambda a, b: np.sqrt(a) / (1 + b * np.cos(a)), 2),  # one step
        (lambda a, b, c: np.sqrt(1 + 0.37 * np.exp(a / b)) * c, 3),  # and a reading
        (lambda a, b, c: a - 3.1 * np.sqrt(b) * c, 3),
        (lambda a, b, c: 0.7 * np.sqrt(b) * c - a * b, 3),  # plus
        (lambda a, b: (a * b + np.sin(a) / (1 + 2 * b)) / b, 2),  # two steps
        (lambda a, b, c: 1.35 * a * b + 5.5 * np.sin(b * c) - 0.3, 3),  # a sum of two
        (lambda a, b, c: (1.3 * a * b + np.exp(c) + 2) / c, 3),  # ... over a column
        (lambda a, b, c: np.cos(b) * (np.sqrt(a) * (1.3 + 0.4 * np.sin(c)) - c), 3),  # three steps
    ],
)
def test_a_law_is_met(f: Callable[..., np.ndarray], n_columns: int) -> None:
    given = table(f, n_columns)
    roots = proposed(given)
    assert roots and given.error(roots[0]) < 1e-10


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_read_before_it_is_there(seed: int) -> None:
    given = table(lambda a, b, c: 1.35 * a * b + 5.5 * np.sin(b * c) - 0.3, 3)
    late = propose(LateDriver(seed), given, ALL, REACH)
    assert list(late) == proposed(given)


def test_noise_and_nonsense_are_not_met() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    assert proposed(DirectTable(X, rng.normal(size=60), np.ones(60))) == []
    assert proposed(DirectTable(X, np.ones(60), np.ones(60))) == []
    assert proposed(DirectTable(X[:10], X[:10, 0], np.ones(10))) == []
    flat = np.where(np.arange(60) < 55, 0.0, 1.0)  # constant on the few rows
    assert proposed(DirectTable(X, flat, np.ones(60))) == []


def test_no_sums_of_two_where_sums_are_not_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the processor's method for them has it."""
    monkeypatch.setattr(meeting, "summed", lambda *_: iter([Variable(0)]))
    given = table(lambda a, b: 1.3 * a * b + 0.7 * np.exp(a), 2)
    assert Variable(0) in proposed(given, FunctionSet(["mul", "exp", "div", "add"]))
    assert Variable(0) not in proposed(given, FunctionSet(["mul", "exp", "div"]))


def test_only_allowed_functions() -> None:
    allowed = FunctionSet(["add", "mul", "div", "exp"])
    assert proposed(table(lambda a, b: np.sqrt(a) / (1 + b * np.cos(a)), 2), allowed) == []
    roots = proposed(table(lambda a, b: np.exp(a * b) / (1 + 3 * a), 2), allowed)
    assert {call.operator for call in calls(roots[0])} <= {"add", "mul", "div", "exp", "neg", "inv"}


def test_it_ends_when_nobody_waits() -> None:
    given = table(lambda a, b: np.sqrt(a) / (1 + b * np.cos(a)), 2)
    assert proposed(given, goes_on=lambda: False) == []
    asked = iter([True] * 7)  # it grows for all of these
    assert proposed(given, goes_on=lambda: next(asked, False)) == []


def test_hits_are_true_and_sorted_and_what_drowns_the_target_is_none() -> None:
    given = table(lambda a, b: a * b + np.sin(a), 2)
    rows = few_rows(given.y)
    small = grown(given.X[rows])
    shapes = [Shape(first, STAY, len(small), 1, 0, 1) for first in (MINUS, PLUS, TIMES, OVER, UNDER)]
    seen, hits = looked_up(small, given.y[None, rows], shapes)
    assert len(hits) > 5
    for target, first, a, second, _, b in hits.tolist():
        assert (target, second) == (0, STAY)
        with np.errstate(all="ignore"):
            left = stepped(first, given.y, given.values(small.tree(a)))
        basis = np.stack([given.values(seen.tree(b)), np.ones(len(left))], axis=1)
        residual = left - basis @ np.linalg.lstsq(basis, left, rcond=None)[0]
        assert np.abs(residual[rows]).max() < 1e-6 * np.ptp(left[rows])
    huge = given.y[None, rows] * 1e-9
    assert not any(
        np.ptp(values_of_kept(small)[a]) > 1 for _, first, a, *_ in looked_up(small, huge, shapes[:1])[1].tolist()
    )
    costs = small.costs()[hits[:, 2]] + [len(list(calls(seen.tree(b)))) for b in hits[:, 5]]
    assert costs[0] <= np.median(costs)


def test_a_reading_that_is_one_number_is_no_fault() -> None:
    given = table(lambda a, b: 1.0 + 1e-16 * a, 2)
    given.y[0] += 1e-15
    assert [root for root in proposed(given) if given.error(root) < 1e-9] == []


def test_look_ups_between_two_questions_and_many_targets_change_nothing() -> None:
    given = table(lambda a, b: a * b + np.sin(a), 2)
    rows = few_rows(given.y)
    small, targets = grown(given.X[rows]), np.stack([given.y[rows] ** 2, given.y[rows], given.y[rows] ** 3])
    shapes = [Shape(first, second, 40, 40, 0, 3) for first, second in BOTH_STEPS]
    _, at_once = looked_up(small, targets, shapes)
    _, by_and_by = looked_up(small, targets, shapes, numbers=replace(DEEP, at_a_time=7000.0))
    assert (at_once == by_and_by).all() and set(at_once[:, 0]) == {1}
    _, one = looked_up(small, targets, [shape._replace(from_target=1, n_targets=1) for shape in shapes])
    assert (one == at_once).all()


def test_shapes_spend_what_they_may() -> None:
    small = grown(table(lambda a, b: a * b, 2).X[:8])
    for n_targets in (1, 3):
        shapes = _two_steps(small, n_targets, 1e6, DEEP)
        assert 2e5 < sum(shape.n for shape in shapes) <= 1e6
        assert {shape.n_targets for shape in shapes} == {1, n_targets - 1} - {0}
    assert (
        2e5 < sum(shape.n for shape in _three_steps(small, 3, 20, 1e6)) <= 1e6 and _three_steps(small, 3, 3, 1e6) == []
    )
    assert all(shape.n_second == 1 for shape in _one_step(small, 2, ALL))
    assert len(small) <= EXTENT.kept
