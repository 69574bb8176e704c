"""What a fit gives back, shared by every engine."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

CONVERGED, STEPS_SPENT, HOPELESS, NOT_FINITE = 0, 1, 2, 3
"""How a fit ended: a step gained less than the tolerance; its steps were spent before; it was far from the losses it was
asked to beat; its values were not finite on the given rows."""


class FitResult(NamedTuple):
    """Fitted batch. `losses` are weighted mean squared errors, `inf` where a candidate failed.

    Shapes: B programs, P constants at most.
    """

    constants: np.ndarray
    losses: np.ndarray
    codes: np.ndarray
    steps: np.ndarray
