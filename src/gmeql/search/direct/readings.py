"""Readings of the target that direct methods invert: those of islands, and the exponential for logarithms outside."""

from __future__ import annotations

import math

import numpy as np

from gmeql.formula.nodes import build
from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import FloatArray
from gmeql.search.data.readings import PLAIN, READINGS, Reading, read_target

LARGEST_EXPONENT = 30.0
"""A target must stay within this to be read as a logarithm."""
DIRECT_READINGS: dict[str, Reading] = READINGS | {
    "exp": Reading(
        "exp", np.exp, np.exp, lambda f, s: build("log", f), lambda y: float(np.abs(y).max()) < LARGEST_EXPONENT
    )
}
INVERTED_BY: dict[str, set[str]] = {
    PLAIN: set(), "square": {"sqrt"}, "inv": {"div"}, "inv_square": {"sqrt", "div"}, "log": {"exp"}, "sqrt": {"square"},
    "exp": {"log"}, "sin": set(), "cos": set(),
}  # fmt: skip
"""Functions that stand before a formula that a reading found; those of an angle bring asin and acos in, as islands do."""


def direct_readings(y: FloatArray, functions: FunctionSet) -> dict[str, FloatArray]:
    """The target [N] under every reading that applies to it and that the functions can invert, by name."""
    found = {name: target for name, (target, _) in read_target(y, np.ones_like(y)).items()}
    exponential = DIRECT_READINGS["exp"]
    if exponential.applies(y) and math.isfinite(float(np.ptp(np.exp(y)))):
        found["exp"] = np.exp(y)
    return {name: target for name, target in found.items() if functions.allows(INVERTED_BY[name])}
