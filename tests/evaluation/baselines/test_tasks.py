"""Tasks and budgets: bad ones are refused by name."""

import numpy as np
import pytest

from gmeql.evaluation.baselines.tasks import Budget, Task
from sampled_tables import uniform_table


def test_bad_tasks_and_budgets_are_refused_by_name():
    X = uniform_table(0, 2, 10)
    with pytest.raises(ValueError, match="finite"):
        Task(X, np.full(10, np.nan))
    with pytest.raises(ValueError, match="shape"):
        Task(X, np.zeros(9))
    with pytest.raises(ValueError, match="one name per column"):
        Task(X, X[:, 0], names=("a",))
    with pytest.raises(ValueError, match="candidates"):
        Budget(0)
    with pytest.raises(ValueError, match="seconds"):
        Budget(1, seconds=0)
    assert Task(X, X[:, 0]).names == ("x1", "x2")
