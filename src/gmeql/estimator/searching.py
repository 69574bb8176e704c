"""From checked rows to fronts: the searches of an estimator, by its parameters."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from gmeql.estimator.groups import Groups
from gmeql.knowledge.knowledge import Knowledge, read_knowledge
from gmeql.model.files.checkpoint import data_hash
from gmeql.model.fit.inputs import TrainingRows, column_names
from gmeql.model.fit.methods import METHODS
from gmeql.model.fit.parameters import KNOWLEDGE_PARAMETERS
from gmeql.model.fit.ranges import column_ranges
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.model.targets import one_or_list
from gmeql.search.groups.table import OwnConstants

if TYPE_CHECKING:
    from gmeql.model.fit.fitting import RunResult
    from gmeql.search.config import SearchConfig
    from gmeql.search.events import Progress

MOST_SUMMED = 100
"""Columns of the sum of all of them with factors drawn towards 0 at most, where `max_complexity` is not given: of many that each
say a little none can be left out."""


class Searching(Groups):
    """An estimator whose fronts come from one search for each target."""

    method: str
    functions: Sequence[str] | None
    architecture: Any
    max_time: float | None
    max_candidates: int | None
    max_complexity: int | None
    loss: str | Callable[[Any, Any], Any]
    model_selection: str | Callable[[Front], int | FrontMember]
    n_jobs: int | None
    device: str
    random_state: Any
    verbose: int
    warm_start: bool
    checkpoint: str | os.PathLike[str] | None
    checkpoint_interval: float
    callbacks: Callable[[Progress], Any] | Sequence[Callable[[Progress], Any]] | None
    units: Mapping[str, Any] | Sequence[Any] | None
    target_units: Any
    constant_units: Any
    unit_check: str
    template: str | None
    constants: Mapping[str, Any] | None
    guesses: Sequence[str] | None
    constraints: Sequence[Any] | None

    def _search(self, rows: TrainingRows) -> list[RunResult]:
        from gmeql.model.fit.kernels import begin_to_compile

        if METHODS[self.method].compiled:
            begin_to_compile()  # beside all that is imported now
        from gmeql.model.fit.fitting import search_targets

        names = column_names(self)
        known = (rows.X, rows.targets, rows.weight, names, rows.groups, rows.errors)
        data = data_hash(*known) if self.warm_start else ""
        earlier: list[RunResult] | None = None
        if self.warm_start and getattr(self, "_warm_data", None) == data:
            earlier = self._warm
        knowledge = self._knowledge(names, rows.targets.shape[1])
        if rows.groups is not None and self.method == "fitted" and getattr(self, "constants", None):
            raise ValueError(
                "constants= gives bounds, which cannot be kept in every group yet; leave them out with groups"
            )
        results = search_targets(
            rows,
            names,
            method=self.method,
            config=self._config(),
            knowledge=knowledge,
            seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
            callbacks=self._callbacks(),
            verbose=self.verbose,
            checkpoint=None if self.checkpoint is None else Path(self.checkpoint),
            checkpoint_seconds=self.checkpoint_interval,
            earlier=earlier,
            keep_states=self.warm_start,
            titles=self._titles(rows.targets.shape[1]),
        )
        if self.warm_start:
            self._warm_data: str = data
            self._warm: list[RunResult] = results
        return results

    def _titles(self, count: int) -> list[str] | None:
        """What stands above each of several searches, where somebody named their targets."""
        names = self._called()
        if names is None or count == 1:
            return None
        return [f"{name} ({j + 1} of {count})" for j, name in enumerate(names)]

    def _called(self) -> Sequence[str] | None:
        """What the targets are called, where somebody named them."""
        return getattr(self, "target_names_", None)

    def _config(self) -> SearchConfig:
        from gmeql.search.config import SearchConfig

        return SearchConfig(
            functions=None if self.functions is None else tuple(self.functions),
            architecture=self.architecture,
            max_time=self.max_time,
            max_candidates=self.max_candidates,
            loss=self.loss,
            n_jobs=self.n_jobs,
            device=self.device,
            max_complexity=SearchConfig.max_complexity if self.max_complexity is None else self.max_complexity,
            most_summed=MOST_SUMMED if self.max_complexity is None else None,
        )

    def _knowledge(self, names: Sequence[str], n_targets: int) -> list[Knowledge | None]:
        """What the parameters say about each target."""
        given = {name: getattr(self, name) for name in KNOWLEDGE_PARAMETERS}
        return read_knowledge(names, n_targets=n_targets, **given)

    def _callbacks(self) -> list[Callable[[Progress], Any]]:
        if self.callbacks is None:
            return []
        return [self.callbacks] if callable(self.callbacks) else list(self.callbacks)

    def _learn(self, rows: TrainingRows, target_columns: int | None) -> TrainingRows:
        """Search for formulas of checked rows, keep them and choose; returns the rows that the search saw."""
        searched, held_out = rows.split() if self.model_selection == "validation" else (rows, None)
        self._keep_results(self._search(searched), held_out, target_columns)
        self.feature_ranges_ = column_ranges(rows.X)
        return searched

    def _keep_results(
        self, results: list[RunResult], held_out: TrainingRows | None, target_columns: int | None
    ) -> None:
        selected = []
        for j, result in enumerate(results):
            judged: dict[str, Any] = {}
            if held_out is not None:
                judged = _judging_rows(held_out, j, result.own)
            selected.append(result.front.select(self.model_selection, **judged).index)
        self._target_columns = target_columns
        self.candidates_ = sum(r.candidates for r in results)
        self.seconds_ = float(sum(r.seconds for r in results))
        self.stop_reason_ = one_or_list([r.reason for r in results])
        self.history_ = one_or_list([r.history.to_arrays() for r in results])
        if any(r.own is not None for r in results):
            self.group_constants_ = one_or_list([r.own for r in results])
        elif hasattr(self, "group_constants_"):
            del self.group_constants_  # of an earlier fit
        self._keep_fronts([r.front for r in results], selected)


def _judging_rows(rows: TrainingRows, target: int, own: OwnConstants | None) -> dict[str, Any]:
    """Rows kept from the search as `Front.select` takes them; those of groups that the search never saw are left out."""
    if own is None or rows.groups is None:
        return {"X": rows.X, "y": rows.targets[:, target], "sample_weight": rows.weight}
    labels = np.array(rows.groups.labels, dtype=object)[rows.groups.codes]
    seen = np.flatnonzero(np.isin(labels, own.labels))
    X = own.extended(rows.X[seen], own.codes(labels[seen]))
    weight = None if rows.weight is None else rows.weight[seen]
    return {"X": X, "y": rows.targets[seen, target], "sample_weight": weight}
