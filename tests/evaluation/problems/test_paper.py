"""b1-b8 are Table 1 of the paper."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.evaluation.problems import PAPER, load_suite, paper_problem, released_problem


TRUTH = {  # Table 1 once more, written as NumPy
    "b1": lambda x: 0.8 * x[0] ** 3 + 0.9 * x[1] ** 2 + 1.2 * x[2],
    "b2": lambda x: 0.8 * x[2] ** 4 + 0.8 * x[0] ** 3 + 1.2 * x[1] ** 2 + 1.4 * x[2],
    "b3": lambda x: 0.8 * x[2] ** 5 + 1.2 * x[1] ** 4 + 1.2 * x[0] ** 3 + 0.9 * x[1] ** 2 + 1.1 * x[2],
    "b4": lambda x: (
        1.1 * x[0] ** 6 + 0.8 * x[1] ** 5 + 0.9 * x[2] ** 4 + 1.3 * x[0] ** 3 + 1.2 * x[1] ** 2 + 0.9 * x[2]
    ),
    "b5": lambda x: 1.5 * np.sin(x[0]) + 1.3 * np.sin(x[1] ** 2),
    "b6": lambda x: 1.2 * np.sin(1.1 * x[0]) * np.cos(0.9 * x[1]),
    "b7": lambda x: 1.1 * x[0] + 0.9 * x[1] + 2.1 * x[0] * x[1] * np.cos(1.2 * x[2]),
    "b8": lambda x: np.sqrt(1.3 + 1.2 * x[1] / x[0]),
}


RANGES = {"b1": (0, 2, 3), "b2": (0, 2, 3), "b3": (0, 2, 3), "b4": (0, 2, 3)} | {
    "b5": (0, 10, 2),
    "b6": (0, 10, 2),
    "b7": (0, 10, 3),
    "b8": (1, 20, 3),
}


@pytest.mark.parametrize("name", list(PAPER))
def test_paper_problems_are_table_1(name: str, rng: np.random.Generator) -> None:
    problem = paper_problem(name)
    X, y = problem.train(rng)
    low, high, width = RANGES[name]
    assert X.shape == (300, width) and problem.test(rng)[0].shape == (300, width)
    assert low <= X.min() < low + 0.1 * (high - low) and high - 0.1 * (high - low) < X.max() <= high
    np.testing.assert_allclose(y, TRUTH[name](X.T), rtol=1e-13)


def test_released_variant() -> None:
    problems = load_suite("released")
    assert [p.name for p in problems] == ["b1", "b2", "b3", "b4"]
    X, _ = problems[0].train(np.random.default_rng(0))
    assert X.shape == (500, 3) and 2 < X.max() <= 2.1


def test_problems_that_are_not_there_are_named() -> None:
    with pytest.raises(ValueError, match="b1, b2"):
        paper_problem("b9")
    with pytest.raises(ValueError, match="'b5' is not in the released code"):
        released_problem("b5")
