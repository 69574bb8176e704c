"""Readings of the target: an island may search for y itself or for g(y), and invert g at the end.

Roots, fractions and inverse functions on the outside of a formula then cost nothing: sqrt(u + v) is a plain sum for an
island that reads y². Residuals of g(y) are divided by g'(y), so that losses keep the target's own units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Node, build

FloatArray = NDArray[np.float64]

PLAIN = "identity"
"""The reading of the target as it is."""
_LARGEST_RATIO = 1e8
"""A reading whose weights differ by more than this is left out: a few rows would decide everything."""
_LEAST_ANGLE = 0.1
"""A target must span this many radians to be read as an angle."""


@dataclass(frozen=True)
class Reading:
    """One g(y): `forward` and `slope` (up to its sign) act on the target, `invert` turns a formula of g(y) into one of y.

    `invert` also takes the target's sign, which a square or a logarithm loses. `applies` says for which targets g has
    an inverse.
    """

    name: str
    forward: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    invert: Callable[[Node, float], Node]
    applies: Callable[[FloatArray], bool]


def is_of_one_sign(y: FloatArray) -> bool:
    """Whether the target never changes sign."""
    return bool((y > 0).all() or (y < 0).all())


def signed(node: Node, sign: float) -> Node:
    """The formula with the sign of the target."""
    return node if sign > 0 else build("neg", node)


READINGS: dict[str, Reading] = {
    t.name: t
    for t in (
        Reading(PLAIN, lambda y: y, np.ones_like, lambda f, s: f, lambda y: True),
        Reading("square", np.square, lambda y: 2 * y, lambda f, s: signed(build("sqrt", f), s), is_of_one_sign),
        Reading("inv", lambda y: 1 / y, lambda y: -1 / y**2, lambda f, s: build("inv", f), lambda y: bool((y != 0).all())),
        Reading("inv_square", lambda y: 1 / y**2, lambda y: -2 / y**3,
                  lambda f, s: signed(build("inv", build("sqrt", f)), s), is_of_one_sign),
        Reading("log", lambda y: np.log(np.abs(y)), lambda y: 1 / y, lambda f, s: signed(build("exp", f), s), is_of_one_sign),
        Reading("sqrt", lambda y: np.sqrt(np.abs(y)), lambda y: 0.5 / np.sqrt(np.abs(y)),
                  lambda f, s: signed(build("square", f), s), is_of_one_sign),
        Reading("sin", np.sin, np.cos, lambda f, s: build("asin", f),
                  lambda y: bool((np.abs(y) < math.pi / 2).all()) and float(np.ptp(y)) > _LEAST_ANGLE),
        Reading("cos", np.cos, lambda y: -np.sin(y), lambda f, s: build("acos", f),
                  lambda y: bool(((y > 0) & (y < math.pi)).all()) and float(np.ptp(y)) > _LEAST_ANGLE),
    )
}  # fmt: skip


def read_target(
    y: FloatArray, weights: FloatArray, names: Collection[str] = READINGS
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Target and weights under every reading of these `names` that applies to this target, by name; all [N]."""
    found = {}
    with np.errstate(all="ignore"):
        for name, reading in READINGS.items():
            if name not in names or not reading.applies(y):
                continue
            target, slope = reading.forward(y), reading.slope(y)
            if not np.isfinite(target).all() or not np.isfinite(slope).all() or not (slope != 0).all():
                continue
            own = weights / slope**2
            if not np.isfinite(own).all():
                continue
            if name != PLAIN and not 0 < own.max() <= _LARGEST_RATIO * max(np.median(own), 1e-300):
                continue
            if name != PLAIN and np.ptp(target) == 0:
                continue
            found[name] = (np.ascontiguousarray(target), np.ascontiguousarray(own))
    return found
