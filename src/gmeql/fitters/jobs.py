"""What a search asks an engine to fit: batches of candidates, each to data of its own."""

from __future__ import annotations

from typing import Any, NamedTuple

from gmeql.fitters.kernel.arrays import FitData


class FitJob(NamedTuple):
    """Candidates of one island, fitted in place."""

    batch: Any
    """Has the arrays of `gmeql.search.islands.candidates.Candidates`."""
    data: FitData
    hopeless: float
    """The loss that a candidate must come near to be worth more steps."""
