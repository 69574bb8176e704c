"""Stages of islands shared out to accelerators: where each steps, when the host looks, when it is enough."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np

from gmeql.search.accelerator.stage import Card, Stage
from gmeql.search.islands.island import Island
from gmeql.search.islands.steps import StepTask

LOOK_STEPS = 4
"""Steps between two looks at the islands' best losses, at most; the first look comes after one, the next after two."""
LOOK_CANDIDATES = 1 << 17
"""Candidates between two looks, unless one step draws more: what is found, and what is over, shall not wait long."""
Settled = tuple[Stage, list[int], list[int]]
Enough = Callable[[np.ndarray, int], bool]


def _settled_on(cards: Sequence[Card], islands: Sequence[Island], tasks: Sequence[StepTask]) -> list[Settled]:
    """Stages that hold the islands; of each the islands' rows there, and their places among the given ones.

    Islands that are on cards stay there; else all are shared out anew.
    """
    held = [card.stage for card in cards if card.stage is not None]
    home = [
        next((stage for stage in held if stage.holds(island, task)), None)
        for island, task in zip(islands, tasks, strict=True)
    ]
    if all(stage is not None for stage in home):
        settled = []
        for stage in held:
            places = [place for place, its in enumerate(home) if its is stage]
            if places:
                rows = [stage.row[id(islands[place])] for place in places]
                stage.keep(rows)
                settled.append((stage, rows, places))
        return settled
    settled = []
    for start, card in enumerate(cards):
        card.stage = None  # its memory first
        places = list(range(start, len(islands), len(cards)))
        if places:
            card.stage = Stage(card, [islands[place] for place in places], [tasks[place] for place in places])
            settled.append((card.stage, list(range(len(places))), places))
    return settled


def _take_steps(settled: Sequence[Settled], best: np.ndarray, *, goal_age: int, enough: Enough) -> int:
    """Steps of all stages until every island has reached an age or is finished, or `enough` says so; candidates drawn."""
    most = max(1, min(LOOK_STEPS, LOOK_CANDIDATES // max((stage.n for stage, _, _ in settled), default=1)))
    steps = next_steps = 1  # something to show soon
    while True:
        for _ in range(steps):
            for stage, _, _ in settled:
                stage.take_step()
        next_steps = min(2 * next_steps, most)
        steps, active, drawn = next_steps, False, 0
        for stage, rows, places in settled:
            records = stage.look()[rows]
            best[places] = records["best"]
            drawn += int(records["n_drawn_in_all"].sum())
            young = records["age"][(records["age"] < goal_age) & (records["is_finished"] == 0)]
            active = active or len(young) > 0
            steps = min(steps, goal_age - int(young.max(initial=0))) if len(young) else steps
        if not active or enough(best, drawn):
            return drawn


def _fetch(settled: Sequence[Settled], leading: Collection[int] | None = None) -> None:
    """Let the islands be what they have become; of those that are closed only the `leading` ones whole, where some are."""
    for stage, rows, places in settled:
        are_closed = stage.look()["is_finished"] != 0  # what is settled may gain, and look open
        stage.settle()
        if leading is None:
            stage.fetch(rows)
            continue
        whole = {row for row, place in zip(rows, places, strict=True) if not are_closed[row] or place in leading}
        stage.fetch(rows, whole)
        for row in whole:
            stage.islands[row].exhausted |= bool(are_closed[row])


def advance(
    cards: Sequence[Card],
    islands: Sequence[Island],
    tasks: Sequence[StepTask],
    *,
    goal_age: int,
    enough: Enough,
) -> int:
    """Steps of all islands until they reach an age, are finished, or `enough` says so; returns candidates drawn.

    `enough` is asked after each look with the islands' best losses and the candidates drawn so far. Islands are shared
    out to the cards.
    """
    settled = _settled_on(cards, islands, tasks)
    drawn = _take_steps(settled, np.array([island.best for island in islands]), goal_age=goal_age, enough=enough)
    _fetch(settled)
    return drawn


class Generation:
    """Islands that step until the last of some ages by a thread of their own, while the host does something else.

    At every age but the last the worse half is closed, by the best losses in the target's own units. The islands here
    change when it is fetched: those that go on, and `n_whole` of the best, bring all their elites home, the others their
    best one alone.
    """

    def __init__(
        self,
        cards: Sequence[Card],
        islands: Sequence[Island],
        tasks: Sequence[StepTask],
        *,
        ages: Sequence[int],
        units: np.ndarray,
        enough: Enough,
        n_whole: int | None = None,
    ) -> None:
        self.has_enough = False
        """Whether `enough` was said."""
        self.drawn = 0
        self.n_open = len(islands)
        """Islands that no competition has closed."""
        self._is_stopped = False
        self._ages, self._units, self._enough, self._n_whole = ages, units, enough, n_whole
        self._best = np.array([island.best for island in islands])
        self._settled = _settled_on(cards, islands, tasks)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="gmeql-accelerator")
        self.steps = self._pool.submit(self._run)
        """Done when it has ended."""

    def _run(self) -> None:
        for age in self._ages:
            self.drawn = _take_steps(self._settled, self._best, goal_age=age, enough=self._asked)
            if self.has_enough or self._is_stopped:
                return
            if age != self._ages[-1]:
                self._close_worse_half()

    def _asked(self, best: np.ndarray, drawn: int) -> bool:
        self.drawn = drawn
        self.has_enough = self._enough(best, drawn)
        return self.has_enough or self._is_stopped

    def _close_worse_half(self) -> None:
        open_at = [stage.look()["is_finished"][rows] == 0 for stage, rows, _ in self._settled]
        places = np.concatenate([np.array(its)[is_open] for (_, _, its), is_open in zip(self._settled, open_at)])
        losses = self._best[places] * self._units[places]
        self.n_open = (len(places) + 1) // 2
        closed = set(places[np.argsort(losses, kind="stable")[self.n_open :]].tolist())
        for stage, rows, its in self._settled:
            stage.close([row for row, place in zip(rows, its, strict=True) if place in closed])

    @property
    def lowest(self) -> float:
        """Loss of the best island in the target's own units."""
        return float((self._best * self._units).min())

    def is_over(self, seconds: float = 0.0) -> bool:
        """Whether it has ended, after waiting for that so many seconds at most."""
        return self.steps.done() or (seconds > 0 and bool(wait([self.steps], seconds).done))

    def ask_to_stop(self) -> None:
        """Let it end after the steps under way; nobody waits for that."""
        self._is_stopped = True

    def stop(self) -> None:
        """Let it end after the steps under way."""
        self.ask_to_stop()
        wait([self.steps])
        self._pool.shutdown()

    def leave(self) -> int:
        """Let it end where nobody asks what the islands have become: they are as they set out. Candidates drawn."""
        self.stop()
        for stage, _, _ in self._settled:
            stage.card.stage = None
        return self.drawn

    def fetch(self) -> int:
        """Let the islands be what they have become; candidates drawn."""
        self.stop()
        self.steps.result()
        leading = None
        if self._n_whole is not None:
            leading = set(np.argsort(self._best * self._units, kind="stable")[: self._n_whole].tolist())
        _fetch(self._settled, leading)
        return self.drawn
