"""What a user knows of the formula's course and form, each as one frozen dataclass of one table.

A constraint of form is read off the tree alone. A constraint of course is proven by interval arithmetic where that can
tell, else tried on points. Every one has a text, which the command line, settings and model files use.

>>> Monotone(column="x").text()
'increasing in x'
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gmeql.formula.calculus import differentiate
from gmeql.formula.nodes import Call, Leaf, Node, Variable, calls, exponent_of, fold, transform, used_columns
from gmeql.formula.operators import EXPONENTS, get_operator
from gmeql.formula.simplify import simplify
from gmeql.knowledge.scene import Scene, Verdict, range_text, ranges_text

Ranges = tuple[tuple[str, float, float], ...]
_ARITHMETIC = frozenset({"add", "sub", "mul", "div", "neg", "id", "pow", *EXPONENTS})
"""Operators that stand outside limits on functions: sums, products and powers."""
FAR = (1e3, 1e6, 1e9, 1e12)
"""How many times its range a column is taken away to see a limit."""
NEAR_LIMIT = 1e-3
"""Distance from a limit, in units of the target's spread, that must be left at the furthest."""


@dataclass(frozen=True)
class Constraint:
    """What every constraint has: a text, and whether it is hard (a formula that breaks it is not kept) or a price."""

    soft: bool = False
    needs_values: ClassVar[bool] = True
    """Whether values of the formula decide; else its tree alone does, before anything is fitted."""

    def text(self) -> str:
        """As it is written: "soft" in front of what is a price."""
        return ("soft " if self.soft else "") + self._text()

    def _text(self) -> str:
        raise NotImplementedError

    def check(self, root: Node, scene: Scene) -> Verdict:
        """Whether a formula keeps it, over the columns' ranges."""
        raise NotImplementedError

    def columns(self) -> tuple[str, ...]:
        """Columns that it names."""
        return ()

    @property
    def no_offset(self) -> bool:
        """Whether it does not go with a constant added to the formula."""
        return False


@dataclass(frozen=True)
class Monotone(Constraint):
    """The target rises (or falls) with a column, over the ranges of all columns."""

    column: str = ""
    rises: bool = True
    domain: Ranges = ()

    def _text(self) -> str:
        return f"{'increasing' if self.rises else 'decreasing'} in {self.column}{_for(self.domain)}"

    def columns(self) -> tuple[str, ...]:
        return self.column, *(name for name, _, _ in self.domain)

    def check(self, root: Node, scene: Scene) -> Verdict:
        slope = differentiate(root, scene.column(self.column))
        other = {name: (low, high) for name, low, high in self.domain}
        found = scene.bounds(slope, other)
        small = scene.small / max(_width(scene, self.column), 1e-300)  # bounds are rounded outward
        if found.defined and (found.low >= -small if self.rises else found.high <= small):
            return Verdict(True, proven=True)
        values = scene.values(slope, scene.points(other))
        return Verdict(bool(np.all(values >= -small if self.rises else values <= small)))


@dataclass(frozen=True)
class Bounded(Constraint):
    """The output stays between two values, over the ranges of all columns."""

    low: float = -math.inf
    high: float = math.inf
    domain: Ranges = ()

    def _text(self) -> str:
        return range_text("output", self.low, self.high) + _for(self.domain)

    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.domain)

    def check(self, root: Node, scene: Scene) -> Verdict:
        other = {name: (low, high) for name, low, high in self.domain}
        found = scene.bounds(root, other)
        small = scene.small  # bounds are rounded outward
        if found.defined and self.low - small <= found.low and found.high <= self.high + small:
            return Verdict(True, proven=True)
        values = scene.values(root, scene.points(other))
        return Verdict(bool(np.all((values >= self.low - small) & (values <= self.high + small))))


