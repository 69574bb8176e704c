"""What every search has in common: it is made of a table or of a state, and shows its figures while it runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Self

from gmeql.fitters.waiting import COMPILING
from gmeql.formula.expression import Expression
from gmeql.search.config import SearchConfig
from gmeql.search.losses.effective import InputErrors
from gmeql.search.events import Member, Progress
from gmeql.search.groups.table import Grouping, OwnConstants
from gmeql.search.front.plain_sums import judged_sums
from gmeql.search.offers.promotion import look_out
from gmeql.search.data.rows import FloatArray, SearchRows
from gmeql.search.state import SearchState


class RunningSearch(ABC):
    """A search over one target. `run` yields progress; between events `state` is complete and resumable."""

    _state: SearchState

    def __init__(
        self,
        X: FloatArray,
        y: FloatArray,
        *,
        sample_weight: FloatArray | None = None,
        names: tuple[str, ...] | None = None,
        config: SearchConfig | None = None,
        seed: int = 0,
        groups: Grouping | None = None,
        errors: InputErrors | None = None,
    ) -> None:
        config, seed = config or SearchConfig(), int(seed)
        known: dict[str, Any] = {"sample_weight": sample_weight, "groups": groups, "errors": errors}
        rows = SearchRows.of(X, y, names=names, config=config, seed=seed, **known)
        self._begin(SearchState.new(rows, seed))

    @classmethod
    def from_state(cls, state: Mapping[str, Any], X: FloatArray, y: FloatArray, **given: Any) -> Self:
        """The search as it was when `state` was taken; `given` are `sample_weight`, `groups`, `errors` as they were, and
        `config`, which may give it a new budget: it goes on."""
        search = cls.__new__(cls)
        search._begin(replace(SearchState.from_dict(state, X, y, **given), reason=""))
        return search

    @abstractmethod
    def _begin(self, state: SearchState) -> None:
        """Stand where `state` says. Time is not limited before `run` starts the clock."""

    @abstractmethod
    def run(self) -> Iterator[Progress]:
        """Search until the end; events on the way. Closing the iterator is a clean stop."""

    @abstractmethod
    def finish(self, reason: str) -> Progress:
        """End the search between two events for a reason of the caller's, as a budget's end would."""

    def judge_again(self) -> None:
        """Judge the front of a search that had ended when its state was taken: what it promises is no part of the state."""
        self._state.rows = self._state.rows.whole()
        self._judge()

    def _judge(self) -> None:
        """Tell of every member of the front what it promises on unseen rows, as at the end of a search."""
        look_out(self._state)

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Everything needed to go on: plain scalars, lists and arrays."""

    @property
    def config(self) -> SearchConfig:
        """What the search goes by."""
        return self._state.config

    @property
    def sums(self) -> tuple[Member, ...]:
        """Sums of columns beside the front of a search that has ended, judged like its members (`front/plain_sums.py`)."""
        return judged_sums(self.front, self._state.rows)

    @property
    def aside(self) -> tuple[Expression, ...]:
        """Formulas that were found without rows far from all others, the best first; empty where there are none."""
        return tuple(Expression(root, self._state.rows.names) for root in self._state.aside)

    @property
    def outliers_asked(self) -> bool:
        """Whether it was asked if there are such rows."""
        return self._state.outliers_asked

    @outliers_asked.setter
    def outliers_asked(self, asked: bool) -> None:
        self._state.outliers_asked = asked

    @property
    def candidates(self) -> int:
        """Candidates drawn and fitted so far."""
        return self._state.candidates

    @property
    def elapsed(self) -> float:
        """Seconds spent in `run` so far."""
        return self._state.elapsed

    @property
    def reason(self) -> str:
        """Why the search ended; empty while it has not."""
        return self._state.reason

    @property
    def front(self) -> tuple[Member, ...]:
        """Formulas from simple to accurate: each more complex one fits better."""
        return self._state.leaderboard.front(self._state.rows)

    @property
    def own_constants(self) -> OwnConstants | None:
        """Constants of each group's own that formulas of the front have; None where the rows have no groups."""
        return self._state.leaderboard.own_constants(self._state.rows)

    def progress(self) -> Progress:
        """Where the search stands, with a note while its islands wait for their kernels."""
        progress = self._state.progress()
        if progress.candidates or progress.done:
            return progress
        from gmeql.fitters.compiled import are_coming

        return replace(progress, note=COMPILING) if are_coming() else progress
