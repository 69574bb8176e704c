"""A part of the search without rows far from all others: where there are some, and the same after a stop."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.model.fit.fitting import run_search
from gmeql.model.fit.preparation import prepare
from gmeql.model.fit.without_outliers import DividedSearch
from gmeql.search.config import SearchConfig
from gmeql.search.events import Progress
from gmeql.search.search import Search

CONFIG = SearchConfig(max_candidates=1500, n_jobs=1, max_complexity=12, functions=("add", "mul", "div"))
RNG = np.random.default_rng(3)
X = np.column_stack([RNG.uniform(0.2, 20, 60), RNG.random(60) < 0.5])
LAW = 3 * X[:, 0] / (X[:, 0] + 2) + 0.4 * X[:, 1]
STRUCK = LAW + 0.03 * RNG.standard_normal(60)
STRUCK[11] -= 17.0


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows every search has that was made."""
    made: list[int] = []
    begin = Search.__init__
    monkeypatch.setattr(Search, "__init__", lambda s, X, y, **k: (made.append(len(y)), begin(s, X, y, **k))[1])
    return made


def test_a_part_of_the_search_leaves_a_gross_row_out_and_what_it_finds_is_chosen(searched: list[int]) -> None:
    events: list[Progress] = []
    result = run_search(prepare(X, STRUCK), config=CONFIG, seed=0, callbacks=[events.append])
    assert searched == [60, 59]
    best = result.front.select("best")
    assert best.is_unmoved and best.outlook.outliers == 1 and best.outlook.searched_without
    assert float(np.sqrt(np.mean((best.expression(X) - LAW) ** 2))) < 0.05
    counts = [event.candidates for event in events]
    assert counts == sorted(counts) and 1500 <= result.candidates < 2500 and counts[-1] == result.candidates


def test_other_tables_are_searched_whole(searched: list[int]) -> None:
    """A clean one, one of a heavy tail, and one whose law is steep on few rows."""
    steep = np.linspace(0.02, 3, 60)[:, None]
    noise = np.random.default_rng(0)
    clean, heavy = LAW + 0.1 * noise.standard_normal(60), 1 + noise.standard_t(3, 60)
    for columns, y in ((X, clean), (X, heavy), (steep, 1 / steep[:, 0] ** 2 + 0.1 * noise.standard_normal(60))):
        search = followed(DividedSearch(Search(columns, y, config=CONFIG, seed=0), prepare(columns, y), CONFIG, 0))
        assert search.outliers_asked and not search.aside
    assert searched == [60, 60, 60]


@pytest.fixture(scope="module")
def whole() -> DividedSearch:
    return followed(DividedSearch(Search(X, STRUCK, config=CONFIG, seed=0), prepare(X, STRUCK), CONFIG, 0))


def followed(search: DividedSearch) -> DividedSearch:
    for _ in search.run():
        pass
    return search


@pytest.mark.parametrize("stopped_at", [0.1, 0.3, 0.6])
def test_a_search_that_was_stopped_goes_on_to_the_same_front(stopped_at: float, whole: DividedSearch) -> None:
    """Before the other rows are searched, meanwhile, and afterwards."""
    data = prepare(X, STRUCK)
    stopped = DividedSearch(Search(X, STRUCK, config=CONFIG, seed=0), data, CONFIG, 0)
    state = next(stopped.state() for event in stopped.run() if event.candidates >= stopped_at * 1500)
    search = Search.from_state(state, X, STRUCK, config=CONFIG)
    again = followed(DividedSearch(search, data, CONFIG, 0))
    assert again.candidates == whole.candidates and again.aside == whole.aside != ()
    assert [(m.expression, m.loss) for m in again.front] == [(m.expression, m.loss) for m in whole.front]


def test_states_of_earlier_versions_go_on() -> None:
    data = prepare(X, STRUCK)
    state = Search(data.X, data.y, names=data.names, config=CONFIG, seed=0).state()
    for name in ("outliers_asked", "aside"):
        del state[name]
    search = Search.from_state(state, data.X, data.y, config=CONFIG)
    assert not search.outliers_asked and search.aside == ()
