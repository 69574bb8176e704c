"""Methods "paper" and "released" as a search: the same interface as `search.Search`, with Algorithm 1 inside.

One network is trained by `two_stage.run`; each better instance it finds becomes a formula with the protected operators
it was trained on. A candidate is one sampled network instance.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.fitters.programs import expression_from_structure
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant
from gmeql.network.architecture import Architecture, as_architecture
from gmeql.paper import two_stage
from gmeql.search.config import SearchConfig
from gmeql.search.events import Member, Progress
from gmeql.search.polish.scoring import JudgedRows
from gmeql.search.offers.promotion import briefest

DEFAULT_ARCHITECTURE = "general"
CHUNK_STEPS = 250
"""Steps between two events: well under a second each on a laptop once compiled."""


class PaperSearch:
    """Algorithm 1 on one target, event by event.

    `config` gives the architecture and the budgets; without a budget the whole schedule of the preset runs. Every other
    number of the method is the preset's.
    """

    preset = "paper"
    sums: tuple[Member, ...] = ()
    """Sums of columns are no part of the method."""

    def __init__(
        self,
        X: NDArray[np.float64],
        y: NDArray[np.float64],
        *,
        sample_weight: NDArray[np.float64] | None = None,
        names: tuple[str, ...] = (),
        config: SearchConfig,
        seed: int = 0,
    ) -> None:
        if sample_weight is not None:
            raise ValueError('sample_weight is not part of the paper\'s loss; use method="fitted" for weighted rows')
        if config.functions is not None:
            raise ValueError(
                'functions is for method="fitted"; give the paper\'s method its layers as architecture=[...]'
            )
        self.X, self.y, self.names, self.config, self.seed = X, y, tuple(names), config, seed
        chosen = config.architecture if config.architecture is not None else DEFAULT_ARCHITECTURE
        self.architecture: Architecture = as_architecture(chosen, X.shape[1])
        self.settings = replace(two_stage.PRESETS[self.preset](), chunk_steps=CHUNK_STEPS)
        self.elapsed = 0.0
        self.step = 0
        self._trained: two_stage.RunState | None = None
        self._rows = JudgedRows.of(X, y, None, self.names)
        mean = Expression(Constant(float(np.mean(y))), self.names)
        self._found: dict[int, Member] = {}
        self._keep(mean)

    @property
    def front(self) -> tuple[Member, ...]:
        """Formulas found so far that nothing simpler beats, simplest first."""
        members: list[Member] = []
        for member in sorted(self._found.values(), key=lambda m: m.complexity):
            if not members or member.loss < members[-1].loss:
                members.append(member)
        return tuple(members)

    @property
    def candidates(self) -> int:
        return self.step * self.settings.samples_per_step

    def run(self) -> Iterator[Progress]:
        """Train until the schedule or the budget ends; an event after every chunk of steps."""
        start, before, first = time.perf_counter(), self.elapsed, self.candidates
        reason = self._ended()
        if reason:
            yield self._event(reason, 0.0)
            return
        events = two_stage.run(
            self.architecture, self.X, self.y, seeds=[self.seed], config=self.settings, state=self._trained
        )
        for event in events:
            self._trained = event.state
            self.step = event.step
            self.elapsed = before + time.perf_counter() - start
            self._keep_best(event.result)
            reason = self._ended()
            rate = (self.candidates - first) / max(self.elapsed - before, 1e-9)
            yield self._event(reason, rate)
            if reason:
                return

    def judge_again(self) -> None:
        """Nothing: unseen rows are no part of the method."""

    def finish(self, reason: str) -> Progress:
        """End the search between two chunks for a reason of the caller's."""
        return self._event(reason, 0.0)

    def _ended(self) -> str:
        if self.step >= self.settings.total_steps:
            return "schedule complete"
        if self.config.max_candidates is not None and self.candidates >= self.config.max_candidates:
            return "max_candidates"
        if self.config.max_time is not None and self.elapsed >= self.config.max_time:
            return "max_time"
        return ""

    def _event(self, reason: str, rate: float) -> Progress:
        front = self.front
        return Progress(
            elapsed=self.elapsed,
            candidates=self.candidates,
            rate=rate,
            islands=1,
            front=front,
            best=briefest(front, self._rows),
            done=bool(reason),
            reason=reason,
        )

    def _keep_best(self, result: two_stage.TwoStageResult) -> None:
        if not math.isfinite(float(result.loss[0])):
            return
        (expression,) = expression_from_structure(
            self.architecture,
            result.choices[0],
            np.asarray(result.weights[0], dtype=float),
            protected=True,
            names=self.names,
        )
        self._keep(expression)

    def _keep(self, expression: Expression) -> None:
        with np.errstate(all="ignore"):
            loss = float(np.sqrt(np.mean((expression(self.X) - self.y) ** 2)))
        complexity = expression.complexity
        known = self._found.get(complexity)
        if math.isfinite(loss) and (known is None or loss < known.loss):
            self._found[complexity] = Member(expression=expression, loss=loss, complexity=complexity)

    def state(self) -> dict[str, Any]:
        """Everything to go on from, as plain data and arrays."""
        return {
            "seed": self.seed,
            "names": list(self.names),
            "elapsed": self.elapsed,
            "step": self.step,
            "trained": None if self._trained is None else self._trained.to_arrays(),
            "found": [m.expression.to_dict() for m in self._found.values()],
        }

    @classmethod
    def from_state(
        cls,
        state: dict[str, Any],
        X: NDArray[np.float64],
        y: NDArray[np.float64],
        *,
        sample_weight: NDArray[np.float64] | None = None,
        config: SearchConfig,
    ) -> PaperSearch:
        """A search that goes on where `state` was taken, with the budgets of `config`."""
        names = tuple(state["names"])
        search = cls(X, y, sample_weight=sample_weight, names=names, config=config, seed=state["seed"])
        search.elapsed = float(state["elapsed"])
        search.step = int(state["step"])
        if state["trained"] is not None:
            search._trained = two_stage.RunState.from_arrays(state["trained"])
        for entry in state["found"]:
            search._keep(Expression.from_dict(entry))
        return search


class ReleasedSearch(PaperSearch):
    """Algorithm 1 with the settings of its authors' released code."""

    preset = "released"
