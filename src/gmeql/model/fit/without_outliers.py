"""A part of the search that leaves out rows far from all others.

One gross error in sixty rows hides a law from squared errors: a formula that follows that row a little fits better than the
law does. So once a part of the budget is spent it is asked whether rows lie far off (`outliers.py`), each by itself and further
than any tail of errors reaches. If so, a search of its own works on the other rows for a part of the budget. What it finds is
offered to the search of all rows, which then goes on; so nothing is lost if the law explains those rows after all. In the end
the formula that outliers do not move is chosen among these too (`unmoved.py`).

If no row lies so far off, only the question costs time. With a candidate budget everything depends on the seed alone.

Legend: `N` rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Node
from gmeql.model.choice.unmoved import is_asked
from gmeql.model.fit.preparation import PreparedData
from gmeql.model.pareto.front import Front
from gmeql.model.rows.far_rows import rows_far_away
from gmeql.model.rows.outliers import Outliers
from gmeql.search.config import SearchConfig
from gmeql.search.events import Progress


@dataclass(frozen=True)
class WithoutConfig:
    """When outliers are asked for, and what a search without them may take."""

    asked_at: float = 0.12
    """Share of the budget after which they are asked for: by then the front tells what most rows follow, and few formulas have a
    pole at a row far off."""
    share: float = 0.3
    """Share of the budget for a search without them."""
    handed_on: int = 8
    """Formulas of it that are kept."""


WITHOUT = WithoutConfig()


class DividedSearch:
    """A search of all rows, a part of which leaves outliers out. To others it is the search of all rows."""

    def __init__(self, search: Any, data: PreparedData, config: SearchConfig, seed: int) -> None:
        self._search = search
        self._data = data
        self._config = config
        self._seed = seed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._search, name)

    def run(self) -> Iterator[Progress]:
        """Events of the search of all rows; while the other one goes on, what the first had found until then."""
        events = self._search.run()
        try:
            while True:
                if self._is_due():
                    kept = self._kept()
                    if kept is not None:
                        events.close()  # its workers and accelerators are the other's meanwhile
                        yield from self._run_without(kept)
                        state, data = self._search.state(), self._data
                        searcher = type(self._search)
                        self._search = searcher.from_state(
                            state, data.X, data.y, config=self._config, **data.row_options
                        )
                        events = self._search.run()
                    self._search.outliers_asked = True
                event = next(events, None)
                if event is None:
                    return
                yield event
        finally:
            events.close()

    def _is_due(self) -> bool:
        search, config = self._search, self._config
        if search.outliers_asked or search.reason:
            return False
        limits = (search.candidates, config.max_candidates), (search.elapsed, config.max_time)
        return any(limit is not None and spent >= WITHOUT.asked_at * limit for spent, limit in limits)

    def _kept(self) -> NDArray[np.bool_] | None:
        """Which rows [N] are no outliers; None where none is one. Most tables are done with after a glance at one formula."""
        X, y, weight = self._data.as_given
        if not is_asked(X, y):
            return None
        weights = np.ones(len(y)) if weight is None else weight / weight.mean()
        progress = self._data.restore_progress(self._search.progress())
        best = progress.best.expression
        formulas = dict.fromkeys([best, *(member.expression for member in progress.front)])
        found = Outliers(X, y, weights, tuple(formulas), best.names)
        with np.errstate(all="ignore"):
            residuals = (y - best(X)) * np.sqrt(weights)
        if not np.isfinite(residuals).all() or not (rows_far_away(residuals).any() or found.behind(residuals)):
            return None
        return found.seen_at_once

    def _run_without(self, kept: NDArray[np.bool_]) -> Iterator[Progress]:
        """A search of the rows `kept` [N]; the other one is told what it found, and what it took, however it ends."""
        first, data, config = self._search, self._data, self._config
        budget: dict[str, Any] = {}
        if config.max_time is not None:
            budget["max_time"] = WITHOUT.share * config.max_time
        if config.max_candidates is not None:
            budget["max_candidates"] = math.ceil(WITHOUT.share * config.max_candidates)
        weight = None if data.weight is None else data.weight[kept] / data.weight[kept].mean()
        second = type(first)(
            data.X[kept],
            data.y[kept],
            sample_weight=weight,
            names=data.names,
            config=replace(config, **budget),
            seed=self._seed,
        )
        shown, events = first.progress(), second.run()
        try:
            for event in events:
                spent = {"candidates": shown.candidates + event.candidates, "elapsed": shown.elapsed + event.elapsed}
                yield replace(shown, **spent)
        finally:
            events.close()
            found = _best_first(second, kept, data)
            first.take_in(found, candidates=second.candidates, seconds=second.elapsed)


def _best_first(second: Any, kept: NDArray[np.bool_], data: PreparedData) -> list[Node]:
    """Formulas of a search without outliers, the one that would be chosen first."""
    target = data.y[kept]
    front = Front.from_members(
        second.front,
        rows=float(kept.sum()),
        target_spread=float(target.std()),
        target_largest=float(np.abs(target).max()),
    )
    best = front.select("best")
    others = sorted((m for m in front if m is not best and m.expression.variables), key=front.description_length)
    return [member.expression.root for member in (best, *others)[: WITHOUT.handed_on] if member.expression.variables]
