"""DSR solves what its authors solved."""

import pytest

from gmeql.evaluation.baselines import Budget, Task, fit, mean_absolute_error
from gmeql.evaluation.baselines.dsr import NGUYEN_FUNCTIONS, DSRConfig
from sampled_tables import uniform_table


@pytest.mark.slow
def test_dsr_solves_nguyen_1():
    """x**3 + x**2 + x on [-1, 1], 20 rows, Petersen et al.'s function set: solved there in every run."""
    tasks = [
        Task(X, X[:, 0] ** 3 + X[:, 0] ** 2 + X[:, 0], seed=s) for s, X in ((s, uniform_table(s, 1, 20)) for s in (1,))
    ]
    config = DSRConfig(functions=NGUYEN_FUNCTIONS, use_constants=False)
    results = fit("dsr", tasks, Budget(150_000), config)
    X = uniform_table(99, 1, 50, -2, 2)
    for result in results:
        assert mean_absolute_error(result.expression, X, X[:, 0] ** 3 + X[:, 0] ** 2 + X[:, 0]) < 1e-9
        assert result.candidates < 150_000


@pytest.mark.slow
@pytest.mark.parametrize(("power", "needed"), [(3, 5), (4, 5), (5, 4)], ids=["nguyen-1", "nguyen-2", "nguyen-3"])
def test_dsr_solves_the_first_nguyen_problems(power, needed):
    def truth(X):
        return sum(X[:, 0] ** k for k in range(1, power + 1))

    tasks = [Task(X, truth(X), seed=s) for s, X in ((s, uniform_table(s, 1, 20)) for s in range(5))]
    config = DSRConfig(functions=NGUYEN_FUNCTIONS, use_constants=False)
    results = fit("dsr", tasks, Budget(1_000_000), config)
    X = uniform_table(99, 1, 50)
    assert sum(mean_absolute_error(r.expression, X, truth(X)) < 1e-9 for r in results) >= needed
