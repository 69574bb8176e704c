"""Inner constants of a few terms taken to rounding beside whatever else a sum holds (variable projection).

All factors are solved for at each step, so that only the constants inside are stepped: by Gauss and Newton where they are nearly
right, or damped (Levenberg 1944, Marquardt 1963) where terms are so much alike that a whole step leads far away.

Legend: `N` rows, `K` inner constants, `H` columns that terms stand before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.calculus import Slopes, with_constants
from gmeql.formula.nodes import Call, Constant, Node, build, fold, row_values, used_columns
from gmeql.search.direct.terms.term_sums import beside

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class SettlingConfig:
    """Numbers of the fit."""

    steps: int = 20  # of a fit without damping,
    settled: float = 0.9  # which ends where a step leaves more than this share of the squares
    shorter: tuple[float, ...] = (1.0, 3.0)  # times, of such a step, one after the other until less is left
    damped_steps: int = 50  # of a fit with damping, those counted that are not taken,
    damping: float = 1e-3  # which begins with so much,
    calmer: float = 0.1  # times as much after a step that leaves less, and
    firmer: float = 10.0  # ... after one that does not,
    most_damping: float = 100.0  # up to this; below
    least_damping: float = 1e-14  # it is none
    rounding: float = 1e-28  # share of the squares that is rounding
    spanned: float = 1e-14  # singular values below this share of the largest span nothing
    seen: float = 1e-9  # ... of slopes: they are no direction to step in
    straight: float = 1e-6  # share of a function beside a straight line of what stands in it from which it is that line


SETTLING = SettlingConfig()


def settled(
    nodes: Sequence[Node],
    X: FloatArray,
    target: FloatArray,
    basis: FloatArray,
    *,
    roots: FloatArray | None = None,
    before: FloatArray | None = None,
    is_damped: bool = False,
) -> tuple[list[Node], tuple[float, ...], float]:
    """Terms with the inner constants that leave least beside a basis; their factors; the error.

    `roots` [N] are those of weights of mean 1, with which the basis was made. Every term may stand `before` some columns
    [N, H], with a factor for each.
    """
    roots = np.ones(len(target)) if roots is None else roots
    before = np.ones((len(target), 1)) if before is None else before
    fits = _Fits([Slopes(node, X) for node in nodes], beside(basis, roots * target), basis, roots[:, None] * before)
    best = fits.of(np.array([value for term in fits.terms for value in term.constants]))
    if best is None:
        return list(nodes), (0.0,) * (len(nodes) * before.shape[1]), math.inf
    if best.slopes.shape[1]:
        best = _damped(fits, best) if is_damped else _undamped(fits, best)
    found = [
        with_constants(node, values.tolist()) for node, values in zip(nodes, fits.of_each(best.constants), strict=True)
    ]
    return found, tuple(best.factors.tolist()), math.sqrt(best.lost / len(target))


def straightened(node: Node, X: FloatArray) -> Node:
    """A term with what stands in them in place of functions that are straight lines on all rows, but for factors and numbers.

    A fit makes P*tanh(6e-10*t) of P*t where both are in a library, and no rows tell the constant.
    """
    names = [f"x{j}" for j in range(X.shape[1])]

    def call(one: Call, args: list[Node]) -> Node:
        if (
            len(args) != 1
            or not used_columns(one)
            or not _is_straight(*(row_values(n, names, X) for n in (one, args[0])))
        ):
            return build(one.operator, *args)
        return _bare(args[0])

    return fold(node, lambda leaf: leaf, call)


def _is_straight(values: FloatArray, argument: FloatArray) -> bool:
    """Whether a function's values [N] are a straight line of its argument [N], as far as its constants can be known."""
    values, argument = values - values.mean(), argument - argument.mean()
    with np.errstate(all="ignore"):
        left = values - argument * (argument @ values) / (argument @ argument)
    return bool(np.linalg.norm(left) < SETTLING.straight * np.linalg.norm(values))


def _bare(node: Node) -> Node:
    """What a column stands in, without numbers that are multiplied or added."""
    while isinstance(node, Call) and node.operator in ("add", "mul", "neg", "div"):
        others = [arg for arg in node.args if not isinstance(arg, Constant)]
        if len(others) != 1 or (node.operator == "div" and others[0] is not node.args[0]):
            break
        node = others[0]
    return node


