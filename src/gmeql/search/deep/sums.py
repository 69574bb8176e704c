"""Sums and fractions of two small formulas: `middle/two_terms.py` once more, with a table of millions (`sums.cu`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Node
from gmeql.search.deep.formulas import DeepFormulas
from gmeql.search.deep.hits import Hits
from gmeql.search.deep.source import BELOW, COST_AT, SIDE_MASK, SUM, TABLE
from gmeql.search.direct.middle.meeting import MEETING, Target, few_rows, simplest
from gmeql.search.direct.middle.remainders import directions
from gmeql.search.direct.middle.two_terms import Pass, Term, formula_of
from gmeql.search.direct.table import DirectTable

AT_A_TIME = 6
"""Passes between two moments at which it is asked whether anybody still waits."""
Codes = NDArray[np.uint64]


def paired(
    small: DeepFormulas,
    passes: Sequence[Pass],
    table: DirectTable,
    most: int,
    goes_on: Callable[[], bool] = lambda: True,
) -> tuple[NDArray[np.int64], Codes]:
    """Numbers of the passes [H] and codes [H, 2] of formulas that may be the two terms on the few rows, the simplest first.

    For each pass at `most` so many are found.
    """
    driver, rows = small.driver, few_rows(table.y)
    targets = np.array([one.target.values[rows] for one in passes])
    along = {
        number: its
        for number, (one, target) in enumerate(zip(passes, targets, strict=True))
        if (its := directions(target, [table.values(term.root)[rows] for term in one.beside])) is not None
    }
    there = {number: driver.put(its) for number, its in along.items()}
    sent, hits, (room, mask) = driver.put(targets), Hits(driver, len(passes), most), small.spare_table()
    records = np.zeros(len(passes), SUM)
    for number, its in along.items():
        record, one = records[number], passes[number]
        record["n_forms"], record["number"], record["most"] = small.n_slots, number, most
        record["n"] = small.n_slots + one.with_fractions * len(small)
        record["along"], record["n_along"] = driver.pointer(there[number]), len(its)
        record["target"] = driver.pointer(sent) + number * targets[0].nbytes
        record["of_logarithms"] = one.of_logarithms
    records["table"] = np.array([(driver.pointer(room), mask)], TABLE)
    all_sent = driver.put(records.view(np.uint8))
    for place, number in enumerate(along):
        if place % AT_A_TIME == AT_A_TIME - 1:
            hits.wait()
            if not goes_on():
                break
        driver.fill(room, None)
        one_sent = all_sent[SUM.itemsize * number : SUM.itemsize * (number + 1)]
        small.launch("sums", int(records["n"][number]), (one_sent, hits.there))
    found = hits.found()
    codes = np.sort(np.stack([found["code"], found["other"]], axis=1), axis=1)
    order = np.lexsort([codes[:, 0], codes[:, 1], found["look"], costs_of(small, codes).sum(axis=1)])
    return found["look"][order].astype(np.int64), codes[order]


def costs_of(small: DeepFormulas, codes: Codes) -> NDArray[np.int64]:
    """Costs of the formulas of some codes."""
    are_below = codes >= BELOW
    kept = small.costs()[np.where(are_below, codes & np.uint64(SIDE_MASK), np.uint64(0)).astype(np.int64)]
    return np.where(are_below, kept, (codes >> np.uint64(COST_AT)).astype(np.int64))


def term_of(small: DeepFormulas, code: int) -> Term:
    """What a code stands for."""
    return Term(small.tree_of_code(code & ~BELOW), is_below=code >= BELOW)


def summed(
    small: DeepFormulas,
    numbers: NDArray[np.int64],
    codes: Codes,
    table: DirectTable,
    passes: Sequence[Pass],
    goes_on: Callable[[], bool] = lambda: True,
) -> Iterator[Node]:
    """Those that hold on all rows, with their constants; the simplest of them, those that hold to rounding first."""

    def of_pairs() -> Iterator[tuple[Target, Node, float]]:
        for number, pair in zip(numbers[: MEETING.verified].tolist(), codes.tolist(), strict=False):
            if not goes_on():
                return
            yield formula_of(passes[number], [term_of(small, code) for code in pair], table)

    yield from simplest(of_pairs())
