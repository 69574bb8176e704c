"""Which functions of one column stand before anything smooth of another: y = f(x) + e(z) + h1(z) g1(x) + h2(z) g2(x) + ...

Whatever f, e and the g are, they lie in the span of some forty functions of a column, so that a single least squares fit
tells whether the h are right (variable projection, Golub and Pereyra 1973, with inner constants of the h outside and all
else inside). All h of a library are compared by their normal equations. Of several h all but one are plain, as people write
them: those are looked through, and beside each the best other is looked for.

A bump so narrow that few rows see it is no function of a library. It shows as rows that all else misses, close together.

Legend: `N` rows, `K` functions of x, `Q` dimensions of a basis, `F` functions of z.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.calculus import constant_slopes, constants_of, with_constants
from gmeql.formula.nodes import Call, Constant, Node, Variable, row_values, transform
from gmeql.search.direct.table import DirectTable
from gmeql.search.direct.terms.library import TUNED, Factor, Library
from gmeql.search.direct.terms.term_sums import beside, orthonormal

FloatArray = NDArray[np.float64]
OutOfTime = Callable[[], bool]


@dataclass(frozen=True)
class BlocksConfig:
    """Numbers of the method."""

    degree: int = 26  # of the polynomials among the functions of a column
    spanned: float = 1e-10  # singular values below this share of the largest span nothing
    plain: int = 3  # plain functions h that are looked at, those that leave least,
    tuned: tuple[int, int] = (12, 5)  # and those whose inner constants are fitted, alone and beside others,
    per_kind: int = 1  # of which so many may differ in inner constants only
    steps: int = 14  # of such a fit
    told_after: int = 4  # steps, after which it must leave
    promising: float = 0.8  # ... this share of the squares that it began with, or it has settled
    damping: float = 1e-4  # of its steps at first
    settled: float = 0.999  # share of the squares that a step must leave less than, to go on
    ridge: float = 1e-12  # added to the normal equations by which the h are ranked
    held: float = 1e-6  # error, relative to the target's spread, from which the h are taken for right,
    less: float = 1e-3  # ... where they leave this share of what one of them less does
    exact: float = 1e-11  # error that needs no better,
    surely: float = 1e-9  # and from which no other beginning of several is asked for
    alike: float = 3.0  # times an error that is as small
    shown: float = 0.9  # share of the error that one of the h of a library must leave, for any to be fitted
    worth: float = 0.1  # share of the error that the best h must leave, to be worth looking for a second
    first: tuple[str, ...] = (
        "x**1", "x**2", "x**3", "x**0.5", "x**-1", "x**0.333333", "x**1.5", "log", "log+1", "exp -", "exp -x", "exp x",
        "sin x", "cos x", "abs", "x*abs",
    )  # fmt: skip
    """Kinds of plain functions beside which another is looked for."""
    begun: tuple[int, ...] = (16, 5)  # sums of one and of two of those that get one more
    most_bumps: int = 2
    bump_rows: float = 0.1  # share of the rows that a narrow bump is seen by at most,
    bump_energy: float = 0.5  # and of the squares left that these rows have at least
    few_bump_rows: int = 6
    again: int = 4  # sums beside bumps, whose constants are fitted anew
    rounds: int = 3  # in which constants of bumps and of what came later are fitted in turn
    rounding: float = 1e-13


BLOCKS = BlocksConfig()


@dataclass(frozen=True, eq=False)
class Outer:
    """A function h of the outer column, `Variable(0)`; a basis [N, K] of what may stand before it; its fitted constants."""

    node: Node
    inner: FloatArray
    is_tuned: bool = False

    def with_constants(self, constants: FloatArray) -> Outer:
        return replace(self, node=with_constants(self.node, constants.tolist()))

    @property
    def constants(self) -> FloatArray:
        """Its inner constants."""
        return np.array(constants_of(self.node))

    def values(self, z: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            return row_values(self.node, ("z",), z[:, None])


@dataclass(frozen=True, eq=False)
class Blocks:
    """Functions h so far, a basis [N, Q] of all they explain with f and e, and what is left of the target [N]."""

    outers: tuple[Outer, ...]
    basis: FloatArray
    left: FloatArray
    error: float
    """Of what is left, for each row beyond the constants, relative to the target's spread."""


