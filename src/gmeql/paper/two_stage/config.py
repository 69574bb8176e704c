"""Every number of Algorithm 1, and the two presets: the paper's text and the authors' released code."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

OFFLINE_RULES = ("density", "squared_difference")

SCHEDULE = ("stage1_rounds", "stage1_steps", "stage2_steps", "use_stage1", "chunk_steps")
"""Fields that say how long a run trains and in which stretches."""
SHAPING = (
    "samples_per_step",
    "offline_batch",
    "capacity",
    "power_law_exponent",
    "adam_decay",
    "adam_square_decay",
    "adam_epsilon",
    "curve_every",
)
"""Fields that shape the compiled program. All others may differ from seed to seed of one run."""


class Chunk(NamedTuple):
    """Steps that run without the host: the number of the first, how many, whether parameters start afresh, stage."""

    first: int
    steps: int
    fresh: bool
    stage: int


@dataclass(frozen=True)
class TwoStageConfig:
    """Every number of Algorithm 1. Defaults are the text's (section 5); `released()` gives the authors' code's.

    Attributes:
        stage1_rounds, stage1_steps, stage2_steps: n, m and q.
        samples_per_step, offline_batch: p and r.
        capacity, power_law_exponent: size of the repository and how elites are drawn by rank (section 4.2).
        resample_fraction: share of an elite's connections that are sampled anew (section 4.2).
        temperature: of the relaxation (section 3).
        logits_rate, weights_rate, offline_rate: Adam's learning rates.
        adam_decay, adam_square_decay, adam_epsilon: Adam's defaults.
        logits_scale, weights_mean, weights_scale: parameters start at N(0, scale) and N(mean, scale) (footnote 1).
        gradient_clip: every entry of a gradient is clipped to this magnitude.
        fill_first: sample all connections until the repository is full.
        use_stage1, use_elites, use_offline: switches of the paper's ablations (figure 2 i, j, k).
        refresh_elites: give the elites that are drawn their loss under the present weights; stored losses go stale as
            the shared weights move.
        offline_rule: "density" (equation 7) or "squared_difference" (appendix B).
        curve_every: every how many steps a point of the curves is kept.
        chunk_steps: steps between two progress events.
    """

    stage1_rounds: int = 3
    stage1_steps: int = 2000
    stage2_steps: int = 48_000
    samples_per_step: int = 40
    offline_batch: int = 40
    capacity: int = 400
    power_law_exponent: float = 1.5
    resample_fraction: float = 0.2
    temperature: float = 2 / 3
    logits_rate: float = 1e-3
    weights_rate: float = 1e-3
    offline_rate: float = 1e-3
    adam_decay: float = 0.9
    adam_square_decay: float = 0.999
    adam_epsilon: float = 1e-8
    logits_scale: float = 1.0
    weights_mean: float = 0.0
    weights_scale: float = 1.0
    gradient_clip: float = math.inf
    fill_first: bool = False
    use_stage1: bool = True
    use_elites: bool = True
    use_offline: bool = True
    refresh_elites: bool = False
    offline_rule: str = "density"
    curve_every: int = 100
    chunk_steps: int = 1000

    def __post_init__(self) -> None:
        for name in ("stage1_rounds", "stage1_steps", "stage2_steps"):
            _require(
                isinstance(getattr(self, name), int) and getattr(self, name) >= 0, self, name, "a whole number >= 0"
            )
        for name in ("samples_per_step", "offline_batch", "capacity", "curve_every", "chunk_steps"):
            _require(
                isinstance(getattr(self, name), int) and getattr(self, name) >= 1, self, name, "a whole number >= 1"
            )
        for name in ("logits_rate", "weights_rate", "offline_rate", "logits_scale", "weights_scale"):
            _require(0 <= getattr(self, name) < math.inf, self, name, "a number >= 0")
        for name in ("temperature", "power_law_exponent", "adam_epsilon"):
            _require(0 < getattr(self, name) < math.inf, self, name, "a number > 0")
        for name in ("adam_decay", "adam_square_decay"):
            _require(0 <= getattr(self, name) < 1, self, name, "in [0, 1)")
        _require(0 < self.resample_fraction <= 1, self, "resample_fraction", "in (0, 1]")
        _require(self.gradient_clip > 0, self, "gradient_clip", "a number > 0 (inf: no clipping)")
        _require(math.isfinite(self.weights_mean), self, "weights_mean", "a finite number")
        _require(self.offline_rule in OFFLINE_RULES, self, "offline_rule", f"one of {', '.join(OFFLINE_RULES)}")
        _require(self.total_steps > 0, self, "stage2_steps", "at least 1 when there is no stage 1")

    @classmethod
    def paper(cls, **changes: Any) -> TwoStageConfig:
        """The numbers of the paper's text."""
        return cls(**changes)

    @classmethod
    def released(cls, **changes: Any) -> TwoStageConfig:
        """The numbers of the authors' released code where it differs from the text."""
        base = cls(
            stage1_rounds=6,
            stage1_steps=8000,
            stage2_steps=50_000,
            resample_fraction=1.0,
            offline_rate=3e-4,
            logits_scale=0.5,
            weights_mean=1.0,
            weights_scale=0.02,
            gradient_clip=1.0,
            fill_first=True,
        )
        return replace(base, **changes)

    @property
    def shape(self) -> TwoStageConfig:
        """The config reduced to what shapes the compiled program, so that settings and budgets share one."""
        return TwoStageConfig(**{name: getattr(self, name) for name in SHAPING})

    @property
    def segments(self) -> tuple[int, ...]:
        """Steps of each stretch that starts from fresh parameters: the rounds of stage 1, then stage 2."""
        stage1 = (self.stage1_steps,) * self.stage1_rounds if self.use_stage1 else ()
        return (*(steps for steps in stage1 if steps), self.stage2_steps)

    @property
    def total_steps(self) -> int:
        return sum(self.segments)

    @property
    def chunks(self) -> Iterator[Chunk]:
        """The run in pieces: whole chunks plus one remainder per segment, so it compiles at most three programs."""
        first = 0
        for number, segment in enumerate(self.segments):
            stage = 2 if number == len(self.segments) - 1 else 1
            for begin in range(0, segment, self.chunk_steps):
                yield Chunk(first + begin, min(self.chunk_steps, segment - begin), begin == 0, stage)
            first += segment


def _require(holds: bool, config: TwoStageConfig, name: str, allowed: str) -> None:
    if not holds:
        raise ValueError(f"{name} must be {allowed}, got {getattr(config, name)!r}")


PRESETS = {"paper": TwoStageConfig.paper, "released": TwoStageConfig.released}
"""Presets by the name of the method that runs them."""
