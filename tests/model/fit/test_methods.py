"""The table of methods: every entry is a search, and says rightly what it takes."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.model.fit.methods import METHODS
from gmeql.search.config import SearchConfig

X = np.linspace(1, 2, 20)[:, None]
Y = X[:, 0] ** 2


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_a_search_with_a_description(name: str) -> None:
    method = METHODS[name]
    search = method.load()(X, Y, names=("x1",), config=SearchConfig(max_candidates=10, n_jobs=1), seed=0)
    assert method.description and search.candidates == 0 and search.elapsed == 0.0
    for part in ("run", "finish", "state", "from_state", "front"):
        assert hasattr(search, part)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    ("flag", "weight", "functions"), [("takes_weights", np.ones(20), None), ("takes_functions", None, ("add", "mul"))]
)
def test_what_a_method_takes_is_what_its_search_takes(name, flag, weight, functions) -> None:
    method = METHODS[name]
    config = SearchConfig(max_candidates=10, n_jobs=1, functions=functions)
    if getattr(method, flag):
        method.load()(X, Y, sample_weight=weight, names=("x1",), config=config, seed=0)
    else:
        with pytest.raises(ValueError, match="fitted"):
            method.load()(X, Y, sample_weight=weight, names=("x1",), config=config, seed=0)
