"""Algorithm 1 behind the interface of a search: events, budgets, resume, what it refuses."""

import dataclasses
import itertools

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Variable, build
from gmeql.network.architecture import Architecture
from gmeql.paper.search import CHUNK_STEPS, PaperSearch, ReleasedSearch
from gmeql.paper.two_stage import TwoStageConfig
from gmeql.search.config import SearchConfig

LAYERS = (("id", "square"),)


def table():
    X = np.random.default_rng(0).uniform(0, 2, (20, 2))
    return X, 1.1 * X[:, 0] ** 2


def search(kind=ReleasedSearch, **budget):
    X, y = table()
    return kind(X, y, names=("a", "b"), config=SearchConfig(architecture=Architecture(2, LAYERS), **budget), seed=3)


def test_the_presets_of_the_two_methods_are_those_of_text_and_code():
    assert search(PaperSearch).settings == dataclasses.replace(TwoStageConfig.paper(), chunk_steps=CHUNK_STEPS)
    assert search().settings == dataclasses.replace(TwoStageConfig.released(), chunk_steps=CHUNK_STEPS)


def test_events_end_with_the_budget_and_the_front_only_gets_better():
    run = search(max_candidates=25_000)
    events = list(run.run())
    per_event = CHUNK_STEPS * run.settings.samples_per_step
    assert [event.candidates for event in events] == [per_event, 2 * per_event, 3 * per_event]
    assert [event.reason for event in events] == ["", "", "max_candidates"] and events[-1].done
    losses = [event.best.loss for event in events]
    assert losses == sorted(losses, reverse=True)
    front = events[-1].front
    assert [m.complexity for m in front] == sorted({m.complexity for m in front})
    assert all(simple.loss > longer.loss for simple, longer in itertools.pairwise(front))
    X, y = table()
    assert front[-1].loss == pytest.approx(float(np.sqrt(np.mean((front[-1].expression(X) - y) ** 2))), rel=1e-12)


def test_the_best_member_is_the_shortest_description_as_in_every_search():
    """A term that follows the noise a little makes the most accurate member, not the best one."""
    X, y = table()
    noise = np.random.default_rng(1).standard_normal(20)
    run = PaperSearch(X, y + 0.1 * noise, names=("a", "b"), config=SearchConfig())
    square = build("square", Variable(0))
    wave = build("sin", build("mul", Constant(9.0), Variable(1)))
    sign = np.sign(np.corrcoef(np.sin(9 * X[:, 1]), y + 0.1 * noise - X[:, 0] ** 2)[0, 1])
    run._keep(Expression(square, ("a", "b")))
    run._keep(Expression(build("add", square, build("mul", Constant(0.001 * sign), wave)), ("a", "b")))
    front, best = run.finish("stopped").front, run.finish("stopped").best
    assert len(front) == 3 and best is front[1] and best.expression.root == square


def test_a_search_taken_up_again_ends_like_one_never_stopped():
    X, y = table()
    whole = search(max_candidates=20_000)
    *_, last = whole.run()
    first = search(max_candidates=10_000)
    list(first.run())
    config = SearchConfig(architecture=Architecture(2, LAYERS), max_candidates=20_000)
    again = ReleasedSearch.from_state(first.state(), X, y, config=config)
    *_, resumed = again.run()
    assert resumed.candidates == last.candidates == 20_000
    assert [str(m.expression) for m in resumed.front] == [str(m.expression) for m in last.front]
    assert next(iter(again.run())).reason == "max_candidates"  # nothing is left to do


def test_what_the_papers_loss_has_no_place_for_is_refused():
    X, y = table()
    with pytest.raises(ValueError, match="sample_weight"):
        PaperSearch(X, y, sample_weight=np.ones(20), config=SearchConfig())
    with pytest.raises(ValueError, match="architecture"):
        PaperSearch(X, y, config=SearchConfig(functions=("add",)))
