"""A strange function among plain terms is seen, also behind a step, over a denominator and beside a second one; noise is not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gmeql.formula.nodes import Node, calls, tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.direct.steps.strange import STRANGE, _Blocks, propose
from gmeql.search.direct.table import DirectTable, Effort
from thinned import thinned


def proposed(
    f: Callable[..., np.ndarray], *, noise: float = 0.0, rows: int = 900, effort: Effort | None = None,
    functions: FunctionSet | None = None,
) -> tuple[DirectTable, list[Node]]:  # fmt: skip
    rng = np.random.default_rng(2)
    X = rng.uniform(-8.0, 8.0, (rows, f.__code__.co_argcount))
    with np.errstate(all="ignore"):
        y = f(*X.T)
    y = y + noise * np.nanstd(y) * rng.standard_normal(rows)
    kept = np.isfinite(y)
    table = DirectTable(X[kept], y[kept], np.ones(int(kept.sum())))
    return table, list(propose(table, functions=functions or FunctionSet(), effort=effort or Effort(2.0), rng=rng))


@pytest.mark.parametrize(
    ("f", "complexity"),
    thinned([
        (lambda a, b, c: 2.3 * a**2 - b * c + 1.7 * np.log(b - c), 25),
        (lambda a, b, c: c + 4.2 * a - 0.7 * np.exp(b) / (b - c), 25),
        (lambda a, b, c: a * c + (1.3 * a - b + 2.1) / np.cos(c) + np.exp(a), 45),
        (lambda a, b, c, d: b * d - a + (a + 0.6 * d) * np.sin(a * b), 30),
        (lambda a, b, c: c - 2.0 * a + np.sqrt(a**2 + 3.1 * np.cos(a - b) + 4.2), 40),
        (lambda a, b, c: (a * b + 2.4 * np.sin(b * c)) / (c + 9.3), 30),
        (lambda a, b, c, d: a * b - 1.3 * d + 2.1 * np.sin(np.sin(c) - d**2), 30),
        (lambda a, b, c: a + 1.4 * b * c + a * np.sin(b**2) + 2.2 * np.cos(a + c), 40),
        (lambda a, b, c, d, e: b - a + (0.7 * a + d) ** 2 + 11.3 * b * e / (c * d), 40),
    ], quick=(0, 2, 4, 5, 8)),
)  # fmt: skip
def test_a_strange_function_among_plain_terms(f: Callable[..., np.ndarray], complexity: int) -> None:
    table, roots = proposed(f)
    assert len(roots) == 1
    assert table.error(roots[0]) < 1e-9
    assert tree_complexity(roots[0]) <= complexity


@pytest.mark.parametrize(
    ("f", "complexity"),
    thinned([
        (lambda a, b, c, d, e: e + np.sin(b) + np.sqrt(b - (a + 10.0) / (c + d) + 9.0), 35),
        (lambda a, b, c, d, e: 0.2 * e * np.exp(e - 0.3 * a - b - np.sin(c)) * np.cos(d), 35),
        (lambda a, b, c, d: a / np.exp(c) - 1.2 * b - np.sqrt(np.cos(d)) - a * (b - d) / c, 45),
        (lambda a, b, c: np.log(a) * (1.7 * b + c * np.sin(a * b)), 25),
        (lambda a, b, c, d, e: np.cos(a * c * d * np.exp(-b)) - a / (b * e), 25),
    ], quick=(0, 3, 4)),
)  # fmt: skip
def test_one_behind_a_step_by_any_small_formula(f: Callable[..., np.ndarray], complexity: int) -> None:
    table, roots = proposed(f)
    assert len(roots) == 1
    assert table.error(roots[0]) < 1e-9
    assert tree_complexity(roots[0]) <= complexity


def test_a_small_part_beside_large_ones_is_seen() -> None:
    table, roots = proposed(lambda a, b, c: np.exp(2 * a) + np.log(b - c) + c)
    assert len(roots) == 1
    assert np.abs(table.values(roots[0]) - table.y).max() < 1e-6


def test_it_is_made_of_what_is_allowed() -> None:
    some = FunctionSet(["add", "sub", "mul", "div", "sin", "cos"])
    table, roots = proposed(lambda a, b: a * b + 1.7 * b / np.cos(a - b), functions=some)
    assert table.error(roots[0]) < 1e-9
    assert {call.operator for call in calls(roots[0])} <= {
        "add",
        "sub",
        "neg",
        "mul",
        "div",
        "inv",
        "sin",
        "cos",
        "pow",
    }
    assert proposed(lambda a, b, c: c * a + 1.7 * np.log(b - c), functions=some)[1] == []


@pytest.mark.parametrize("noise", thinned([1e-4, 0.1], 1))
def test_noise_hides_it(noise: float) -> None:
    assert proposed(lambda a, b, c: 2.3 * a**2 - b * c + 1.7 * np.sin(b - c), noise=noise)[1] == []


def test_nothing_where_there_is_nothing_to_ask() -> None:
    assert proposed(lambda a, b: 0 * a + 3.0)[1] == []
    assert proposed(lambda a, b: 0.3 * a + b)[1] == []  # others see that
    assert proposed(lambda a, b: a + np.log(a - b), rows=60)[1] == []
    assert proposed(lambda a, b: a + np.log(a - b), effort=Effort(0.01))[1] == []
    assert proposed(lambda a, b: a + np.log(a - b), effort=Effort(2.0, lambda: True))[1] == []


def test_the_same_each_time() -> None:
    assert (
        proposed(lambda a, b, c: c * a + 1.7 * np.log(b - c))[1]
        == proposed(lambda a, b, c: c * a + 1.7 * np.log(b - c))[1]
    )


def test_blocks_that_hold_a_sum_of_targets_are_those_of_the_eigenvalues() -> None:
    rng = np.random.default_rng(5)
    blocks = object.__new__(_Blocks)
    blocks.bases = np.linalg.qr(rng.normal(size=(30, 40, 12)))[0]
    targets = rng.normal(size=(40, 5))
    targets[:, 2] = targets[:, [0, 1]] @ [0.3, -1.2] + blocks.bases[17] @ rng.normal(size=12)
    basis = np.linalg.qr(targets)[0]
    inside = basis.T @ blocks.bases
    slow = 1.0 - np.array([np.linalg.eigvalsh(one @ one.T)[-1] for one in inside])
    assert np.flatnonzero(slow < STRANGE.vanished).tolist() == [17]
    assert np.flatnonzero(blocks.left_of_any(basis) < STRANGE.vanished).tolist() == [17]