def span_of(x: FloatArray, terms: Library) -> FloatArray:
    """An orthonormal basis [N, K] of what a smooth function of a column may be: its plain functions, and polynomials."""
    middle, half = (x.max() + x.min()) / 2, np.ptp(x) / 2
    polynomials = np.polynomial.chebyshev.chebvander((x - middle) / half, BLOCKS.degree)
    return orthonormal(np.hstack([polynomials, *terms.of_columns()]), BLOCKS.spanned)


class OuterSearch:
    """Looks for functions of the column `outer` of a table of two columns; `libraries` and `spans` are those of both."""

    def __init__(
        self, table: DirectTable, outer: int, libraries: Sequence[Library], spans: Sequence[FloatArray]
    ) -> None:
        self.y, self.spread, self.z = table.y, table.spread, table.X[:, outer]
        self.span, self.factors = spans[1 - outer], libraries[outer].factors[1:]
        x = table.X[:, 1 - outer] / np.abs(table.X[:, 1 - outer]).max()
        self.powers = np.stack([np.ones_like(x), x, x**2], axis=1)
        basis = orthonormal(np.hstack(list(spans)), BLOCKS.spanned)
        self.additive = self.base = self._blocks((), basis, beside(basis, self.y))
        self.best, self.n_bumps = self.base, 0
        self._first = (
            errors_of(np.stack([f.values for f in self.factors]), self.span, basis, self.base.left) / self.spread
        )
        self._plain: list[tuple[float, Blocks, Outer]] = []

    @property
    def promise(self) -> float:
        """Share of the error that the best h of the library leaves, before its constants are fitted; nothing where there is a
        bump, which the library lacks."""
        return 0.0 if self._bump(self.additive) is not None else float(self._first.min()) / self.additive.error

    def single(self) -> Blocks | None:
        """No h or one, beside narrow bumps, that leaves next to nothing; None where there is none."""
        for _ in range(1 + BLOCKS.most_bumps):
            if self.base.error < BLOCKS.held:
                return self.base
            longer, self._plain = self._longer([self.base], self.factors, lambda: False)
            self.best = self._again(_best([self.base, *longer]))
            if self.best.error < BLOCKS.held:
                return self.best
            bump = self._bump(self.best)
            if bump is None:
                break
            self.n_bumps += 1
            # a pole may stand in for a bump: it shows beside others where it does not by itself
            alone = self._tuned(self.base, bump)
            shown = self._with(self.base, self._tuned(self.best, bump).outers[-1])
            self.base = alone if alone.error < self.best.error else shown
        return None

    @property
    def is_worth_more(self) -> bool:
        """Whether one h, as far as that goes, explains so much that there may be several."""
        return self.best.error < BLOCKS.worth * self.base.error

    def several(self, out_of_time: OutOfTime) -> Blocks | None:
        """The fewest of several h that leave next to nothing; None where there are none."""
        factors = [factor for factor in self.factors if factor.group != "wave"]
        for begun in BLOCKS.begun:
            waiting = [self._with(start, outer) for _, start, outer in self._plain[:begun]]
            longer, self._plain = self._longer(waiting, factors, out_of_time)
            leading = sorted(longer, key=lambda blocks: blocks.error)[: BLOCKS.again if self.n_bumps else 0]
            last, self.best = self.best, _best([self.best, *longer, *map(self._again, leading)])
            if self.best.error < BLOCKS.exact or self.best.error < min(BLOCKS.held, BLOCKS.less * last.error):
                return self.best
            if out_of_time():
                break
        return None

    def _longer(
        self, waiting: Sequence[Blocks], factors: Sequence[Factor], out_of_time: OutOfTime
    ) -> tuple[list[Blocks], list[tuple[float, Blocks, Outer]]]:
        """What stands already with one function more, the best; and every plain one that another may follow, best first."""
        longer: list[Blocks] = []
        plain: dict[frozenset[Node], tuple[float, Blocks, Outer]] = {}
        h = np.stack([factor.values for factor in factors])
        for start in waiting:
            if out_of_time():
                break
            is_first = start is self.additive and len(factors) == len(self.factors)
            errors = self._first if is_first else errors_of(h, self.span, start.basis, start.left) / self.spread
            longer += self._leading(start, factors, errors)
            for factor, error in zip(factors, errors, strict=True):
                if factor.kind.split(" ", 1)[1] in BLOCKS.first and math.isfinite(error):
                    outer = _outer(factor, self.span)
                    plain[frozenset((outer.node, *(one.node for one in start.outers)))] = float(error), start, outer
            if start.outers and min(blocks.error for blocks in (start, *longer)) < BLOCKS.surely:
                break
        return longer, sorted(plain.values(), key=lambda one: one[0])

    def _leading(self, start: Blocks, factors: Sequence[Factor], errors: FloatArray) -> list[Blocks]:
        """What stands already with one of the functions that leave least, few of a kind, their inner constants fitted."""
        chosen: list[Blocks] = []
        if not errors.min() < BLOCKS.shown * start.error:  # of noise each explains next to nothing
            return chosen
        seen: dict[str, int] = {}
        left = [BLOCKS.plain, BLOCKS.tuned[len(start.outers) > self.n_bumps]]
        for place in np.argsort(errors, kind="stable"):
            outer, kind = _outer(factors[place], self.span), factors[place].kind
            seen[kind] = seen.get(kind, 0) + 1
            if seen[kind] > BLOCKS.per_kind or not left[outer.is_tuned] or not math.isfinite(errors[place]):
                continue
            left[outer.is_tuned] -= 1
            chosen.append(self._tuned(start, outer) if outer.is_tuned else self._with(start, outer))
            if chosen[-1].error < BLOCKS.exact:
                break
        return chosen

    def _blocks(self, outers: tuple[Outer, ...], basis: FloatArray, left: FloatArray) -> Blocks:
        n_free = max(len(left) - basis.shape[1], 1)
        return Blocks(outers, basis, left, math.sqrt(float(left @ left) / n_free) / self.spread)

    def _with(self, start: Blocks, outer: Outer) -> Blocks:
        """What stands already with one function more."""
        fitted = _Fitted.of(start, outer, self.z)
        if fitted is None:
            return replace(start, error=math.inf)
        return self._blocks((*start.outers, outer), np.hstack([start.basis, fitted.basis]), fitted.left)

    def _tuned(self, start: Blocks, outer: Outer) -> Blocks:
        """The same with the inner constants of that function that leave least, by damped Gauss-Newton steps.

        The slope of what is left is that of h times g, beside all else (Kaufman 1975).
        """
        fitted, damping = _Fitted.of(start, outer, self.z), BLOCKS.damping
        began = math.inf if fitted is None else fitted.squares
        for step in range(BLOCKS.steps if fitted is not None else 0):
            assert fitted is not None
            if step == BLOCKS.told_after and fitted.squares > BLOCKS.promising * began:
                break
            slopes = fitted.slopes(start, self.z)
            moved = None
            while slopes is not None and moved is None and damping < 1 / BLOCKS.damping:
                squares, towards = slopes.T @ slopes, slopes.T @ fitted.left
                if not np.isfinite(squares).all():
                    break
                squares[np.diag_indices_from(squares)] *= 1 + damping
                move = np.linalg.lstsq(squares, towards, rcond=None)[0]
                trial = _Fitted.of(start, fitted.outer.with_constants(fitted.outer.constants + move), self.z)
                moved = trial if trial is not None and trial.squares < fitted.squares else None
                damping *= 10 if moved is None else 0.1
            if moved is None:
                break
            gain, fitted = moved.squares / fitted.squares, moved
            if gain > BLOCKS.settled or fitted.squares < len(self.y) * (BLOCKS.rounding * self.spread) ** 2:
                break
        return self._with(start, outer if fitted is None else fitted.outer)

    def _again(self, blocks: Blocks) -> Blocks:
        """Constants of bumps fitted anew with what came later, and those of what came later."""
        for _ in range(BLOCKS.rounds if self.n_bumps and len(blocks.outers) > self.n_bumps else 0):
            for i in [*range(self.n_bumps), len(blocks.outers) - 1]:
                others = self.additive
                for outer in blocks.outers[:i] + blocks.outers[i + 1 :]:
                    others = self._with(others, outer)
                outer = blocks.outers[i]
                blocks = self._tuned(others, outer) if outer.is_tuned else self._with(others, outer)
                moved = (*blocks.outers[:i], blocks.outers[-1], *blocks.outers[i:-1])
                blocks = replace(blocks, outers=moved)
        return blocks

    def _bump(self, blocks: Blocks) -> Outer | None:
        """A narrow bump where a few rows close together have what is left; None where they do not."""
        if self.n_bumps == BLOCKS.most_bumps:
            return None
        order = np.argsort(self.z, kind="stable")
        z, squares = self.z[order], blocks.left[order] ** 2
        n = max(int(BLOCKS.bump_rows * len(z)), 1)
        sums = np.concatenate([[0.0], np.cumsum(squares)])
        inside = sums[n:] - sums[:-n]
        first = int(np.argmax(inside))
        if n < BLOCKS.few_bump_rows or not inside[first] > BLOCKS.bump_energy * sums[-1]:
            return None
        few, weights = z[first : first + n], squares[first : first + n]
        place = float(np.average(few, weights=weights))
        width = 2 * math.sqrt(float(np.average((few - place) ** 2, weights=weights)))
        if not width > 0:
            return None
        centred = Call("add", (Variable(0), Constant(-place)))
        node = Call("exp", (Call("mul", (Constant(-1 / width**2), Call("square", (centred,)))),))
        return Outer(node, self.powers, is_tuned=True)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """A function beside what stands already: its g [N], a basis of what it adds, and what is left."""

    outer: Outer
    g: FloatArray
    basis: FloatArray
    left: FloatArray

    @classmethod
    def of(cls, start: Blocks, outer: Outer, z: FloatArray) -> _Fitted | None:
        """By least squares; None where the function has no value."""
        with np.errstate(all="ignore"):
            columns = outer.values(z)[:, None] * outer.inner
            sizes = np.sqrt(np.sum(columns**2, axis=0))
        if not np.isfinite(sizes).all() or not (sizes > 0).all():
            return None
        span, singular, axes = np.linalg.svd(beside(start.basis, columns / sizes), full_matrices=False)
        kept = singular > BLOCKS.spanned
        span, singular, axes = span[:, kept], singular[kept], axes[kept]
        factors = (axes.T @ ((span.T @ start.left) / singular)) / sizes
        return cls(outer, outer.inner @ factors, span, beside(span, start.left))

    @property
    def squares(self) -> float:
        """What is left."""
        return float(self.left @ self.left)

    def slopes(self, start: Blocks, z: FloatArray) -> FloatArray | None:
        """Those of what the function explains by its inner constants [N, constants], beside all else."""
        _, slopes = constant_slopes(self.outer.node, z[:, None])
        slopes = slopes * self.g[:, None]
        return beside(self.basis, beside(start.basis, slopes)) if np.isfinite(slopes).all() else None


