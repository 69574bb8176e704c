"""Which tables an accelerator is asked to look at, when, and that what it sees is the search's formula."""

from __future__ import annotations

import time
from typing import Any, cast

import numpy as np
import pytest
from deep_looks import REACH
from host_cuda import HostDriver, needs_compiler

from gmeql.search.accelerator.stage import Card
from gmeql.search.config import SearchConfig
from gmeql.search.deep.looks import DeepLook
from gmeql.search.deep.meeting import DeepConfig
from gmeql.search.execution import execution
from gmeql.search.lookers.pool import Ticket
from gmeql.search.offers import deeper
from gmeql.search.offers.deeper import DeeperLooks
from gmeql.search.search import Search
from gmeql.search.state import SearchState
from gmeql.search.symmetries.views import View

X = np.random.default_rng(0).uniform(0.5, 2.5, (60, 3))
Y = np.sqrt(X[:, 0]) / (1 + X[:, 1] * np.cos(X[:, 2]))


class Noted:
    """Looks that are asked for and never come."""

    def __init__(self) -> None:
        self.taken: list[tuple[float, DeepLook, Ticket]] = []
        self.cancelled: list[Ticket] = []
        self.is_closed = False

    def take(self, job: DeepLook, rank: float) -> Ticket:
        ticket = Ticket(job)
        self.taken.append((rank, job, ticket))
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        self.cancelled.append(ticket)

    def close(self) -> None:
        self.is_closed = True


def begun(**options: Any) -> tuple[DeeperLooks, Noted, SearchState]:
    state = Search(X, Y, config=SearchConfig(**{"max_time": 5.0, **options}))._state
    looks, noted = DeeperLooks(state.config), Noted()
    looks._looks = cast("Any", noted)
    looks.begin_on(HostDriver(), state)
    return looks, noted, state


def test_the_table_as_it_is_is_looked_at_in_a_moment_first() -> None:
    looks, noted, state = begun()
    assert [job.reach for _, job, _ in noted.taken] == list(deeper.DEEP.reaches)
    assert all(job.table.n_columns == 3 for _, job, _ in noted.taken)
    assert [rank for rank, *_ in noted.taken] == sorted(rank for rank, *_ in noted.taken)
    assert looks.is_at_work and list(looks.tend(state)) == []
    assert not looks.begin_on(HostDriver(), state) and len(noted.taken) == len(deeper.DEEP.reaches)


def test_smaller_tables_come_before_larger_ones_of_the_same_reach_and_there_are_a_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deeper, "is_noisy", lambda state: False)
    looks, noted, state = begun(device_tables=3)
    raw = state.portfolio.tables[0].view
    views = [View(raw.columns[:n], raw.factor) for n in (2, 2, 1)]
    state.portfolio.add_tables([state.portfolio.table(view, state.rows) for view in views])
    assert list(looks.tend(state)) == []
    assert sorted(job.table.n_columns for _, job, _ in noted.taken) == [1, 1, 2, 2, 3, 3]
    by_rank = [(job.reach.looks, job.table.n_columns) for _, job, _ in sorted(noted.taken, key=lambda one: one[0])]
    assert by_rank == sorted(by_rank)


def test_smaller_tables_of_noise_are_looked_at_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, noted, state = begun()
    raw = state.portfolio.tables[0].view
    state.portfolio.add_tables([state.portfolio.table(View(raw.columns[:2], raw.factor), state.rows)])
    monkeypatch.setattr(deeper, "is_noisy", lambda state: True)
    assert list(looks.tend(state)) == []
    smaller = [job.reach for _, job, _ in noted.taken if job.table.n_columns == 2]
    assert smaller == [deeper.DEEP.reaches[0]] and len(noted.taken) == 1 + len(deeper.DEEP.reaches)


def test_what_is_seen_is_over_the_columns_as_they_are_with_its_error() -> None:
    looks, noted, state = begun()
    _, job, ticket = noted.taken[0]
    ticket.found.append(state.portfolio.tables[0].view.columns[0])
    ((error, root),) = looks.tend(state)
    assert root == state.portfolio.tables[0].view.columns[0] and error == job.table.error(root)
    for *_, each in noted.taken:
        each.is_over = True
    assert list(looks.tend(state)) == [] and not looks.is_at_work


def test_nobody_hears_what_comes_after_the_end() -> None:
    looks, noted, state = begun()
    looks.stop()
    assert len(noted.cancelled) == len(noted.taken) and noted.is_closed and not looks.is_at_work
    assert not looks.begin_on(HostDriver(), state) and list(looks.tend(state)) == []


@pytest.mark.parametrize(
    "options", [{"max_time": None, "max_candidates": 1000}, {"max_candidates": 1000}, {"direct": ("linear",)}]
)
def test_not_where_the_result_must_not_depend_on_it_or_it_is_not_wanted(options: dict[str, Any]) -> None:
    looks, noted, _ = begun(**options)
    assert noted.taken == [] and not looks.is_at_work


def test_it_is_wanted_with_the_method_that_it_is_a_larger_one_of() -> None:
    assert begun(direct=("meeting",))[1].taken


@needs_compiler
def test_a_search_on_an_accelerator_ends_with_what_was_met_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "required_cards", lambda: [Card(HostDriver(), bits=14)])
    monkeypatch.setattr(deeper, "DEEP", DeepConfig(reaches=(REACH,)))
    seen = list[float]()
    monkeypatch.setattr(
        deeper.DeeperLooks, "tend", lambda self, state, to=deeper.DeeperLooks.tend: _noted(to(self, state), seen)
    )
    config = SearchConfig(
        device="gpu", max_time=30, n_jobs=1, symmetries=False, direct=("meeting",), device_candidates=8, device_islands=1,
        later_device_candidates=8, early_device_islands=2, later_device_islands=2, few_islands=2,
    )  # fmt: skip
    search, began = Search(X, Y, config=config), time.monotonic()
    for progress in search.run():
        pass
    assert search.reason == "exact" and time.monotonic() - began < 30
    assert min(seen) < 1e-12 and progress.best.loss < 1e-12


def _noted(found: Any, to: list[float]) -> Any:
    for error, root in found:
        to.append(error)
        yield error, root
