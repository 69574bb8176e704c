"""Squares of sums that change their sign."""

import numpy as np
import pytest

from gmeql.network.families import FunctionSet
from gmeql.search.config import SearchConfig
from gmeql.search.direct.steps.squares import propose
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.islands.portfolio import allowed_functions

FUNCTIONS = allowed_functions(SearchConfig())
FORMULAS = {
    "beside two columns": lambda x, z, u: x + u - (1.1 * z * u - x + np.sin(x)) ** 2,
    "alone, with a wave": lambda x, z, u: (x * z + 2.03 * np.sin(u) + x**2 - 4.0) ** 2,
    "beside a cosine, negative": lambda x, z, u: np.cos(x) - (1.162 + x * u + 0.6 * np.cos(u) * x) ** 2,
}


def table_of(formula, rows=600):
    X = np.random.default_rng(0).uniform(-5, 5, (rows, 3))
    return DirectTable(X, formula(*X.T), np.ones(rows))


def proposed(table, functions=FUNCTIONS, seconds=2.0):
    return list(propose(table, functions=functions, effort=Effort(seconds), rng=np.random.default_rng(0)))


@pytest.mark.parametrize("name", FORMULAS)
def test_a_square_is_seen_with_what_stands_beside_it(name):
    table = table_of(FORMULAS[name])
    found = proposed(table)
    assert len(found) == 1
    assert table.error(found[0]) < 1e-8


def test_a_sum_that_keeps_its_sign_is_the_others():
    assert proposed(table_of(lambda x, z, u: (x**2 + z**2 + 3.0) ** 2)) == []


def test_noise_is_no_square():
    noise = np.random.default_rng(1).standard_normal(600)
    assert proposed(table_of(lambda x, z, u: x * z + noise)) == []
    assert proposed(table_of(lambda x, z, u: noise**2)) == []


def test_nothing_is_proposed_without_squares_or_time():
    table = table_of(FORMULAS["alone, with a wave"])
    assert proposed(table, FunctionSet(["add", "mul", "sin"])) == []
    assert proposed(table, seconds=1e-3) == []


def test_few_rows_and_a_constant_target_are_left_alone():
    assert proposed(table_of(FORMULAS["alone, with a wave"], rows=40)) == []
    assert proposed(table_of(lambda x, z, u: np.full_like(x, 2.0))) == []
