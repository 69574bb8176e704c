"""Numbers of EQL and their sources; the units of its layers."""

from __future__ import annotations

import math
from dataclasses import dataclass

KIM_UNITS = (("one", 2), ("id", 4), ("square", 4), ("sin", 2), ("exp", 2), ("sigmoid", 2), ("mul", 2))
"""The units of a hidden layer in Kim et al.'s benchmark."""

PAPER_UNITS = (
    ("one", 2),
    ("id", 4),
    ("square", 4),
    ("cube", 2),
    ("sin", 2),
    ("cos", 2),
    ("sqrt", 2),
    ("mul", 2),
    ("div", 2),
)
"""Units over the GMEQL paper's elementary functions: with two layers every truth b1-b8 can be written."""


@dataclass(frozen=True)
class _Unit:
    """function(scale * sum) * gain, as Kim et al. scale theirs so that weights of order 0.1 matter."""

    arity: int = 1
    scale: float = 1.0
    gain: float = 1.0


UNITS = {
    "one": _Unit(),
    "id": _Unit(),
    "square": _Unit(),
    "cube": _Unit(),
    "sin": _Unit(scale=4 * math.pi),
    "cos": _Unit(scale=4 * math.pi),
    "sqrt": _Unit(),
    "exp": _Unit(gain=1 / math.e),  # (exp(x) - 1) / e
    "sigmoid": _Unit(scale=20.0),
    "mul": _Unit(arity=2, gain=10.0),
    "div": _Unit(arity=2),
}


@dataclass(frozen=True)
class EQLConfig:
    """Numbers of the method; sources in brackets."""

    units: tuple[tuple[str, int], ...] = PAPER_UNITS
    hidden_layers: int = 2  # [Kim: L = 2]
    learning_rate: float = 1e-2  # [Kim's code]
    warmup_share: float = 2000 / 22000  # [Kim's code: 2,000 steps at 10 x the rate]
    main_share: float = 10000 / 22000  # [Kim's code: 10,000 steps at the rate]
    regularisation: float = 5e-3  # [Kim's code]
    smoothing: float = 0.05  # [Kim's code: below it the L0.5 norm is a polynomial]
    prune_below: float = 0.01  # [Kim's code]
    init_first: float = 0.1  # [Kim's code: std of the first, middle and last weights]
    init_middle: float = 0.5
    init_last: float = 1.0
    decay: float = 0.9  # RMSProp, TensorFlow's defaults
    epsilon: float = 1e-10
    division_penalty: float = 1.0  # [Sahoo et al., eq. 5: added with weight one]
    scale_data: bool = (
        True  # columns to largest magnitude 1, target to standard deviation 1; Kim's data are taken as they are
    )
    gradient_limit: float = 1e3  # guards one wild step; no effect on healthy runs
    curve_points: int = 100

    def __post_init__(self) -> None:
        unknown = [name for name, _ in self.units if name not in UNITS]
        if unknown or not self.units:
            raise ValueError(f"units must name some of {', '.join(UNITS)}, got {[name for name, _ in self.units]}")
        if self.hidden_layers < 1:
            raise ValueError(f"hidden_layers must be at least 1, got {self.hidden_layers}")
        if not 0 <= self.warmup_share + self.main_share <= 1:
            raise ValueError("warmup_share and main_share must add up to at most 1; the rest is the tuning phase")

    @property
    def flat_units(self) -> tuple[str, ...]:
        """Every unit of a layer by name."""
        return tuple(name for name, count in self.units for _ in range(count))


PAPER_STEPS = 22_000
"""Training steps of one run in Kim et al.'s code."""
