"""One pass finds the pairs that a search over all pairs finds: those that span the target beside a constant."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest

from gmeql.formula.nodes import row_values
from gmeql.network.families import FunctionSet
from gmeql.search.direct.middle.remainders import pairs_left_alike
from gmeql.search.direct.middle.small_formulas import SmallFormulas

ROWS = 8


def found(
    values: np.ndarray,
    target: np.ndarray,
    *,
    beside: Sequence[np.ndarray] = (),
    with_fractions: bool = True,
    most: int = 100,
) -> set[tuple[int, int]]:
    signs = np.random.default_rng(0).normal(size=ROWS)
    formulas = np.zeros((len(values), 3), np.int32)  # all have values: what they are made of is not asked
    given = formulas, values, target, signs
    entries = pairs_left_alike(*given, beside=beside, with_fractions=with_fractions, most=most)
    return {(min(pair), max(pair)) for pair in entries.tolist()}


def unexplained(columns: list[np.ndarray], target: np.ndarray) -> float:
    """What least squares by some columns leave of a target, relative to it."""
    basis = np.stack([*columns, np.ones(len(target))], axis=1)
    return float(np.abs(target - basis @ np.linalg.lstsq(basis, target, rcond=None)[0]).max() / np.ptp(target))


@pytest.fixture
def rows(rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(0.5, 3, (6, ROWS))


def test_the_terms_of_a_sum_whatever_their_factors(rows: np.ndarray) -> None:
    assert found(rows, 2e2 * rows[1] - 0.3 * rows[4] + 7) == {(2, 8)}
    assert found(rows, 2e2 * rows[1] - 0.3 * rows[4] + 7, with_fractions=False) == {(2, 8)}


def test_the_terms_of_a_fraction(rows: np.ndarray) -> None:
    law = (1 + 2 * rows[3]) / (3 + rows[5])
    assert found(rows, law) == {(6, 11)}
    assert found(rows, law, with_fractions=False) == set()
    assert found(rows, 1 / (2 + rows[0] + 0.7 * rows[2])) == {(1, 5)}


def test_two_terms_beside_others_that_are_known(rows: np.ndarray) -> None:
    law = 1.3 * rows[0] - 0.7 * rows[2] + 0.4 * rows[4] - 2
    assert found(rows, law) == set()
    assert found(rows, law, beside=[rows[0]]) == {(4, 8)}
    assert found(rows, law + np.sin(rows[5]), beside=[rows[0], np.sin(rows[5])]) == {(4, 8)}
    assert found(rows, 1.3 * rows[0] - 2, beside=[rows[0]]) == set()  # nothing is left to be explained
    alike = np.stack([rows[2], 2 * rows[2] - 5 * rows[0] + 1])
    assert found(alike, law, beside=[rows[0]]) == set()


def test_products_of_powers_are_sums_of_logarithms(rows: np.ndarray) -> None:
    signs, formulas = np.random.default_rng(0).normal(size=ROWS), np.zeros((7, 3), np.int32)
    values = np.stack([*rows[:5], -rows[5], np.where(np.arange(ROWS) == 3, 0.0, rows[0])])
    law = np.log(2.3 * rows[1] ** 1.7 / rows[5] ** 0.4)
    assert pairs_left_alike(formulas, values, law, signs, most=9).tolist() == []
    assert pairs_left_alike(formulas, values, law, signs, of_logarithms=True, most=9).tolist() == [[2, 10]]


def test_all_pairs_one_by_one_find_the_same() -> None:
    X = np.random.default_rng(3).uniform(0.5, 2.5, (ROWS, 2))
    small = SmallFormulas.of(X, FunctionSet(), max_kept=120, max_formulas=120)
    target = 1.3 * small.values[90] + 0.4 * small.values[70] - 1
    met = found(small.values, target, with_fractions=False, most=10_000)
    plain = {
        (2 * a, 2 * b)
        for a, b in combinations(range(len(small.values)), 2)
        if unexplained([small.values[a], small.values[b]], target) < 1e-10
        and min(unexplained([small.values[m]], target) for m in (a, b)) > 1e-3
    }
    assert (140, 180) in plain
    # a pass compares each with the first that is left so, and what is alike is so with all: pairs share a formula
    assert met <= plain
    assert {m for pair in plain for m in pair} >= {m for pair in met for m in pair} >= {140, 180}


def test_what_is_one_formula_but_for_a_factor_and_a_constant_is_no_pair(rows: np.ndarray) -> None:
    target = np.exp(rows[0]) * rows[1]
    assert found(np.stack([rows[0], 3 - 2 * rows[0]]), target) == set()  # y f and y (3 - 2 f) neither
    assert found(rows, np.full(ROWS, 2.0)) == found(rows, 2.0 + 1e-13 * rows[0]) == set()  # which tells nothing
    assert found(np.stack([rows[0]]), 2 * rows[0] + 1) == set()


def test_constants_up_to_a_trace_are_terms_of_nothing(rows: np.ndarray) -> None:
    trace = 1e-6 * np.sin(5 * rows[2])
    assert found(np.stack([1 + trace, np.exp(1 + trace)]), rows[3]) == set()


def test_no_more_than_there_is_room_for(rows: np.ndarray) -> None:
    target = rows[0] + rows[1]
    several = np.stack([rows[0], rows[1], rows[0] + 0.5 * rows[1], rows[0] - rows[1]])
    assert len(found(several, target, with_fractions=False)) == 3
    assert len(found(several, target, with_fractions=False, most=2)) == 2
    assert found(several, target, most=0) == set()


def test_formulas_without_kept_values_are_worked_out() -> None:
    X = np.random.default_rng(0).uniform(0.5, 2.5, (ROWS, 2))
    small = SmallFormulas.of(X, FunctionSet(), max_kept=60, max_formulas=2000)
    last = len(small) - 1
    assert last >= len(small.values)
    a, b = (row_values(small.tree(m), ["a", "b"], X) for m in (last, 40))
    met = pairs_left_alike(small.formulas, small.values, 2 * a - 3 * b + 1, small.signs, with_fractions=True, most=1000)
    assert 2 * last in met
