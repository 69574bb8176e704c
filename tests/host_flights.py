"""Searches with generations on the way, on accelerators whose kernels are compiled for the processor."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from host_cuda import HostDriver
from searches import SMALL, waves

from gmeql.search.accelerator.stage import Card
from gmeql.search.config import SearchConfig
from gmeql.search.execution import execution
from gmeql.search.search import Search

FEW = dict(
    device="gpu", device_candidates=24, later_device_candidates=24, device_islands=1, few_islands=3,
    later_device_islands=6, stage_ages=(2, 3, 5), symmetries=False, direct=(),
)  # fmt: skip


@pytest.fixture(autouse=True)
def on_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(execution, "required_cards", lambda: [Card(HostDriver(), bits=14)])
    yield


def made(X: np.ndarray, y: np.ndarray, **changes) -> Search:
    return Search(X, y, config=SearchConfig(**(FEW | SMALL | dict(max_time=600.0) | changes)), seed=1)


def ended(search: Search) -> None:
    while not search._flights.is_one_over(1.0):
        pass


def close(search: Search) -> None:
    search._flights._bring_down(search._state)
    search._offering.settle(search._state)
    search._offering._pool.shutdown()


def on_the_way(n: int, **changes) -> Search:
    """A search with so many generations on the way, of islands that live long."""
    search = made(*waves(), device_generations=n, stage_ages=(2, 3, 60), **changes)
    for _ in range(n):
        search._open_generation()
        assert search._flights.start(search._state, (60,), search._clock)
    return search
