"""What is seen in one group is cut to shape there, and fitted to all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.search.clock import Clock
from gmeql.search.config import SearchConfig
from gmeql.search.groups.table import Grouping
from gmeql.search.offers.seeing import look_at_once
from gmeql.search.search import Search
from gmeql.search.stopping import has_exact_formula
from thinned import thinned


@pytest.mark.parametrize(
    ("law", "said"),
    [
        (lambda t, k: 2 * t**2 + k, "2*t**2 + k"),
        (lambda t, k: (t + k) / (1 + t**2), "(t + k)/(t**2 + 1)"),
        (lambda t, k: 3 * t / (t + k + 6), "3*t/(t + k)"),
    ],
)
@pytest.mark.parametrize("n_rows", thinned([60, 72, 90], quick=(1, 2)))
def test_a_short_law_is_seen_as_one(law: Callable[..., np.ndarray], said: str, n_rows: int) -> None:
    """`1.3e-15*(t**3*k1 + t**2*k2 + t*k3 + k4)/(t*k5 + k6)` was seen of the first: exact, and the end of the search."""
    codes = np.arange(n_rows) % 3
    t = 1 + np.arange(n_rows) * 4.5 / n_rows
    y = law(t, np.array([-5.0, 0.0, 5.0])[codes])
    config = SearchConfig(max_candidates=300, n_jobs=1)
    seen = Search(t[:, None], y, names=("t",), config=config, groups=Grouping.of(codes.tolist()))._state
    look_at_once(seen, Clock.unlimited())
    best = seen.leaderboard.best
    assert has_exact_formula(seen) and best.own is not None
    assert str(Expression(best.root, ("t", "k"))) == said