@dataclass(frozen=True, eq=False)
class _Fit:
    """Constants of all terms [K], slopes by them beside all terms [N, K], what is left [N], factors, the squares left."""

    constants: FloatArray
    slopes: FloatArray
    rest: FloatArray
    factors: FloatArray
    lost: float

    @property
    def scale(self) -> FloatArray | None:
        """Sizes of the slopes [K], 1 where one is nothing; None where one is no number."""
        sizes = np.sqrt(np.sum(self.slopes**2, axis=0))
        return np.where(sizes > 0, sizes, 1.0) if np.isfinite(sizes).all() else None


@dataclass(frozen=True, eq=False)
class _Fits:
    """Fits of terms to what a basis leaves of a target [N]."""

    terms: Sequence[Slopes]
    left: FloatArray
    basis: FloatArray
    before: FloatArray
    """What every term stands before [N, H], with the roots of weights."""

    def of_each(self, constants: FloatArray) -> list[FloatArray]:
        """The constants of each term."""
        return np.split(constants, np.cumsum([len(term.constants) for term in self.terms])[:-1])

    def of(self, constants: FloatArray) -> _Fit | None:
        """By least squares; None where a constant, a term or a slope is no number."""
        if not np.isfinite(constants).all():
            return None
        with np.errstate(all="ignore"):
            parts = [term(own)[:2] for term, own in zip(self.terms, self.of_each(constants), strict=True)]
            columns = np.hstack([values[:, None] * self.before for values, _ in parts])
            sizes = np.sqrt(np.sum(columns**2, axis=0))
            if not (np.isfinite(sizes).all() and (sizes > 0).all()):
                return None
            columns = beside(self.basis, columns / sizes)
            span, singular, axes = np.linalg.svd(columns, full_matrices=False)
            kept = singular > SETTLING.spanned * singular[0]
            span, singular, axes = span[:, kept], singular[kept], axes[kept]
            factors = (axes.T @ ((span.T @ self.left) / singular)) / sizes
            each = (self.before @ factors.reshape(len(parts), -1).T).T
            slopes = np.hstack([c[:, None] * slopes for c, (_, slopes) in zip(each, parts, strict=True)])
            slopes, rest = beside(span, beside(self.basis, slopes)), beside(span, self.left)
            lost = float(rest @ rest)
        is_usable = math.isfinite(lost) and np.isfinite(slopes).all()
        return _Fit(constants, slopes, rest, factors, lost) if is_usable else None


def _undamped(fits: _Fits, best: _Fit) -> _Fit:
    for _ in range(SETTLING.steps):
        scale = best.scale
        if scale is None:
            break
        step = np.linalg.lstsq(best.slopes / scale, best.rest, rcond=SETTLING.seen)[0] / scale
        for shorter in SETTLING.shorter:
            trial = fits.of(best.constants + step / shorter)
            if trial is not None and trial.lost < best.lost:
                break
        else:
            break
        is_settled = trial.lost > SETTLING.settled * best.lost
        best = trial
        if is_settled:
            break
    return best


def _damped(fits: _Fits, best: _Fit) -> _Fit:
    damping, whole = SETTLING.damping, float(fits.left @ fits.left)
    scale = best.scale
    for _ in range(SETTLING.damped_steps):
        if scale is None or damping > SETTLING.most_damping or best.lost <= SETTLING.rounding * whole:
            break
        span, singular, axes = np.linalg.svd(best.slopes / scale, full_matrices=False)
        kept = singular > SETTLING.seen * singular[0]
        along = np.where(kept, singular / np.where(kept, singular**2 + damping, 1.0), 0.0)
        trial = fits.of(best.constants + axes.T @ ((span.T @ best.rest) * along) / scale)
        if trial is not None and trial.lost < best.lost:
            best, scale = trial, trial.scale
            damping = SETTLING.calmer * damping if damping > SETTLING.least_damping else 0.0
        else:
            damping = SETTLING.firmer * max(damping, SETTLING.least_damping)
    return best
