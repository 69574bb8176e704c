"""Functions that a sum with numbers of its own may stand in: logarithms, powers, and the curves of growth and saturation.

Legend: `N` rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, build

FloatArray = NDArray[np.float64]
Starts = list[tuple[float, float, float]]
"""Factor of a sum that runs from 0 to 1, what is added to it, and the number."""


@dataclass(frozen=True)
class InnerCurvesConfig:
    """Where the scan of each function begins; "tried" with `inner_sums.py`."""

    gaps: tuple[float, ...] = (0.005, 0.03, 0.12, 0.4, 1.2, 4.0)  # that a sum lies above 0, in ranges of it
    rates: tuple[float, ...] = (0.7, 1.5, 3.0, 6.0, 10.0, 17.0)  # ranges of what stands in an exponential
    shifted: float = 0.1  # of these, that a saturation may have begun before
    exponents: tuple[float, ...] = (-2.3, -1.0, -0.5, 0.4, 1.4, 2.6)
    positive: tuple[float, ...] = (0.5, 1.0, 1.6, 2.6)
    growing: tuple[float, ...] = (0.5, 1.0, 1.6)
    middles: tuple[float, ...] = (0.1, 0.4, 0.7, 1.0)  # of a step, in ranges of the sum
    stretched: tuple[float, ...] = (0.3, 2.0, 12.0)  # ranges of what stands in a logarithm that must be above 0


INNER_CURVES = InnerCurvesConfig()


class Curve(NamedTuple):
    """A function of a sum z and, maybe, a number p: value, slopes, starts and tree."""

    value: Callable[[Any, Any], Any]
    slopes: Callable[[FloatArray, float], tuple[FloatArray, FloatArray | None]]
    starts: Starts
    tree: Callable[[Node, float], Node]
    needs: frozenset[str]
    has_number: bool = False
    """Whether it has a number of its own."""
    is_level: bool = True
    """Whether what is added to the sum is no factor before the curve."""
    is_from_zero: bool = False
    """Whether the curve begins where the sum is 0."""
    is_power: bool = False
    """Whether the sum itself is the curve of number 1."""


def _with(starts: Starts, numbers: Sequence[float]) -> Starts:
    """The same with each of some numbers."""
    return [(a, b, p) for a, b, _ in starts for p in numbers]


_ABOVE = [one for gap in INNER_CURVES.gaps for one in ((1.0, gap, 0.0), (-1.0, 1.0 + gap, 0.0))]
_RATES = [(sign * rate, 0.0, 0.0) for rate in INNER_CURVES.rates for sign in (1, -1)]
_RISING = [(rate, share * rate, 0.0) for rate in INNER_CURVES.rates for share in (0.0, INNER_CURVES.shifted)]
_STEPS = [
    (sign * rate, -sign * rate * middle, 0.0)
    for rate in INNER_CURVES.rates[1:]
    for middle in INNER_CURVES.middles
    for sign in (1, -1)
]
_ABOVE_ONE = [
    one
    for gap in INNER_CURVES.gaps
    for rate in INNER_CURVES.stretched
    for one in ((rate, 1.0 + gap * rate, 0.0), (-rate, 1.0 + (gap + 1.0) * rate, 0.0))
]


CURVES: dict[str, Curve] = {
    "log": Curve(lambda z, p: np.log(z), lambda z, p: (1 / z, None), _ABOVE, lambda z, p: build("log", z), frozenset({"log"})),
    "exp": Curve(
        lambda z, p: np.exp(z), lambda z, p: (np.exp(z), None), _RATES,
        lambda z, p: build("exp", z), frozenset({"exp"}), is_level=False,
    ),
    "power": Curve(
        lambda z, p: z**p, lambda z, p: (p * z ** (p - 1), z**p * np.log(z)), _with(_ABOVE, INNER_CURVES.exponents),
        lambda z, p: build("pow", z, Constant(p)), frozenset({"pow"}), has_number=True, is_power=True,
    ),
    "root log": Curve(
        lambda z, p: np.sqrt(np.log(z)), lambda z, p: (0.5 / np.sqrt(np.log(z)) / z, None), _ABOVE_ONE,
        lambda z, p: build("sqrt", build("log", z)), frozenset({"log", "sqrt"}),
    ),
    "growth": Curve(  # Richards
        lambda z, p: (1 + np.exp(z)) ** -p,
        lambda z, p: (-p * np.exp(z) * (1 + np.exp(z)) ** (-p - 1), -np.log1p(np.exp(z)) * (1 + np.exp(z)) ** -p),
        _with(_STEPS, INNER_CURVES.growing),
        lambda z, p: build("pow", build("add", Constant(1.0), build("exp", z)), Constant(-p)),
        frozenset({"exp", "pow"}), has_number=True,
    ),
    "saturation": Curve(  # Chapman and Richards, von Bertalanffy
        lambda z, p: (1 - np.exp(-z)) ** p,
        lambda z, p: (p * np.exp(-z) * (1 - np.exp(-z)) ** (p - 1), np.log(1 - np.exp(-z)) * (1 - np.exp(-z)) ** p),
        _with(_RISING, INNER_CURVES.positive),
        lambda z, p: build("pow", build("sub", Constant(1.0), build("exp", build("neg", z))), Constant(p)),
        frozenset({"exp", "pow"}), has_number=True, is_from_zero=True,
    ),
    "gompertz": Curve(
        lambda z, p: np.exp(-np.exp(z)), lambda z, p: (-np.exp(z - np.exp(z)), None), _STEPS,
        lambda z, p: build("exp", build("neg", build("exp", z))), frozenset({"exp"}),
    ),
    "hill": Curve(
        lambda z, p: 1 / (1 + z**p),
        lambda z, p: (-p * z ** (p - 1) / (1 + z**p) ** 2, -np.log(z) * z**p / (1 + z**p) ** 2),
        _with(_RISING, INNER_CURVES.positive),
        lambda z, p: build("div", Constant(1.0), build("add", Constant(1.0), build("pow", z, Constant(p)))),
        frozenset({"div", "pow"}), has_number=True, is_from_zero=True,
    ),
    "stretched": Curve(
        lambda z, p: np.exp(-(z**p)), lambda z, p: (-p * z ** (p - 1) * np.exp(-(z**p)), -np.log(z) * z**p * np.exp(-(z**p))),
        _with(_RISING, INNER_CURVES.positive),
        lambda z, p: build("exp", build("neg", build("pow", z, Constant(p)))),
        frozenset({"exp", "pow"}), has_number=True, is_from_zero=True,
    ),
}  # fmt: skip
"""By name."""
