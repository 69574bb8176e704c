"""Where constraints are looked at: the ranges of the columns, points in them, and the size of the target.

What interval arithmetic can prove over whole ranges is proven; the rest is tried on points, corners among them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gmeql.formula.bounds import Bounds, bounds
from gmeql.formula.nodes import Call, Constant, Leaf, Node, Variable, row_values, transform

POINTS = 10_000
"""Points that a formula is tried on where nothing is proven."""
MAX_CORNERS = 1024
"""Corners of the ranges among them, at most."""
SEED = 20_261


@dataclass(frozen=True)
class Verdict:
    """Whether a formula keeps a constraint, and whether that is proven for whole ranges or seen on points."""

    holds: bool
    proven: bool = False


@dataclass(frozen=True)
class Scene:
    """Columns by name with their ranges [V, 2], and the spread of the target.

    The search may see columns and target divided by powers of two; `column_exponents` and `target_exponent` say which,
    so that constraints speak of the user's numbers.
    """

    names: tuple[str, ...]
    ranges: tuple[tuple[float, float], ...]
    spread: float
    column_exponents: tuple[int, ...] = ()
    target_exponent: int = 0

    def column(self, name: str) -> int:
        """The number of a column."""
        return self.names.index(name)

    def in_users_units(self, root: Node) -> Node:
        """A formula of the table that the search sees, over the user's numbers."""
        if not any(self.column_exponents) and not self.target_exponent:
            return root

        def leaf(node: Leaf) -> Node:
            if isinstance(node, Variable) and self.column_exponents[node.index]:
                return Call("mul", (Constant(math.ldexp(1.0, -self.column_exponents[node.index])), node))
            return node

        return Call("mul", (Constant(math.ldexp(1.0, self.target_exponent)), transform(root, leaf)))

    def ranges_with(self, other: Mapping[str, tuple[float, float]]) -> np.ndarray:
        """The ranges [V, 2], some of them replaced; an end without a bound stays where the data end."""
        wanted = np.array([other.get(n, own) for n, own in zip(self.names, self.ranges, strict=True)], float)
        return np.where(np.isfinite(wanted), wanted, np.array(self.ranges, float))

    def bounds(self, root: Node, other: Mapping[str, tuple[float, float]] | None = None) -> Bounds:
        """Between which values a formula is certain to stay over the ranges."""
        return bounds(root, self.ranges_with(other or {}))

    def points(self, other: Mapping[str, tuple[float, float]] | None = None) -> np.ndarray:
        """Points [N, V] of the ranges: corners, then random ones, always the same."""
        ranges = self.ranges_with(other or {})
        corners = list(itertools.islice(itertools.product(*ranges), MAX_CORNERS))
        rng = np.random.default_rng(SEED)
        inside = rng.uniform(ranges[:, 0], ranges[:, 1], (POINTS - len(corners), len(ranges)))
        return np.concatenate([np.array(corners), inside])

    def values(self, root: Node, X: np.ndarray) -> np.ndarray:
        """A formula's values on points."""
        return row_values(root, self.names, X)

    @property
    def small(self) -> float:
        """A difference that is rounding beside the target's spread."""
        return 1e-9 * self.spread


def ranges_text(ranges: Sequence[tuple[str, float, float]]) -> str:
    """Ranges as people write them: 0 <= x <= 10, t >= 0."""
    return ", ".join(range_text(name, low, high) for name, low, high in ranges)


def range_text(name: str, low: float, high: float) -> str:
    """One range, open ends left out."""
    if math.isinf(low) and low < 0:
        return f"{name} <= {high:g}"
    return f"{name} >= {low:g}" if math.isinf(high) else f"{low:g} <= {name} <= {high:g}"


def scene_from_dict(data: Mapping[str, Any]) -> Scene:
    """The scene that `dataclasses.asdict` gave, after a way through JSON too."""
    return Scene(
        tuple(data["names"]),
        tuple((float(low), float(high)) for low, high in data["ranges"]),
        float(data["spread"]),
        tuple(int(e) for e in data["column_exponents"]),
        int(data["target_exponent"]),
    )
