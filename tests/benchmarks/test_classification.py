"""benchmarks/classification.py: five tables that load, and a judgement on rows left out."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from programs import program
from sklearn.dummy import DummyClassifier


@pytest.fixture(scope="module")
def classification() -> ModuleType:
    return program("benchmarks/classification.py")


def test_five_tables(classification: ModuleType) -> None:
    assert len(classification.TABLES) == 5
    for load in classification.TABLES.values():
        X, y = load()
        assert np.isfinite(X).all() and len(X) == len(y) and len(np.unique(y)) >= 2


def test_who_knows_nothing_has_the_entropy_of_the_classes(classification: ModuleType) -> None:
    X, y = classification.TABLES["iris"]()
    loss, right, models = classification.held_out(lambda: DummyClassifier(strategy="prior"), X, y, 5)
    assert loss == pytest.approx(np.log(3))
    assert right == pytest.approx(1 / 3)
    assert len(models) == 5
