"""The search's clock, read off a clock of our own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gmeql.search.clock import Clock
from gmeql.search.config import ClockConfig, SearchConfig


class Hands:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    made = Hands()
    monkeypatch.setattr("gmeql.search.clock.moment", made)
    return made


def test_the_end_belongs_to_polishing(hands: Hands) -> None:
    clock = Clock.start(SearchConfig(max_time=10.0))
    hands.now = 106.8
    assert not clock.is_closing() and clock.elapsed() == pytest.approx(6.8)
    hands.now = 106.9  # a fifth of the time is kept, 0.6 s for judging and 0.5 s for outliers
    assert clock.is_closing() and not clock.is_late()
    hands.now = 110.0
    assert clock.is_late()


@pytest.mark.parametrize(
    ("max_time", "rows", "kept"),
    [(5.0, 0, 1.0 + 0.6), (100.0, 0, 3.0 + 1.1), (100.0, 1_000_000, 14.1), (10.0, 10_000_000, 3.1 + 5.0)],
)
def test_time_kept_for_the_end(max_time: float, rows: int, kept: float, hands: Hands) -> None:
    """A fifth, at most 3 s, for judging 6 %, at most 0.6 s, for outliers 6 %, at most 0.5 s, and for a large table 10 µs a
    row, at most half; polishing ends before that begins."""
    clock = Clock.start(SearchConfig(max_time=max_time), refitted_rows=rows)
    assert clock.deadline - clock.closing == pytest.approx(kept)
    hands.now = clock.judging
    assert clock.is_time_to_judge() and clock.judging - clock.closing == pytest.approx(min(0.2 * max_time, 3.0))


def test_time_spent_earlier_counts(hands: Hands) -> None:
    clock = Clock.start(SearchConfig(max_time=10.0), elapsed=9.0)
    assert clock.elapsed() == pytest.approx(9.0) and clock.is_closing() and not clock.is_late()


def test_without_a_budget_it_never_ends(hands: Hands) -> None:
    for clock in (Clock.unlimited(), Clock.start(SearchConfig(), refitted_rows=10**9)):
        over = clock.symmetry_limit()
        hands.now = 1e9
        assert not clock.is_closing() and not clock.is_late() and not over()


def test_symmetries_get_a_share_from_the_moment_they_are_looked_for(hands: Hands) -> None:
    clock = Clock.start(SearchConfig(max_time=10.0, clock=ClockConfig(symmetry_share=0.2)))
    hands.now = 105.0
    over = clock.symmetry_limit()
    hands.now = 106.9
    assert not over()
    hands.now = 107.1
    assert over()


def test_what_is_interrupted_closes_and_is_not_late(hands: Hands) -> None:
    clock = replace(Clock.unlimited(), is_interrupted=lambda: hands.now > 105.0)
    over = clock.symmetry_limit()
    assert not clock.is_closing() and not over()
    hands.now = 106.0
    assert clock.is_closing() and over() and not clock.is_late() and not clock.is_time_to_judge()


def test_a_little_before_the_judgement(hands: Hands) -> None:
    clock = Clock.start(SearchConfig(max_time=10.0))
    hands.now = 108.3
    assert not clock.is_nearly_time_to_judge(0.5)
    hands.now = 108.5
    assert clock.is_nearly_time_to_judge(0.5) and not clock.is_time_to_judge()


def test_no_time_is_kept_for_outliers_where_nobody_asks_for_them() -> None:
    assert SearchConfig(max_time=5.0).outlier_seconds == pytest.approx(0.3)
    assert SearchConfig(max_time=5.0, loss="robust").outlier_seconds == 0.0


def test_polishing_that_takes_less_than_is_kept_for_it_leaves_the_rest_to_the_search(hands: Hands) -> None:
    config = SearchConfig(max_time=10.0)
    clock = Clock.start(config)
    hands.now = clock.closing + 0.2
    later = clock.closing_later(0.2, config.clock)
    assert later is not None and not later.is_closing() and later.judging - later.closing == pytest.approx(0.3)
    assert later.judging == clock.judging and later.deadline == clock.deadline
    hands.now = clock.judging - 0.4
    assert clock.closing_later(0.2, config.clock) is None  # what is left is not worth another round of polishing
