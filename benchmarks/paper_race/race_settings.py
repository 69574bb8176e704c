"""Settings that race: what they are drawn from, which earlier trials pointed at, on which networks and for how long."""

from __future__ import annotations

import dataclasses
import json
import math
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gmeql.evaluation.problems import paper_problem
from gmeql.network.architecture import HAND_CHOSEN, PUBLISHED, Architecture, architecture_preset
from gmeql.paper.two_stage import PRESETS, TwoStageConfig

FULL = (3, 2000, 48_000)
"""The paper's n, m and q: with p = 40 its budget is 2,160,000 sampled instances."""
RELEASED_START = dict(logits_scale=0.5, weights_mean=1.0, weights_scale=0.02, gradient_clip=1.0)
COLD = dict(
    RELEASED_START, refresh_elites=True, anneal_elites=True, temperature=1 / 3, final_temperature=0.02,
    weights_rate=3e-3, final_weights_rate=1e-4,
)  # fmt: skip

SPACE: dict[str, Sequence[Any]] = {
    "resample_fraction": (0.05, 0.1, 0.2, 0.2, 0.35, 0.5, 1.0),
    "resample_law": ("count", "bernoulli"),
    "draw_law": ("rank", "rank", "released"),
    "power_law_exponent": (0.5, 1.5, 1.5, 2.0, 2.5, 4.0),
    "temperature": (0.05, 0.1, 0.2, 1 / 3, 2 / 3, 2 / 3, 1.0),
    "final_temperature": (None, 0.1, 0.05, 0.02, 0.01, 0.003),
    "anneal_elites": (False, True, True),
    "best_form": ("relaxed", "hard"),
    "logits_rate": (3e-4, 1e-3, 1e-3, 3e-3, 1e-2),
    "weights_rate": (1e-3, 1e-3, 3e-3, 1e-2),
    "final_weights_rate": (None, 3e-4, 1e-4, 3e-5),
    "offline_rate": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2),
    "logits_scale": (0.1, 0.5, 1.0),
    "start": ((0.0, 1.0), (1.0, 0.02), (1.0, 0.02), (1.0, 0.1), (1.0, 0.3)),
    "gradient_clip": (math.inf, 1.0, 0.1),
    "average_choices": (False, True),
    "merge_rounds": (False, True),
    "fill_first": (False, True),
    "refresh_elites": (False, True, True),
    "use_offline": (True, True, True, False),
    "offline_rule": ("density", "density", "squared_difference"),
}
"""Values that a setting draws from, likelier ones twice; `start` is mean and scale of the weights."""

ANCHORS: dict[str, dict[str, Any]] = {
    "text": {},
    "text, start": RELEASED_START,
    "start, released draw, averaged": dict(RELEASED_START, draw_law="released", average_choices=True),
    "start, all connections": dict(RELEASED_START, resample_fraction=1.0),
    "cold": COLD,
    "cold, hard": dict(COLD, best_form="hard"),
    "cold, hard, fast": dict(COLD, best_form="hard", weights_rate=1e-2),
    "cold, steep": dict(COLD, power_law_exponent=2.5, resample_fraction=0.1, resample_law="bernoulli"),
    "cold, steeper, hard": dict(
        COLD, best_form="hard", power_law_exponent=4.0, resample_fraction=0.1, resample_law="bernoulli"
    ),
}
"""Settings that earlier trials pointed at; the race takes them along."""

