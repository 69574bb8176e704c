"""Sums of any number of plain terms, fractions and roots of them are seen by one fit, and nothing else is taken for one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gmeql.formula.nodes import Node, Variable, tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums.vocabulary import VOCABULARY, Span, propose
from gmeql.search.direct.table import DirectTable, Effort
from thinned import thinned


def proposed(
    f: Callable[..., np.ndarray],
    *,
    low: float = -2.0,
    high: float = 2.0,
    rows: int = 1000,
    noise: float = 0.0,
    effort: float = 2.0,
    functions: FunctionSet | None = None,
) -> tuple[DirectTable, list[Node]]:
    rng = np.random.default_rng(1)
    X = rng.uniform(low, high, (rows, f.__code__.co_argcount))
    with np.errstate(all="ignore"):
        y = f(*X.T)
    kept = np.isfinite(y)
    y = y + noise * rng.standard_normal(len(y))
    table = DirectTable(X[kept], y[kept], np.ones(int(kept.sum())))
    return table, list(propose(table, functions=functions or FunctionSet(), effort=Effort(effort), rng=rng))


@pytest.mark.parametrize(
    ("f", "n_terms"),
    thinned([
        (lambda x, t, v: 0.7 * v * x**2 - 0.4 * v * np.sin(x) - 1.5 * v - 3.9 * x * np.exp(-np.abs(x)) + 0.3 * np.sin(t), 5),
        (lambda x, t, v: -0.3 * np.cbrt(np.abs(v)) * x + 0.2 * x * t - v**3 + np.log(np.abs(x) + 1) + 0.8 * np.cos(t), 5),
        (lambda x: 2.2 * x**5 - x**2 + 0.13 * np.cos(x) - 4.4, 4),
        (lambda m, b, t, g, w, p: m * b * np.sin(t) - 1.7 * g * w * np.cos(p), 2),
        (lambda a, b, c, d, e, f, t: a**2 + b**2 + 2 * c * d - 2 * e * f * np.cos(t), 4),
        (lambda a, b, c, d, e: a * b - 3.3 * c**2 * d + np.sin(e) + 0.2 * a * np.exp(b) - e + d**3 + 1.7 * b * c * e, 7),
    ], quick=(0, 2, 5)),
)  # fmt: skip
def test_sums_of_many_terms(f: Callable[..., np.ndarray], n_terms: int) -> None:
    table, roots = proposed(f)
    assert table.error(roots[0]) < 1e-11
    assert len(roots[0].args) == n_terms


def test_readings_fractions_and_roots() -> None:
    for f, complexity in (
        (lambda a, b, c: 1 / (np.sin(a) + b**2 + 13 + 0.5 * c * np.exp(a)), 20),
        (lambda a, b, c: c + (2.1 * np.sin(b) + a) / (b * c + 1.4 * a + 9), 30),
        (lambda a, b, c: 1.2 - b - 6.7 * b * c / (a + c**3), 40),
        (lambda a, b: a - 1.3 * np.sqrt(np.sin(b) + 2.2 + a * np.exp(b) + 16), 22),
        (lambda a, b, c: np.exp(0.3 * np.sin(a) - b * c + 0.2 * a**2), 22),
    ):
        table, roots = proposed(f)
        assert table.error(roots[0]) < 1e-9
        assert tree_complexity(roots[0]) <= complexity


@pytest.mark.parametrize(
    "f",
    thinned([
        lambda x: np.sin(np.exp(x)),  # smooth: many terms together come near it
        lambda x: np.exp(-0.3 * x) * np.sin(2.6 * x),
        lambda x: np.tanh(0.7 * x + 0.1),
        lambda x, z: np.sin(1.3 * x + z * x),
        lambda x, z: np.sqrt(np.exp(x) + np.exp(z * x)),
    ], quick=(0, 3)),
)  # fmt: skip
def test_nothing_is_seen_in_other_functions(f: Callable[..., np.ndarray]) -> None:
    assert proposed(f)[1] == []


def test_nothing_is_seen_in_noise_few_rows_or_without_work() -> None:
    def law(x: np.ndarray, z: np.ndarray) -> np.ndarray:
        return x + np.sin(z)

    assert proposed(law)[1]
    assert proposed(law, noise=1e-6)[1] == []
    assert proposed(law, rows=20)[1] == []
    assert proposed(law, effort=1e-6)[1] == []
    assert proposed(law, functions=FunctionSet(["add"]))[1] == []


def test_columns_too_large_for_exponentials() -> None:
    table, roots = proposed(lambda e, t: 0.4 * t - 25 * e + t * np.sin(t), low=275.0, high=570.0)
    assert table.error(roots[0]) < 1e-9
    assert len(roots[0].args) == 3


def test_work_grows_with_the_vocabulary_and_ends_in_time() -> None:
    calls = 0

    def out_of_time() -> bool:
        nonlocal calls
        calls += 1
        return calls > 2

    X = np.random.default_rng(0).uniform(-2, 2, (1000, 3))
    table = DirectTable(X, np.abs(X[:, 1]) ** (1 / 3) * X[:, 0], np.ones(1000))
    assert list(propose(table, functions=FunctionSet(), effort=Effort(2.0), rng=np.random.default_rng(0)))
    assert not list(
        propose(table, functions=FunctionSet(), effort=Effort(2.0, out_of_time), rng=np.random.default_rng(0))
    )
    assert calls == 4  # before terms are made, once they are, before a fraction is looked for, before more are made
    assert len(VOCABULARY.sizes) > 2


@pytest.mark.parametrize("rows", [120, 60, 44])
def test_a_glimpse_shows_what_is_left_beside_a_span(rows: int) -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(40, rows))
    values[7] = values[2] - 3.0 * values[5]  # no dimension more
    span = Span(values, Variable)
    inside, outside = values.T @ rng.normal(size=40), rng.normal(size=(rows, 300))
    assert np.linalg.norm(span.glimpse(inside)) < 1e-12 * np.linalg.norm(inside)
    sizes = np.linalg.norm(span.glimpse(outside), axis=0) / np.linalg.norm(span.left(outside), axis=0)
    assert abs(np.mean(sizes) - 1.0) < 0.1
    assert sizes.min() > 0.5
