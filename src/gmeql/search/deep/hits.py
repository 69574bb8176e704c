"""What kernels of small formulas hit: room there for so many of each look, and what came of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.fitters.cuda.driver import Driver
from gmeql.search.deep.source import HIT, HITS


class Hits:
    """Room for `most` hits of each of `n` looks. Of more, those stay that came first, and these may be others the next time."""

    def __init__(self, driver: Driver, n: int, most: int) -> None:
        self._driver, self._n, self._most = driver, n, most
        self._hits, self._counts = driver.zeros(HIT.itemsize * most * n), driver.zeros(4 * n)
        record = np.zeros(1, HITS)
        record["hits"], record["counts"] = driver.pointer(self._hits), driver.pointer(self._counts)
        self.there: Any = driver.put(record)
        """What kernels are given."""

    def wait(self) -> None:
        """Until all that was launched is over."""
        self._driver.get(self._counts)

    def found(self) -> NDArray[np.void]:
        """All of them, look by look, once they are there."""
        counts = np.minimum(self._driver.get(self._counts).view(np.int32), self._most)
        every = self._driver.get(self._hits).view(HIT).reshape(self._n, self._most)
        return np.concatenate([every[look, :count] for look, count in enumerate(counts)])
