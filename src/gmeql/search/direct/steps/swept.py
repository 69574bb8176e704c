"""One step by any of thousands of small formulas, towards a plain sum with a strange function in it.

x + sin(z) + sqrt(x - (z + 10)/(u + v)) is P + h Q (`strange.py`) after one step: take x + sin(z) off and square. Which step it
is need not be read off the values: all steps by all small formulas a are taken, target - a, + a, / a and * a with what undoes a
function after it, and what each leaves is asked at once. In the directions in which plain terms vanish it is a short vector:
of a plain sum nothing is left, one with a small formula h beside it has the direction of h and is found by look-up in a sorted
list, and one with h Q lies in the span of a block.

Legend: `N` rows, `D` directions, `A` small formulas to step by, `H` small formulas, `T` targets, `B` columns of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Node, build
from gmeql.network.families import FunctionSet

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class SweptConfig:
    """Numbers of the method, chosen on random formulas of two to seven columns."""

    values: float = 8e5  # of small formulas that steps are taken by, at most,
    seconds_per_value: float = 4e-7  # of one core (measured)
    at_once: int = 400
    into_blocks: int = 60  # and of these the plainest whose targets are asked for blocks
    keys: int = 8  # directions by which a target is looked up
    near: float = 3e-8  # in the first of them,
    same: float = 1e-6  # and in all
    vanished: float = 1e-10  # share of a target, in these directions, that is rounding
    promising: float = 1e-4  # share of its square that single precision does not tell from nothing,
    in_block: float = 1e-12  # ... and that is rounding
    swamped: float = 1e3  # times the target's size is a formula beside which the target is not seen
    largest: float = 1e14
    largest_exponent: float = 30.0
    one_row: float = 0.9  # share of its square that a target may have on one row: those of more are mostly chance
    tried: int = 4  # hits that are tried in full, the plainest first


SWEPT = SweptConfig()


class Then(NamedTuple):
    """What undoes a function: on values, and on a formula of what that leads to; the functions that this brings in.

    `keeps_sign`: values of both signs would come back with one.
    """

    forward: Callable[[FloatArray], FloatArray]
    back: Callable[[Node], Node]
    needs: frozenset[str]
    keeps_sign: bool


def _exp(values: FloatArray) -> FloatArray:
    """Exponentials; not a number where they are too large or small to be added to anything."""
    return np.exp(np.where(np.abs(values) < SWEPT.largest_exponent, values, np.nan))


FIRST: tuple[tuple[Callable[[FloatArray, FloatArray], FloatArray], Callable[[Node, Node], Node], str], ...] = (
    (np.subtract, lambda rest, a: build("add", a, rest), "add"),
    (np.add, lambda rest, a: build("sub", rest, a), "sub"),
    (np.divide, lambda rest, a: build("mul", a, rest), "mul"),
    (np.multiply, lambda rest, a: build("div", rest, a), "div"),
)
"""What a step by a formula leaves, the way back, and the function that this brings in."""
THEN: tuple[Then, ...] = (
    Then(lambda t: t, lambda root: root, frozenset(), False),
    Then(lambda t: 1.0 / t, lambda root: build("inv", root), frozenset({"div"}), False),
    Then(np.square, lambda root: build("sqrt", root), frozenset({"sqrt"}), True),
    Then(_exp, lambda root: build("log", root), frozenset({"log"}), False),
    Then(lambda t: np.log(np.abs(t)), lambda root: build("exp", root), frozenset({"exp"}), True),
    Then(lambda t: 1.0 / (t * t), lambda root: build("inv", build("sqrt", root)), frozenset({"sqrt", "div"}), True),
    Then(
        lambda t: np.log(np.abs(t)) ** 2,
        lambda root: build("exp", build("sqrt", root)),
        frozenset({"exp", "sqrt"}),
        True,
    ),
)
"""What may be undone of what such a step leaves."""


class Hit(NamedTuple):
    """A step after which a target [N] is a plain sum with a small formula, or with the terms of a block, beside it."""

    rank: int
    target: FloatArray
    back: Callable[[Node], Node]
    formula: int = -1
    block: tuple[int, int] | None = None
    """Which kind of blocks, and which of them."""


class Sweep:
    """Steps by formulas with values [A, N] over weighted rows [N], seen in `directions` [N, D] in which plain sums vanish.

    `vectors` [H, D] are small formulas as seen there, of size 1 or zero, `bases` [H, D, B] blocks for each kind of them.
    """

    def __init__(
        self,
        values: FloatArray,
        node: Callable[[int], Node],
        *,
        weights: FloatArray,
        directions: FloatArray,
        vectors: FloatArray,
        bases: Sequence[FloatArray],
        functions: FunctionSet,
    ) -> None:
        self.numbers = np.flatnonzero(np.ptp(values, axis=1) > 0)
        self.values, self.node = values[self.numbers], node
        self.weights, self.directions = weights, directions
        self.sizes = np.linalg.norm(self.values * weights, axis=1)
        self.steps = [
            (first, [then for then in THEN if functions.allows(set(then.needs))])
            for first in FIRST
            if functions.allows({first[2]})
        ]
        keys, usable = _directed(vectors[:, : SWEPT.keys])
        self.order = usable[np.argsort(keys[usable, 0], kind="stable")]
        self.keys = keys[self.order]
        self.bases = [
            (len(some), np.ascontiguousarray(some.transpose(1, 0, 2)).reshape(some.shape[1], -1).astype(np.float32))
            for some in bases
        ]
        self.exact_bases = bases

    def hits(self, target: FloatArray, seconds: float, out_of_time: Callable[[], bool]) -> list[Hit]:
        """Steps after which the target [N] is such a sum, the plainest first; as many are taken as the time is enough for."""
        found: list[Hit] = []
        most = int(min(SWEPT.values, seconds / SWEPT.seconds_per_value) / len(target))
        most = min(most, len(self.values))
        size = float(np.linalg.norm(target * self.weights))
        with np.errstate(all="ignore"):
            for start in range(0, most, SWEPT.at_once):
                some = slice(start, min(start + SWEPT.at_once, most))
                for first, thens in self.steps:
                    if out_of_time():
                        return sorted(found, key=lambda hit: hit.rank)
                    rest = first[0](target, self.values[some])
                    is_seen = self.sizes[some] < SWEPT.swamped * size if first[2] in ("add", "sub") else True
                    usable = np.isfinite(rest).all(axis=1) & is_seen
                    signs = np.sign(rest).sum(axis=1)
                    for then in thens:
                        allowed = usable & (np.abs(signs) == len(target)) if then.keeps_sign else usable
                        # those that keep their sign are few
                        asked = SWEPT.at_once if then.keeps_sign else SWEPT.into_blocks if start == 0 else 0
                        for hit in self._asked(then.forward(rest[allowed]), asked):
                            k = int(np.flatnonzero(allowed)[hit[0]])
                            found.append(self._hit(start + k, first[1], then, float(signs[k]), *hit[1:]))
        return sorted(found, key=lambda hit: hit.rank)

    def _hit(
        self,
        a: int,
        step_back: Callable[[Node, Node], Node],
        then: Then,
        sign: float,
        values: FloatArray,
        formula: int,
        block: tuple[int, int] | None,
    ) -> Hit:
        """The hit of a step by formula `a`, with the way back from it."""

        def back(root: Node) -> Node:
            rest = then.back(root)
            signed = build("neg", rest) if then.keeps_sign and sign < 0 else rest
            return step_back(signed, self.node(int(self.numbers[a])))

        squares = (values * self.weights) ** 2
        is_chance = float(squares.max()) > SWEPT.one_row * float(squares.sum())
        rank = a + max(formula, 0) + is_chance * (len(self.values) + len(self.order))  # after all others
        return Hit(rank, values, back, formula, block)

    def _asked(
        self, targets: FloatArray, for_blocks: int
    ) -> Iterator[tuple[int, FloatArray, int, tuple[int, int] | None]]:
        """Which of some targets [T, N] are plain sums, with the values, a small formula or a block beside them.

        The first so many are asked for blocks.
        """
        peaks = np.abs(targets).max(axis=1, initial=0.0)
        usable = np.flatnonzero((peaks < SWEPT.largest) & (np.ptp(targets, axis=1) > SWEPT.vanished * peaks))
        weighted = targets[usable] * self.weights
        weighted = weighted / np.linalg.norm(weighted, axis=1, keepdims=True)
        shown = weighted @ self.directions[:, : SWEPT.keys]
        sizes = np.linalg.norm(shown, axis=1)
        for place in np.flatnonzero(sizes < SWEPT.vanished):
            yield int(usable[place]), targets[usable[place]], -1, None
        for k, h in self._looked_up(np.where(sizes[:, None] < SWEPT.vanished, 0.0, shown)):
            yield int(usable[k]), targets[usable[k]], h, None
        if for_blocks and len(usable):
            for k, block in self._in_blocks(weighted[:for_blocks]):
                yield int(usable[k]), targets[usable[k]], -1, block

    def _looked_up(self, shown: FloatArray) -> Iterator[tuple[int, int]]:
        """Targets [T, keys] and the small formulas whose direction they have."""
        keys, usable = _directed(shown)
        first = np.searchsorted(self.keys[:, 0], keys[usable, 0] - SWEPT.near)
        last = np.searchsorted(self.keys[:, 0], keys[usable, 0] + SWEPT.near)
        for place in np.flatnonzero(last > first):
            near = slice(int(first[place]), int(last[place]))
            distances = np.abs(self.keys[near] - keys[usable[place]]).max(axis=1)
            if distances.min() < SWEPT.same:
                yield int(usable[place]), int(self.order[near][np.argmin(distances)])

    def _in_blocks(self, weighted: FloatArray) -> Iterator[tuple[int, tuple[int, int]]]:
        """Targets [T, N] and the blocks in whose span they are: told in single precision first."""
        shown = weighted @ self.directions
        shown = shown / np.linalg.norm(shown, axis=1, keepdims=True)
        for kind, (n_blocks, bases) in enumerate(self.bases):
            inside = (shown.astype(np.float32) @ bases).reshape(len(shown), n_blocks, -1)
            left = 1.0 - np.einsum("thb,thb->th", inside, inside)
            for k, h in zip(*np.nonzero(left < SWEPT.promising), strict=True):
                if 1.0 - float(np.sum((shown[k] @ self.exact_bases[kind][h]) ** 2)) < SWEPT.in_block:
                    yield int(k), (kind, int(h))


def _directed(vectors: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
    """Vectors [K, D] with size 1 and the first entry not below zero, and which of them are not zero."""
    with np.errstate(all="ignore"):
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit * np.where(unit[:, :1] < 0, -1.0, 1.0), np.flatnonzero(np.isfinite(unit).all(axis=1))
