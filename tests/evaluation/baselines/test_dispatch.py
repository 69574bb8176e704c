"""One function for all opponents."""

import pytest

from gmeql.evaluation.baselines import Budget, Task, fit
from sampled_tables import uniform_table


def test_unknown_methods_are_refused_by_name_and_no_tasks_give_no_results():
    X = uniform_table(0, 2, 10)
    with pytest.raises(ValueError, match="one of eql, dsr, gp, got 'nets'"):
        fit("nets", [Task(X, X[:, 0])], Budget(1))
    assert fit("eql", [], Budget(1)) == []
