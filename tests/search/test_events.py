"""What a search reports: one meaning of the best member, a text for every reason."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from searches import SMALL, parabola, run, waves

from gmeql.search.config import SearchConfig
from gmeql.search.events import REASONS, Member
from gmeql.search.polish.scoring import JudgedRows, unseen_length
from gmeql.search.search import Search
from gmeql.search.judging.soundness import left_out_squares


def test_the_best_member_describes_the_data_most_briefly() -> None:
    X, y = waves()
    rows = JudgedRows.of(X, y, None, ("x1", "x2"))
    shorter_than_the_last = False

    def unseen(member: Member) -> float:
        return float(left_out_squares(member.expression.root, X, y, rows.weights).mean())

    for progress in Search(X, y, config=SearchConfig(max_candidates=4000, **SMALL)).run():
        lengths = [unseen_length(m.expression.root, unseen(m), rows) for m in progress.front]
        assert progress.best is progress.front[int(np.argmin(lengths))]
        shorter_than_the_last |= progress.best is not progress.front[-1]
    assert shorter_than_the_last  # on noisy data the two differ


def test_progress_counts() -> None:
    X, y = waves()
    events = list(Search(X, y, config=SearchConfig(max_candidates=1500, **SMALL)).run())
    assert [event.done for event in events] == [False] * (len(events) - 1) + [True]
    assert all(a.candidates < b.candidates for a, b in pairwise(events))
    assert all(event.rate == event.candidates / event.elapsed for event in events)


def test_reasons_have_a_text() -> None:
    assert run(Search(*parabola(), config=SearchConfig(max_candidates=50_000, **SMALL))).reason == "exact"
    assert all(text and name for name, text in REASONS.items())
