"""Tables and a fitted model that the tests of the estimators share."""

from __future__ import annotations

import numpy as np
import pytest
from quick_models import quick

from gmeql import GMEQLRegressor


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.uniform(1, 3, (60, 2))
    return X, 2.5 * X[:, 0] ** 2 + 1.5 * X[:, 1]


@pytest.fixture(scope="module")
def noisy() -> tuple[np.ndarray, np.ndarray]:
    """A table that no formula meets exactly, so that a search spends its whole budget."""
    rng = np.random.default_rng(2)
    X = rng.uniform(1, 3, (60, 3))
    return X, np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(60)


@pytest.fixture(scope="module")
def model(table) -> GMEQLRegressor:
    return quick(max_candidates=20_000).fit(*table)
