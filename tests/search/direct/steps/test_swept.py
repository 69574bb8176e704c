"""Steps by small formulas: those are found after which a target is a plain sum with a small formula or a block beside it."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.nodes import Node, Variable, build
from gmeql.network.families import FunctionSet
from gmeql.search.direct.steps.swept import FIRST, SWEPT, THEN, Sweep

N = 120
LIMIT = 1e-9
"""Share of a target that is rounding, to the slow version."""


class Scene:
    """Columns, plain terms, a few small formulas and blocks of them times columns, with what the rows see of all."""

    def __init__(self, functions: FunctionSet | None = None) -> None:
        rng = np.random.default_rng(3)
        self.X = X = rng.uniform(0.5, 4.0, (N, 3))
        a, b, c = X.T
        self.plain = np.stack([np.ones(N), a, b, c, a * b, b * c, a**2])
        self.nodes: list[Node] = [
            Variable(0),
            Variable(1),
            build("sin", Variable(1)),
            build("mul", *map(Variable, (0, 2))),
        ]
        self.steps = np.stack([a, b, np.sin(b), a * c])
        self.small = np.stack([np.sin(a * b), np.log(a + c), np.sqrt(b + 2 * c), np.exp(c)])
        self.blocks = np.stack([np.stack([h, h * a, h * c]) for h in self.small])
        self.weights = rng.uniform(0.5, 2.0, N)
        basis = np.linalg.qr((self.plain * self.weights).T)[0]
        drawn = rng.normal(size=(N, 20))
        self.directions = np.linalg.qr(drawn - basis @ (basis.T @ drawn))[0]
        vectors = (self.small * self.weights) @ self.directions
        self.sweep = Sweep(
            self.steps,
            self.nodes.__getitem__,
            weights=self.weights,
            directions=self.directions,
            vectors=vectors / np.linalg.norm(vectors, axis=1, keepdims=True),
            bases=[np.linalg.qr(((self.blocks * self.weights) @ self.directions).transpose(0, 2, 1))[0]],
            functions=functions or FunctionSet(),
        )

    def hits(self, y: np.ndarray) -> set[tuple[float, int, tuple[int, int] | None]]:
        """A number of the target, the formula and the block of each hit."""
        found = self.sweep.hits(y, 1.0, lambda: False)
        return {(round(float(hit.target[0]), 6), hit.formula, hit.block) for hit in found}

    def slow_hits(self, y: np.ndarray) -> set[tuple[float, int, tuple[int, int] | None]]:
        """The same by a least squares fit for every step, formula and block."""
        found = set()
        for values in self.steps:
            for first, then in ((first, then) for first in FIRST for then in THEN):
                rest = first[0](y, values)
                if then.keeps_sign and rest.min() < 0 < rest.max():
                    continue
                with np.errstate(all="ignore"):
                    target = then.forward(rest)
                if not np.isfinite(target).all() or np.ptp(target) == 0:
                    continue
                number = round(float(target[0]), 6)
                if self._is_sum(target, []):
                    found.add((number, -1, None))
                    continue
                found |= {(number, h, None) for h in range(4) if self._is_sum(target, [self.small[h]])}
                found |= {(number, -1, (0, h)) for h in range(4) if self._is_sum(target, list(self.blocks[h]))}
        return found

    def _is_sum(self, target: np.ndarray, beside: list[np.ndarray]) -> bool:
        columns = np.stack([*self.plain, *beside], axis=1)
        left = target - columns @ np.linalg.lstsq(columns, target, rcond=None)[0]
        return bool(np.linalg.norm(left * self.weights) < LIMIT * np.linalg.norm(target * self.weights))


TARGETS = {
    "root": lambda a, b, c: np.sin(b) + np.sqrt(3.1 + a * b + 1.3 * np.sin(a * b)),
    "negative root": lambda a, b, c: b - np.sqrt(9.0 + a * b + 1.3 * np.sin(a * b)),
    "block": lambda a, b, c: a * c * (b + (1.2 - 0.7 * a) * np.log(a + c)),
    "fraction": lambda a, b, c: np.sin(b) / (a * b + 2.2),
    "exponential": lambda a, b, c: np.exp(0.3 * a - np.sqrt(b + 2 * c)) - a * c,
    "logarithm": lambda a, b, c: a + np.log(b * c + 2.0 + np.sin(a * b)),
    "nothing": lambda a, b, c: np.sin(3.3 * a + b * c) * np.exp(-a * c),
}


@pytest.mark.parametrize("name", TARGETS)
def test_the_steps_of_a_slow_version_are_found(name: str) -> None:
    scene = Scene()
    y = TARGETS[name](*scene.X.T)
    slow = scene.slow_hits(y)
    assert scene.hits(y) == slow
    assert bool(slow) == (name != "nothing")


def test_the_way_back_leads_to_the_target() -> None:
    scene = Scene()
    y = TARGETS["negative root"](*scene.X.T)
    first, *_ = scene.sweep.hits(y, 1.0, lambda: False)
    root = first.back(Variable(3))
    assert str(root) == str(build("add", Variable(1), build("neg", build("sqrt", Variable(3)))))


def test_what_rests_on_one_row_comes_last() -> None:
    sweep = Scene().sweep
    ruled = np.where(np.arange(N) == 5, 1e6, 1.0)
    plain, chance = (
        sweep._hit(a, FIRST[0][1], THEN[0], 1.0, values, h, None)
        for a, values, h in ((3, np.linspace(1.0, 2.0, N), 3), (0, ruled, 0))
    )
    assert chance.rank > plain.rank


def test_functions_that_are_not_allowed_bring_no_step() -> None:
    scene = Scene(FunctionSet(["add", "sub", "mul", "div", "sin"]))
    assert scene.hits(TARGETS["root"](*scene.X.T)) == set()
    assert scene.hits(TARGETS["fraction"](*scene.X.T))


def test_time_ends_it() -> None:
    scene = Scene()
    y = TARGETS["root"](*scene.X.T)
    assert scene.sweep.hits(y, 1.0, lambda: True) == []
    assert scene.sweep.hits(y, 0.5 * N * SWEPT.seconds_per_value, lambda: False) == []
