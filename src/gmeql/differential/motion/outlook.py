"""What a system does from starts that nobody measured.

Two systems may follow the measured points equally well, and one of them leave all bounds from a start next to them. Laws of
motion seldom do that, so a system that runs away pays for it where the measurements cannot tell.

Legend: `B` trajectories, `Z` states, `P` starts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.measured import Motion
from gmeql.differential.motion.shooting import Shooting
from gmeql.formula.nodes import Node

FloatArray = NDArray[np.float64]


def share_running_away(motion: Motion, equations: Sequence[Node]) -> float:
    """Of starts around the measured states, those from which a state leaves all bounds within the measured time."""
    shooting = Shooting(motion.whole, motion.columns.whole(tuple(equations)))
    return shooting.share_running_away(other_starts(motion))


def other_starts(motion: Motion) -> FloatArray:
    """[Z, B, P] starts in the range of the states and somewhat beyond; what was never negative stays so."""
    numbers = MOTION.system
    Z = len(motion.columns.states)
    states = motion.rows.X[:, :Z]
    low, high = states.min(axis=0), states.max(axis=0)
    beyond = numbers.beyond * (high - low)
    shape = (len(motion.whole.starts), numbers.other_starts, Z)
    starts = np.random.default_rng(0).uniform(low - beyond, high + beyond, shape)
    return np.ascontiguousarray(np.where(low >= 0, np.abs(starts), starts).transpose(2, 0, 1))