@dataclass(frozen=True)
class Mirrored(Constraint):
    """The output keeps its value (even) or changes its sign (odd) with the sign of a column."""

    column: str = ""
    odd: bool = False

    def _text(self) -> str:
        return f"{'odd' if self.odd else 'even'} in {self.column}"

    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def no_offset(self) -> bool:
        return self.odd

    def check(self, root: Node, scene: Scene) -> Verdict:
        index, sign = scene.column(self.column), -1.0 if self.odd else 1.0

        def leaf(node: Leaf) -> Node:
            return Call("neg", (node,)) if isinstance(node, Variable) and node.index == index else node

        return _same(transform(root, leaf), root, sign, scene)


@dataclass(frozen=True)
class Exchangeable(Constraint):
    """The output stays when two columns change places."""

    first: str = ""
    second: str = ""

    def _text(self) -> str:
        return f"symmetric in {self.first}, {self.second}"

    def columns(self) -> tuple[str, ...]:
        return self.first, self.second

    def check(self, root: Node, scene: Scene) -> Verdict:
        i, j = scene.column(self.first), scene.column(self.second)
        other = {i: Variable(j), j: Variable(i)}

        def leaf(node: Leaf) -> Node:
            return other.get(node.index, node) if isinstance(node, Variable) else node

        return _same(transform(root, leaf), root, 1.0, scene)


@dataclass(frozen=True)
class Point(Constraint):
    """The output at some values of columns, whatever the others are."""

    at: tuple[tuple[str, float], ...] = ()
    value: float = 0.0

    def _text(self) -> str:
        return f"f({', '.join(f'{name}={value:g}' for name, value in self.at)}) = {self.value:g}"

    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.at)

    @property
    def no_offset(self) -> bool:
        return self.value == 0

    def check(self, root: Node, scene: Scene) -> Verdict:
        X = scene.points({name: (value, value) for name, value in self.at})
        values = scene.values(root, X)
        return Verdict(bool(np.all(np.abs(values - self.value) <= scene.small)))


@dataclass(frozen=True)
class Limit(Constraint):
    """What the output tends to as a column grows beyond all bounds, whatever the others are."""

    column: str = ""
    towards: float = math.inf
    value: float = 0.0

    def _text(self) -> str:
        return f"f -> {self.value:g} as {self.column} -> {self.towards:g}"

    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def no_offset(self) -> bool:
        return self.value == 0

    def check(self, root: Node, scene: Scene) -> Verdict:
        low, high = scene.ranges[scene.column(self.column)]
        size = max(abs(low), abs(high), 1.0)
        far = []
        for times in FAR:
            place = math.copysign(times * size, self.towards)
            values = scene.values(root, scene.points({self.column: (place, place)}))
            far.append(float(np.max(np.abs(values - self.value), initial=0.0)) / scene.spread)
        falls = all(math.isfinite(d) for d in far) and all(b <= a + 1e-9 for a, b in itertools.pairwise(far))
        return Verdict(falls and far[-1] <= NEAR_LIMIT)


@dataclass(frozen=True)
class Finite(Constraint):
    """The output has a finite value all over a domain, beyond the data if need be: only what is proven counts."""

    domain: Ranges = ()

    def _text(self) -> str:
        return f"finite{_for(self.domain)}"

    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.domain)

    def check(self, root: Node, scene: Scene) -> Verdict:
        proven = scene.bounds(root, {name: (low, high) for name, low, high in self.domain}).finite
        return Verdict(proven, proven)


@dataclass(frozen=True)
class LargestExponent(Constraint):
    """No power beyond an exponent, whichever way it is written."""

    most: float = 6.0
    needs_values: ClassVar[bool] = False

    def _text(self) -> str:
        return f"exponent <= {self.most:g}"

    def check(self, root: Node, scene: Scene | None = None) -> Verdict:
        for node in calls(root):
            exponent = exponent_of(node.operator, node.args)
            if exponent is not None and abs(exponent) > self.most:
                return Verdict(False, True)
            if node.operator == "pow" and exponent is None:
                return Verdict(False, True)  # an exponent that varies has no bound
        return Verdict(True, True)


