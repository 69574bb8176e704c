"""Terms of all equations chosen together, as the trajectories of a fitted system see them.

Around a fitted system the distance to the measurements is linear in small changes of the coefficients, start values
adapting (Gauss-Newton). So the slopes by the coefficients of all terms on offer, in all equations at once, turn the
choice of terms into one of columns of a matrix: terms are added, left out and exchanged, in whichever equation, until no
such step makes the description of the whole system shorter. A term that several equations share counts once.

Legend: `R` rows (measurements and ties), `C` columns: a term in an equation each.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.measured import Motion
from gmeql.differential.motion.moves import tidied
from gmeql.differential.motion.shooting import Shooting
from gmeql.differential.motion.sides import RightSides, terms_of
from gmeql.differential.motion.systems import COEFFICIENT, System, outlines, rarity, without_poles
from gmeql.differential.motion.terms import found_terms, outline, with_coefficient
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Node, build, tree_complexity
from gmeql.formula.products import split_terms

FloatArray = NDArray[np.float64]
Equations = tuple[Node, ...]
Chosen = tuple[int, ...]


@dataclass(frozen=True)
class Offers:
    """Every term on offer in every equation, as columns."""

    system: System
    equation: NDArray[np.intp]
    """[C]."""
    terms: tuple[Node, ...]
    """[C], without coefficients."""
    coefficients: FloatArray
    """[C] in the system; 0 for a term that is not there."""
    slopes: FloatArray
    """[R, C] of the distances by the coefficients, the start values adapting."""
    residual: FloatArray
    """[R] of the system, the start values adapting."""
    gains: FloatArray
    """[C] the share of the squared distances that each term would take off, all constants adapting (score test)."""
    points: int
    """Measured values."""
    noise: float = 0.0
    """Mean square of the distances that is there in any case: less of it tells nothing."""

    def take(self, columns: Sequence[int]) -> Offers:
        """Some of them."""
        place = np.array(columns, dtype=np.intp)
        return replace(
            self,
            equation=self.equation[place],
            terms=tuple(self.terms[c] for c in columns),
            coefficients=self.coefficients[place],
            slopes=self.slopes[:, place],
            gains=self.gains[place],
        )

    @cached_property
    def target(self) -> FloatArray:
        """[R] what the columns times their coefficients should be."""
        return self.slopes @ self.coefficients - self.residual

    @cached_property
    def _gram(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Products of the columns, each of length 1, among themselves and with the target, and their lengths."""
        length = np.sqrt((self.slopes**2).sum(axis=0))
        A = self.slopes / length
        return A.T @ A + 1e-12 * np.eye(A.shape[1]), A.T @ self.target, length

    @cached_property
    def prices(self) -> tuple[NDArray[np.intp], FloatArray]:
        """[C] a number for each term, and the nats it takes where it stands first."""
        numbers: dict[Node, int] = {}
        term = np.array([numbers.setdefault(t, len(numbers)) for t in self.terms], dtype=np.intp)
        alone = [
            MOTION.system.node_cost * (tree_complexity(t) - 1)
            + rarity([t])
            + self._constant * RightSides.of([t], 0).counts[0]
            for t in self.terms
        ]
        return term, np.array(alone)

    @property
    def _constant(self) -> float:
        """Nats of a constant."""
        return 0.5 * math.log(self.points)

    def lengths(self, chosen: NDArray[np.intp]) -> FloatArray:
        """[T] nats of the choices [T, n] of columns, up to a constant."""
        values, covariance, variance = self._solved(chosen)
        _, saved = self._written(chosen, values, covariance)
        term, alone = self.prices
        in_order = np.take_along_axis(chosen, np.argsort(term[chosen], axis=1, kind="stable"), axis=1)
        first = np.diff(term[in_order], axis=1, prepend=-1) != 0
        again = self._constant + 4.0 * MOTION.system.node_cost  # a coefficient, its product, a place, the term's name
        price = (alone[in_order] * first).sum(axis=1) + again * chosen.shape[1]
        lengths: FloatArray = 0.5 * self.points * np.log(variance) + price - saved
        return lengths

    def _written(
        self, chosen: NDArray[np.intp], values: FloatArray, covariance: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Coefficients [T, n] of the choices as one would write them, and the nats [T] saved thereby."""
        worth = self._constant + COEFFICIENT * MOTION.system.node_cost
        term, _ = self.prices
        values, covariance, saved = usual_units(values, covariance, worth)
        same = np.triu(term[chosen][:, :, None] == term[chosen][:, None, :], k=1)
        rows = np.flatnonzero(same.any(axis=(1, 2)))
        if len(rows):
            values[rows], more = equal_sizes(values[rows], covariance[rows], same[rows], worth)
            saved[rows] += more
        return values, saved

    def _solved(self, chosen: NDArray[np.intp]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Coefficients [T, n] of the choices [T, n], their covariances [T, n, n] and the variances left [T]."""
        gram, right, length = self._gram
        inverse = np.linalg.inv(gram[chosen[:, :, None], chosen[:, None, :]])
        values = (inverse @ right[chosen][..., None])[..., 0]
        total = float(self.target @ self.target)
        left = np.maximum(total - (values * right[chosen]).sum(axis=1), 1e-14 * total)
        variance = left / (self.points - chosen.shape[1]) + self.noise
        size = length[chosen]
        return values / size, inverse * variance[:, None, None] / (size[:, :, None] * size[:, None, :]), variance

    def equations(self, chosen: Chosen, count: int) -> Equations | None:
        """The system of the chosen columns, coefficients as the slopes would have them; None where a state has none."""
        picked = np.array([chosen])
        values, covariance, _ = self._solved(picked)
        values, _ = self._written(picked, values, covariance)
        found = []
        for j in range(count):
            parts = [
                with_coefficient(self.terms[c], v)
                for c, v in zip(chosen, values[0].tolist(), strict=True)
                if self.equation[c] == j
            ]
            if not parts:
                return None
            found.append(tidied(build("add", *parts) if len(parts) > 1 else parts[0]))
        return tuple(found)


def equal_sizes(
    values: FloatArray, covariance: FloatArray, same: NDArray[np.bool_], worth: float
) -> tuple[FloatArray, FloatArray]:
    """Coefficients [T, n] where pairs out of `same` [T, n, n] that may be equal up to their sign are, the others
    adapting; and the nats [T] saved thereby, `worth` for each, less what it takes from the fit.
    """
    values, covariance, same = values.copy(), covariance.copy(), same.copy()
    saved, rows = np.zeros(len(values)), np.arange(len(values))
    n = values.shape[1]
    for _ in range(n - 1):
        variance = np.diagonal(covariance, axis1=1, axis2=2)
        sign = np.sign(values[:, :, None] * values[:, None, :])
        spread = variance[:, :, None] + variance[:, None, :] - 2.0 * sign * covariance
        free = variance > 1e-12 * values**2  # what is 1 stays so
        with np.errstate(all="ignore"):
            gain = worth - 0.5 * (np.abs(values)[:, :, None] - np.abs(values)[:, None, :]) ** 2 / spread
        gain = np.where(same & free[:, :, None] & free[:, None, :] & (spread > 0), gain, -np.inf)
        i, j = np.divmod(gain.reshape(len(values), -1).argmax(axis=1), n)
        best = gain[rows, i, j]
        good = best > 0
        if not good.any():
            break
        s = sign[rows, i, j]
        across = covariance[rows, :, i] - s[:, None] * covariance[rows, :, j]
        across = across * good[:, None]
        column = across / np.where(good, spread[rows, i, j], 1.0)[:, None]
        values = values - column * (values[rows, i] - s * values[rows, j])[:, None]
        covariance = covariance - column[:, :, None] * across[:, None, :]
        values[rows[good], j[good]] = (s * values[rows, i])[good]  # to the last digit: constants that are equal are one
        same[rows[good], i[good], j[good]] = False
        saved = saved + np.where(good, best, 0.0)
    return values, saved


def usual_units(values: FloatArray, covariance: FloatArray, worth: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Coefficients [T, n] where those that may be 1 or -1 are, the others adapting; their covariances then; and the nats
    [T] saved thereby.

    A coefficient of 1 need not be written, which is `worth` some nats, less what it takes from the fit.
    """
    values, covariance = values.copy(), covariance.copy()
    saved, rows = np.zeros(len(values)), np.arange(len(values))
    fixed = np.zeros(values.shape, dtype=bool)
    for _ in range(values.shape[1]):
        variance = np.diagonal(covariance, axis1=1, axis2=2)
        with np.errstate(all="ignore"):
            gain = worth - 0.5 * (np.abs(values) - 1.0) ** 2 / variance
        gain = np.where(fixed | ~(variance > 0), -np.inf, gain)
        k = np.argmax(gain, axis=1)
        good = gain[rows, k] > 0
        if not good.any():
            break
        column = covariance[rows, :, k] / np.where(good, variance[rows, k], 1.0)[:, None] * good[:, None]
        off = values[rows, k] - np.sign(values[rows, k])
        values = values - column * off[:, None]
        covariance = covariance - column[:, :, None] * covariance[rows, k][:, None, :]
        saved = saved + np.where(good, gain[rows, k], 0.0)
        fixed[rows, k] |= good
    return np.where(fixed, np.sign(values), values), covariance, saved


def offers(motion: Motion, system: System, searched: Sequence[Sequence[Node]]) -> Offers:
    """Columns for the terms of the system, products of columns, terms with a scale, and terms that the search found."""
    known = [*motion.library, *motion.scaled]
    shared = [*known, *found_terms(system.equations, known)]
    equation: list[int] = []
    terms: list[Node] = []
    coefficients: list[float] = []
    slopes: list[FloatArray] = []
    for j, root in enumerate(system.equations):
        there = {term: coefficient for coefficient, term in split_terms(root)}
        outlined = {outline(term) for term in there}  # the fit adapts constants inside a term
        more = without_poles(motion, found_terms(searched[j], shared))
        offered = [t for t in (*shared, *more) if outline(t) not in outlined]
        offered = [*there, *offered]
        for first in range(0, len(offered), MOTION.joint.tested_together):
            usable, columns = _slopes(motion, system, j, offered[first : first + MOTION.joint.tested_together])
            equation += [j] * len(usable)
            terms += usable
            coefficients += [there.get(term, 0.0) for term in usable]
            slopes.append(columns)
    shooting = Shooting(motion.pieces, motion.columns.whole(system.equations), system.fitted.starts)
    residual, own = shooting.linearised()
    weight = shooting.row_weights(np.sqrt(system.fitted.misfit))[:, None]
    A = np.hstack(slopes)
    gains = score_gains(A, residual, own)
    A, r = _beyond(weight * own[:, shooting.K :], weight * A, weight[:, 0] * residual)
    points = motion.pieces.points * len(system.equations)
    found = Offers(system, np.array(equation), tuple(terms), np.array(coefficients), A, r, gains, points)
    return found.take(np.flatnonzero(np.isfinite(A).all(axis=0) & ((A**2).sum(axis=0) > 0)).tolist())


def _slopes(motion: Motion, system: System, j: int, terms: Sequence[Node]) -> tuple[list[Node], FloatArray]:
    """Those of the terms that have a size, and the slopes of all distances by their coefficients in equation `j`."""
    rows = motion.rows
    with np.errstate(all="ignore"):
        sizes = [float(np.sqrt(np.mean(Expression(term, rows.names)(rows.X) ** 2))) for term in terms]
    speed = float(np.sqrt(np.mean(motion.target_rows(j).targets ** 2)))
    usable = [(term, speed / size) for term, size in zip(terms, sizes, strict=True) if np.isfinite(size) and size > 0]
    added = [with_coefficient(term, MOTION.joint.faint * scale) for term, scale in usable]
    longer = list(system.equations)
    longer[j] = Call("add", (*terms_of(longer[j]), *added))
    shooting = Shooting(motion.pieces, motion.columns.whole(tuple(longer)), system.fitted.starts)
    _, slopes = shooting.linearised()
    counts = RightSides.of(added, 0).counts
    first = sum(RightSides.of(longer[: j + 1], 0).counts) - sum(counts)
    places = first + np.cumsum([0, *counts])[:-1]  # a coefficient comes before what is inside of its term
    return [term for term, _ in usable], slopes[:, places]


def _beyond(columns: FloatArray, A: FloatArray, r: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What of A [R, C] and r [R] no sum of `columns` explains."""
    basis, _ = np.linalg.qr(columns)
    return A - basis @ (basis.T @ A), r - basis @ (basis.T @ r)


def score_gains(A: FloatArray, r: FloatArray, own: FloatArray) -> FloatArray:
    """[C] the share of the squares of r [R] that each column would take off, the columns `own` adapting."""
    beyond, rest = _beyond(own, A, r)
    size = (beyond**2).sum(axis=0)
    with np.errstate(all="ignore"):
        gains = np.where(size > 1e-12 * (A**2).sum(axis=0), (rest @ beyond) ** 2 / size / (rest @ rest), 0.0)
    share: FloatArray = np.clip(np.nan_to_num(gains, nan=0.0), 0.0, 1.0 - 1e-12)
    return share


def longer_systems(offered: Offers) -> list[Equations]:
    """The system with one more term in one equation: those that the trajectories ask for most."""
    equations = offered.system.equations
    found = []
    for c in _most_asked(offered)[: MOTION.joint.additions * len(equations)]:
        j = int(offered.equation[c])
        size = float(np.sqrt(np.mean(offered.slopes[:, c] ** 2)))
        term = with_coefficient(offered.terms[c], MOTION.joint.faint / size)
        found.append((*equations[:j], Call("add", (*terms_of(equations[j]), term)), *equations[j + 1 :]))
    return found


def _most_asked(offered: Offers) -> list[int]:
    """Columns that are not in the system, those that would shorten its description most first."""
    _, alone = offered.prices
    change = 0.5 * offered.points * np.log1p(-offered.gains) + alone
    return [c for c in np.argsort(change, kind="stable").tolist() if offered.coefficients[c] == 0]


def joint_systems(motion: Motion, offered: Offers) -> list[Equations]:
    """Systems of the shortest descriptions, as far as the slopes can tell, the shortest first.

    First each equation by itself, the others' terms as they are; then all at once, from the best of each.
    """
    numbers, E = MOTION.joint, motion.n_equations
    there = np.flatnonzero(offered.coefficients != 0).tolist()
    few = offered.take(list(dict.fromkeys([*there, *_promising(offered, set(motion.library))])))
    now = tuple(range(len(there)))
    found: dict[Chosen, float] = {}
    best: list[list[Chosen]] = []
    for j in range(E):
        own = np.flatnonzero(few.equation == j).tolist()
        rest = tuple(c for c in now if few.equation[c] != j)
        tried = _walk(few, [rest], own, beam=numbers.beam)
        best.append([tuple(c for c in chosen if c in own) for chosen in _shortest(tried)[: numbers.combined]])
        found |= tried
    together = [tuple(sorted(c for part in parts for c in part)) for parts in product(*best)]
    found |= _walk(few, [now, *together], range(len(few.terms)), beam=numbers.joint_beam)
    different: dict[tuple[Node, ...], Equations] = {}  # fits adapt constants inside of terms
    for chosen in _shortest(found):
        equations = few.equations(chosen, E)
        if equations is not None:
            different.setdefault(outlines(equations), equations)
        if len(different) == numbers.kept:
            break
    return list(different.values())


def _promising(offered: Offers, library: Collection[Node]) -> Iterator[int]:
    """Columns that each equation asks for most: beyond its terms, and in their place; of the library, and of all."""
    numbers = MOTION.joint
    for j in range(len(offered.system.equations)):
        own = np.flatnonzero(offered.equation == j)
        rest = offered.slopes[:, (offered.coefficients != 0) & (offered.equation != j)]
        instead = score_gains(offered.slopes[:, own], offered.target, rest)
        for gains in (offered.gains[own], instead):
            order = own[np.argsort(-gains, kind="stable")].tolist()
            yield from [c for c in order if offered.terms[c] in library][: numbers.plain]
            yield from order[: numbers.asked]


def _shortest(found: dict[Chosen, float]) -> list[Chosen]:
    return sorted(found, key=lambda chosen: (found[chosen], chosen))


def _walk(offered: Offers, begin: Sequence[Chosen], columns: Sequence[int], *, beam: int) -> dict[Chosen, float]:
    """Choices around those of `begin`, with their lengths: a few at a time are carried on, some of `columns` changed."""
    numbers = MOTION.joint
    seen: dict[Chosen, float] = {}
    tried = {chosen for chosen in begin if chosen} or {(c,) for c in columns}
    best, idle = math.inf, 0
    for _ in range(numbers.steps):
        for size in {len(near) for near in tried}:
            of_size = [near for near in tried if len(near) == size]
            seen |= zip(of_size, offered.lengths(np.array(of_size, dtype=np.intp)).tolist(), strict=True)
        carried = sorted(tried, key=lambda near: (seen[near], near))[:beam]
        if not carried:
            break
        idle = 0 if seen[carried[0]] < best else idle + 1
        best = min(best, seen[carried[0]])
        if idle == numbers.patience:
            break
        tried = {
            near
            for rank, chosen in enumerate(carried)
            for near in _neighbours(chosen, columns, exchanged=rank < numbers.exchanged)
        } - seen.keys()
    return seen


def _neighbours(chosen: Chosen, columns: Sequence[int], *, exchanged: bool) -> list[Chosen]:
    """One of `columns` more, one less and, where `exchanged`, one in place of another."""
    others = [c for c in columns if c not in chosen]
    found = [tuple(sorted((*chosen, c))) for c in others]
    for k, c in enumerate(chosen):
        if c in columns:
            rest = chosen[:k] + chosen[k + 1 :]
            found += [rest] if rest else []
            found += [tuple(sorted((*rest, c))) for c in others] if exchanged else []
    return found
