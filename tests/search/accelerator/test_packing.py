"""Islands laid out ahead of time: sent later they step the same, and only while they are what they were."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from device_islands import opened
from host_cuda import HostDriver, needs_compiler

from gmeql.search.accelerator import advance as module
from gmeql.search.accelerator.advance import Generation
from gmeql.search.accelerator.packing import Packed, share_out
from gmeql.search.accelerator.stage import Card
from gmeql.search.island import Island


def grown(n_cards: int, *, ahead: bool) -> list[Island]:
    """Islands after three steps and, sent again from what they were then, two more."""
    state, islands = opened(4)
    tasks = [state.portfolio.task(island) for island in islands]
    for age in (3, 5):
        cards = [Card(HostDriver(), bits=14) for _ in range(n_cards)]
        packed = share_out(n_cards, islands, tasks) if ahead else ()
        options = dict(units=np.ones(4), enough=lambda best, drawn: False)
        generation = Generation(cards, islands, tasks, ages=(age,), ahead=packed, **options)
        while not generation.is_over(1.0):
            pass
        assert generation.bring() > 0 and generation.seconds > 0 and islands[0].age < age
        generation.unpack()
    return islands


@needs_compiler
@pytest.mark.parametrize("n_cards", [1, 3])
def test_islands_packed_ahead_step_as_others_do(n_cards: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = grown(n_cards, ahead=False)
    monkeypatch.setattr(module, "share_out", None)
    found = grown(n_cards, ahead=True)
    assert [island.age for island in found] == [5] * 4
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.repository.losses, other.repository.losses)
        np.testing.assert_array_equal(one.probabilities, other.probabilities)


def test_what_changed_since_it_was_packed_is_packed_again() -> None:
    state, islands = opened(3)
    tasks = [state.portfolio.task(island) for island in islands]
    packed = Packed(islands, tasks)
    assert packed.is_for(islands, tasks)
    assert not packed.is_for(islands[:2], tasks[:2]) and not packed.is_for(islands[::-1], tasks[::-1])
    assert not packed.is_for(islands, [*tasks[:2], replace(tasks[2], target=tasks[2].target.copy())])
    islands[1].age = 1
    assert not packed.is_for(islands, tasks)


def test_few_islands_do_not_need_all_cards() -> None:
    state, islands = opened(3)
    tasks = [state.portfolio.task(island) for island in islands]
    assert [one.islands for one in share_out(2, islands, tasks)] == [[islands[0], islands[2]], [islands[1]]]
    assert len(share_out(5, islands, tasks)) == 3


def test_every_set_of_data_is_sent_once() -> None:
    state, islands = opened(3)
    tasks = [state.portfolio.task(island) for island in islands]
    other = replace(tasks[1], inputs=tasks[1].inputs + 1.0)
    packed = Packed(islands, [tasks[0], other, replace(tasks[0], inputs=tasks[0].inputs.copy())])
    assert len(packed.datasets) == 2 and packed.records["dataset"].tolist() == [0, 1, 0]
