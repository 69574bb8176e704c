"""The number of a reading that has one, by what a span leaves."""

import numpy as np
import pytest

from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums.scaled_readings import TABLE, numbers_of
from gmeql.search.direct.sums.vocabulary import Span
from gmeql.search.direct.terms.library import brief_vocabulary

FUNCTIONS = FunctionSet(None)
X = np.random.default_rng(4).uniform(0.1, 9.0, (600, 3))
A, B, C = X.T


def left(values: np.ndarray) -> np.ndarray:
    terms = brief_vocabulary(X, FUNCTIONS.allows, most_terms=40)
    return Span(terms.values, terms.node).left(values)


@pytest.mark.parametrize(
    ("name", "y", "number"),
    [
        ("log", 2.5 * np.log(A * B + C + 3), 1 / 2.5),
        ("log", -0.13 * np.log(A * B + C + 3), -1 / 0.13),
        ("log", 40 * np.log(A * B + C + 3), 1 / 40),
        ("power", (A * B + C + 3) ** 1.37, 1 / 1.37),
        ("power", -2 * (A * B + C + 3) ** -2.3, -1 / 2.3),
        ("exp", 0.7 + 3.2 * np.exp(-0.1 * A - 0.02 * B * C), 0.7),
        ("exp", 5 - np.exp(0.1 * A + 0.02 * B * C), 5.0),
        ("atan", 57.3 * np.arctan(0.1 * A * B - 0.3 * C), 1 / 57.3),
        ("tanh", -4 * np.tanh(0.03 * A * B - 0.2 * C), 1 / 4),
    ],
)
def test_the_number_is_found_to_rounding(name, y, number):
    found = list(numbers_of(TABLE[name], y, left))
    assert min(abs(abs(one / number) - 1) for one in found) < 1e-9


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize(
    "y",
    [
        np.sin(A * B) + C,
        A / (1 + B * C),
        np.ones(len(X)),
        np.zeros(len(X)),
        1e300 * A * np.exp(B),
        2 * np.log(A * B + C + 3) + 1e-4 * np.sin(50 * A),
    ],
)
def test_other_targets_have_none(name, y):
    assert list(numbers_of(TABLE[name], y, left)) == []


@pytest.mark.parametrize("name", TABLE)
def test_slopes_are_those_of_differences(name):
    reading = TABLE[name]
    y = np.random.default_rng(1).uniform(0.3, 2.0, 30)
    (numbers, *_), step = reading.numbers(y), 1e-6
    number = float(numbers[5])
    ahead, behind = (reading.read(y, np.array([number + s]))[:, 0] for s in (step, -step))
    np.testing.assert_allclose(reading.slope(y, number), (ahead - behind) / (2 * step), rtol=1e-4, atol=1e-7)
