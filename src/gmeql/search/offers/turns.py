"""How long direct methods may look, one after the other: by a clock where time is the budget, by counts elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from gmeql.search.clock import Clock
from gmeql.search.direct.table import Effort, worked
from gmeql.search.state import SearchState


def effort_until(state: SearchState, clock: Clock, seconds: float, until: float) -> Effort:
    """Work worth so many seconds; where time is the budget, with a moment at which it ends: at the latest when the whole
    search closes, however little of the processor was had until then."""
    if state.config.max_time is None:
        return Effort(seconds, clock.is_interrupted)
    left = max(until - worked(), 0.0)
    return Effort.timed(left, until=until, is_interrupted=clock.is_closing)


@contextmanager
def counted(state: SearchState) -> Iterator[None]:
    """Note what is done meanwhile as a look, which later ones have less time for; where time is the budget."""
    began = worked()
    try:
        yield
    finally:
        if state.config.max_time is not None:
            state.beside_spent += worked() - began


class Turns:
    """Methods that look one after the other, each for some seconds. What one leaves over is the next one's; what one takes
    beyond its own is not: a piece of its work may be long, and those after it would never be asked. All of them end once
    they, and what becomes of what they see, took `most` seconds: the share of all looks is spent then."""

    def __init__(self, seconds: Sequence[float], most: float = math.inf) -> None:
        self._ends = np.concatenate([[0.0], np.cumsum(seconds)])
        self._began = worked()
        self._latest = self._began + most

    def until(self, place: int) -> float:
        """When the turn of a method ends that begins now."""
        self._began = max(self._began, worked() - float(self._ends[place]))
        return min(self._began + float(self._ends[place + 1]), self._latest)

    def pause(self, seconds: float, *, is_kept: bool = False) -> None:
        """Some seconds went by that were no method's; nor of the share of looks where they were kept for a trail."""
        self._began += seconds
        self._latest += seconds if is_kept else 0.0

    def are_over(self) -> bool:
        """Whether no method has time any more."""
        return worked() >= self._latest


class Kept:
    """Work kept for methods that have seen part of a formula: what the first leaves over is the next one's."""

    def __init__(self, state: SearchState, clock: Clock, seconds: float) -> None:
        self._state, self._clock, self._seconds = state, clock, seconds
        self._taken: tuple[float, float] | None = None
        self.used = 0.0
        """Seconds of it that were used, where time is the budget."""

    def take(self) -> Effort | None:
        """All that is left; None where nothing is."""
        if not self._seconds > 0:
            return None
        self._taken, self._seconds = (worked(), self._seconds), 0.0
        began, seconds = self._taken
        return effort_until(self._state, self._clock, seconds, began + seconds)

    @property
    def is_taken(self) -> bool:
        """Whether a method follows a trail."""
        return self._taken is not None

    def settle(self) -> float:
        """The method that took some has ended: what is over by the clock is kept again. What it used, in seconds."""
        taken, self._taken = self._taken, None
        if taken is None or self._state.config.max_time is None:
            return 0.0
        used = worked() - taken[0]
        self.used += used
        self._seconds = max(taken[1] - used, 0.0)
        return used
