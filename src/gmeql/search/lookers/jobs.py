"""What a search asks another process to look for. A job goes there whole, and what it yields comes back one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gmeql.formula.nodes import Node
from gmeql.network.families import FunctionSet
from gmeql.search.direct.methods import ask
from gmeql.search.direct.table import DirectTable, Effort, worked
from gmeql.search.symmetries.formulas import views_of_formula
from gmeql.search.symmetries.noisy import smaller_tables
from gmeql.search.symmetries.views import View


class Job(Protocol):
    """Something to look for. It ends soon once it `is_cancelled`."""

    def run(self, is_cancelled: Callable[[], bool]) -> Iterator[Any]: ...


@dataclass(frozen=True)
class DirectLook:
    """One direct method looks at one table, for some seconds of the processor, and `more` where it is on a trail."""

    name: str
    table: DirectTable
    functions: FunctionSet
    seconds: float
    more: float
    seed: tuple[int, int]

    def run(self, is_cancelled: Callable[[], bool]) -> Iterator[Node]:
        """Formulas over the table's columns, the most promising first."""
        kept = [self.more]

        def worth(seconds: float) -> Effort:
            return Effort.timed(seconds, until=worked() + seconds, is_interrupted=is_cancelled, more=take)

        def take() -> Effort | None:
            return worth(kept.pop()) if kept and kept[0] > 0 else None

        effort, rng = worth(self.seconds), np.random.default_rng(self.seed)
        yield from ask(self.name, self.table, functions=self.functions, effort=effort, rng=rng)


@dataclass(frozen=True)
class SymmetryLook:
    """Which smaller tables tell as much as the columns X [N, V] about y [N], beginning with each of `starts`."""

    X: np.ndarray
    y: np.ndarray
    starts: tuple[View, ...]
    seconds: float

    def run(self, is_cancelled: Callable[[], bool]) -> Iterator[list[View]]:
        """All of them at once, the smallest first."""
        effort = Effort.timed(self.seconds, until=worked() + self.seconds, is_interrupted=is_cancelled)
        yield [
            view for start in self.starts for view in smaller_tables(self.X, self.y, effort.out_of_time, start=start)
        ]


@dataclass(frozen=True)
class FormulaLook:
    """Which smaller tables these formulas would fit in, the smallest of each formula and slack."""

    roots: Sequence[Node]
    X: np.ndarray
    slacks: Sequence[float]

    def run(self, is_cancelled: Callable[[], bool]) -> Iterator[list[View]]:
        """All of them at once, those of the first formula first."""
        found: dict[View, None] = {}
        for root in self.roots:
            for slack in self.slacks:
                if not is_cancelled():
                    found |= dict.fromkeys(views_of_formula(root, self.X, slack=slack)[:1])
        yield list(found)
