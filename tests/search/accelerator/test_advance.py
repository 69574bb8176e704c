"""Islands shared out to accelerators: they stay where they are, and a stage ends when enough is found."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from device_islands import advanced, opened
from host_cuda import HostDriver, needs_compiler
from late_cuda import LateDriver

from gmeql.network.repository import size
from gmeql.fitters.cuda.driver import AcceleratorError
from gmeql.search.accelerator import advance as module
from gmeql.search.accelerator.advance import Generation, advance
from gmeql.search.accelerator.stage import Card


@needs_compiler
@pytest.mark.parametrize("n_cards", [1, 2])
def test_islands_that_stay_on_their_card_step_as_if_they_were_sent_again(n_cards: int) -> None:
    found = []
    for stays in (True, False):
        state, islands = opened(4)
        tasks = [state.portfolio.task(island) for island in islands]
        cards = [Card(HostDriver(), bits=14) for _ in range(n_cards)]
        options = dict(enough=lambda best, drawn: False)
        advance(cards, islands, tasks, goal_age=2, **options)
        homes = [card.stage for card in cards]
        assert all(homes)
        if not stays:
            for card in cards:
                card.stage = None
        drawn = advance(cards, [islands[1], islands[2]], tasks[1:3], goal_age=4, **options)
        assert [card.stage is home for card, home in zip(cards, homes, strict=True)] == [stays] * n_cards
        assert [island.age for island in islands] == [2, 4, 4, 2]
        found.append((drawn, [island.repository.losses for island in islands]))
    if n_cards > 1:
        return  # sent again they may come to another card, where other structures were tried
    assert found[0][0] == found[1][0]
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-9)


@needs_compiler
def test_cards_share_islands() -> None:
    state, islands = opened(3)
    advanced(islands, state, 2, n_cards=2)
    assert all(island.age == 2 and int(size(island.repository)) for island in islands)


@needs_compiler
def test_a_stage_ends_early_when_enough_is_found() -> None:
    state, islands = opened(2)
    seen: list[int] = []
    cards, tasks = [Card(HostDriver(), bits=14)], [state.portfolio.task(island) for island in islands]
    advance(cards, islands, tasks, goal_age=30, enough=lambda best, drawn: bool(seen.append(drawn) or len(seen) == 2))
    assert [island.age for island in islands] == [3, 3] and seen[0] < seen[1]


@needs_compiler
def test_large_steps_are_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A formula that looks exact does not wait for steps of which each takes long."""
    monkeypatch.setattr(module, "LOOK_CANDIDATES", 100)
    state, islands = opened(2)  # 96 candidates a step
    ages: list[int] = []
    cards, tasks = [Card(HostDriver(), bits=14)], [state.portfolio.task(island) for island in islands]
    advance(cards, islands, tasks, goal_age=5, enough=lambda best, drawn: bool(ages.append(drawn)))
    assert len(ages) == 4  # the last look finds nothing to do


def generation(n: int, ages: tuple[int, ...], driver: HostDriver | None = None, n_cards: int = 1, **options):
    state, islands = opened(n)
    cards = [Card(driver or HostDriver(), bits=14) for _ in range(n_cards)]
    tasks = [state.portfolio.task(island) for island in islands]
    options = dict(units=np.ones(n), enough=lambda best, drawn: False) | options
    return islands, Generation(cards, islands, tasks, ages=ages, **options)


@needs_compiler
def test_a_generation_takes_the_same_steps_beside_the_host() -> None:
    state, islands = opened(2)
    drawn = advanced(islands, state, 3)
    others, going = generation(2, (3,))
    assert [island.age for island in others] == [0, 0]  # until it is fetched
    while not going.is_over(1.0):
        pass
    assert going.fetch() == drawn and [island.age for island in others] == [3, 3] and not going.has_enough
    np.testing.assert_array_equal(*([island.repository.losses for island in each] for each in (islands, others)))


@needs_compiler
@pytest.mark.parametrize("seed", range(3))
def test_the_order_in_which_queues_take_turns_changes_nothing(seed: int) -> None:
    """Whatever is needed is waited for: memory holds rubbish until then."""
    found = []
    for driver in (HostDriver(), LateDriver(seed)):
        islands, going = generation(4, (2, 4, 6), driver)
        while not going.is_over(1.0):
            pass
        drawn = going.fetch()
        found.append([drawn])
        for island in islands:
            elites = island.repository
            found[-1] += [island.age, island.best, island.probabilities, elites.losses, *elites.items.values()]
    for here, late in zip(*found, strict=True):
        np.testing.assert_array_equal(here, late)


@needs_compiler
@pytest.mark.parametrize("n_cards", [1, 2])
def test_the_worse_half_of_a_generation_is_closed_by_losses_in_units_of_the_target(n_cards: int) -> None:
    units = np.array([1e9, 1.0, 1.0, 1e9])
    islands, going = generation(4, (2, 4, 5), n_cards=n_cards, units=units)
    while not going.is_over(1.0):
        pass
    drawn = going.fetch()
    ages = [island.age for island in islands]
    assert ages[0] == ages[3] == 2 and sorted(ages[1:3]) == [4, 5]
    assert drawn > 48 * 2 * 4


@needs_compiler
def test_what_a_competition_has_closed_stays_closed() -> None:
    """What its last steps left to be taken to convergence does not open it again."""
    islands, going = generation(8, (2, 4, 60), n_whole=1)
    while going.n_open > 2:
        assert not going.is_over()
    going.fetch()
    oldest = sorted(islands, key=lambda island: island.age)
    assert [island.finished for island in oldest] == [True] * 6 + [False] * 2
    assert [island.age for island in oldest[:6]] == [2, 2, 2, 2, 4, 4]


@needs_compiler
def test_a_generation_ends_when_it_is_told_to_or_has_enough() -> None:
    islands, going = generation(2, (60,))
    assert going.fetch() > 0
    assert islands[0].age == islands[1].age < 60 and not going.has_enough
    _, going = generation(2, (2, 60), enough=lambda best, drawn: drawn > 0)
    assert going.is_over(60.0) and going.has_enough


@needs_compiler
def test_a_failure_beside_the_host_is_told_when_it_is_fetched() -> None:
    class Broken(HostDriver):
        def get(self, there: np.ndarray) -> np.ndarray:
            if threading.current_thread() is not threading.main_thread():
                raise AcceleratorError("lost")
            return super().get(there)

    _, going = generation(2, (60,), Broken())
    with pytest.raises(AcceleratorError, match="lost"):
        going.fetch()
