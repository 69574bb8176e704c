"""Sums and fractions of two small formulas are seen at once, whatever their constants, and nothing is where nothing is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from drawn_tables import even_table
from thinned import thinned

from gmeql.formula.nodes import Constant, Node, Variable, build, calls
from gmeql.network.families import DEFAULT_FUNCTIONS, FunctionSet
from gmeql.search.direct.middle.small_formulas import SmallFormulas
from gmeql.search.direct.middle.two_terms import Term, fitted, propose
from gmeql.search.direct.table import DirectTable, Effort

ALL = FunctionSet(DEFAULT_FUNCTIONS)


table = partial(even_table, rows=300)


def proposed(given: DirectTable, functions: FunctionSet = ALL, seconds: float = 0.1) -> list[Node]:
    return list(propose(given, functions=functions, effort=Effort(seconds), rng=np.random.default_rng(0)))


def error_of(given: DirectTable, **options: FunctionSet | float) -> float:
    return min(map(given.error, proposed(given, **options)), default=1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("f", "n_columns"),
    [
        (lambda a: np.sin(a) + np.sin(a + a * a), 1),
        (lambda a, b, c: 1.35 * a * b - 5.5 * np.sin(b * c) + 0.3, 3),
        (lambda a, b: (2.3 - 0.7 * np.log(a)) / (1 + 4.1 * b * b), 2),
        (lambda a, b: 0.3 / (1.7 + np.cos(a) - 0.2 * np.exp(b)), 2),
        (lambda a, b, c: np.sqrt(7.1 + 2.2 * np.cos(a * b) - 0.4 * c * c), 3),  # behind a reading
        (lambda a, b: np.exp(0.4 * a * b - 1.1 * np.sqrt(b)), 2),
        (lambda a, b: b * (1.7 + 0.4 * np.sin(a * a) - 0.9 * np.log(a) / b), 2),  # times a column
        (lambda a, b: (1.7 + 0.4 * np.sin(a * a) - 0.9 * np.log(a) / b) / a, 2),
        (lambda a, b: 1.7 * (1 + a * b) ** 1.63 / (np.sin(b) + 2) ** 0.41, 2),  # powers
        (lambda a, b: -1.7 * (a + b) ** 2.31 / (np.sin(b) + 2) ** 0.41, 2),
        (lambda a, b, c: 1.7 + 0.4 * c + 0.3 * np.sin(a * b) - 0.9 * np.exp(a - c), 3),  # beside a column
    ],
)
def test_a_law_of_two_terms_is_seen(f: Callable[..., np.ndarray], n_columns: int) -> None:
    assert error_of(table(f, n_columns)) < 1e-11


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("seed", thinned(range(20), 4))
def test_any_two_small_formulas_with_any_constants(seed: int, below: bool) -> None:
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 2.5, (300, 2))
    small = SmallFormulas.of(X[:8], ALL, max_kept=1_000, max_formulas=1_000)
    given = DirectTable(X, np.ones(300), np.ones(300))
    while True:
        one, other = (given.values(small.tree(int(i))) for i in rng.integers(0, 1_000, 2))
        above = rng.uniform(0.5, 2) + rng.uniform(0.5, 2) * one
        y = above / (0.7 + other) if below else above - rng.uniform(0.5, 2) * other
        is_finite = (
            np.isfinite(one).all() and np.isfinite(other).all() and 1e-3 < np.abs(y).min() < np.abs(y).max() < 1e3
        )
        if is_finite and min(np.std(each) / np.abs(each).max() for each in (one, other, y)) > 0.05:
            break
    assert error_of(DirectTable(X, y, np.ones(300))) < 1e-9


def test_powers_of_what_is_below_zero_are_those_of_its_size(rng: np.random.Generator) -> None:
    X = -rng.uniform(0.5, 2.5, (300, 2))
    y = 1.7 * (-X[:, 0] * np.exp(X[:, 1])) ** 1.63 * (2 - X[:, 0]) ** 0.41
    assert error_of(DirectTable(X, y, np.ones(300))) < 1e-11


def test_only_allowed_functions() -> None:
    of_two = table(lambda a, b: 1.3 * a * b + 0.7 * np.exp(a), 2)
    assert error_of(of_two, functions=FunctionSet(["mul", "exp", "add"])) < 1e-12
    assert proposed(of_two, FunctionSet(["mul", "exp", "div"])) == []
    fraction = table(lambda a, b: (1 + 2 * np.exp(a)) / (3 + a * b), 2)
    (root, *_) = proposed(fraction, FunctionSet(["mul", "exp", "add", "div"]))
    assert {call.operator for call in calls(root)} == {"mul", "exp", "add", "div"}
    assert proposed(fraction, FunctionSet(["mul", "exp", "add"])) == []


def test_noise_and_nonsense_have_none() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    assert proposed(DirectTable(X, rng.normal(size=200), np.ones(200))) == []
    assert proposed(DirectTable(X, np.ones(200), np.ones(200))) == []
    assert proposed(DirectTable(X[:5], X[:5, 0], np.ones(5))) == []
    steps = np.floor(3 * rng.uniform(size=(200, 3)))  # few values: on few rows much is alike
    assert proposed(DirectTable(steps, rng.normal(size=200), np.ones(200))) == []
    assert error_of(table(lambda a, b: a * b + np.sin(a) + 1e-6 * np.random.default_rng(1).normal(size=300), 2)) > 1e-9


def test_too_little_effort_finds_nothing_and_the_clock_ends_it_after_the_target_as_it_is() -> None:
    given = table(lambda a, b: 1.3 * a * b + 0.7 * np.exp(a), 2)
    assert proposed(given, seconds=0.0) == []
    assert list(propose(given, functions=ALL, effort=Effort(0.1, lambda: True), rng=np.random.default_rng(0))) == []
    asked = iter([False])
    late = Effort(0.1, lambda: next(asked, True))
    assert given.error(next(propose(given, functions=ALL, effort=late, rng=np.random.default_rng(0)))) < 1e-12
    behind = table(lambda a, b: np.exp(0.4 * a * b - 1.1 * np.sqrt(b)), 2)
    asked = iter([False])
    assert list(propose(behind, functions=ALL, effort=late, rng=np.random.default_rng(0))) == []


def test_a_quick_look_is_as_short_however_long_the_search() -> None:
    given = table(lambda a, b: 1.3 * a * b * np.log(a) + 0.7 * np.exp(a) * np.sqrt(1 + b), 2)
    assert error_of(given, seconds=0.5) < 1e-11
    quick = Effort(0.5, is_quick=True)
    assert list(propose(given, functions=ALL, effort=quick, rng=np.random.default_rng(0))) == []


def test_constants_are_found_and_those_that_are_nothing_left_out() -> None:
    given = table(lambda a, b: 2 * a * b + 3 * np.exp(a), 2)
    terms = [build("mul", Variable(0), Variable(1)), build("exp", Variable(0))]
    root, error = fitted([Term(term) for term in terms], given, given.y)
    assert error < 1e-14
    constants = sorted(call.value for call in _constants(root))
    assert constants == pytest.approx([2, 3], rel=1e-12)
    fraction = table(lambda a, b: 2 * a / (1 + 4 * b), 2)
    root, error = fitted([Term(Variable(0)), Term(Variable(1), is_below=True)], fraction, fraction.y)
    assert error < 1e-14 and root.operator == "div" and len(_constants(root)) == 3
    no_fraction = table(lambda a, b: 2 * a + 5, 2)
    root, error = fitted([Term(Variable(0)), Term(Variable(1), is_below=True)], no_fraction, no_fraction.y)
    assert error < 1e-12 and sorted(c.value for c in _constants(root)) == pytest.approx([2, 5], rel=1e-9)


def test_terms_without_values_or_that_do_not_hold_are_no_formula() -> None:
    given = table(lambda a, b: a * b, 2)
    log = build("log", build("sub", Variable(0), Constant(1.0)))
    assert fitted([Term(log), Term(Variable(1))], given, given.y)[1] == np.inf
    plain = [Term(Variable(0)), Term(Variable(1))]
    assert fitted(plain, given, given.y)[1] > 1e-3


def _constants(root: Node) -> list[Constant]:
    if isinstance(root, Constant):
        return [root]
    return [constant for part in getattr(root, "args", ()) for constant in _constants(part)]
