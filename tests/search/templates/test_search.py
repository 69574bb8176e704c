"""The search inside a template: laws found, the form kept, the same result after an interruption."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.nodes import calls
from gmeql.knowledge.knowledge import Knowledge
from gmeql.knowledge.templates import read_template
from gmeql.search.config import SearchConfig
from gmeql.search.templates.search import TemplateSearch

NAMES = ("x", "y")
X = np.random.default_rng(0).uniform(0.5, 2, (80, 2))


def search(text: str, y: np.ndarray, candidates: int, **constants: tuple[float, float]) -> TemplateSearch:
    knowledge = Knowledge(template=read_template(text, NAMES, constants))
    config = SearchConfig(max_candidates=candidates, n_jobs=1, knowledge=knowledge)
    return TemplateSearch(X, y, names=NAMES, config=config, seed=0)


def finished(running: TemplateSearch) -> TemplateSearch:
    for _ in running.run():
        pass
    return running


def test_two_functions_and_a_constant() -> None:
    found = finished(search("a*exp(f(x)) + g(y)", 2.5 * np.exp(-0.7 * X[:, 0] ** 2) + np.sqrt(X[:, 1]), 20_000))
    assert found.reason == "exact" and found.progress().best.loss < 1e-12
    for member in found.front:
        assert [c.operator for c in calls(member.expression.root)].count("exp") >= 1


def test_a_formula_without_free_functions_is_a_fit() -> None:
    rng = np.random.default_rng(1)
    y = 2 * np.cos(3 * X[:, 0]) + 0.01 * rng.standard_normal(80)
    found = finished(search("a*cos(w*x)", y, 20_000, w=(0, 10)))
    assert found.reason == "exhausted" and len(found.front) == 1
    assert sorted(map(abs, found.front[0].expression.constants)) == pytest.approx([2, 3], rel=0.01)


def test_going_on_from_a_state_gives_the_same_front() -> None:
    y = np.sin(X[:, 0] ** 2) * X[:, 1] + 0.1 * np.random.default_rng(2).standard_normal(80)
    straight = search("f(x)*g(y)", y, 300)
    events = straight.run()
    next(events)
    state = straight.state()
    for _ in events:
        pass
    again = finished(TemplateSearch.from_state(state, X, y, config=straight.config))
    assert [m.expression for m in again.front] == [m.expression for m in straight.front]
    assert again.candidates == straight.candidates


def test_a_search_without_a_template_is_refused() -> None:
    with pytest.raises(ValueError, match="a template is needed"):
        TemplateSearch(X, X[:, 0], config=SearchConfig(max_candidates=1))
