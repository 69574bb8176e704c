"""What a system does on its own: from starts that nobody measured, and from the first point to the last in one run.

Two systems may follow the measured points equally well, piece by piece, and one of them leave all bounds from a start next
to them, or lose the measurements when nothing pulls it back. Laws of motion seldom do either, so a system that does pays for
it where the measurements cannot tell.

Legend: `B` trajectories, `Z` states, `P` starts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.measured import Motion
from gmeql.differential.motion.shooting import Fitted, Shooting
from gmeql.differential.motion.systems import System
from gmeql.formula.nodes import Node

FloatArray = NDArray[np.float64]


def share_running_away(motion: Motion, equations: Sequence[Node]) -> float:
    """Of starts around the measured states, those from which within the measured time a state leaves all bounds, or one
    that was never negative becomes so: amounts, concentrations and shares do not."""
    shooting = Shooting(motion.whole, motion.columns.whole(tuple(equations)))
    low, high = motion.measured_range
    least = np.where(low >= 0, -MOTION.system.negative * high, -np.inf)
    return shooting.share_leaving(other_starts(motion), least)


def outlook_cost(motion: Motion, system: System) -> float:
    """Nats for a system that runs away from other starts, and for one that loses the measurements in one run."""
    numbers = MOTION.system
    away = numbers.runaway_cost * share_running_away(motion, system.equations)
    return away + min(max(lost_alone(motion, system), 0.0), numbers.lost_alone_cost)


def lost_alone(motion: Motion, system: System) -> float:
    """Nats that measurements take more when each trajectory is followed in one run from its first point.

    As in `systems.judged`; chaotic systems lose much however true they are, so the caller sets a limit. Near a saddle the
    least change of a constant or start decides where a run ends, so both are fitted to the one run before it is judged.
    """
    shooting = Shooting(motion.whole, motion.columns.whole(system.equations))
    lost = _lost(motion, system, shooting.misfit_from(system.fitted.starts[motion.pieces.first]))
    return (
        lost
        if lost <= MOTION.system.refit_lost
        else min(lost, _lost(motion, system, in_one_run(motion, system).misfit))
    )


def in_one_run(motion: Motion, system: System) -> Fitted:
    """The system fitted to the trajectories, each in one piece."""
    numbers = MOTION.shooting
    starts = system.fitted.starts[motion.pieces.first]
    shooting = Shooting(motion.whole, motion.columns.whole(system.equations), starts)
    return shooting.fit(loose_steps=0, tight_steps=numbers.quick_steps, tolerance=numbers.quick_tolerance)


def _lost(motion: Motion, system: System, misfit: FloatArray) -> float:
    if not np.isfinite(misfit).all():
        return math.inf
    points = motion.pieces.points
    return 0.5 * points * float(np.log(misfit / np.maximum(system.fitted.misfit, np.finfo(float).tiny)).sum())


def other_starts(motion: Motion) -> FloatArray:
    """[Z, B, P] starts in the range of the states and somewhat beyond; what was never negative stays so."""
    numbers = MOTION.system
    low, high = motion.measured_range
    beyond = numbers.beyond * (high - low)
    shape = (len(motion.whole.starts), numbers.other_starts, len(low))
    starts = np.random.default_rng(0).uniform(low - beyond, high + beyond, shape)
    return np.ascontiguousarray(np.where(low >= 0, np.abs(starts), starts).transpose(2, 0, 1))
