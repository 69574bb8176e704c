"""Products of powers, waves and an exponential of one column are seen at once, and written as people write them."""

import numpy as np
import pytest

from gmeql.formula.nodes import tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.waves import wave_products
from gmeql.search.direct.waves.wave_products import WAVE_PRODUCTS

sin, cos, exp = np.sin, np.cos, np.exp


def proposed(f, columns: int, *, functions: FunctionSet | None = None, high: float = 10.0):
    X = np.random.default_rng(3).uniform(0.0, high, (600, columns))
    table = DirectTable(X, f(*X.T), np.ones(600))
    given = (functions or FunctionSet(None), Effort(1.0), np.random.default_rng(0))
    return table, list(wave_products.propose(table, functions=given[0], effort=given[1], rng=given[2]))


@pytest.mark.parametrize(
    ("f", "columns", "size"),
    [
        (lambda x: x**3 * exp(-x) * cos(x) * sin(x) * (sin(x) ** 2 * cos(x) - 1), 1, 30),
        (lambda x, z: 0.7 * x**3 * exp(-x) * cos(x) * sin(x) * (sin(x) ** 2 * cos(x) - 1) * (z - 5), 2, 36),
        (lambda z, x: 1.3 * x**2 * exp(-x) * sin(x) ** 2 * cos(x) * (x**2 - cos(x) ** 2), 2, 32),
        (lambda x: x * exp(-x) * sin(x) ** 3 * cos(x) ** 2 * (sin(x) ** 3 + x), 1, 32),
        (lambda x: exp(x) * sin(x) ** 4 * (1 + 0.3 * cos(x) ** 3), 1, 26),
        (lambda x: cos(x) ** 3 * (x**2 - 2.5) * (sin(x) - 1.2), 1, 26),
    ],
)
def test_products_are_seen_and_written_short(f, columns, size):
    table, roots = proposed(f, columns)
    assert table.error(roots[0]) < 1e-11
    assert tree_complexity(roots[0]) <= size


@pytest.mark.parametrize(
    ("f", "columns", "high"),
    [
        (lambda x: np.random.default_rng(0).normal(size=len(x)), 1, 10.0),
        (lambda x, z, u: np.random.default_rng(0).normal(size=len(x)), 3, 10.0),
        (lambda x: np.log(x + 1) * sin(x), 1, 10.0),
        (lambda x: sin(1.3 * x) * x, 1, 10.0),
        (lambda x: exp(np.sqrt(x + 1)), 1, 4.5),
        (lambda x: 1 / (x + 1), 1, 4.5),
    ],
)
def test_nothing_is_seen_in_other_targets(f, columns, high):
    assert not proposed(f, columns, high=high)[1]


def test_functions_that_are_not_allowed():
    assert not proposed(lambda x: x**2 * sin(x) ** 3, 1, functions=FunctionSet(("add", "mul", "sin")))[1]
    no_exponentials = FunctionSet(("add", "mul", "sin", "cos", "pow", "square", "cube"))
    assert not proposed(lambda x: x**2 * sin(x) ** 3 * exp(-x), 1, functions=no_exponentials)[1]


@pytest.mark.parametrize("turns", WAVE_PRODUCTS.turns)
def test_waves_as_polynomials_have_the_same_values(turns):
    """Against the sums themselves."""
    rng = np.random.default_rng(turns)
    x, factors = rng.uniform(-5, 5, 40), rng.normal(size=2 * turns + 1)
    waves = [np.ones(40), *(cos(n * x) for n in range(1, turns + 1)), *(sin(n * x) for n in range(1, turns + 1))]
    expected = factors @ np.array(waves)
    both = wave_products._in_cosines(factors)
    in_cosines = sum(sin(x) ** s * cos(x) ** c * both[s, c] for s in range(2) for c in range(both.shape[1]))
    other = wave_products._in_sines(both)
    in_sines = sum(cos(x) ** c * sin(x) ** s * other[c, s] for c in range(2) for s in range(other.shape[1]))
    np.testing.assert_allclose(in_cosines, expected, atol=1e-10)
    np.testing.assert_allclose(in_sines, expected, atol=1e-10)


@pytest.mark.parametrize(("sines", "cosines"), [(0, 0), (1, 0), (0, 2), (2, 1), (3, 2)])
def test_common_sines_and_cosines(sines, cosines):
    """What is divided out, times what is left, is what there was."""
    x = np.linspace(-3, 3, 50)
    left = 0.3 + 0.7 * cos(x) - sin(x)
    turns = np.arange(1, 9)
    waves = np.column_stack([np.ones(50), cos(np.outer(x, turns)), sin(np.outer(x, turns))])
    factors = np.linalg.lstsq(waves, left * sin(x) ** sines * cos(x) ** cosines, rcond=None)[0]
    rest, *found = wave_products._without_common(wave_products._in_cosines(factors))
    assert found == [sines, cosines]
    np.testing.assert_allclose(
        sum(sin(x) ** s * cos(x) ** c * rest[s, c] for s in range(2) for c in range(9)), left, atol=1e-9
    )
