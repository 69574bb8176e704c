"""Jobs for processes that look: they travel whole, find what the search itself would, and end when cancelled."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gmeql.formula.nodes import Node, Variable
from gmeql.formula.parsing import parse_tree
from gmeql.network.families import FunctionSet
from gmeql.search.direct.methods import DIRECT_METHODS
from gmeql.search.direct.table import DirectTable, Effort, worked
from gmeql.search.lookers.jobs import DirectLook, FormulaLook, Job, SymmetryLook
from gmeql.search.symmetries.config import SYMMETRIES
from gmeql.search.symmetries.formulas import views_of_formula
from gmeql.search.symmetries.smaller import find_views
from gmeql.search.symmetries.views import View


def never() -> bool:
    return False


def travelled(job: Job) -> Job:
    """As the other process has it."""
    return pickle.loads(pickle.dumps(job))  # type: ignore[no-any-return]  # noqa: S301


def fraction() -> DirectTable:
    X = np.random.default_rng(0).uniform(-3, 3, (300, 2))
    return DirectTable(X, (1 + X[:, 0] * X[:, 1]) / (2 + X[:, 1] ** 2), np.ones(300))


def scaled() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(1).uniform(1, 3, (300, 3))
    return X, X[:, 0] * np.sin(X[:, 1] / X[:, 2])


def test_a_method_sees_there_what_it_sees_here() -> None:
    table, functions = fraction(), FunctionSet()
    job = DirectLook("rational", table, functions, 5.0, 0.0, (3, 1))
    there = list(travelled(job).run(never))
    effort = Effort.timed(5.0, until=worked() + 5.0)
    here = list(
        DIRECT_METHODS["rational"](table, functions=functions, effort=effort, rng=np.random.default_rng([3, 1]))
    )
    assert there == here and table.error(there[0]) < 1e-9


def test_more_is_given_once_and_only_to_a_method_on_a_trail(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def method(_: DirectTable, *, effort: Effort, **__: Any) -> Iterator[Node]:
        for _ in range(3):
            effort = effort.on_trail()
            given.append(effort.seconds)
        yield Variable(0)

    monkeypatch.setitem(DIRECT_METHODS, "rational", method)
    assert list(DirectLook("rational", fraction(), FunctionSet(), 1.0, 7.0, (0, 0)).run(never)) == [Variable(0)]
    assert given == [7.0, 7.0, 7.0]


def test_a_cancelled_method_is_out_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def method(_: DirectTable, *, effort: Effort, **__: Any) -> Iterator[Node]:
        if not effort.out_of_time():
            yield Variable(0)

    monkeypatch.setitem(DIRECT_METHODS, "rational", method)
    job = DirectLook("rational", fraction(), FunctionSet(), 60.0, 0.0, (0, 0))
    assert list(job.run(lambda: True)) == []
    assert list(job.run(never)) == [Variable(0)]


def test_symmetries_are_those_that_the_search_itself_finds() -> None:
    X, y = scaled()
    (found,) = travelled(SymmetryLook(X, y, (View.raw(3),), 60.0)).run(never)
    assert found and found == find_views(X, y, start=View.raw(3))
    (nothing,) = SymmetryLook(X, y, (View.raw(3),), 60.0).run(lambda: True)
    assert nothing == []


def test_tables_of_formulas_are_told_once_each() -> None:
    X, _ = scaled()
    root = parse_tree("x1*sin(x2/x3)", ("x1", "x2", "x3"))
    job = FormulaLook([root, root], X, SYMMETRIES.formula_slacks)
    (found,) = travelled(job).run(never)
    assert len(found) == len(set(found))
    assert found[0] == views_of_formula(root, X, slack=SYMMETRIES.formula_slacks[0])[0]
