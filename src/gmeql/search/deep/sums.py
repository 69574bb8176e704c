"""Sums of two small formulas with any factors: `middle/two_terms.py` once more, with a table of millions (`sums.cu`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Node
from gmeql.search.deep.formulas import DeepFormulas
from gmeql.search.deep.hits import Hits
from gmeql.search.deep.source import COST_AT, SUM, TABLE
from gmeql.search.direct.middle.meeting import MEETING, Target, simplest
from gmeql.search.direct.middle.two_terms import Term, fitted
from gmeql.search.direct.table import DirectTable, FloatArray

AT_A_TIME = 6
"""Targets between two moments at which it is asked whether anybody still waits."""
Codes = NDArray[np.uint64]


def paired(
    small: DeepFormulas, targets: FloatArray, most: int, goes_on: Callable[[], bool] = lambda: True
) -> tuple[NDArray[np.int64], Codes]:
    """Numbers of the targets [H] and codes [H, 2] of formulas whose sum each may be, the simplest first.

    `targets` [T, R] on the few rows; for each at `most` so many are found.
    """
    driver, n = small.driver, len(targets)
    deviations = targets - targets.mean(axis=1, keepdims=True)
    lengths = np.maximum(np.linalg.norm(deviations, axis=1, keepdims=True), np.finfo(float).tiny)
    along = driver.put(deviations / lengths)
    hits, (table, mask) = Hits(driver, n, most), small.spare_table()
    records = np.zeros(n, SUM)
    records["n"], records["most"], records["number"] = small.n_slots, most, np.arange(n)
    records["along"] = driver.pointer(along) + np.arange(n) * targets[0].nbytes
    records["table"] = np.array([(driver.pointer(table), mask)], TABLE)
    sent = driver.put(records.view(np.uint8))
    for number in range(n):
        if number % AT_A_TIME == AT_A_TIME - 1:
            hits.wait()
            if not goes_on():
                break
        driver.fill(table, None)
        one = sent[SUM.itemsize * number : SUM.itemsize * (number + 1)]
        small.launch("sums", small.n_slots, (one, hits.there))
    found = hits.found()
    codes = np.sort(np.stack([found["code"], found["other"]], axis=1), axis=1)
    order = np.lexsort([codes[:, 0], codes[:, 1], found["look"], (codes >> np.uint64(COST_AT)).sum(axis=1)])
    return found["look"][order].astype(np.int64), codes[order]


def summed(
    small: DeepFormulas,
    numbers: NDArray[np.int64],
    codes: Codes,
    table: DirectTable,
    targets: Sequence[Target],
    goes_on: Callable[[], bool] = lambda: True,
) -> Iterator[Node]:
    """Those that hold on all rows, with their constants; the simplest of them, those that hold to rounding first."""

    def of_pairs() -> Iterator[tuple[Target, Node, float]]:
        for number, pair in zip(numbers[: MEETING.verified].tolist(), codes.tolist(), strict=False):
            if not goes_on():
                return
            terms = [Term(small.tree_of_code(code)) for code in pair]
            yield targets[number], *fitted(terms, table, targets[number].values)

    yield from simplest(of_pairs())
