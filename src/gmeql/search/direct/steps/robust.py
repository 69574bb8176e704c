"""Terms that show in a target although most of it is hidden: a regression with weights that leave out what it does not explain.

What is hidden, a root or a wave beside the terms, is noise with heavy tails to it. A true term stands hundreds or thousands of
standard errors from nothing, and one that stands in for what is hidden hardly ever above a hundred.

Legend: `N` rows, `M` terms, `K` chosen ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RobustConfig:
    """Numbers of the regression; "tried" on sums of plain terms with a root, a fraction or an exponential beside them."""

    rows: int = 400
    chosen: int = 10  # terms at most,
    gain: float = 0.97  # each of which leaves no more than this share of the error
    rounds: int = 4  # of weights, by the errors of the round before: one of `far` typical ones has half its weight
    far: float = 2.0
    typical: float = 1.5  # times the median of errors is a typical one
    leading: int = 100  # terms that the later rounds choose from
    independent: float = 1e-8  # share of a term's square that must be left beside those chosen
    whole: tuple[tuple[float, ...], ...] = ((1.0, 2.0), (0.5, 1.0, 2.0))  # factors of terms that are taken for exact
    near: tuple[float, ...] = (0.004, 0.03)  # where a regression comes so near to them, relative to their size
    surely: tuple[float, ...] = (
        1000.0,
        150.0,
    )  # standard errors of a factor from which its term is no chance: true ones
    # had 200 to a million, others up to 130 and rarely 400; what is hidden bends it by some of these, so that it is
    hidden: float = 0.08  # a whole number within this, relative to its size,
    digits: int = 2  # or one of so many digits behind the point, as people write,
    as_written: float = 1e-3  # and by chance rarely as near as this to it
    may_show: float = 15.0  # standard errors of a term that may stand beside what is left


ROBUST = RobustConfig()
Weighted = list[tuple[float, int]]
"""Factors and numbers of terms."""


class Shown(NamedTuple):
    """Numbers of terms that show in a target, their factors and that of a constant behind them, and how many standard errors
    each factor is [K + 1]."""

    numbers: list[int]
    factors: list[float]
    seen: FloatArray

    def near_whole(self) -> Iterator[Weighted]:
        """The terms whose factors are nearly whole, with these; term 0 is 1."""
        for whole, near in product(ROBUST.whole, ROBUST.near):
            rounded = [nearest(c, whole, near * abs(c)) for c in self.factors]
            yield [(c, m) for c, m in zip(rounded, [*self.numbers, 0], strict=True) if c]

    def clear(self) -> Iterator[Weighted]:
        """The terms whose factors are many standard errors, with whole numbers near by or those that people write."""
        for surely, whole in product(ROBUST.surely, (ROBUST.whole[-1], ())):
            clear = [(c, m) for m, c, s in zip(*self, strict=False) if s > surely]
            written = [(nearest(c, whole, ROBUST.hidden * abs(c)) or round(c, ROBUST.digits), m) for c, m in clear]
            yield [(c, m) for c, m in written if c]

    def are_written(self, terms: Weighted) -> bool:
        """Whether the factors of some terms came so near to those given that these are hardly chance: to their digits, or
        those of several terms to whole numbers."""
        met = dict(zip(self.numbers, self.factors, strict=False))
        is_whole = len(terms) > 1 and all(abs(c) in ROBUST.whole[-1] for c, _ in terms)
        return all(abs(c - met[m]) < max(ROBUST.as_written, is_whole * ROBUST.near[-1] * abs(c)) for c, m in terms)

    def others(self, terms: Weighted) -> list[int]:
        """Numbers of terms beside these that may stand in the target, too."""
        taken = {m for _, m in terms}
        return [m for m, _, s in zip(*self, strict=False) if m not in taken and s > ROBUST.may_show]


def nearest(value: float, allowed: Sequence[float], slack: float) -> float:
    """The allowed size that a value comes nearest to, with its sign; 0 where none is within the slack."""
    near = min(allowed, key=lambda size: abs(abs(value) - size), default=math.inf)
    return math.copysign(near, value) if abs(abs(value) - near) <= slack else 0.0


def robust_choice(terms: FloatArray, target: FloatArray) -> Shown:
    """The few of some terms [M, N] that explain most of a target [N].

    One after the other is chosen by the squares it explains, several times over, with weights (Cauchy's) that leave the
    rows out that the last choice does not explain.
    """
    rows = min(len(target), ROBUST.rows)
    terms, target = terms[:, :rows], target[:rows]
    usable = np.flatnonzero(np.isfinite(terms).all(axis=1) & (np.ptp(terms, axis=1) > 0))
    left: FloatArray = np.asarray(target - np.median(target))
    chosen: list[int] = []
    factors: FloatArray = np.zeros(1)
    seen: FloatArray = np.zeros(1)
    for turn in range(ROBUST.rounds):
        scale = ROBUST.far * ROBUST.typical * float(np.median(np.abs(left)))
        if not scale > 0 or not len(usable):
            break
        roots = 1.0 / np.hypot(1.0, left / scale)
        numbers, met = _greedy(terms[usable] * roots, target * roots, roots)
        chosen = [int(m) for m in usable[numbers]]
        if turn == 0:
            usable = usable[met]
        table = np.column_stack([*terms[chosen], np.ones(rows)])
        weighted = table * roots[:, None]
        factors = np.asarray(np.linalg.lstsq(weighted, target * roots, rcond=None)[0])
        left = np.asarray(target - table @ factors)
        spare = max(rows - len(factors), 1)
        seen = np.abs(factors) / _errors(weighted, math.sqrt(float(np.sum((left * roots) ** 2)) / spare))
    return Shown(chosen, [float(c) for c in factors], seen)


def _errors(columns: FloatArray, noise: float) -> FloatArray:
    """Standard errors of factors of columns [N, K] under noise of some size; least squares."""
    inverse = np.linalg.pinv(np.linalg.qr(columns, mode="r"))
    return np.asarray(noise * np.sqrt(np.sum(inverse**2, axis=1)) + np.finfo(float).tiny)


def _greedy(columns: FloatArray, target: FloatArray, ones: FloatArray) -> tuple[list[int], NDArray[np.int64]]:
    """Columns [M, N] chosen one after the other, orthogonal least squares; and those that were ever near to that."""
    sizes = np.sqrt(np.einsum("mn,mn->m", columns, columns))
    columns = columns / np.where(sizes > 0, sizes, 1.0)[:, None]
    basis = [ones / np.linalg.norm(ones)]
    residual = target - (target @ basis[0]) * basis[0]
    free = 1.0 - (columns @ basis[0]) ** 2  # square of what is left of each column beside those chosen
    chosen: list[int] = []
    best = np.zeros(len(columns))
    for _ in range(min(ROBUST.chosen, len(columns))):
        gains = np.where(
            free > ROBUST.independent, (columns @ residual) ** 2 / np.maximum(free, ROBUST.independent), 0.0
        )
        best = np.maximum(best, gains / max(float(gains.max()), 1e-300))
        m, squares = int(np.argmax(gains)), float(residual @ residual)
        if not gains[m] > 0 or squares - float(gains[m]) > ROBUST.gain**2 * squares:
            break
        chosen.append(m)
        direction = columns[m]
        for _ in range(2):  # projected twice, since once rounds
            direction = direction - np.array(basis).T @ (np.array(basis) @ direction)
        basis.append(direction / np.linalg.norm(direction))
        residual = residual - (residual @ basis[-1]) * basis[-1]
        free = free - (columns @ basis[-1]) ** 2
    return chosen, np.sort(np.argsort(-best, kind="stable")[: ROBUST.leading])
