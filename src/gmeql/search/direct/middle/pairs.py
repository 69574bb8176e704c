"""Under noise: pairs of small formulas ranked by how well they correlate with the target, in place of an exact look-up.

For every reading g of the target and all small formulas q and f of a table, g(y) is fitted by q f, s q f, s q f + c,
q (s f + c) and s q + c f with the constants in closed form. A few rows decide which pairs are looked at on all of them;
the briefest of those are fitted to convergence as formulas of y, and only then compared. So the law stands among its
look-alikes at once, whichever of them islands would have met.

A reading of a noisy target is biased: 1/y of a small y is anything. So the target itself is read first, and of the best
formula v found until then the others take their weights and values: z = g(v) + g'(v) (y - v), as in Gauss-Newton steps.

Legend: `N` rows, `M` of them to screen on, `Q` factors q, `F` formulas f, `C` pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, build
from gmeql.network.families import FunctionSet
from gmeql.search.direct.comparing import COMPARING, briefest
from gmeql.search.direct.least_squares import Solved, with_second
from gmeql.search.direct.middle.small_formulas import SmallFormulas
from gmeql.search.direct.readings import DIRECT_READINGS, INVERTED_BY
from gmeql.search.direct.table import DirectTable, Effort, FloatArray
from gmeql.search.polish.config import POLISH
from gmeql.search.polish.scoring import JudgedRows, Scored, refit
from gmeql.search.data.readings import PLAIN

Ints = NDArray[np.int64]
Places = tuple[Ints, Ints, Ints]
"""Kinds of pairs, q and f, [C] each."""


@dataclass(frozen=True)
class PairsConfig:
    """Numbers of the method; speeds are those of one core (measured)."""

    rows: int = 1000
    screened: int = 128
    few_rows: int = 40
    max_columns: int = 6
    formulas: int = 4000  # f, at most
    formulas_per_factor: float = 6.0  # how many f there are for each q
    together: int = 40  # factors screened at a time: what they need stays in the cache
    looked_at: int = 120  # pairs of a kind and reading that are looked at on all rows
    fitted: int = 25  # pairs of a reading that are fitted to convergence
    steps: int = 30
    least_alone: float = 1e-4  # share of a column that another must leave of it, in single precision
    least_left: float = 1e-6  # share of the target that must be left for single precision to be right about it
    largest_share: float = (
        0.3  # of a factor's squares in one row: two columns of such factors are told apart by nothing
    )
    same_loss: float = 1e-7  # pairs whose losses differ by less, relatively, are one formula written twice
    largest_ratio: float = 1e6  # of a reading's weights, the largest over the median
    least_unexplained: float = 1e-4  # error so far below which there is no noise to speak of: the look-up sees more
    pairs_per_second: float = 1e7
    seconds_per_reading: float = 0.025  # for looking and fitting


PAIRS = PairsConfig()
BARE, ALONE, PRODUCT, FACTOR, SUM = range(5)
"""Kinds of pairs: q f, s q f, s q f + c, q (s f + c), s q + c f."""
READ = (PLAIN, "inv", "square", "inv_square", "log", "sqrt", "exp", "sin", "cos")
"""Readings of the target, those that laws most often have first."""
N_CONSTANTS = np.array([0, 1, 2, 2, 2])


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """Pairs of small formulas of least description length that match the best so far. Draws nothing at random."""
    n = min(len(table.y), PAIRS.rows)
    usable = 1 <= table.n_columns <= PAIRS.max_columns and n >= PAIRS.few_rows and functions.allows({"mul", "add"})
    if not usable or table.unexplained < PAIRS.least_unexplained:
        return
    values = table.y if table.explained is None else table.explained
    names = [name for name in READ if functions.allows(INVERTED_BY[name]) and DIRECT_READINGS[name].applies(values)]
    seconds = effort.seconds - COMPARING.rounded * COMPARING.seconds_per_rounding
    names = names[: max(0, int(seconds / (2 * PAIRS.seconds_per_reading)))]
    if not names or effort.out_of_time():
        return
    n_pairs = (seconds / len(names) - PAIRS.seconds_per_reading) * PAIRS.pairs_per_second
    n_formulas = min(PAIRS.formulas, int(math.sqrt(n_pairs * PAIRS.formulas_per_factor)))
    rows = JudgedRows.of(table.X[:n], table.y[:n], table.weights[:n], [f"x{i}" for i in range(table.n_columns)])
    pairs = _Pairs.of(table.X[:n], functions, n_formulas)
    fitted: list[Scored] = []
    values = values[:n]
    for name in names:
        if effort.out_of_time():
            break
        read = _read(name, values, rows)
        if read is None:
            continue
        fitted += refit(pairs.leading(name, *read), rows, max_steps=PAIRS.steps)
        if name == PLAIN:
            best = min(fitted, key=lambda one: one.loss, default=None)
            if best is not None and math.sqrt(best.loss) < table.unexplained * rows.spread:
                values = table.values(best.root)[:n]
    n_tried = len(names) * len(pairs.q_numbers) * len(pairs.f_numbers)
    yield from briefest(fitted, table, rows, effort.out_of_time, n_tried=n_tried)


def _read(name: str, values: FloatArray, rows: JudgedRows) -> tuple[FloatArray, FloatArray] | None:
    """Target and weights [N] of a reading around some values [N] of the target; None where it does not apply to them."""
    if name == PLAIN:
        return rows.target, rows.weights
    reading = DIRECT_READINGS[name]
    if not reading.applies(values):
        return None
    with np.errstate(all="ignore"):
        # `slope` is known up to its sign, which is that of the difference quotient
        step = 1e-6 * np.abs(values)
        rising = np.sign(reading.forward(values + step) - reading.forward(values - step))
        slope = rising * np.abs(reading.slope(values))
        target, weights = reading.forward(values) + slope * (rows.target - values), rows.weights / slope**2
    if not (np.isfinite(target).all() and np.isfinite(weights).all() and np.ptp(target) > 0):
        return None
    return None if weights.max() > PAIRS.largest_ratio * np.median(weights) else (target, weights)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """All pairs of a table: small formulas f with values [F, N], factors q [Q, N], which are such or their inverse."""

    small: SmallFormulas
    f_numbers: Ints
    f_values: FloatArray
    q_numbers: Ints
    q_inverse: NDArray[np.bool_]
    q_values: FloatArray

    @classmethod
    def of(cls, X: FloatArray, functions: FunctionSet, n_formulas: int) -> _Pairs:
        """The cheapest formulas over the rows X [N, V] that differ in more than scale; factors are the cheapest of them."""
        small = SmallFormulas.of(X[: PAIRS.screened], functions, max_kept=n_formulas, max_formulas=n_formulas)
        values = small.values_on(X)
        numbers = _different(values)
        n_factors = int(len(numbers) / PAIRS.formulas_per_factor / 2) + 1
        first = numbers[:n_factors]
        with np.errstate(all="ignore"):
            both = np.vstack([values[first], 1 / values[first]])
        if not functions.allows({"inv"}):
            both[len(first) :] = math.nan
        factors = _different(both)
        inverse = factors >= len(first)
        return cls(small, numbers, values[numbers], first[factors % len(first)], inverse, both[factors])

    def leading(self, reading: str, target: FloatArray, weights: FloatArray) -> list[Node]:
        """Formulas of the target for the pairs that fit a reading [N] best for their length."""
        with np.errstate(all="ignore"):
            kinds, qs, fs = self._screened(target, weights)
            solved = self._solved(kinds, qs, fs, target, weights)
            loss = np.where(solved.squares > 0, solved.squares / len(target), math.inf)
            lengths = np.log(loss) + self._prices(kinds, qs, fs, len(target))
        order = np.argsort(np.where(np.isfinite(lengths), lengths, math.inf), kind="stable")
        sign = 1.0 if target.mean() >= 0 else -1.0
        found: dict[int, Node] = {}
        for i in order[: np.isfinite(lengths).sum()].tolist():
            same = round(math.log(loss[i]) / PAIRS.same_loss)
            if same not in found:
                root = self._node(int(kinds[i]), int(qs[i]), int(fs[i]), solved.factor[i], solved.offset[i])
                found[same] = DIRECT_READINGS[reading].invert(root, sign)
            if len(found) >= PAIRS.fitted:
                break
        return list(found.values())

    def _screened(self, target: FloatArray, weights: FloatArray) -> Places:
        """The pairs that are briefest on the first rows, in single precision."""
        m = min(len(target), PAIRS.screened)
        w = (weights[:m] / weights[:m].mean()).astype(np.float32)
        (y,), (y_size,) = _unit(target[None, :m], w)
        (F, f_sizes), (Q, q_sizes) = _unit(self.f_values[:, :m], w), _unit(self.q_values[:, :m], w)
        spread_out = np.flatnonzero((w * Q**2).max(axis=1) < PAIRS.largest_share * m)
        if not len(spread_out):  # a few rows outweigh all others under this reading
            none = np.zeros(0, np.int64)
            return none, none, none
        yy, y1, total = float(w @ y**2), float(w @ y), float(w.sum())
        F_squares = (F * F).T
        y_f, f_f = (w * y) @ F.T, w @ F_squares
        # of one kind each, as on few rows more constants always fit better: so only symbols have a price
        q_prices, f_prices = (self._symbol_prices(costs, len(target)).astype(np.float32) for costs in self._costs())
        ratios = (
            (q_sizes / y_size).astype(np.float32),
            f_sizes.astype(np.float32),
        )  # what q f really is, beside its unit
        best: list[list[NDArray[np.float32]]] = [[] for _ in N_CONSTANTS]
        places: list[list[Ints]] = [[] for _ in N_CONSTANTS]
        bounds = np.full(len(N_CONSTANTS), np.inf)
        for start in range(0, len(spread_out), PAIRS.together):
            part = spread_out[start : start + PAIRS.together]
            q = Q[part]
            yqf, qfqf, q1f, qqf = (w * y * q) @ F.T, (w * q * q) @ F_squares, (w * q) @ F.T, (w * q * q) @ F.T
            y_q, q_q = (q @ (w * y))[:, None], (q * q @ w)[:, None]
            size = ratios[0][part, None] * ratios[1]
            prices = q_prices[part, None] + f_prices
            squares = (
                yy + size * (size * qfqf - 2 * yqf),
                yy - yqf**2 / qfqf,
                _left(yy, yqf, qfqf, y1, total, q1f),
                _left(yy, yqf, qfqf, y_q, q_q, qqf),
                _left(yy, y_q, q_q, y_f, f_f, q1f),
            )
            for kind, left in enumerate(squares):
                lengths = np.where(left > PAIRS.least_left * yy, np.log(left) + prices, np.inf).ravel()
                chosen = np.flatnonzero(lengths < bounds[kind])
                if len(chosen) > PAIRS.looked_at:
                    chosen = chosen[np.argpartition(lengths[chosen], PAIRS.looked_at - 1)[: PAIRS.looked_at]]
                    bounds[kind] = lengths[chosen].max()
                best[kind].append(lengths[chosen])
                q_places, f_places = np.divmod(chosen, len(F))
                places[kind].append(np.array([part[q_places], f_places]))
        found = []
        for kind in range(len(N_CONSTANTS)):
            chosen = np.argsort(np.concatenate(best[kind]), kind="stable")[: PAIRS.looked_at]
            qs, fs = np.concatenate(places[kind], axis=1)[:, chosen]
            found.append(np.array([np.full_like(qs, kind), qs, fs]))
        kinds, qs, fs = np.concatenate(found, axis=1)
        return kinds, qs, fs

    def _solved(self, kinds: Ints, qs: Ints, fs: Ints, target: FloatArray, weights: FloatArray) -> Solved:
        """Constants [C] of pairs on all rows, and the squares that they leave."""
        w = weights / weights.mean()
        wy = w * target
        yy = float(wy @ target)
        factor, offset, squares = np.empty(len(kinds)), np.zeros(len(kinds)), np.empty(len(kinds))
        for kind in np.unique(kinds).tolist():
            of = kinds == kind
            q, f = self.q_values[qs[of]], self.f_values[fs[of]]
            first = q if kind == SUM else q * f
            weighed = w * first
            yf, ff = first @ wy, np.einsum("cn,cn->c", weighed, first)
            if kind in (BARE, ALONE):
                factor[of] = 1.0 if kind == BARE else yf / ff
                squares[of] = yy - 2 * factor[of] * yf + factor[of] ** 2 * ff
                continue
            if kind == PRODUCT:
                yg, gg, gf = float(wy.sum()), float(w.sum()), weighed.sum(axis=1)
            else:
                second = f if kind == SUM else q
                yg, gg = second @ wy, np.einsum("cn,cn,n->c", second, second, w)
                gf = np.einsum("cn,cn->c", weighed, second)
            two = with_second(yy, yf, ff, yg, gg, gf)
            factor[of], offset[of], squares[of] = two.factor, two.offset, two.squares
        return Solved(factor, offset, squares)

    def _prices(self, kinds: Any, qs: Ints, fs: Ints, n_rows: int) -> FloatArray:
        """What symbols and constants cost, on the scale of the logarithm of the loss."""
        q_costs, f_costs = self._costs()
        constants = N_CONSTANTS[kinds]
        symbols = self._symbol_prices(q_costs[qs] + f_costs[fs] + 2 * constants, n_rows)
        return np.asarray(symbols + math.log(n_rows) * constants / n_rows)

    @staticmethod
    def _symbol_prices(symbols: Ints, n_rows: int) -> FloatArray:
        return np.asarray(2 * POLISH.node_cost * symbols / n_rows)

    def _costs(self) -> tuple[Ints, Ints]:
        """Symbols of every factor and of every f."""
        costs = self.small.costs.astype(np.int64)
        return costs[self.q_numbers], costs[self.f_numbers]

    def _node(self, kind: int, q_place: int, f_place: int, s: float, c: float) -> Node:
        """The formula of a pair."""
        f, q = self.small.tree(int(self.f_numbers[f_place])), self.small.tree(int(self.q_numbers[q_place]))
        factor, offset = Constant(float(s)), Constant(float(c))
        over = bool(self.q_inverse[q_place])
        if kind == SUM:
            first = build("div", factor, q) if over else build("mul", factor, q)
            return build("add", first, build("mul", offset, f))
        if kind == FACTOR:
            inner = build("add", build("mul", factor, f), offset)
            return build("div", inner, q) if over else build("mul", q, inner)
        product = build("div", build("mul", factor, f), q) if over else build("mul", factor, q, f)
        return build("add", product, offset)


def _left(yy: float, yf: Any, ff: Any, yg: Any, gg: Any, gf: Any) -> FloatArray:
    """Sum of squares that two columns leave of y; infinite where single precision cannot tell the columns apart."""
    share = gf / gg
    alone = ff - share * gf
    squares = (yy - yg**2 / gg) - (yf - yg * share) ** 2 / alone
    return np.asarray(np.where(alone > PAIRS.least_alone * ff, squares, np.inf))


def _unit(values: FloatArray, weights: NDArray[np.float32]) -> tuple[NDArray[np.float32], FloatArray]:
    """Formulas [K, M] divided by their size [K], the weighted root mean square, so that sums of products round alike."""
    size = np.sqrt(np.mean(weights * values**2, axis=1))
    size = np.where(size > 0, size, 1.0)
    return (values / size[:, None]).astype(np.float32), size


def _different(values: FloatArray) -> Ints:
    """Places of formulas [K, N] with finite values that differ in more than scale, in the order given."""
    with np.errstate(all="ignore"):
        some = values[:, :: max(1, values.shape[1] // 8)]
        largest = np.take_along_axis(some, np.abs(some).argmax(1)[:, None], 1)
        forms = np.round(some / largest, 9)
        good = np.isfinite(values).all(1) & np.isfinite(forms).all(1)
    places = np.flatnonzero(good)
    _, first = np.unique(forms[places], axis=0, return_index=True)
    return np.asarray(places[np.sort(first)])
