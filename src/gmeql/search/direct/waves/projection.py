"""The frequency of one wave with sums before and beside it, all their factors solved for (variable projection).

For a given frequency w the factors of A + B cos(wu) + B sin(wu) follow from linear equations, so that only w is scanned
(Golub and Pereyra 1973). With orthonormal bases of what may be A and B, the equations of all frequencies are made of the
sums over rows of A and B times B times cos(wu) and sin(wu), a few products of matrices. The best frequencies are refined.

Legend: `N` rows, `A` and `B` terms beside and before the wave, `W` frequencies, `T` readings of the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Call, Constant, Node, build
from gmeql.search.data.readings import PLAIN
from gmeql.search.direct.terms.term_sums import beside, orthonormal
from gmeql.search.direct.waves.waves import node_values
from gmeql.search.polish.waves import stands_out

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ModulatedConfig:
    """Numbers of the method."""

    rows: int = 400  # that waves are looked for on
    few_rows: int = 40
    max_columns: int = 8
    degrees: tuple[int, ...] = (0, 1, 2, 3)  # of Q, one after the other
    powers_behind: tuple[float, ...] = (
        2.0,
        1.0,
        3.0,
        -1.0,
        -2.0,
    )  # of a single column, behind which P and Q may stand,
    degrees_behind: tuple[int, ...] = (0, 1)  # of these degrees
    beside: int = 3  # degree of P, where Q's is less and
    most_beside: int = 45  # so few terms are enough; of single columns up to
    alone: int = 4
    most_before: tuple[int, ...] = (16, 48)  # terms before the wave, where they are not all of a degree
    rows_per_term: float = 1.5  # of P, and of the cosine and the sine with Q
    scanned_per_term: float = 3.5  # rows on which frequencies are compared
    turns_step: float = 0.2  # between frequencies, over the rows: a wave loses its place by a tenth of a turn
    most_turns: float = 16.0  # with more the periodogram sees it, where Q keeps its sign
    rows_per_turn: float = 3.0
    ridge: float = 1e-10  # share of the diagonal added to the equations: slow waves are nearly polynomials
    spanned: float = 1e-11  # singular values below this share of the largest span nothing
    worth: float = 0.6  # share of what P leaves, from which a frequency is worth a closer look; steps cost up to 0.1
    tried: int = 2  # frequencies of each degree that are refined
    steps: int = 14  # of Gauss-Newton on the frequency
    told_after: int = 4  # steps, after which it must leave
    promising: float = 0.5  # ... this share of the squares that it began with, or it has settled
    near: float = 1e-5  # share of the target's size, from which terms that are not needed are looked for,
    trimmed: int = 12  # of so many waves: over a narrow range all of them are near to whatever is smooth
    exact: float = 1e-9  # share of the target's size that may be left where it is taken to be exact
    rounding: float = 1e-12  # share of a target's size in which no wave is looked for
    level: float = 1e-9  # phase, in radians, that is none
    least_turns: float = 1.0  # of a wave that is not exact: a slower one is anything smooth
    beams: tuple[int, ...] = (6,)  # sums of each length, where terms are chosen
    choices: int = 2  # of terms, the frequency fitted anew after each
    seconds_per_choice: float = 0.15  # of terms (measured)
    seconds_per_value: float = 1e-7  # of a row and a frequency on one core (measured),
    seconds_per_product: float = 2e-10  # and two terms
    seconds_per_square: float = 8e-9  # of a row and two columns of a fit


MODULATED = ModulatedConfig()


@dataclass(frozen=True, eq=False)
class Terms:
    """What may stand beside a wave and before it: formulas, and their values [N, A] and [N, B]."""

    beside: list[Node]
    before: list[Node]
    beside_values: FloatArray
    before_values: FloatArray

    @classmethod
    def of(cls, X: FloatArray, beside: list[Node], before: list[Node]) -> Terms:
        columns = [np.stack([node_values(node, X) for node in nodes], axis=1) for nodes in (beside, before)]
        return cls(beside, before, *columns)

    @cached_property
    def beside_basis(self) -> FloatArray:
        """An orthonormal basis of what may stand beside the wave,"""
        return orthonormal(self.beside_values, MODULATED.spanned)

    @cached_property
    def before_basis(self) -> FloatArray:
        """and of what may stand before it."""
        return orthonormal(self.before_values, MODULATED.spanned)

    def first(self, n: int) -> Terms:
        """The same on the first rows."""
        return replace(self, beside_values=self.beside_values[:n], before_values=self.before_values[:n])

    def without(self, node: Node) -> Terms:
        """The same with one term less before the wave."""
        kept = [m for m, term in enumerate(self.before) if term != node]
        fewer = replace(self, before=[self.before[m] for m in kept], before_values=self.before_values[:, kept])
        vars(fewer)["beside_basis"] = self.beside_basis  # that takes as long as all the rest of a fit
        return fewer

    @property
    def n_scanned(self) -> int:
        """Rows on which frequencies are compared."""
        return min(len(self.before_values), int(MODULATED.scanned_per_term * self.n_factors))

    @property
    def n_factors(self) -> int:
        """Coefficients of a formula of all terms, and the frequency."""
        return len(self.beside) + 2 * len(self.before) + 1


@dataclass(frozen=True, eq=False)
class WaveFit:
    """The wave of one frequency of an angle with all terms: what it leaves, and how it is made."""

    terms: Terms
    reading: str
    angle: Node
    u: FloatArray
    frequency: float
    cosines: FloatArray
    """Factors of the terms before the cosine,"""
    sines: FloatArray
    """and before the sine."""
    squares: float
    """What is left of a target of size 1, as a sum of squares,"""
    whole: float
    """and what the terms beside the wave leave by themselves."""
    n_tried: float

    @property
    def is_exact(self) -> bool:
        """Whether what is left may be rounding."""
        return self.squares <= MODULATED.exact**2

    @property
    def is_near(self) -> bool:
        """Whether terms that are not needed may be all that keeps it from that."""
        return self.squares <= MODULATED.near**2

    @property
    def n_free(self) -> int:
        """Rows beyond the constants."""
        return len(self.u) - self.terms.n_factors

    @property
    def noise(self) -> float:
        """Standard deviation of the noise, estimated by what is left, relative to the root mean square of the target."""
        return math.sqrt(self.squares * len(self.u) / self.n_free)

    @property
    def length(self) -> float:
        """Nats of what is left and of the constants: with more terms than it takes, the frequency is less certain."""
        n = len(self.u)
        return 0.5 * n * math.log(max(self.squares, 1e-300)) + 0.5 * self.terms.n_factors * math.log(n)

    @property
    def is_clear(self) -> bool:
        """Whether the rows see a turn of it, and the best of as many frequencies would hardly explain so much of noise."""
        turns = self.frequency * float(np.ptp(self.u)) / (2 * math.pi)
        share, n_waves = 1.0 - self.squares / self.whole, self.terms.before_basis.shape[1]
        return turns >= MODULATED.least_turns and stands_out(share, self.n_free, self.n_tried, n_waves=n_waves)

    @property
    def phase(self) -> float:
        """p in cos(wu + p) that has most of the wave: all of it where one polynomial stands before it."""
        sizes = np.sqrt(np.mean(self.terms.before_values**2, axis=0))
        both = np.stack([self.cosines * sizes, self.sines * sizes], axis=1)
        cosine, sine = np.linalg.svd(both)[2][0]
        phase = math.atan2(-sine, cosine)
        return phase if abs(math.remainder(phase, math.pi)) > MODULATED.level else 0.0

    def waves(self) -> list[Node]:
        """The cosine of that phase, and the sine of it: what is left where two polynomials stand before the wave."""
        angle = build("mul", Constant(self.frequency), self.angle)
        inner = Call("add", (angle, Constant(self.phase))) if self.phase else angle
        return [Call(name, (inner,)) for name in ("cos", "sin")]


def fits(
    terms: Terms,
    angles: list[tuple[Node, FloatArray]],
    readings: dict[str, FloatArray],
    turns: FloatArray,
    has_ended: Callable[[], bool] = lambda: False,
) -> Iterator[WaveFit]:
    """Waves of the frequencies that explain most of what is left beside them, refined; none where the time ends."""
    n = terms.n_scanned
    few, targets = terms.first(n), {name: y / math.sqrt(float(y @ y)) for name, y in readings.items()}
    left = beside(few.beside_basis, np.stack([y[:n] for y in targets.values()], axis=1))
    seen = np.sqrt(np.einsum("nt,nt->t", left, left)) > MODULATED.rounding
    names = [name for name, is_seen in zip(readings, seen, strict=True) if is_seen]
    if not names:
        return
    scans = [shares_of(u[:n], few, left[:, seen], turns) for _, u in takewhile(lambda _: not has_ended(), angles)]
    if len(scans) < len(angles):
        return
    shares = np.stack(scans)  # [angles, W, T]
    shares[:, 1:-1] = np.where(
        (shares[:, 1:-1] >= shares[:, :-2]) & (shares[:, 1:-1] >= shares[:, 2:]), shares[:, 1:-1], 0.0
    )  # peaks, and both ends
    for t, name in enumerate(names):
        own = shares[:, :, t]
        for place in np.argsort(-own, axis=None, kind="stable")[: MODULATED.tried if name == PLAIN else 1]:
            i, w = (int(k) for k in np.unravel_index(place, own.shape))
            if own[i, w] < MODULATED.worth or has_ended():
                break
            node, u = angles[i]
            start = 2 * np.pi * float(turns[w]) / float(np.ptp(u[:n]))
            yield refined(terms, name, node, u, targets[name], start, float(own.size))


def shares_of(u: FloatArray, terms: Terms, left: FloatArray, turns: FloatArray) -> FloatArray:
    """Share of what is left [N, T] that B cos(wu) and B sin(wu) explain beside A, for every frequency: [W, T].

    With C and S the diagonal matrices of cosines and sines, the equations are [BC, BS]'(1 - A A')[BC, BS].
    """
    A, B = terms.beside_basis, terms.before_basis
    b, n_turns = B.shape[1], len(turns)
    angle = np.outer(u - u.min(), 2 * np.pi * turns / np.ptp(u))
    cosine, sine = np.cos(angle), np.sin(angle)

    def moments(first: FloatArray, waves: FloatArray) -> FloatArray:  # [W, columns of first, B]
        products = (first[:, :, None] * B[:, None, :]).reshape(len(B), -1)
        return np.asarray((waves.T @ products).reshape(n_turns, first.shape[1], b))

    across = np.concatenate([moments(A, cosine), moments(A, sine)], axis=2)  # A'[BC, BS]
    towards = np.concatenate([moments(left, cosine), moments(left, sine)], axis=2)  # [W, T, 2B]
    squared, mixed = moments(B, cosine**2), moments(B, cosine * sine)
    equations = np.empty((n_turns, 2 * b, 2 * b))
    equations[:, :b, :b], equations[:, b:, b:] = squared, B.T @ B - squared
    equations[:, :b, b:] = equations[:, b:, :b] = mixed
    equations -= across.transpose(0, 2, 1) @ across
    sizes = np.sqrt(np.maximum(np.einsum("wkk->wk", equations), MODULATED.ridge))
    equations /= sizes[:, :, None] * sizes[:, None, :]
    equations[:, range(2 * b), range(2 * b)] += MODULATED.ridge
    scaled = (towards / sizes[:, None, :]).transpose(0, 2, 1)  # [W, 2B, T]
    explained = np.einsum("wkt,wkt->wt", scaled, np.linalg.solve(equations, scaled))
    return np.asarray(explained / np.einsum("nt,nt->t", left, left))


def refined(
    terms: Terms, reading: str, angle: Node, u: FloatArray, target: FloatArray, frequency: float, n_tried: float
) -> WaveFit:
    """The wave at the frequency near by that leaves least, by Gauss-Newton with all factors solved for at each step.

    The target has size 1.
    """
    before, basis = terms.before_values, terms.beside_basis
    left = beside(basis, target)
    b = before.shape[1]
    scale = np.sqrt(np.mean(before**2, axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    scaled = before / scale

    def solved(frequency: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        cosine, sine = np.cos(frequency * u)[:, None], np.sin(frequency * u)[:, None]
        columns = beside(basis, np.hstack([scaled * cosine, scaled * sine]))
        span, singular, axes = np.linalg.svd(columns, full_matrices=False)
        kept = singular > MODULATED.spanned * singular[0]
        span, singular, axes = span[:, kept], singular[kept], axes[kept]
        factors = axes.T @ ((span.T @ left) / singular)
        turning = beside(basis, u * ((scaled * cosine) @ factors[b:] - (scaled * sine) @ factors[:b]))
        return factors, beside(span, left), turning - span @ (span.T @ turning)

    factors, rest, turning = solved(frequency)
    squares = began = float(rest @ rest)
    for step in range(MODULATED.steps):
        slope = float(turning @ turning)
        if not slope > 0 or (step == MODULATED.told_after and squares > MODULATED.promising * began):
            break
        moved = frequency + float(turning @ rest) / slope
        trial = solved(moved)
        new_squares = float(trial[1] @ trial[1])
        if not new_squares < squares:
            break
        frequency, (factors, rest, turning), squares = moved, trial, new_squares
    factors = factors / np.tile(scale, 2)
    return WaveFit(
        terms, reading, angle, u, abs(frequency), factors[:b], math.copysign(1.0, frequency) * factors[b:], squares,
        float(left @ left), n_tried,
    )  # fmt: skip


def determined(fit: WaveFit, target: FloatArray) -> WaveFit:
    """A wave that is near, before no more terms than that takes: one of x*y too many and x/y are alike."""
    target = target / math.sqrt(float(target @ target))
    sizes = np.sqrt(np.mean(fit.terms.before_values**2, axis=0)) * np.hypot(fit.cosines, fit.sines)
    for term in [fit.terms.before[m] for m in np.argsort(sizes, kind="stable")[:-1]]:
        fewer = fit.terms.without(term)
        trial = refined(fewer, fit.reading, fit.angle, fit.u, target, fit.frequency, fit.n_tried)
        if trial.squares <= max(fit.squares, MODULATED.exact**2):
            fit = trial
    return fit
