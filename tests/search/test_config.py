"""The search's settings: refused when wrong, the same after storing, readable when an earlier version stored them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest
from searches import stored

from gmeql.fitters.threads import available_cores
from gmeql.network.architecture import Architecture
from gmeql.search.losses.losses import LOSSES
from gmeql.search.config import (
    DEVICES,
    RENAMED,
    ClockConfig,
    FrontConfig,
    IslandConfig,
    SearchConfig,
    stored_settings,
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_time": 0}, "max_time must be positive or None, got 0"),
        ({"max_candidates": -1}, "max_candidates"),
        ({"patience": 0}, "patience"),
        ({"loss": "l1"}, "loss='l1' is not allowed"),
        ({"device": "tpu"}, "device must be one of auto, cpu, gpu, got 'tpu'"),
        ({"max_complexity": 0}, "max_complexity must be at least 1"),
    ],
)
def test_bad_settings_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SearchConfig(**options)


def test_every_entry_of_the_tables_is_taken() -> None:
    assert [SearchConfig(loss=loss).loss for loss in LOSSES] == list(LOSSES)
    assert [SearchConfig(device=device).device for device in DEVICES] == list(DEVICES)


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        SearchConfig().max_time = 3.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("n_jobs", "threads"), [(None, available_cores()), (-1, available_cores()), (3, 3), (-1000, 1)]
)
def test_threads(n_jobs: int | None, threads: int) -> None:
    assert SearchConfig(n_jobs=n_jobs).n_threads == threads


@pytest.mark.parametrize(
    ("device", "n_jobs", "lookers"),
    [("cpu", 1, 0), ("cpu", 2, 1), ("cpu", 16, 8), ("cpu", 64, 8), ("auto", 16, 8)]
    + [("gpu", 1, 0), ("gpu", 2, 1), ("gpu", 3, 1), ("gpu", 16, 14), ("gpu", 20, 14)],
)
def test_beside_an_accelerator_nearly_all_threads_look(device: str, n_jobs: int, lookers: int) -> None:
    assert SearchConfig(device=device, n_jobs=n_jobs).n_lookers == lookers


def test_an_accelerator_gets_more_candidates_at_a_time() -> None:
    config = SearchConfig(device_candidates=999, later_device_candidates=1111, island=IslandConfig(life=7))
    assert config.device_island(later=False) == replace(config.island, candidates_per_step=999)
    assert config.device_island(later=True) == replace(config.island, candidates_per_step=1111)


@pytest.mark.parametrize(
    "config",
    [
        SearchConfig(),
        SearchConfig(functions=("add", "sin"), stage_ages=(2, 4), max_time=2.5, loss="huber"),
        SearchConfig(architecture=Architecture(2, (("id", "square"), ("add",)))),
        SearchConfig(architecture="general", island=IslandConfig(life=9), front=FrontConfig(short=7)),
        SearchConfig(clock=ClockConfig(polish_seconds=1.0)),
    ],
)
def test_a_stored_config_is_the_same(config: SearchConfig) -> None:
    again = SearchConfig.from_dict(stored(config.to_dict()))
    if isinstance(config.architecture, Architecture):
        assert isinstance(again.architecture, Architecture) and again.architecture.layers == config.architecture.layers
        config, again = replace(config, architecture=None), replace(again, architecture=None)
    assert again == config


def as_version_3(config: SearchConfig) -> dict[str, Any]:
    """What gmeql 0.1 would have stored: other names, and fewer fields."""
    old = {new: name for name, new in RENAMED.items()}
    data = {old.get(name, name): value for name, value in config.to_dict().items()}
    for name in ("front", "clock", "large_fall", "least_reweighing", "plain_islands"):
        del data[name]
    return data


def test_settings_of_an_earlier_version_are_read() -> None:
    config = SearchConfig(stage_ages=(2, 5), polished_per_stage=2, readings=False)
    data = as_version_3(config)
    assert data["rungs"] == (2, 5) and data["transforms"] is False
    assert SearchConfig.from_dict(data) == config


def test_settings_that_a_checkpoint_does_not_know_have_their_default() -> None:
    config = SearchConfig(stage_ages=(2, 5))
    texts = {name: repr(value) for name, value in as_version_3(config).items() if name != "island"}
    texts["island"] = repr(config.island)
    found = stored_settings(texts | {"search": "Search"})
    assert found.pop("search") == "Search"
    assert found == {one.name: repr(getattr(config, one.name)) for one in fields(config)}
