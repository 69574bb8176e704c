"""Genetic programming through gplearn."""

import contextlib

import numpy as np
import pytest

from gmeql.evaluation.baselines import Budget, Task, fit, gp, mean_absolute_error
from sampled_tables import uniform_table


@pytest.mark.slow
def test_gp_solves_an_easy_sum_and_prints_what_it_computes():
    pytest.importorskip("gplearn")
    X = uniform_table(0, 2, 100)
    task = Task(X, X[:, 0] * X[:, 0] + X[:, 1], seed=0)
    functions = ("add", "sub", "mul")
    (result,) = fit("gp", [task], Budget(300 * 20), gp.GPConfig(population=300, functions=functions))
    assert mean_absolute_error(result.expression, X, task.y) < 1e-9
    assert np.all(np.diff(result.curve.mae) <= 0)
    (again,) = fit("gp", [task], Budget(300 * 20), gp.GPConfig(300, functions, generations_between_checks=3))
    assert again.expression == result.expression, "looking at the clock must not change the run"


def test_gp_in_a_hurry_evolves_as_gplearn_does(monkeypatch):
    pytest.importorskip("gplearn")
    X = uniform_table(3, 2, 60, 1, 5)
    task = Task(X, np.sqrt(1.3 + 1.2 * X[:, 1] / X[:, 0]), seed=5)
    config = gp.GPConfig(population=100)
    (hurried,) = fit("gp", [task], Budget(100 * 5), config)
    monkeypatch.setattr(gp, "_hurried", contextlib.nullcontext)
    (plain,) = fit("gp", [task], Budget(100 * 5), config)
    assert hurried.expression == plain.expression
    np.testing.assert_allclose(hurried.curve.mae, plain.curve.mae, rtol=1e-12)


def test_gp_program_becomes_the_expression_it_is():
    functions = pytest.importorskip("gplearn.functions")
    table = functions._function_map
    X = uniform_table(1, 2, 30, -2, 2)
    program = [table["add"], table["sqrt"], 0, table["mul"], 1.5, table["div"], 1, table["sub"], 0, 0]
    expected = np.sqrt(np.abs(X[:, 0])) + 1.5 * 1.0  # x1 / (x0 - x0): gplearn's guard gives 1
    np.testing.assert_allclose(gp.expression_of(program, X, ("a", "b"))(X), expected)
