"""Columns that the target reads together, as one product or one sum, where a power of one may stand before: read off slopes.

- y = φ(u)^k g(ψ(w) φ(u)^p): thin films read n d cos(θ), gratings d sin(θ), Compton's law E sin(θ/2)². With L = φ/φ' ∂/∂u and
  M = ψ/ψ' ∂/∂w that is L y = p M y + k y, linear in p and k; multiplied by φ' ψ' it has no poles.
- y = u^k g(uᵖ ± wᵠ): a resonance reads W² + (ω - ω₀)² below a W². With L = u¹⁻ᵖ/p ∂/∂u and M = w¹⁻ᵠ/q ∂/∂w that is
  L y = ± M y + k/p u⁻ᵖ y, linear in k; k = 0 is two columns merged.

Legend: `N` rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Node, Variable
from gmeql.search.symmetries.config import SYMMETRIES
from gmeql.search.symmetries.factors import misfit, parts_of

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Joined:
    """Two columns read as one: `left` and `right` are functions of a `Variable(0)` that stands for column `i` and `j`,
    `before` the exponent of column i's function before the rest. They are a product, or a sum with the `sign` of the second."""

    away: float
    """How far slopes are from that."""
    i: int
    j: int
    left: tuple[Node, float]
    right: tuple[Node, float]
    before: float
    sign: float = 0.0
    """0 for products."""


def joined_products(
    table: FloatArray, slopes: FloatArray, target: FloatArray, matters: Sequence[int]
) -> Iterator[Joined]:
    """Pairs of the columns that matter, read as a product of functions of theirs; in no order."""
    with np.errstate(all="ignore"):
        parts = {j: parts_of(table[:, j], SYMMETRIES.joined_parts) for j in matters}
        for i, j in itertools.permutations(matters, 2):
            pairs = list(itertools.product(parts[i], parts[j]))
            # y = u^k g(w u^p) is y = w^(-k/p) g' of the same: for powers one order is enough
            pairs = [(one, other) for one, other in pairs if i < j or (one[0], other[0]) != (_X, _X)]
            if not pairs:
                continue
            (f, df), (g, dg) = (
                np.stack([[part[1], part[2]] for part in side], axis=1) for side in zip(*pairs, strict=True)
            )
            fields = slopes[:, i] * f * dg, slopes[:, j] * g * df, target * df * dg
            for place, p, k, away in _solved(*fields):
                (one, *_), (other, *_) = pairs[place]
                plain = (one == _X) + (other == _X)
                if i < j or k != 0:  # without a power before it a product is the same from both sides
                    cost = SYMMETRIES.power_cost * (abs(p) + abs(k)) + SYMMETRIES.part_cost * (2 - plain)
                    yield Joined(away + cost, i, j, (one, p), (other, 1.0), k)


def _solved(rises: FloatArray, across: FloatArray, along: FloatArray) -> Iterator[tuple[int, float, float, float]]:
    """Of pairs [P, N]: p and k with which `p across + k along` is nearly a rise, and how far it is from that; where p and k are
    plain numbers and it is not far."""
    products = [np.einsum("pn,pn->p", a, b) for a, b in ((across, across), (across, along), (along, along))]
    first, second = (np.einsum("pn,pn->p", a, rises) for a in (across, along))
    apart = products[0] * products[2] - products[1] ** 2
    exact = np.stack([first * products[2] - second * products[1], second * products[0] - first * products[1]]) / apart
    plain = np.round(2 * exact) / 2
    p, k = plain
    told = np.isfinite(plain).all(axis=0) & (p != 0) & (np.abs(p) <= SYMMETRIES.joined_power)
    told &= np.abs(k) <= SYMMETRIES.largest_power
    for place in np.flatnonzero(told):
        away = misfit(rises[place], p[place] * across[place] + k[place] * along[place])
        if away < SYMMETRIES.rough_misfit:
            yield int(place), float(p[place]), float(k[place]), away


def joined_sums(table: FloatArray, slopes: FloatArray, target: FloatArray, matters: Sequence[int]) -> Iterator[Joined]:
    """Pairs of the columns that matter, read as a sum of powers with a power of the first before it; in no order."""
    with np.errstate(all="ignore"):
        for i, j in itertools.permutations(matters, 2):
            u, w = table[:, i], table[:, j]
            if not ((u != 0).all() and (w != 0).all()):
                continue
            for p, q in itertools.product(SYMMETRIES.joined_powers, repeat=2):
                # both times the first's power
                own, other = slopes[:, i] * u / p, slopes[:, j] * u**p * w ** (1 - q) / q
                along = target / p
                square = float(along @ along)
                for sign in (1.0, -1.0):
                    rest = own - sign * other
                    k = float(np.round(2 * (rest @ along) / square) / 2) if square > 0 else 0.0
                    if not (k != 0 and abs(k) <= SYMMETRIES.largest_power and math.isfinite(k)):
                        continue
                    away = misfit(own - k * along, sign * other)
                    cost = SYMMETRIES.power_cost * (abs(p) + abs(q) + abs(k))
                    yield Joined(away + cost, i, j, (_X, p), (_X, q), k, sign)


_X = Variable(0)
