"""What a smooth fit says of a table: how much of the target is noise there, and what it would be without."""

from __future__ import annotations

import math

import numpy as np

from gmeql.search.direct.table import DirectTable, FloatArray
from gmeql.search.symmetries.smooth import fit_smooth


def smooth_values(table: DirectTable) -> FloatArray | None:
    """Values [N] of a smooth fit of a table's target; None where there is none."""
    roots = np.sqrt(table.weights)  # the factor that a view took off, up to a constant
    with np.errstate(all="ignore"):
        fit = fit_smooth(table.X, roots, table.y * roots)
        return None if fit is None else fit.values / roots


def smooth_error(table: DirectTable) -> float:
    """Error of a smooth fit of a table; infinite where there is none."""
    values = smooth_values(table)
    return math.inf if values is None else table.error_of(values)
