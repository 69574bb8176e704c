"""Meetings in the middle on an accelerator beside a search: which tables are looked at there, and what was seen.

The table as it is, and the plainest of each number of columns; all in a moment first, then again and longer. With a number of
candidates nothing of this is done: what is seen first depends on who is faster.
"""

from __future__ import annotations

from collections.abc import Iterator

from gmeql.fitters.cuda.driver import Driver
from gmeql.formula.nodes import Node
from gmeql.search.config import SearchConfig
from gmeql.search.deep.looks import DeepLook, DeepLooks
from gmeql.search.deep.meeting import DEEP
from gmeql.search.direct.table import DirectTable
from gmeql.search.lookers.pool import Ticket
from gmeql.search.offers.tables import is_noisy, plain_table_of
from gmeql.search.state import SearchState
from gmeql.search.symmetries.views import View

METHOD = "meeting"
"""The direct method that this does in a larger way; who leaves it out has neither."""
Seen = tuple[float, Node]
"""Error on the table where a formula was seen, and the formula over the columns as they are."""


class DeeperLooks:
    """What an accelerator meets in the middle, for one search: asked for, taken in."""

    def __init__(self, config: SearchConfig) -> None:
        self._config = config
        self._driver: Driver | None = None
        self._is_over = False
        self._looks = DeepLooks()
        self._asked: set[View] = set()
        self._running: list[tuple[View, DirectTable, Ticket]] = []

    def begin_on(self, driver: Driver, state: SearchState) -> bool:
        """Have this accelerator look from now on, where the search may take what depends on who is faster, and wants such
        looks; whether it did not before."""
        config = self._config
        is_free = config.max_time is not None and config.max_candidates is None
        is_wanted = config.direct is None or METHOD in config.direct
        if self._is_over or self._driver is not None or not (is_free and is_wanted):
            return False
        self._driver = driver
        self._ask(state)
        return True

    @property
    def is_at_work(self) -> bool:
        """Whether something may still be seen."""
        return bool(self._running)

    def tend(self, state: SearchState) -> Iterator[Seen]:
        """Ask for tables that are new; what was seen since."""
        self._ask(state)
        for view, table, ticket in list(self._running):
            is_over = ticket.is_over  # before what it found is read, or the last of it would be missed
            while ticket.found:
                root = ticket.found.popleft()
                yield table.error(root), view.restore(root)
            if is_over:
                self._running.remove((view, table, ticket))

    def _ask(self, state: SearchState) -> None:
        driver = self._driver
        if driver is None or state.rows.groups is not None:
            return
        plainest: dict[int, View] = {}
        for viewed in state.portfolio.tables:
            plainest.setdefault(len(viewed.view.columns), viewed.view)
        for view in [state.portfolio.tables[0].view, *plainest.values()]:
            if view in self._asked or len(self._asked) == self._config.device_tables:
                continue
            self._asked.add(view)
            table = plain_table_of(view, state)
            if table is None:
                continue
            # a moment tells whether it is a wave; else nothing exact is to be seen in noise
            reaches = DEEP.reaches[:1] if len(self._asked) > 1 and is_noisy(state) else DEEP.reaches
            for place, reach in enumerate(reaches):
                # what takes a moment comes first, then smaller tables, where a formula is shorter
                rank = place + table.n_columns / (1 + state.rows.n_variables) / 2
                ticket = self._looks.take(DeepLook(driver, table, state.portfolio.functions, reach), rank)
                self._running.append((view, table, ticket))

    def stop(self) -> None:
        """Let all looks end; what they find is not heard any more."""
        self._driver, self._is_over = None, True
        for *_, ticket in self._running:
            self._looks.cancel(ticket)
        self._running.clear()
        self._looks.close()
