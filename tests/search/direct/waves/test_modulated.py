"""Waves with polynomials before and beside them: random members of the class, noise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gmeql.formula.nodes import Node, calls, tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.direct.fractions.polynomials import monomials, values
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.waves.modulated import _polynomials, propose
from gmeql.search.direct.waves.projection import MODULATED
from thinned import thinned

LAWS: dict[str, tuple[int, float, float, Callable[..., np.ndarray]]] = {
    "before a product": (3, 0, 10, lambda x, y, z: 1.1 * x + 0.9 * y + 2.1 * x * y * np.cos(1.2 * z)),
    "a factor of both signs": (3, -3, 3, lambda x, y, z: x**3 + (0.9 * y**2 - x * z) * np.sin(2.2 * z + 0.7)),
    "of less than one turn": (2, 0, 2, lambda x, y: x * np.sin(1.7 * y + 0.4) - 2 * y**2),
    "two polynomials": (2, -3, 3, lambda x, y: x * np.sin(2.1 * y) + (x**2 + y) * np.cos(2.1 * y)),
    "of a product": (2, -3, 3, lambda x, y: 1.1 * x**3 + 0.9 * y * np.sin(2.2 * x * y)),
    "of a fraction": (2, 1, 5, lambda x, y: 1.1 + 0.9 * y * np.sin(2.2 * x / y)),
    "of a square": (1, 0, 5, lambda x: 1.1 + 0.9 * x * np.sin(2.2 * x**2)),
    "under a root": (2, 1, 2, lambda x, y: np.sqrt(50 + 20 * y * np.sin(2.2 * x))),
    "behind a slit": (1, 0.05, 3, lambda x: np.sin(np.pi * x) ** 2 / x**2),
    "a transition": (1, -8, 8, lambda x: np.sin(x / 2) ** 2 / x**2),
    "of a sphere": (1, 0.5, 3, lambda x: np.sin(4 * x) / x**2 - 4 * np.cos(4 * x) / x),
    "before a fraction": (3, 0.5, 8, lambda x, y, z: 1.1 / x + 0.9 * y + 2.1 * z / y * np.cos(1.2 * x)),
    "before an exponential": (2, 0.5, 8, lambda x, y: np.sqrt(y) + 2.1 * np.exp(-y) * np.cos(1.2 * x + 1)),
}


def table(law: Callable[..., np.ndarray], width: int, low: float, high: float, noise: float = 0.0) -> DirectTable:
    rng = np.random.default_rng(4)
    X = rng.uniform(low, high, (300, width))
    y = law(*X.T)
    return DirectTable(X, y + noise * y.std() * rng.standard_normal(300), np.ones(300))


def proposed(given: DirectTable, functions: list[str] | None = None, seconds: float = 0.8) -> list[Node]:
    rng = np.random.default_rng(0)
    return list(propose(given, functions=FunctionSet(functions), effort=Effort(seconds), rng=rng))


@pytest.mark.parametrize("name", LAWS)
def test_laws_are_exact_and_short(name: str) -> None:
    width, low, high, law = LAWS[name]
    given_table = table(law, width, low, high)
    (root,) = proposed(given_table)
    assert given_table.error(root) < 1e-10
    assert tree_complexity(root) <= 40


def test_random_polynomials_before_and_beside_a_wave_are_found() -> None:
    """Not each: less than a turn, or a range far from zero, is as well a polynomial to many digits."""
    tables = [modulated_table(seed) for seed in range(8)]
    assert sum(any(seen.error(root) < 1e-9 for root in proposed(seen)) for seen in tables) >= 7


def modulated_table(seed: int) -> DirectTable:
    """One to three terms each, of degree up to 2 before the wave and 3 beside it, of half a turn to twelve."""
    rng = np.random.default_rng(seed)
    width = int(rng.integers(1, 4))
    X = rng.uniform(*sorted(rng.uniform(-4, 4, 2) + [-1, 1]), (300, width))
    angle = int(rng.integers(width))
    frequency = 2 * np.pi * rng.uniform(0.5, 12) / np.ptp(X[:, angle])

    def polynomial(degree: int) -> np.ndarray:
        terms = monomials(width, degree)
        chosen = rng.choice(len(terms), min(len(terms), int(rng.integers(1, 4))), replace=False)
        return values([terms[m] for m in chosen], X) @ np.round(rng.uniform(0.5, 2, len(chosen)), 2)

    y = polynomial(3) + polynomial(2) * np.cos(frequency * X[:, angle] + rng.uniform(-3, 3))
    return DirectTable(X, y, np.ones(300))


@pytest.mark.parametrize("noise", thinned([0.1, 0.01], 1))
def test_noise_does_not_hide_one(noise: float) -> None:
    width, low, high, law = LAWS["before a product"]
    clean, noisy = table(law, width, low, high), table(law, width, low, high, noise)
    best = proposed(noisy)[0]
    assert {"cos"} <= {call.operator for call in calls(best)}
    assert clean.error(best) < 0.7 * noise


@pytest.mark.parametrize("width", thinned([1, 3, 6], 2))
def test_noise_alone_has_none(width: int) -> None:
    for seed in range(2):
        rng = np.random.default_rng(seed)
        given_table = DirectTable(rng.uniform(-1, 1, (400, width)), rng.standard_normal(400), np.ones(400))
        assert not proposed(given_table)


def test_functions_work_and_rows_bound_it() -> None:
    width, low, high, law = LAWS["before a product"]
    given_table = table(law, width, low, high)
    assert not proposed(given_table, ["+", "*", "sqrt"])
    assert not proposed(given_table, seconds=0.0)
    few = DirectTable(given_table.X[:20], given_table.y[:20], given_table.weights[:20])
    flat = DirectTable(np.ones((300, 2)), np.arange(300.0), np.ones(300))
    constant = DirectTable(given_table.X, np.ones(300), np.ones(300))
    assert not proposed(few) and not proposed(flat) and not proposed(constant)


@pytest.mark.parametrize("other", thinned(["constant", "codes", "zero", "twice"], 2))
def test_columns_that_say_nothing_do_not_hide_one(other: str) -> None:
    width, low, high, law = LAWS["before a product"]
    plain = table(law, width, low, high)
    codes = (np.arange(300) % 2).astype(float)
    more = {"constant": np.full(300, 3.0), "zero": np.zeros(300), "twice": plain.X[:, 2], "codes": codes}[other]
    seen = DirectTable(np.column_stack([plain.X, more]), plain.y, plain.weights)
    with np.errstate(all="raise"):
        (root,) = proposed(seen)
    assert seen.error(root) < 1e-10


def test_what_is_known_better_is_not_proposed() -> None:
    width, low, high, law = LAWS["before a product"]
    noisy = table(law, width, low, high, 0.1)
    assert not proposed(DirectTable(noisy.X, noisy.y, noisy.weights, unexplained=0.09))


def test_a_degree_before_the_wave_comes_alone() -> None:
    """Polynomials beside it are of as high a degree as the rows allow, those before it of one degree after the other."""
    X = np.random.default_rng(0).uniform(1, 2, (60, 3))
    assert _polynomials(X, 3) is None
    for degree in (0, 1):
        terms = _polynomials(X, degree)
        assert terms is not None and len(terms.before) == len(monomials(3, degree))
        assert MODULATED.rows_per_term * terms.n_factors <= 60 + MODULATED.rows_per_term
