"""Formulas of islands offered to the front beside the search: an accelerator does not wait for the processor.

One thread polishes and offers, on copies of all that the search goes on changing; what comes of it is taken over whole. A
search with a number of candidates waits for it at set moments, so that its result depends on the seed alone; one with a
limit of time takes what there is, and leaves out stages that come too fast.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

from gmeql.search.islands.island import Island
from gmeql.search.front.leaderboard import Leaderboard
from gmeql.search.islands.portfolio import Portfolio
from gmeql.search.state import SearchState

MOST_WAITING = 2
"""Offers begun and not done, at most: then the search waits, or they would still run when its time is over."""
TURN = 0.0005
"""Seconds after which the thread must let the search go on: every launch on an accelerator waits for its turn."""
Offer = Callable[[SearchState, Sequence[Island]], None]


class Offering:
    """The thread, what it has still to do, and the front as it left it last."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: list[Future[None]] = []
        self._done: tuple[Leaderboard, int] | None = None  # the front, and candidates when the best formula last gained
        self._is_hurried = False

    @property
    def is_busy(self) -> bool:
        """Whether something begun is not done."""
        return any(not future.done() for future in self._waiting)

    @property
    def has_room(self) -> bool:
        """Whether something may begin without anybody waiting."""
        return sum(not future.done() for future in self._waiting) < MOST_WAITING

    def is_hurried(self) -> bool:
        """Whether the search waits: what is being cut to shape is to be offered as it is now."""
        return self._is_hurried

    def begin(
        self,
        offer: Offer,
        state: SearchState,
        islands: Sequence[Island],
        *,
        may_skip: bool,
        portfolio: Portfolio | None = None,
    ) -> None:
        """Have `offer` called with the state and islands as they are now; with another `portfolio` where they had that.

        With `may_skip` nothing is done where the thread is still busy: what these islands found, they keep.
        """
        left = sum(not future.done() for future in self._waiting)
        if left and may_skip:
            return
        if left == 0 or left >= MOST_WAITING:
            self.settle(state)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="gmeql-offering")
            self.take_turns()
        if not self._waiting:
            self._done = (state.leaderboard, state.last_gain)
        # later rows and stages change the portfolio and the islands, not what they refer to
        seen = replace(state, portfolio=copy.copy(portfolio or state.portfolio))
        self._waiting.append(self._pool.submit(self._work, offer, seen, [copy.copy(island) for island in islands]))

    def _work(self, offer: Offer, state: SearchState, islands: Sequence[Island]) -> None:
        """In the thread: offer to a copy of the front as it stood after the last work."""
        assert self._done is not None
        front, state.last_gain = self._done
        state.leaderboard = front.copy()
        offer(state, islands)
        self._done = (state.leaderboard, state.last_gain)

    def take_turns(self) -> None:
        """Have threads take turns often, until the search ends."""
        sys.setswitchinterval(TURN)

    def take(self, state: SearchState) -> bool:
        """Take over the front as far as the thread has come; whether it is another one."""
        if not self._waiting or self._done is None or self._done[0] is state.leaderboard:
            return False
        state.leaderboard, state.last_gain = self._done
        return True

    def settle(self, state: SearchState, *, hurried: bool = False) -> None:
        """Wait for all that was begun, and take it over; `hurried` where it must not take longer than need be."""
        self._is_hurried = hurried
        try:
            for future in self._waiting:
                future.result()
        finally:
            self._is_hurried = False
        self.take(state)
        self._waiting.clear()

    @contextmanager
    def open(self, state: SearchState) -> Iterator[None]:
        """Settled at the end, whatever ends it; then the thread ends."""
        turn = sys.getswitchinterval()
        try:
            yield
        finally:
            self.settle(state)
            if self._pool is not None:
                self._pool.shutdown()
                self._pool = None
            sys.setswitchinterval(turn)
