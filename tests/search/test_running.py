"""What every search is to others: made of a table or of a state, its figures the state's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gmeql.search.config import SearchConfig
from gmeql.search.events import Progress
from gmeql.search.running import RunningSearch
from gmeql.search.search import Search
from gmeql.search.state import SearchState
from gmeql.search.templates.search import TemplateSearch

X = np.linspace(1.0, 2.0, 20)[:, None]


class Counting(RunningSearch):
    """Counts to three."""

    def _begin(self, state: SearchState) -> None:
        self._state = state

    def run(self) -> Iterator[Progress]:
        for _ in range(3):
            self._state.candidates += 1
            yield self.progress()
        self._state.reason = "counted"

    def finish(self, reason: str) -> Progress:
        self._state.reason = reason
        return self.progress()

    def state(self) -> dict[str, Any]:
        return self._state.to_dict()


def counting(**options: Any) -> Counting:
    return Counting(X, 2.0 * X[:, 0], names=("x",), **options)


def test_figures_are_those_of_the_state() -> None:
    search = counting(config=SearchConfig(max_candidates=7), seed=3)
    assert (search.candidates, search.elapsed, search.reason, search.own_constants) == (0, 0.0, "", None)
    assert [progress.candidates for progress in search.run()] == [1, 2, 3]
    assert search.candidates == 3 and search.reason == "counted"
    assert search.config.max_candidates == 7
    assert [member.expression.names for member in search.front] == [("x",)] * len(search.front)


def test_a_search_of_a_state_goes_on_with_its_rows_and_a_new_budget() -> None:
    search = counting(seed=3)
    list(search.run())
    again = Counting.from_state(search.state(), X, 2.0 * X[:, 0], config=SearchConfig(max_candidates=9))
    assert isinstance(again, Counting) and again.reason == "" and again.candidates == 3
    assert again.config.max_candidates == 9
    assert again.finish("enough").candidates == 3 and again.reason == "enough"


def test_the_generator_goes_on_where_it_stood() -> None:
    search = counting(seed=3)
    again = Counting.from_state(search.state(), X, 2.0 * X[:, 0])
    assert search._state.rng.random() == again._state.rng.random()


@pytest.mark.parametrize("kind", [Search, TemplateSearch])
def test_the_searches_differ_from_it_only_in_how_they_search(kind: type[RunningSearch]) -> None:
    assert issubclass(kind, RunningSearch)
    shared = {
        "__init__",
        "from_state",
        "config",
        "candidates",
        "elapsed",
        "reason",
        "front",
        "own_constants",
        "progress",
    }
    assert not shared & set(vars(kind))


def test_a_search_that_had_ended_is_judged_again_on_all_rows() -> None:
    search = counting(config=SearchConfig(max_candidates=7, polish_rows=2))
    assert search.front[0].outlook is None and search.sums == ()
    search.judge_again()
    assert not search._state.rows.is_sampled and search.front[0].outlook is not None
