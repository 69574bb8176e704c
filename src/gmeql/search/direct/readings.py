"""Readings of the target that direct methods invert: those of islands, and those for logarithms and arc tangents outside."""

from __future__ import annotations

import math

import numpy as np

from gmeql.formula.nodes import build
from gmeql.network.families import FunctionSet
from gmeql.search.data.readings import PLAIN, READINGS, Reading, is_of_one_sign, read_target, signed
from gmeql.search.direct.table import FloatArray

LARGEST_EXPONENT = 30.0
"""A target must stay within this to be read as a logarithm."""
LEAST_TURN = 0.5
"""Radians that a target must span to be read as an arc tangent: below, it is hardly bent."""
DIRECT_READINGS: dict[str, Reading] = READINGS | {
    "exp": Reading(
        "exp", np.exp, np.exp, lambda f, s: build("log", f), lambda y: float(np.abs(y).max()) < LARGEST_EXPONENT
    ),
    "tan": Reading(
        "tan", np.tan, lambda y: 1 / np.cos(y) ** 2, lambda f, s: build("atan", f),
        lambda y: bool((np.abs(y) < math.pi / 2).all()) and float(np.ptp(y)) > LEAST_TURN,
    ),
}  # fmt: skip
LESS = Reading(
    "less", lambda y: np.exp(-y), lambda y: np.exp(-y), lambda f, s: build("neg", build("log", f)),
    DIRECT_READINGS["exp"].applies,
)  # fmt: skip
"""For a logarithm that is taken off: its exponential is one over a sum, which only fractions are asked for."""
INVERTED_BY: dict[str, set[str]] = {
    PLAIN: set(), "square": {"sqrt"}, "inv": {"div"}, "inv_square": {"sqrt", "div"}, "log": {"exp"}, "sqrt": {"square"},
    "exp": {"log"}, "less": {"log"}, "sin": set(), "cos": set(), "tan": set(),
    "cube root": {"cube"}, "fourth power": {"sqrt"}, "fourth root": {"square"},
}  # fmt: skip
"""Functions that stand before a formula that a reading found; those of an angle bring asin, acos and atan in."""

OUTER_READINGS: dict[str, Reading] = {
    reading.name: reading
    for reading in (
        Reading("cube root", np.cbrt, lambda y: np.cbrt(y) ** -2 / 3, lambda f, s: build("cube", f), lambda y: True),
        Reading(
            "fourth power", lambda y: y**4, lambda y: 4 * y**3, lambda f, s: signed(build("sqrt", build("sqrt", f)), s),
            is_of_one_sign,
        ),
        Reading(
            "fourth root", lambda y: np.sqrt(np.sqrt(np.abs(y))), lambda y: np.abs(y) ** -0.75 / 4,
            lambda f, s: signed(build("square", build("square", f)), s), is_of_one_sign,
        ),
    )
}  # fmt: skip
"""Rarer readings, by which a sum of terms is looked for and nothing else."""
EVERY_READING = DIRECT_READINGS | OUTER_READINGS | {LESS.name: LESS}


def outer_readings(y: FloatArray, functions: FunctionSet) -> dict[str, FloatArray]:
    """The target [N] under every one of the rarer readings that applies to it, by name."""
    allowed = {name: reading for name, reading in OUTER_READINGS.items() if functions.allows(INVERTED_BY[name])}
    return {name: reading.forward(y) for name, reading in allowed.items() if reading.applies(y)}


def direct_readings(y: FloatArray, functions: FunctionSet) -> dict[str, FloatArray]:
    """The target [N] under every reading that applies to it and that the functions can invert, by name."""
    found = {name: target for name, (target, _) in read_target(y, np.ones_like(y)).items()}
    for name in ("exp", "tan"):
        reading = DIRECT_READINGS[name]
        if reading.applies(y) and math.isfinite(float(np.ptp(reading.forward(y)))):
            found[name] = reading.forward(y)
    return {name: target for name, target in found.items() if functions.allows(INVERTED_BY[name])}