AROUND: dict[str, dict[str, Any]] = {
    "as it is": {},
    "n = 0": dict(use_stage1=False, stage2_steps=54_000),
    "n = 1": dict(stage1_rounds=1, stage2_steps=52_000),
    "n = 9": dict(stage1_rounds=9, stage2_steps=36_000),
    "m = 500": dict(stage1_steps=500, stage2_steps=52_500),
    "m = 6000": dict(stage1_steps=6000, stage2_steps=36_000),
    "p = 20": dict(samples_per_step=20, stage1_steps=4000, stage2_steps=96_000),
    "p = 80": dict(samples_per_step=80, stage1_steps=1000, stage2_steps=24_000),
    "r = 10": dict(offline_batch=10),
    "r = 80": dict(offline_batch=80),
    "100 elites": dict(capacity=100),
    "20 elites": dict(capacity=20),
    "30 rows a step": dict(batch_rows=30),
    "100 rows a step": dict(batch_rows=100),
    "100 rows a step, elites refreshed": dict(batch_rows=100, refresh_elites=True),
    "elites' own weights": dict(elite_weights=True, refresh_elites=False),
    "elites' own weights, 3e-3": dict(elite_weights=True, refresh_elites=False, weights_rate=3e-3),
    "elites' own weights, falling": dict(
        elite_weights=True, refresh_elites=False, weights_rate=1e-2, final_weights_rate=1e-4
    ),
    "elites refreshed": dict(refresh_elites=True),
    "weights' rate falling": dict(final_weights_rate=3e-5),
    "weights' rate 3e-3 falling": dict(weights_rate=3e-3, final_weights_rate=1e-4),
    "temperature from 1": dict(temperature=1.0),
    "20 % re-sampled": dict(resample_fraction=0.2),
    "logits 3e-3": dict(logits_rate=3e-3),
}
"""A setting with one thing changed that no race has drawn, or that the second finalist has otherwise; always 2,160,000
instances."""


@dataclass(frozen=True)
class Group:
    """Problems that train side by side on one network."""

    name: str
    problems: tuple[str, ...]
    layers: tuple[tuple[str, ...], ...]

    @property
    def architecture(self) -> Architecture:
        return Architecture(len(paper_problem(self.problems[0]).names), self.layers)


def groups_of(problems: Iterable[str], layers: str) -> list[Group]:
    """One group for each network: selected by hand ("hand"), "published", or a preset's layers for all problems."""
    tables = {"hand": HAND_CHOSEN, "published": PUBLISHED}
    found: dict[Any, list[str]] = defaultdict(list)
    for problem in problems:
        preset = tables[layers][problem] if layers in tables else layers
        found[preset, len(paper_problem(problem).names)].append(problem)
    return [
        Group(preset, tuple(names), architecture_preset(preset, width).layers)
        for (preset, width), names in found.items()
    ]


@dataclass(frozen=True)
class Setting:
    """Changes to the text's numbers, under a name."""

    name: str
    changes: dict[str, Any]

    def config(self, schedule: tuple[int, int, int], chunk: int) -> TwoStageConfig:
        rounds, first, second = schedule
        steps = dict(stage1_rounds=rounds, stage1_steps=first, stage2_steps=second)
        return TwoStageConfig(**{**steps, **self.changes, "chunk_steps": chunk, "curve_every": chunk})


def drawn_settings(count: int, seed: int, base: Sequence[dict[str, Any]] = (), *, near: float = 0.5) -> list[Setting]:
    """Random settings: a share of them anchors with a few parameters drawn anew, the others drawn whole."""
    rng = random.Random(seed)
    settings = []
    for number in range(count):
        drawn = {name: rng.choice(values) for name, values in SPACE.items()}
        mean, scale = drawn.pop("start")
        drawn |= {"weights_mean": mean, "weights_scale": scale}
        if base and (number + 1) * near // 1 > number * near // 1:
            kept = rng.choice(base)
            changed = rng.sample(sorted(drawn), 4)
            drawn = {**kept, **{name: drawn[name] for name in changed}}
        settings.append(Setting(f"s{seed}-{number}", drawn))
    return settings


def plain(changes: dict[str, Any]) -> dict[str, Any]:
    return {name: "inf" if value == math.inf else value for name, value in changes.items()}


def setting_of(data: dict[str, Any]) -> Setting:
    return Setting(data["name"], {k: math.inf if v == "inf" else v for k, v in data["changes"].items()})


def given_settings(text: str) -> list[Setting]:
    """Settings of a file such as finalists.json, or presets by name: `raced`, `released,paper`."""
    names = text.split(",")
    if not set(names) <= set(PRESETS):
        return [setting_of(data) for data in json.loads(Path(text).read_text())]
    text_numbers = dataclasses.asdict(TwoStageConfig.paper())
    own = {name: dataclasses.asdict(PRESETS[name]()) for name in names}
    return [Setting(name, {k: v for k, v in own[name].items() if v != text_numbers[k]}) for name in names]


def schedule_of(share: float, chunk: int) -> tuple[int, int, int]:
    """The paper's schedule times a share, in whole chunks; the short ones have shorter rounds, not fewer."""
    rounds, first, second = FULL

    def whole(steps: int) -> int:
        return max(chunk, round(steps * share / chunk) * chunk)

    return rounds, whole(first), whole(second)