def _best(some: Sequence[Blocks]) -> Blocks:
    """Those that leave least; of such that leave as much one with a plain function: z and tanh(1e-5 z) are alike."""
    least = min(blocks.error for blocks in some)
    alike = [blocks for blocks in some if blocks.error <= max(BLOCKS.alike * least, BLOCKS.exact)]
    return min(alike, key=lambda blocks: (any(outer.is_tuned for outer in blocks.outers[-1:]), blocks.error))


def _outer(factor: Factor, span: FloatArray) -> Outer:
    """A function of a library before anything smooth."""
    node = transform(factor.node, lambda leaf: Variable(0) if isinstance(leaf, Variable) else leaf)
    return Outer(node, span, factor.group in TUNED)


def errors_of(h: FloatArray, span: FloatArray, basis: FloatArray, left: FloatArray) -> FloatArray:
    """Roughly the error with each of many h [F, N] before a span, beside a basis: by normal equations.

    With B the span and A the basis, (hB)'(hB) and A'(hB) are sums over rows of h² and h times products of columns.
    """
    n_rows, k = span.shape
    with np.errstate(all="ignore"):
        centred = h - h.mean(axis=1, keepdims=True)  # what is constant times B is in the basis
        sizes = np.sqrt(np.mean(centred**2, axis=1))
    usable = np.isfinite(sizes) & (sizes > 0)
    centred = centred[usable] / sizes[usable, None]
    above, place = np.triu_indices(k), np.zeros((k, k), dtype=np.intp)
    place[above] = place.T[above] = np.arange(len(above[0]))
    grams = (centred**2 @ (span[:, above[0]] * span[:, above[1]]))[:, place]
    across = np.stack([centred @ (basis * column[:, None]) for column in span.T], axis=2)  # [F, Q, K]
    grams -= across.transpose(0, 2, 1) @ across
    towards = (centred * left) @ span
    scale = np.sqrt(np.maximum(np.einsum("fkk->fk", grams), BLOCKS.ridge))
    grams = grams / (scale[:, :, None] * scale[:, None, :]) + BLOCKS.ridge * np.eye(k)
    towards = towards / scale
    explained = np.sum(towards * np.linalg.solve(grams, towards[:, :, None])[:, :, 0], axis=1)
    n_free = max(n_rows - basis.shape[1] - k, 1)
    errors = np.full(len(h), np.inf)
    errors[usable] = np.sqrt(np.maximum(float(left @ left) - explained, 0.0) / n_free)
    return errors
