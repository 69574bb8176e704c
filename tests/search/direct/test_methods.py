"""Direct methods as everyone asks them: what happens inside one stays there."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gmeql.formula.nodes import Constant, Node
from gmeql.network.families import FunctionSet
from gmeql.search.config import SearchConfig
from gmeql.search.direct.methods import DIRECT_METHODS, ask
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.search import Search


@pytest.mark.filterwarnings("error")
def test_what_overflows_inside_a_method_is_not_heard_and_its_caller_stays_warned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def overflowing(*_: Any, **__: Any) -> Iterator[Node]:
        for _ in np.full(2, 1e200) ** 2:
            yield Constant(1.0)

    monkeypatch.setitem(DIRECT_METHODS, "linear", overflowing)
    table = DirectTable(np.ones((3, 1)), np.ones(3), np.ones(3))
    found = ask("linear", table, functions=FunctionSet(), effort=Effort(0.2), rng=np.random.default_rng(0))
    assert next(found) == Constant(1.0)
    with pytest.raises(RuntimeWarning, match="overflow"):
        np.full(2, 1e200) ** 2
    assert list(found) == [Constant(1.0)]


def test_linear_algebra_that_fails_inside_a_method_ends_that_method_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> Iterator[Node]:
        yield Constant(1.0)
        np.linalg.lstsq(np.full((3, 1), np.inf), np.ones(3), rcond=None)

    monkeypatch.setitem(DIRECT_METHODS, "linear", failing)
    table = DirectTable(np.ones((3, 1)), np.ones(3), np.ones(3))
    found = ask("linear", table, functions=FunctionSet(), effort=Effort(0.2), rng=np.random.default_rng(0))
    assert list(found) == [Constant(1.0)]


def test_a_fault_of_a_method_is_told_and_costs_no_search(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    def faulty(*_: Any, **__: Any) -> Iterator[Node]:
        yield Constant(1.0)
        raise IndexError("list index out of range")

    monkeypatch.setitem(DIRECT_METHODS, "rational", faulty)
    table = DirectTable(np.ones((3, 1)), np.ones(3), np.ones(3))
    found = ask("rational", table, functions=FunctionSet(), effort=Effort(0.2), rng=np.random.default_rng(0))
    assert next(found) == Constant(1.0)
    with pytest.raises(AssertionError, match="rational failed"):  # no other test passes over one
        next(found)
    monkeypatch.setattr(logging.getLogger("gmeql.search.direct.methods"), "handlers", [])
    X = np.random.default_rng(0).uniform(1, 2, (60, 1))
    search = Search(X, X[:, 0] ** 2, config=SearchConfig(max_candidates=500, n_jobs=1))
    for progress in search.run():
        pass
    assert str(progress.best.expression) == "x1**2"
    assert "rational failed; the search goes on without it" in caplog.text
