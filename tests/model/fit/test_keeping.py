"""What is kept of a running search: its course, and checkpoints that only the same search goes on from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gmeql.model.files import checkpoint
from gmeql.model.files.checkpoint import load_checkpoint, save_checkpoint
from gmeql.model.files.storage import StorageError
from gmeql.model.fit.keeping import History, Keeper
from gmeql.model.fit.preparation import prepare
from gmeql.search.config import SearchConfig
from gmeql.search.events import Member, Progress
from gmeql.search.search import Search

X = np.random.default_rng(0).uniform(1, 2, (30, 2))
DATA = prepare(X, np.sin(X[:, 0]) + 0.1 * X[:, 1])
CONFIG = SearchConfig(max_candidates=300, n_jobs=1, functions=("add", "mul"))


def keeper(folder, config=CONFIG, data=DATA) -> Keeper:
    return Keeper(Search, data, config, 0, folder, 30.0)


def fresh() -> Search:
    return Search(DATA.X, DATA.y, names=DATA.names, config=CONFIG, seed=0)


def test_the_course_of_a_run_comes_back_from_arrays() -> None:
    member = Member(None, 0.5, 1)  # type: ignore[arg-type]
    history = History()
    for k in range(3):
        history.add(Progress(float(k), 10 * k, 1.0, 1, (member,), member))
    arrays = history.to_arrays()
    assert arrays["candidates"].tolist() == [0, 10, 20] and arrays["loss"].tolist() == [0.5] * 3
    assert History.from_arrays(arrays) == history


def test_without_a_folder_nothing_is_kept() -> None:
    nothing = keeper(None)
    nothing.save(fresh(), History())
    assert nothing.resume() == (None, History())


def test_a_state_too_large_for_a_file_costs_a_warning_and_not_the_search(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(checkpoint, "MAX_TREE_BYTES", 100)
    with pytest.warns(checkpoint.CheckpointWarning, match="more than 100"):
        keeper(tmp_path).save(fresh(), History())
    assert load_checkpoint(tmp_path) is None


def test_a_saved_search_goes_on_with_its_history(tmp_path) -> None:
    search, history = fresh(), History([1.0], [2], [3.0])
    keeper(tmp_path).save(search, history, "max_candidates")
    kept = keeper(tmp_path)
    again, course = kept.resume()
    assert again.candidates == search.candidates and course == history
    assert kept.is_complete(again) is False  # the budget gives it more
    assert keeper(tmp_path).is_complete(again) is False  # nothing was resumed by this one


@pytest.mark.parametrize(
    ("reason", "spent", "complete"), [("exact", 0, True), ("max_candidates", 300, True), ("", 300, False)]
)
def test_a_search_is_complete_when_it_ended_and_the_budget_gives_no_more(reason, spent, complete, tmp_path) -> None:
    kept = keeper(tmp_path)
    kept.reason = reason

    class Ended:
        candidates, elapsed = spent, 0.0

    assert kept.is_complete(Ended()) is complete


def test_other_data_and_other_settings_are_refused_by_name(tmp_path) -> None:
    keeper(tmp_path).save(fresh(), History())
    with pytest.raises(StorageError, match="another data set"):
        keeper(tmp_path, data=prepare(X, X[:, 0])).resume()
    with pytest.raises(StorageError, match="made with max_complexity=60, this run has 7"):
        keeper(tmp_path, replace(CONFIG, max_complexity=7)).resume()
    assert keeper(tmp_path, replace(CONFIG, max_candidates=900, n_jobs=2)).resume()[0] is not None


def test_a_search_goes_on_with_the_numbers_that_time_is_shared_by_today(tmp_path) -> None:
    """They become better from version to version, and nobody gave them."""
    keeper(tmp_path).save(fresh(), History())
    front, clock = replace(CONFIG.front, look_on=3.0), replace(CONFIG.clock, symmetry_share=0.01)
    today = replace(CONFIG, front=front, clock=clock, device_candidates=7, early_device_islands=8, most_lookers=3)
    search, _ = keeper(tmp_path, today).resume()
    assert search is not None and search.config.device_candidates == 7
    for given in ({"readings": False}, {"table_bits": 15}, {"patience": 5}):
        with pytest.raises(StorageError, match=f"made with {next(iter(given))}="):
            keeper(tmp_path, replace(CONFIG, **given)).resume()


def test_what_is_no_search_is_refused(tmp_path) -> None:
    save_checkpoint(tmp_path, {"something": 1})
    with pytest.raises(StorageError, match="does not hold a search"):
        keeper(tmp_path).resume()
    keeper(tmp_path).save(fresh(), History())
    content, _ = load_checkpoint(tmp_path)
    save_checkpoint(tmp_path, content | {"search": {}})
    with pytest.raises(StorageError, match="cannot be continued"):
        keeper(tmp_path).resume()
