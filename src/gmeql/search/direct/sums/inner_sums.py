"""A sum inside a function with numbers of its own, beside plain terms and before columns: a*b + 5.6 log(1 + 1.1 a + 0.5 b).

With what stands inside known, y = P + R F(w z + w0) with plain P and R is linear. A scan asks for thousands of sums at once how
much of the target is left beside P and R F, in some directions of the rows in which P vanishes; the best are taken to
rounding by least squares over what stands inside, all else solved for (variable projection, with Kaufman's slopes). So are
laws of growth with an exponent around the bracket, Hill's of a sum, logarithms and powers of sums with terms beside them.

Legend: `N` rows, `T` plain terms, `K` columns inside, `S` sums, `A` starts of a curve, `J` columns before it, `D` directions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product, zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build, tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums.vocabulary import VOCABULARY
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.sums.inner_curves import CURVES, Curve
from gmeql.search.direct.terms.term_sums import beside

FloatArray = NDArray[np.float64]
SingleArray = NDArray[np.float32]


@dataclass(frozen=True)
class InnerSumsConfig:
    """Numbers of the method; "tried" on laws of growth, saturation, reactions and populations of one to four columns."""

    max_columns: int = 4
    rows: int = 200
    scanned: int = 64  # of them that the scan sees,
    directions: int = 32  # in so many directions
    angles: int = 6  # of sums of two columns, in half a turn
    drawn: int = 20  # sums of more columns
    gap: float = 0.02  # that a sum must lie above 0 where the curve begins there, in its range
    promising: float = 0.35  # share of what plain terms leave that a start may leave
    clear: float = 0.1  # ... and from which there is a formula to look for
    tried: int = 1  # starts of a curve, number of columns in it and before it, and direction,
    most: int = 20  # and of all with nothing before the curve, or with columns before it
    steps: int = 40  # of Levenberg-Marquardt on what stands inside
    told_after: int = 8  # steps, after which they must leave
    told: float = 0.1  # ... this share of what they began with
    damping: float = 0.01  # of the first step,
    damped: tuple[float, float, float] = (0.1, 10.0, 1e-15)  # times this after a step, and after one in vain; the least
    vain: int = 8  # steps in vain after which it ends
    vanished: float = 1e-11  # share of what plain terms leave that is rounding
    near: float = 1e-9  # ... or is where no step leaves less
    independent: float = 1e-12  # share of a column that must be left beside those before it
    softened: float = 1e-5  # square added to those of columns of one block: they are much alike
    none: float = 1e-8  # factors below this share of the largest are none
    plain: tuple[float, ...] = (0.0, 1.0, 2.0, 3.0)  # exponents that others see, and
    alone: float = 0.003  # by how much one differs from these: a power of nearly 0 is a logarithm
    verified: float = 1e-8  # error on all rows, relative to the target's spread
    seconds: tuple[float, ...] = (0.01, 0.03, 0.09, 0.16)  # of one core for the scan, by columns (measured),
    seconds_per_fit: float = 0.003  # and for each fit


INNER_SUMS = InnerSumsConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """Sums of plain terms and a sum inside a function that are the target on all rows, the briefest first. Draws nothing."""
    n, width = min(len(table.y), INNER_SUMS.rows), table.n_columns
    if not 1 <= width <= INNER_SUMS.max_columns or n < INNER_SUMS.rows // 2 or not table.varies:
        return
    if not functions.allows({"add", "mul"}) or effort.seconds < INNER_SUMS.seconds[width - 1] or effort.out_of_time():
        return
    curves = {name: curve for name, curve in CURVES.items() if functions.allows(set(curve.needs))}
    fit = _Fit(table.X[:n], table.y[:n], functions)
    if np.linalg.norm(fit.rest) < VOCABULARY.exact * np.linalg.norm(fit.y):
        return  # a plain sum
    found: list[Node] = []
    starts = _scan(fit, curves)
    if any(start.share < INNER_SUMS.clear for start in starts):
        effort = effort.on_trail()
    most = max(1, int((effort.seconds - INNER_SUMS.seconds[width - 1]) / INNER_SUMS.seconds_per_fit))
    for start in starts[:most]:
        if effort.out_of_time():
            break
        inside = fit.converged(start)
        root = None if inside is None else fit.written(start, inside)
        if root is not None and table.error(root) < INNER_SUMS.verified:
            found.append(root)
    yield from sorted(found, key=tree_complexity)


class _Inside(NamedTuple):
    """What a sum is of: columns with their values [N, K]."""

    nodes: tuple[Node, ...]
    values: FloatArray


class _Start(NamedTuple):
    """Where a fit begins, and the share of what plain terms leave that is left there."""

    share: float
    curve: Curve
    inside: _Inside
    numbers: FloatArray
    """Factors inside [K], what is added to them, and the number of the curve."""
    width: int
    """How many columns may stand before the curve."""


class _Look(NamedTuple):
    """What is left of the target [N] for given numbers, what the curve spans [N, J] and its factors [J], and the sum [N]."""

    left: FloatArray
    basis: FloatArray
    factors: FloatArray
    z: FloatArray


class _Fit:
    """A target [N] beside plain terms, and what a curve with a sum inside explains of what these leave."""

    def __init__(self, X: FloatArray, y: FloatArray, functions: FunctionSet) -> None:
        self.X, self.y = X, y
        self.terms = [(node, values) for node, values in _plain(X, functions) if values.any()]  # of a rare kind, none
        values = np.column_stack([values for _, values in self.terms])
        self.basis = np.linalg.qr(values / np.linalg.norm(values, axis=0))[0]
        self.rest = self.beside(y)
        self.size = float(np.linalg.norm(self.rest))
        self.before = np.column_stack([np.ones(len(y)), X])
        self.ahead: list[Node] = [Constant(1.0), *(Variable(j) for j in range(X.shape[1]))]

    def beside(self, columns: FloatArray) -> FloatArray:
        """What is left of columns [N] or [N, M] beside the plain terms."""
        return beside(self.basis, columns)

    def look(self, start: _Start, numbers: FloatArray) -> _Look | None:
        """What is left with some numbers inside; None where the curve has no values or spans less than it should."""
        with np.errstate(all="ignore"):
            z = start.inside.values @ numbers[:-2] + numbers[-2]
            values = start.curve.value(z, numbers[-1])
            if not (np.isfinite(values).all() and np.abs(values).max() > 0):
                return None
            columns = self.beside(self.before[:, : start.width] * values[:, None])
            sizes = np.linalg.norm(columns, axis=0)
            basis, corner = np.linalg.qr(columns / sizes)
        if not np.isfinite(basis).all() or (np.abs(np.diag(corner)) < INNER_SUMS.independent).any():
            return None
        factors = basis.T @ self.rest
        return _Look(self.rest - basis @ factors, basis, np.linalg.solve(corner, factors) / sizes, z)

    def converged(self, start: _Start) -> FloatArray | None:
        """The numbers near to where a fit begins with which nothing is left; None where something is."""
        numbers, now, damping = start.numbers, self.look(start, start.numbers), INNER_SUMS.damping
        began = math.inf if now is None else float(np.linalg.norm(now.left)) / self.size
        scale = np.array([*(1.0 / np.ptp(start.inside.values, axis=0)), 1.0, 1.0])
        less, more, least = INNER_SUMS.damped
        for step in range(INNER_SUMS.steps):
            if now is None:
                return None
            share = float(np.linalg.norm(now.left)) / self.size
            if share < INNER_SUMS.vanished:
                return numbers
            if step >= INNER_SUMS.told_after and share > INNER_SUMS.told * began:
                return None
            slopes = self._slopes(start, numbers, now)
            if not np.isfinite(slopes).all():
                return None
            slopes = slopes * scale
            squares, along = slopes.T @ slopes, slopes.T @ now.left
            size = np.diag(squares).copy()
            size[size == 0] = 1.0  # what the curve does not have stays
            for _ in range(INNER_SUMS.vain):
                tried = numbers + scale * np.linalg.solve(squares + damping * np.diag(size), along)
                then = self.look(start, tried)
                if then is not None and np.linalg.norm(then.left) < np.linalg.norm(now.left):
                    numbers, now, damping = tried, then, max(damping * less, least)
                    break
                damping *= more
            else:
                return numbers if share < INNER_SUMS.near else None
        return None

    def _slopes(self, start: _Start, numbers: FloatArray, now: _Look) -> FloatArray:
        """How the fit changes with each of the numbers [N, K + 2], beside all that follows by itself."""
        with np.errstate(all="ignore"):
            by_sum, by_number = start.curve.slopes(now.z, float(numbers[-1]))
            size = self.before[:, : start.width] @ now.factors
            level = by_sum * size * start.curve.is_level
            last = np.zeros(len(size)) if by_number is None else by_number * size
            columns = np.column_stack([start.inside.values * (by_sum * size)[:, None], level, last])
            columns = self.beside(columns)
        return np.asarray(columns - now.basis @ (now.basis.T @ columns))

    def written(self, start: _Start, numbers: FloatArray) -> Node | None:
        """The sum of the terms that are needed; None where it is not the target."""
        numbers = numbers.copy()
        if not start.curve.is_level:
            numbers[-2] = 0.0
        with np.errstate(all="ignore"):
            values = start.curve.value(start.inside.values @ numbers[:-2] + numbers[-2], numbers[-1])
        plain = INNER_SUMS.plain if start.curve.is_power else INNER_SUMS.plain[:1]
        is_plain = start.curve.has_number and min(abs(numbers[-1] - k) for k in plain) < INNER_SUMS.alone
        if is_plain or not np.isfinite(values).all():
            return None
        sizes = np.abs(numbers[:-2]) * np.abs(start.inside.values).max(axis=0)
        seen = sizes > INNER_SUMS.none * sizes.max()
        inside = zip(numbers, start.inside.nodes, seen, strict=False)
        parts = [build("mul", _number(c), node) for c, node, is_seen in inside if is_seen]
        if abs(numbers[-2]) > INNER_SUMS.none * sizes.max():
            parts.append(_number(numbers[-2]))
        curve = start.curve.tree(build("add", *parts), float(f"{numbers[-1]:.12g}"))
        before = self.before[:, : start.width]
        nodes = [*(node for node, _ in self.terms), *(build("mul", node, curve) for node in self.ahead[: start.width])]
        columns = np.column_stack([*(values for _, values in self.terms), before * values[:, None]])
        columns_sizes, size = np.linalg.norm(columns, axis=0), float(np.linalg.norm(self.y))
        kept = np.arange(len(nodes))
        while len(kept):
            factors = np.linalg.lstsq(columns[:, kept] / columns_sizes[kept], self.y, rcond=VOCABULARY.spanned)[0]
            seen = np.abs(factors) > INNER_SUMS.none * size
            if seen.all():
                break
            kept = kept[seen]
        factors = factors / columns_sizes[kept]
        if not np.linalg.norm(self.y - columns[:, kept] @ factors) < INNER_SUMS.verified * size:
            return None
        return build("add", *(build("mul", _number(c), nodes[m]) for c, m in zip(factors, kept, strict=True)))


def _number(value: float) -> Constant:
    return Constant(float(f"{value:.13g}"))


def _plain(X: FloatArray, functions: FunctionSet) -> list[tuple[Node, FloatArray]]:
    """1, columns, their squares and products of two, and columns times their logarithms beside others, with values [N]."""
    columns: list[tuple[Node, FloatArray]] = [(Variable(j), x) for j, x in enumerate(X.T)]
    found = [(Constant(1.0), np.ones(len(X))), *columns]
    found += [(build("mul", a, b), x * z) for (a, x), (b, z) in combinations(columns, 2)]
    found += [(build("pow", a, Constant(2.0)), x * x) for a, x in columns]
    if X.shape[1] > 1 and functions.allows({"log"}):
        found += [(build("mul", a, build("log", a)), x * np.log(x)) for a, x in columns if (x > 0).all()]
    return found


def _insides(X: FloatArray) -> Iterator[tuple[_Inside, FloatArray]]:
    """What may stand in a sum, with factors [S, K] of columns that each run from 0 to 1: one column or product, two, all."""
    one, columns = np.ones((1, 1)), range(X.shape[1])
    inverses = [j for j in columns if (X[:, j] > 0).all()]
    for j in columns:
        yield _Inside((Variable(j),), X[:, [j]]), one
    for j in inverses:
        yield _Inside((build("pow", Variable(j), Constant(-1.0)),), 1.0 / X[:, [j]]), one
    for i, j in combinations(columns, 2):
        yield _Inside((build("mul", Variable(i), Variable(j)),), X[:, [i]] * X[:, [j]]), one
        angles = (np.arange(INNER_SUMS.angles) + 0.5) / INNER_SUMS.angles * np.pi
        yield _Inside((Variable(i), Variable(j)), X[:, [i, j]]), np.column_stack([np.cos(angles), np.sin(angles)])
    for i, j in product(columns, inverses):
        if i != j:
            yield _Inside((build("div", Variable(i), Variable(j)),), X[:, [i]] / X[:, [j]]), one
    if len(columns) > 2:
        drawn = np.random.default_rng(len(columns)).standard_normal((INNER_SUMS.drawn, len(columns)))
        yield _Inside(tuple(Variable(j) for j in columns), X), drawn


def _scan(fit: _Fit, curves: dict[str, Curve]) -> list[_Start]:
    """Where fits begin, those that leave least first, in single precision: it only says where to look."""
    n, width = min(len(fit.y), INNER_SUMS.scanned), fit.before.shape[1]
    held = np.linalg.qr(fit.basis[:n])[0]
    drawn = np.random.default_rng(n).standard_normal((n, min(INNER_SUMS.directions, n - held.shape[1])))
    directions = np.linalg.qr(np.column_stack([held, drawn]))[0][:, held.shape[1] :]
    seen_there = directions.T @ fit.rest[:n]
    target: SingleArray = (seen_there / np.linalg.norm(seen_there)).astype(np.float32)
    stacked = (directions[:, :, None] * fit.before[:n, None, :]).reshape(n, -1).T.astype(np.float32)  # [D J, N]
    found: list[_Start] = []
    for inside, sums in _insides(fit.X):
        reach = np.ptp(inside.values, axis=0)
        if not (np.isfinite(reach).all() and (reach > 0).all()):
            continue
        runs = (inside.values / reach) @ sums.T  # [N, S]
        lowest, reaches = runs.min(axis=0), np.ptp(runs, axis=0)
        above = lowest - INNER_SUMS.gap * reaches
        for curve in curves.values():
            begins = np.where(lowest > 0, 0.0, above) if curve.is_from_zero else lowest
            single = ((runs[:n] - begins) / reaches).T.astype(np.float32)
            starts = np.array(curve.starts, np.float32)
            with np.errstate(all="ignore"):
                z = single[:, None, :] * starts[:, 0, None] + starts[:, 1, None]  # [S, A, N]
                values = curve.value(z, starts[:, 2, None]).reshape(-1, n)
            sizes = np.abs(values).max(axis=1)
            usable = np.flatnonzero(np.isfinite(sizes) & (sizes > 0))
            if not len(usable):
                continue
            seen = stacked @ (values[usable] / sizes[usable, None]).T
            blocks = seen.reshape(-1, width, len(usable)).transpose(2, 0, 1)
            is_rising = starts[usable % len(starts), 0] > 0
            for some, explained in zip((1, width), _explained(blocks, target), strict=True):
                for way in (is_rising, ~is_rising):
                    if not way.any():
                        continue
                    best = int(np.argmax(np.where(way, explained, -1.0)))
                    s, at = divmod(int(usable[best]), len(starts))
                    a, b, number = (float(c) for c in starts[at])
                    numbers = np.array([*(a * sums[s] / (reaches[s] * reach)), b - a * begins[s] / reaches[s], number])
                    left = math.sqrt(max(0.0, 1.0 - float(explained[best])))
                    found.append(_Start(left, curve, inside, numbers, some))
    return _best_of_each(found)


def _best_of_each(starts: Sequence[_Start]) -> list[_Start]:
    """The promising ones that leave least, a few of each curve, number of columns and direction."""
    kinds: Counter[tuple[int, int, int, bool]] = Counter()
    kept: dict[int, list[_Start]] = {}
    for one in sorted((one for one in starts if one.share < INNER_SUMS.promising), key=lambda one: one.share):
        kind = (id(one.curve), one.width, len(one.inside.nodes), bool(one.numbers[0] > 0))
        kinds[kind] += 1
        if kinds[kind] <= INNER_SUMS.tried:
            kept.setdefault(one.width, []).append(one)
    # with more columns before it a curve explains more, right or wrong: both kinds take turns
    turns = zip_longest(*(some[: INNER_SUMS.most] for _, some in sorted(kept.items())))
    return [one for turn in turns for one in turn if one is not None]


def _explained(blocks: SingleArray, target: SingleArray) -> tuple[FloatArray, FloatArray]:
    """Shares [M] of a target's squares [D] of size 1 that the first column of blocks [M, D, J] explains, and that all do."""
    sizes = np.linalg.norm(blocks, axis=1, keepdims=True)
    blocks = (blocks / np.where(sizes > 0, sizes, 1.0)).astype(np.float32)
    on = np.einsum("mdi,d->mi", blocks, target)
    among = np.einsum("mdi,mdj->mij", blocks, blocks) + INNER_SUMS.softened * np.eye(blocks.shape[2], dtype=np.float32)
    return on[:, 0] ** 2, np.einsum("mi,mi->m", on, np.linalg.solve(among, on[:, :, None])[:, :, 0])
