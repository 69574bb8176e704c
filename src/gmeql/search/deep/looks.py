"""A thread beside a search that meets in the middle on an accelerator, one table after the other.

It has queues of its own there, so it waits for no islands; mostly it sleeps until the accelerator is done.
"""

from __future__ import annotations

import itertools
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from gmeql.fitters.cuda.driver import MOST_MEMORY, AcceleratorError, Driver
from gmeql.formula.nodes import Node
from gmeql.network.families import FunctionSet
from gmeql.search.deep.meeting import Reach, propose
from gmeql.search.direct.methods import FAULTS
from gmeql.search.direct.table import DirectTable
from gmeql.search.lookers.pool import Ticket

PLACE = 99
"""Number of the queues: none that islands use."""
_END = float("inf")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DeepLook:
    """A job: how far to look at a table."""

    driver: Driver
    table: DirectTable
    functions: FunctionSet
    reach: Reach

    def run(self, is_cancelled: Callable[[], bool]) -> Iterator[Node]:
        """Formulas over the table's columns, the most promising first; none where memory is short, which islands need."""
        driver = self.driver.beside(PLACE)
        if self.reach.extent.n_bytes > MOST_MEMORY * driver.free_bytes():
            return
        yield from propose(driver, self.table, self.functions, self.reach, goes_on=lambda: not is_cancelled())


class DeepLooks:
    """The thread, from the first job until it is closed."""

    def __init__(self) -> None:
        self._waiting: queue.PriorityQueue[tuple[float, int, Ticket | None]] = queue.PriorityQueue()
        self._came = itertools.count()
        self._thread: threading.Thread | None = None

    def take(self, job: DeepLook, rank: float = 0.0) -> Ticket:
        """Hand a job in; of those that wait the lowest rank goes first."""
        ticket = Ticket(job)
        self._waiting.put((rank, next(self._came), ticket))
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="gmeql-deep", daemon=True)
            self._thread.start()
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """Let a job end soon; nobody waits for what it finds."""
        ticket.is_cancelled = True

    def close(self) -> None:
        """Let the thread end when it is done with what was not cancelled."""
        self._waiting.put((_END, next(self._came), None))

    def _work(self) -> None:
        while True:
            *_, ticket = self._waiting.get()
            if ticket is None:
                return
            try:
                if not ticket.is_cancelled:
                    ticket.found.extend(ticket.job.run(partial(getattr, ticket, "is_cancelled")))
            except AcceleratorError as error:
                _log.info("nothing was met on the accelerator: %s", error)
            except FAULTS:
                _log.warning("a look on the accelerator failed", exc_info=True)
            finally:
                ticket.is_over = True
