"""Tables drawn from problems: noise, generators, points that are drawn again."""

from __future__ import annotations

import numpy as np
import pytest

from case_files import case, variable
from gmeql.evaluation.problems import judge, paper_problem, problem_from_case
from gmeql.evaluation.problems.problem import root_mean_square, standard_deviation


def test_noise_falls_on_training_targets_alone() -> None:
    problem = paper_problem("b2")
    X, clean = problem.train(np.random.default_rng(1))
    Xn, noisy = problem.train(np.random.default_rng(1), noise_std=0.5)
    np.testing.assert_array_equal(X, Xn)
    assert np.std(noisy - clean) == pytest.approx(0.5, rel=0.15)
    relative = problem.train(np.random.default_rng(1), noise=0.1)[1] - clean
    assert np.std(relative) == pytest.approx(0.1 * np.sqrt(np.mean(clean**2)), rel=0.15)
    Xt, yt = problem.test(np.random.default_rng(2))
    np.testing.assert_allclose(yt, problem.evaluate(Xt))
    with pytest.raises(ValueError, match="noise"):
        problem.train(np.random.default_rng(1), noise=-1)


def test_generators_are_apart() -> None:
    problem, other = paper_problem("b1"), paper_problem("b2")
    draws = [problem.generator(0, "train"), problem.generator(0, "test"), problem.generator(1, "train")]
    values = {g.random() for g in [*draws, other.generator(0, "train")]}
    assert len(values) == 4
    assert problem.generator(3, "judge").random() == problem.generator(3, "judge").random()


def test_a_formula_finite_nowhere_is_reported(rng: np.random.Generator) -> None:
    problem = problem_from_case(case(formula="log(x - 5)"))
    with pytest.raises(ValueError, match="check its ranges"):
        problem.train(rng)


def test_every_table_of_a_problem_follows_its_columns(rng: np.random.Generator) -> None:
    variables = [variable("n", 1, 3, dist="integer"), variable("m", 1e-12, 1e-3, dist="log", signed=True)]
    problem = problem_from_case(case(formula="n**2*m", variables=variables, n_train=400, n_test=400))
    for X, y in (problem.train(rng), problem.train(rng, rows=300), problem.test(rng), problem.sample(rng, 500)):
        assert set(X[:, 0]) == {1.0, 2.0, 3.0}
        assert (np.abs(X[:, 1]) < 1e-7).mean() > 0.4 and 0.3 < (X[:, 1] < 0).mean() < 0.7
        np.testing.assert_allclose(y, X[:, 0] ** 2 * X[:, 1], rtol=1e-12)
    assert judge(problem.formula, problem).solved


@pytest.mark.parametrize("scale", [1e-250, 1.0, 1e250])
def test_sizes_of_numbers_whose_squares_are_out_of_range(scale: float, rng: np.random.Generator) -> None:
    values = rng.standard_normal(50)
    assert root_mean_square(scale * values) == pytest.approx(scale * np.sqrt(np.mean(values**2)), rel=1e-14)
    assert standard_deviation(scale * values) == pytest.approx(scale * np.std(values), rel=1e-14)
    assert root_mean_square(np.zeros(3)) == standard_deviation(np.ones(3)) == 0.0


def test_no_digit_changes_where_squares_are_in_range(rng: np.random.Generator) -> None:
    values = 1e3 * rng.standard_normal(50)
    assert root_mean_square(values) == np.sqrt(np.mean(values**2)) and standard_deviation(values) == np.std(values)


def test_huge_targets_are_judged_like_others() -> None:
    problem = problem_from_case(case(formula="1e200*x**2"))
    assert judge(problem.formula, problem).solved
    assert not judge(problem.formula * 1.001, problem).solved