@dataclass(frozen=True)
class Nesting(Constraint):
    """How often a function may stand inside another, or inside itself."""

    inner: str = ""
    outer: str = ""
    most: int = 0
    needs_values: ClassVar[bool] = False

    def _text(self) -> str:
        return f"{self.inner} in {self.outer} <= {self.most}"

    def check(self, root: Node, scene: Scene | None = None) -> Verdict:
        worst = [0]

        def call(node: Call, counts: list[int]) -> int:
            inside = max(counts, default=0)
            if node.operator == self.outer:
                worst[0] = max(worst[0], inside)
            return inside + (node.operator == self.inner)

        fold(root, lambda leaf: 0, call)
        return Verdict(worst[0] <= self.most, True)


@dataclass(frozen=True)
class FunctionsOf(Constraint):
    """Functions that a column may stand in; sums, products and powers are always allowed."""

    column: str = ""
    functions: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """All columns, by which the column's number is known."""
    needs_values: ClassVar[bool] = False

    def _text(self) -> str:
        return f"functions of {self.column}: {', '.join(self.functions) or 'none'}"

    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def check(self, root: Node, scene: Scene | None = None) -> Verdict:
        index = self.names.index(self.column)
        allowed = _ARITHMETIC | {get_operator(name).name for name in self.functions}
        broken = any(node.operator not in allowed and index in used_columns(node) for node in calls(root))
        return Verdict(not broken, True)


@dataclass(frozen=True)
class MostTerms(Constraint):
    """No more terms in the outermost sum than this, in normal form."""

    most: int = 1
    needs_values: ClassVar[bool] = False

    def _text(self) -> str:
        return f"terms <= {self.most}"

    @property
    def no_offset(self) -> bool:
        return self.most == 1

    def check(self, root: Node, scene: Scene | None = None) -> Verdict:
        return Verdict(_terms(root) <= self.most, True)


def _terms(root: Node) -> int:
    if isinstance(root, Call) and root.operator in ("add", "sub"):
        return sum(_terms(arg) for arg in root.args)
    if isinstance(root, Call) and root.operator == "mul":  # c*(a + b) has the terms of a + b
        return max(_terms(arg) if isinstance(arg, Call) and arg.operator in ("add", "sub") else 1 for arg in root.args)
    return 1


def _for(domain: Ranges) -> str:
    return f" for {ranges_text(domain)}" if domain else ""


def _width(scene: Scene, column: str) -> float:
    low, high = scene.ranges[scene.column(column)]
    return high - low


def _same(changed: Node, root: Node, sign: float, scene: Scene) -> Verdict:
    """Whether a changed formula is the formula, or its negative: by normal forms, else on points."""
    try:
        goal = root if sign > 0 else Call("neg", (root,))
        if simplify(changed) == simplify(goal):
            return Verdict(True, proven=True)
    except (ArithmeticError, ValueError):  # a constant that no float holds: points will tell
        pass
    X = scene.points()
    one, other = scene.values(changed, X), sign * scene.values(root, X)
    return Verdict(bool(np.all(np.abs(one - other) <= 1e-9 * np.abs(other) + scene.small)))


CONSTRAINTS: dict[str, tuple[type[Constraint], str]] = {
    "monotone": (Monotone, "increasing in x / decreasing in x for 0 <= x <= 10"),
    "bounded": (Bounded, "output >= 0 / 0 <= output <= 1"),
    "mirrored": (Mirrored, "even in x / odd in x"),
    "exchangeable": (Exchangeable, "symmetric in x, y"),
    "point": (Point, "f(x=0) = 0"),
    "limit": (Limit, "f -> 0 as x -> inf"),
    "finite": (Finite, "finite for 0 <= x <= 100"),
    "exponent": (LargestExponent, "exponent <= 3"),
    "nesting": (Nesting, "sin in exp <= 0"),
    "functions": (FunctionsOf, "functions of x: sin, exp"),
    "terms": (MostTerms, "terms <= 4"),
}
"""The one table of constraints: by name, the class and how it is written."""
