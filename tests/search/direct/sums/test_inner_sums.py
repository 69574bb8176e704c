"""A sum inside a function, beside plain terms and before columns, is seen at once."""

import numpy as np
import pytest

from gmeql.formula.nodes import tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums import inner_sums
from gmeql.search.direct.table import DirectTable, Effort

exp, log, sqrt = np.exp, np.log, np.sqrt


def proposed(f, *, functions: FunctionSet | None = None, seconds: float = 1.0):
    columns = f.__code__.co_argcount
    X = np.random.default_rng(3).uniform(0.3, 5.0, (600, columns))
    with np.errstate(all="ignore"):
        table = DirectTable(X, f(*X.T), np.ones(600))
        given = {"functions": functions or FunctionSet(None), "effort": Effort(seconds)}
        return table, list(inner_sums.propose(table, **given, rng=np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("f", "size"),
    [
        (lambda t: 47.8 / (1 + 14.47 * exp(-1.7 * t)) ** 1.3, 20),
        (lambda t: 47.8 / (1 + 4.47 * exp(-0.7 * t)) ** 1.3, 20),
        (lambda t: 42.9 * (1 - exp(-((t / 3.53) ** 2.25))), 20),
        (lambda t, a: 26.4 * (1 - exp(-0.357 * t)) ** 2.87 * a, 20),
        (lambda t, a: 66.9 * exp(-7.87 * exp(-0.544 * t)) + 2.4 * a, 20),
        (lambda a, b: 5.59 * log(1 + 1.11 * a + 0.534 * b) + 1.87 * a * b, 24),
        (lambda a, b: 25.2 * (a + 2.89 * b) ** 1.64 / (47.4 + (a + 2.89 * b) ** 1.64), 20),
        (lambda a, b, d: 5.23 * sqrt(log(1.35 + a / b)) + 0.445 * d, 20),
        (lambda a, b: 1.2 * a * b - b * (0.4 + 0.7 * a) ** 0.63, 24),
        (lambda n, p: 0.965 * n * log(60.9 / n) - 0.918 * p * (1 - exp(-0.9 * n)), 32),
    ],
)
def test_sums_inside_functions(f, size):
    table, roots = proposed(f)
    assert table.error(roots[0]) < inner_sums.INNER_SUMS.verified
    assert tree_complexity(roots[0]) <= size


@pytest.mark.parametrize(
    "f",
    [
        lambda a: np.random.default_rng(0).normal(size=len(a)),
        lambda a, b, c, d: np.random.default_rng(0).normal(size=len(a)),
        lambda a, b: np.sin(3 * a * b),
        lambda a, b: 2 * a * b + 1,  # a plain sum
        lambda a, b: log(1 + a + 0.5 * b) + 1e-4 * np.random.default_rng(0).normal(size=len(a)),
    ],
)
def test_nothing_is_seen_in_other_targets(f):
    assert not proposed(f)[1]


def test_functions_that_are_not_allowed():
    assert not proposed(lambda a, b: log(1 + a + 0.5 * b) + a * b, functions=FunctionSet(("add", "mul", "sqrt")))[1]


def test_too_little_time_to_begin():
    assert not proposed(lambda a, b: log(1 + a + 0.5 * b) + a * b, seconds=0.001)[1]


def test_what_is_explained_is_that_of_least_squares():
    """Blocks of columns against one fit each."""
    rng = np.random.default_rng(0)
    blocks, target = rng.normal(size=(5, 20, 3)), rng.normal(size=20)
    target /= np.linalg.norm(target)
    first, every = inner_sums._explained(blocks.astype(np.float32), target.astype(np.float32))
    for m, block in enumerate(blocks):
        for columns, share in ((block[:, :1], first[m]), (block, every[m])):
            left = target - columns @ np.linalg.lstsq(columns, target, rcond=None)[0]
            assert share == pytest.approx(1 - left @ left, abs=1e-3)


def test_what_one_step_of_a_fit_sees():
    """Kaufman's slopes are those of what is left, but for a part that vanishes with it."""
    rng = np.random.default_rng(1)
    X = rng.uniform(0.3, 5.0, (200, 2))
    y = 5.59 * log(1 + 1.11 * X[:, 0] + 0.534 * X[:, 1]) + 1.87 * X[:, 0] * X[:, 1]
    fit = inner_sums._Fit(X, y, FunctionSet(None))
    inside = inner_sums._Inside((), X)
    numbers = np.array([1.11, 0.534, 1.0, 0.0])
    start = inner_sums._Start(0.0, inner_sums.CURVES["log"], inside, numbers, 1)
    slopes = fit._slopes(start, numbers, fit.look(start, numbers))
    for place in range(3):
        step = np.zeros(4)
        step[place] = 1e-5
        difference = fit.look(start, numbers + step).left - fit.look(start, numbers - step).left
        np.testing.assert_allclose(slopes[:, place], -difference / 2e-5, atol=1e-4)
