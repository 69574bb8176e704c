"""The time of a search: how much is spent, when the end begins, when it is over."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from gmeql.fitters.waiting import moment
from gmeql.search.config import ClockConfig, SearchConfig


@dataclass(frozen=True)
class Clock:
    """Moments of `waiting.moment` in one run: what is waited for kernels is no time of the search.

    From `closing` on the front is polished, from `judging` to `deadline` it is refitted and judged on all rows.
    """

    started: float
    closing: float = math.inf
    judging: float = math.inf
    deadline: float = math.inf
    symmetry_seconds: float = math.inf
    formula_seconds: float = math.inf
    is_interrupted: Callable[[], bool] = lambda: False
    """Whether what this clock was given to must stop, for another reason than time."""

    @classmethod
    def start(cls, config: SearchConfig, *, elapsed: float = 0.0, refitted_rows: int = 0) -> Clock:
        """A clock that starts now, with `elapsed` seconds spent in earlier runs of the same search.

        `refitted_rows` are the rows on which the front is refitted at the end, 0 where it is fitted on all already.
        """
        started = moment() - elapsed
        if config.max_time is None:
            return cls(started)
        budget, shares = config.max_time, config.clock
        polish = min(shares.polish_share * budget, shares.polish_seconds)
        deadline = started + budget
        judged = min(shares.judge_share * budget, shares.judge_seconds) + config.outlier_seconds
        judging = deadline - judged - min(shares.refit_share * budget, shares.seconds_per_row * refitted_rows)
        looks = shares.symmetry_share * budget, shares.formula_share * budget
        return cls(started, judging - polish, judging, deadline, *looks)

    @classmethod
    def unlimited(cls) -> Clock:
        """A clock that starts now and never ends."""
        return cls(moment())

    def closing_later(self, polishing: float, shares: ClockConfig) -> Clock | None:
        """A clock that keeps less for polishing, which took so many seconds, where that is worth it; None where not."""
        closing = self.judging - shares.polish_again * polishing
        if not closing - moment() > shares.worth_seconds:
            return None
        return replace(self, closing=closing)

    def elapsed(self) -> float:
        """Seconds spent so far."""
        return moment() - self.started

    def is_closing(self) -> bool:
        """Whether the search must stop drawing, so that time is left for polishing the front."""
        return moment() >= self.closing or self.is_interrupted()

    def is_time_to_judge(self) -> bool:
        """Whether polishing must stop, so that time is left for judging the front on all rows."""
        return moment() >= self.judging

    def is_nearly_time_to_judge(self, seconds: float) -> bool:
        """Whether it is so in a few seconds."""
        return moment() >= self.judging - seconds

    def is_late(self) -> bool:
        """Whether all time is spent."""
        return moment() >= self.deadline

    def will_be_late(self, seconds: float) -> bool:
        """Whether something that takes so many seconds would end when all time is spent."""
        return moment() + seconds >= self.deadline

    def symmetry_limit(self) -> Callable[[], bool]:
        """Says, from now on, whether the share of time for finding symmetries is spent."""
        return self._limit(self.symmetry_seconds)

    def formula_limit(self) -> Callable[[], bool]:
        """The same for symmetries of formulas."""
        return self._limit(self.formula_seconds)

    def _limit(self, seconds: float) -> Callable[[], bool]:
        limit = moment() + seconds
        return lambda: moment() > limit or self.is_interrupted()
