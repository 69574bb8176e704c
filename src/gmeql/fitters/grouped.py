"""Programs fitted to several groups of rows, with constants of each group's own.

Every program is fitted to every group by the same engine as without groups, so a fit costs as many row evaluations. One
start seldom leads every group home (a frequency of another group is a local minimum away), so the group that is met
best lends its constants to all others as a second start.

Legend: `B` programs, `G` groups, `P` constants at most, `N` rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmeql.fitters.cpu import fit_batches
from gmeql.fitters.jobs import FitJob
from gmeql.fitters.kernel.arrays import FitData
from gmeql.fitters.method import SCREEN_FACTOR, TINY

FloatArray = NDArray[np.float64]

SCREEN_GROUPS = 2
"""Groups on which a candidate must be promising before it sees the others."""


class GroupedFit(NamedTuple):
    """What became of a batch in every group."""

    constants: FloatArray
    """[G, B, P]"""
    losses: FloatArray
    """[G, B] weighted mean squared errors, `inf` where a program failed or was given up."""
    leaders: NDArray[np.int64]
    """[B] the group that each program meets best, measured by the group's own spread."""

    @property
    def leading_constants(self) -> FloatArray:
        """[B, P] the constants of each program's leading group, from which a next fit may start."""
        return self.constants[self.leaders, np.arange(len(self.leaders))]


def split_rows(data: FitData, groups: NDArray[np.int64]) -> tuple[FitData, ...]:
    """The rows of each group that has some, in the order of the group numbers [N]."""
    found = []
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        found.append(FitData(*(np.ascontiguousarray(part[..., rows]) for part in data)))
    return tuple(found)


def fit_groups(
    batch: Any,
    groups: Sequence[FitData],
    *,
    max_steps: int,
    tolerance: float,
    hopeless: float = np.inf,
    n_threads: int = 1,
) -> GroupedFit:
    """Fit the programs of `batch` (arrays as in `search.candidates.Candidates`, left as they are) to each group.

    `hopeless` is the mean loss over all groups that a program must come near.
    """
    n_groups, n, width = len(groups), len(batch.lengths), batch.constants.shape[1]
    constants = np.tile(batch.constants, (n_groups, 1, 1))
    losses = np.full((n_groups, n), np.inf)
    spreads = np.array([_variance(data) for data in groups])
    masses = np.array([float(data.weights.sum()) for data in groups])
    options: dict[str, Any] = dict(max_steps=max_steps, tolerance=tolerance, screen_rows=None, n_threads=n_threads)
    share = hopeless / max(float(np.average(spreads, weights=masses)), TINY)

    def fit_some(numbers: Sequence[int], chosen: NDArray[np.int64], start: FloatArray) -> None:
        """Fit the chosen programs to some groups, and keep what is better than before."""
        jobs = []
        for g in numbers:
            parts = {name: getattr(batch, name)[chosen] for name in ("programs", "lengths", "n_constants")}
            results = {"losses": np.full(len(chosen), np.inf), "codes": np.zeros(len(chosen), np.int64)}
            own = SimpleNamespace(
                **parts, **results, constants=start[chosen].copy(), steps=np.zeros(len(chosen), np.int64)
            )
            jobs.append(FitJob(own, groups[g], float(share * spreads[g])))
        fit_batches(jobs, **options)
        for g, job in zip(numbers, jobs, strict=True):
            found = np.where(np.isfinite(job.batch.losses), job.batch.losses, np.inf)
            better = found < losses[g, chosen]
            losses[g, chosen[better]] = found[better]
            constants[g, chosen[better]] = job.batch.constants[better][:, :width]

    everyone = np.arange(n)
    first, rest = range(min(SCREEN_GROUPS, n_groups)), range(min(SCREEN_GROUPS, n_groups), n_groups)
    fit_some(first, everyone, batch.constants)
    if np.isfinite(hopeless):
        relative = (masses[first, None] * losses[first]).sum(axis=0) / (masses[first] * spreads[first]).sum()
        everyone = np.flatnonzero(relative < SCREEN_FACTOR * share)
    if len(everyone):
        fit_some(rest, everyone, batch.constants)
    leaders = np.argmin(losses / np.maximum(spreads, TINY)[:, None], axis=0)
    if len(everyone) and n_groups > 1:
        fit_some(range(n_groups), everyone, constants[leaders, np.arange(n)])
    return GroupedFit(constants, losses, np.argmin(losses / np.maximum(spreads, TINY)[:, None], axis=0))


def overall_losses(fitted: GroupedFit, groups: Sequence[FitData], n_constants: NDArray[np.int64]) -> FloatArray:
    """Loss of each program over all groups [B], each group's over the rows that its constants leave free.

    A group with no more rows than constants says nothing: what any formula meets counts as its whole spread.
    """
    masses = np.array([float(data.weights.sum()) for data in groups])
    rows = np.array([len(data.target) for data in groups])[:, None]
    free = rows - n_constants[None, :]
    spreads = np.array([_variance(data) for data in groups])[:, None]
    losses = np.where(free > 0, fitted.losses * rows / np.maximum(free, 1), np.maximum(fitted.losses, spreads))
    return np.asarray((masses[:, None] * losses).sum(axis=0) / masses.sum())


def _variance(data: FitData) -> float:
    mean = np.average(data.target, weights=data.weights)
    return float(np.average((data.target - mean) ** 2, weights=data.weights)) + TINY
