"""The state of a search goes through plain data unchanged; states of gmeql 0.1 are read."""

from __future__ import annotations

import lzma
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gmeql.model.files.checkpoint import load_checkpoint
from gmeql.search.config import SearchConfig
from gmeql.search.search import Search
from gmeql.search.state import VERSION, SearchState
from searches import SMALL, parabola, plain_text, run, stored, waves
from thinned import thinned

OLD = Path(__file__).parents[1] / "data" / "v0.1"


def stopped(rounds: int, **options: Any) -> Search:
    """A search of noisy waves, ended after some rounds."""
    search = Search(*waves(), config=SearchConfig(max_candidates=20_000, few_islands=4, **(SMALL | options)), seed=3)
    events = search.run()
    for _ in range(rounds):
        next(events)
    events.close()
    return search


@pytest.mark.parametrize(
    ("rounds", "loss"),
    thinned([(r, loss) for r in (0, 1, 3, 9) for loss in ("squared", "huber")], quick=(0, 2, 5, 6)),
)
def test_plain_data_and_back(rounds: int, loss: str) -> None:
    data = stopped(rounds, loss=loss, stage_ages=(2, 4), search_rows=32).state()
    again = SearchState.from_dict(stored(data), *waves())
    assert plain_text(again.to_dict()) == plain_text(data)


def test_the_state_holds_what_the_search_has_reached() -> None:
    search = stopped(9, stage_ages=(2, 4), search_rows=32)
    data = search.state()
    again = SearchState.from_dict(stored(data), *waves())
    assert data["version"] == VERSION and data["search_rows"] > 32
    assert again.rows.n_fitted == data["search_rows"] and again.candidates == search.candidates
    assert len(again.islands) == len(data["islands"]) > 0
    # the next draw of every generator is the one that the search itself would make
    assert again.rng.integers(2**62) == search._state.rng.integers(2**62)
    for mine, theirs in zip(again.islands, search._state.islands, strict=True):
        np.testing.assert_array_equal(mine.inputs, theirs.inputs)
        drawn = [
            island.draw(state.tried, 60, state.portfolio.task(island).table_key).hashes
            for island, state in ((mine, again), (theirs, search._state))
        ]
        np.testing.assert_array_equal(*drawn)


def test_huber_weights_are_part_of_the_state() -> None:
    search = stopped(9, loss="huber", stage_ages=(2, 4))
    weights = search._state.rows.weights
    assert np.ptp(weights) > 0  # outliers were found
    again = SearchState.from_dict(stored(search.state()), *waves())
    np.testing.assert_array_equal(again.rows.weights, weights)
    np.testing.assert_array_equal(again.rows.given_weights, np.ones(80))


def test_a_search_from_a_state_leaves_the_state_alone() -> None:
    data = stored(stopped(2).state())
    before = plain_text(data)
    run(Search.from_state(data, *waves(), config=SearchConfig(max_candidates=1500, **SMALL)))
    assert plain_text(data) == before


def test_a_new_config_replaces_the_stored_one() -> None:
    data = stopped(1).state()
    config = replace(SearchConfig.from_dict(data["config"]), max_candidates=99_999)
    assert SearchState.from_dict(data, *waves(), config=config).config is config


def test_unknown_versions_are_refused() -> None:
    X, y = parabola()
    state = Search(X, y, config=SearchConfig(**SMALL)).state() | {"version": 99}
    with pytest.raises(ValueError, match="version 99, this program reads 3 and 4"):
        Search.from_state(state, X, y)


@pytest.mark.parametrize("name", ["fitted", "fitted-views"])
def test_a_state_of_version_3_is_read(name: str, tmp_path: Path) -> None:
    (tmp_path / "checkpoint-00000001.gmeql").write_bytes(lzma.decompress((OLD / f"{name}.gmeql.xz").read_bytes()))
    found = load_checkpoint(tmp_path)
    assert found is not None
    old = found[0]["search"]
    X = np.random.default_rng(0).uniform(1, 3, (200, 3))  # as make.py beside the files has it
    y = np.sin(X[:, 0] - X[:, 1]) * X[:, 2]
    assert old["version"] == 3
    state = SearchState.from_dict(old, X, y)
    assert state.stage == old["rung"] and state.symmetries_done == old["looked"]
    assert state.config.stage_ages == tuple(old["config"]["rungs"])
    assert [s.reading for s in state.portfolio.strategies] == [arm["transform"] for arm in old["arms"]]
    assert [s.gained for s in state.portfolio.strategies] == [arm["gained"] for arm in old["arms"]]
    assert len(state.portfolio.tables) == len(old["views"])
    assert [island.reading for island in state.islands] == [island["transform"] for island in old["islands"]]
    for island, data in zip(state.islands, old["islands"], strict=True):
        np.testing.assert_array_equal(island.tried.fingerprints, data["own"])
        assert state.portfolio.strategies[island.strategy].reading == island.reading
    new = state.to_dict()
    np.testing.assert_array_equal(new["tried"]["keys"], old["known"]["keys"])
    assert plain_text(SearchState.from_dict(stored(new), X, y).to_dict()) == plain_text(new)
