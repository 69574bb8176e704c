"""benchmarks/direct.py: what is seen without a search is told from what is not, and the cost of a look is measured."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from programs import program

from gmeql.search.config import SearchConfig
from gmeql.search.direct.methods import DIRECT_METHODS


@pytest.fixture(scope="module")
def direct() -> ModuleType:
    return program("benchmarks/direct.py")


def test_a_fraction_is_seen_and_noise_is_not(direct: ModuleType) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 3, (100, 1))
    config = SearchConfig(max_candidates=10_000, direct=("rational",), symmetries=False, n_jobs=1)
    assert direct.seen(X, 1 / (1 + X[:, 0] ** 2), ("x",), config)[:2] == (True, "1/(x**2 + 1)")
    assert not direct.seen(X, rng.normal(size=100), ("x",), config)[0]


@pytest.mark.parametrize("name", DIRECT_METHODS)
def test_every_method_has_its_cost(direct: ModuleType, name: str) -> None:
    share, seconds, memory = direct.cost(name, 60, 2, 0.5)
    clock = SearchConfig().clock
    of_kind = clock.later_share if name in direct.LATER else 1.0
    of_kind = clock.first_share if name in direct.AT_FIRST else of_kind
    of_kind = clock.growing_share if name in direct.GROWING else of_kind
    assert share == pytest.approx(0.5 * clock.direct_share * of_kind)
    assert seconds >= 0 and memory >= 0
