"""Waves: frequencies of powers of columns, of their products and of pairs of columns, read off a periodogram.

A wave of thousands of turns is a needle for a fit, which converges only from within a turn of the truth, but a scan of
all frequencies sees it: the rows are put on a fine grid of u = x, x**2, x**3, 1/x or x*z, and one Fourier transform gives
the power at every frequency (Press and Rybicki 1989, with the nearest grid point in place of their interpolation). Two
columns make a transform in two dimensions: cos(ax + bz), and cos(ax)cos(bz) as a sum of two such; so do a column and its
square. Waves of longer sums of products, which may have a factor before them, are `angles.py`'s.

A fast wave goes through a few rows of anything: one is proposed only where `stands_out` says that noise would hardly
have one like it.

Legend: `N` rows, `G` points of a grid, `M` frequencies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Call, Constant, Node, Variable, build, row_values
from gmeql.network.families import FunctionSet
from gmeql.search.data.readings import PLAIN
from gmeql.search.direct.fractions.polynomials import monomials, values
from gmeql.search.direct.readings import DIRECT_READINGS, direct_readings
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.terms.choice import TERMS, TermChoice
from gmeql.search.direct.terms.column_functions import LibraryConfig
from gmeql.search.direct.terms.library import library
from gmeql.search.direct.waves.angles import ANGLES, amplitudes_of, likely_amplitudes, products_of, strongest_sum
from gmeql.search.polish.scoring import JudgedRows
from gmeql.search.polish.waves import stands_out

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class WavesConfig:
    """Numbers of the scan."""

    rows: int = 400  # that frequencies are looked for on
    few_rows: int = 20  # fewer tell nothing about waves
    max_columns: int = 8
    grids: tuple[int, ...] = (1 << 14, 1 << 18, 1 << 22)  # points; the finer ones where the work allows it
    square: int = 1 << 9  # points each way of a grid for two columns
    oversampling: int = 2  # points to a turn at the lowest frequency: peaks fall between frequencies no more than this
    highest: int = 4  # frequencies up to the number of points over this: beyond, the nearest point is too far off
    seconds_per_point: float = 4e-8  # of a transform on one core (measured)
    least_turns: float = 2.0  # over the rows: slower waves are the other methods' task
    alike: float = 0.85  # of the most power, from which on a slower wave comes first: even steps do not tell them apart
    between: float = 2.0  # times the share of the strongest frequency on a grid is more than any between two has
    steps: int = 12  # of Gauss-Newton on the frequency
    trend_rows: int = 1000  # that a trend is taken from before waves of sums are looked for,
    rows_per_trend: int = 4  # with at least so many for each of its terms
    readings: tuple[str, ...] = (PLAIN, "square")  # of the target: a wave may stand under a root
    rounding: float = 1e-16  # share of the variance in which no wave is looked for
    waves: int = 2  # looked for one after the other
    worth: float = 0.5  # share of the variance from which waves are worth the choice of what stands beside them
    nearer: float = 0.4  # a careful choice follows where a hasty one has less than this share of their error
    beams: tuple[int, ...] = (12, 12, 8)  # sums of each length with none, one and two waves


WAVES = WavesConfig()
POWERS = LibraryConfig(
    powers=(1, 2, 3, -1), roots=(0.5,), mixed=(1, 2, -1, 0.5), exponents=(), rates=(), offsets=(), turns=0, bumps=0
)
"""What stands beside waves and before them."""
HASTY = replace(TERMS, max_terms=5, tried=4, fits=1, steps=2, seeds=0, exchanged=0)
"""A first choice of that: a tenth of the work, and near enough to tell a sum from a curve that waves come near to."""


@dataclass(frozen=True)
class Wave:
    """A wave that stands out: its angle without the phase, and its share of the variance that was left."""

    angles: tuple[Node, ...]
    frequencies: tuple[float, ...]
    phase: float
    share: float

    def node(self) -> Node:
        """sin(Σ frequency * angle + phase); a phase of zero stays, as a constant to fit."""
        parts = [build("mul", Constant(f), angle) for f, angle in zip(self.frequencies, self.angles, strict=True)]
        return Call("sin", (Call("add", (*parts, Constant(self.phase))),))


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """Formulas of one or two waves that stand out from noise, with powers beside and before them. Draws nothing."""
    n = min(len(table.y), WAVES.rows)
    if not 1 <= table.n_columns <= WAVES.max_columns or n < WAVES.few_rows:
        return
    if not functions.allows({"sin", "add", "mul"}):
        return
    trend_left = _without_trend(table)
    if not float(trend_left @ trend_left) > WAVES.rounding * float(table.y @ table.y):
        return
    sign = 1.0 if table.y.mean() >= 0 else -1.0
    readings = {name: y for name, y in direct_readings(table.y, functions).items() if name in WAVES.readings}
    scans = {
        name: _Scan(table if name == PLAIN else replace(table, y=y, weights=np.ones_like(y)), functions)
        for name, y in readings.items()
    }
    share = replace(effort, seconds=effort.seconds / len(readings))
    for name, scan in scans.items():  # of every reading first what is cheap
        scan.quickly(share)
        if scan.is_clear:
            yield from (DIRECT_READINGS[name].invert(root, sign) for root in scan.formulas(share))
    for name, scan in scans.items():
        if not scan.is_clear:
            scan.finely(share)
            yield from (DIRECT_READINGS[name].invert(root, sign) for root in scan.formulas(share))


class _Scan:
    """The waves of one reading of the target, as far as they are known, and the seconds spent on them by count."""

    def __init__(self, table: DirectTable, functions: FunctionSet) -> None:
        self.table, self.functions = table, functions
        self.residual = _without_trend(table)
        self.n = min(len(self.residual), WAVES.rows)
        self.angles = angles_of(table.X[: self.n], functions)
        self.found: list[Wave] = []
        self.spent = 0.0

    @property
    def is_clear(self) -> bool:
        """Whether one wave has nearly all: a finer scan would find no other."""
        return any(wave.share > ANGLES.clear for wave in self.found[:1])

    def quickly(self, effort: Effort) -> None:
        """Waves of single angles on a coarse grid; where there are none, of sums of products, or products of two waves."""
        self._look([(angle,) for angle in self.angles], WAVES.grids[0], effort)
        if not self.found and not effort.out_of_time():
            left = replace(effort, seconds=effort.seconds - self.spent)
            self.found, cost = _of_sums(self.table, self.residual, self.functions, left)
            self.spent += cost
        cost = WAVES.waves * WAVES.seconds_per_point * WAVES.grids[0] * len(self.angles)
        if not self.found and self.spent + cost <= effort.seconds and not effort.out_of_time():
            self.found = _of_squares(self.table.X[: self.n], self.residual[: self.n], self.angles)
            self.spent += cost

    def finely(self, effort: Effort) -> None:
        """Waves of single angles and of two together on ever finer grids."""
        for grid in WAVES.grids:
            self._look(_looks(self.angles), grid, effort)

    def _look(self, looks: list[tuple[Node, ...]], grid: int, effort: Effort) -> None:
        cost = WAVES.seconds_per_point * sum(grid if len(look) == 1 else WAVES.square**2 for look in looks)
        rest = _unexplained(self.found)
        if self.spent + cost > effort.seconds or effort.out_of_time() or rest < WAVES.rounding:
            return
        self.spent += cost
        seen = _found(self.table.X[: self.n], self.residual[: self.n], looks, grid)
        self.found = seen if _unexplained(seen) < rest else self.found

    def formulas(self, effort: Effort) -> Iterator[Node]:
        """The strongest wave, two of them as a product, and all among powers of columns."""
        size = float(np.std(self.residual))
        for one in self.found[:1]:
            yield build("mul", Constant(math.sqrt(2 * one.share) * size), one.node())
        yield from _products(self.found, size)
        if 1.0 - _unexplained(self.found) > WAVES.worth and self._error() < self.table.unexplained:
            yield from self._with_powers(effort.on_trail())

    def _error(self) -> float:
        """What the waves leave beside a trend, relative to the target's spread."""
        return math.sqrt(_unexplained(self.found) * float(np.mean(self.residual**2))) / self.table.spread

    def _with_powers(self, effort: Effort) -> Iterator[Node]:
        """The waves among powers of columns, and times these, as a sum of terms.

        A smooth curve and a random walk are nearly a few slow waves, too: where a first, hasty choice comes hardly nearer
        than they do beside a trend, no careful one follows.
        """
        table, n = self.table, self.n
        rows = JudgedRows.of(table.X[:n], table.y[:n], table.weights[:n], [f"x{i}" for i in range(table.n_columns)])
        waves = [wave.node() for wave in self.found]
        terms = library(table.X[:n], self.functions.allows, numbers=POWERS, waves=waves)
        nearer = (WAVES.nearer * self._error() * table.spread) ** 2
        one_each = (1,) * len(WAVES.beams)
        choice = TermChoice(terms, ~terms.plain, rows, beams=one_each, by_pairs=False, numbers=HASTY)
        sums = list(choice.run(effort.out_of_time))
        if sums and nearer > min(one.loss for one in sums) and not rows.is_exact(sums[-1].loss):
            sums = list(TermChoice(terms, ~terms.plain, rows, beams=WAVES.beams).run(effort.out_of_time)) or sums
        if sums:
            yield sums[-1].root


def _unexplained(found: list[Wave]) -> float:
    """Share of the variance that waves, each found in what the one before left, leave."""
    return math.prod(1.0 - wave.share for wave in found)


def _without_trend(table: DirectTable) -> FloatArray:
    """What is left of the target on the first rows beside products of columns, up to the degree that these can tell."""
    n = min(len(table.y), WAVES.trend_rows)
    X, y = table.X[:n], table.y[:n]
    sizes = np.abs(X).max(axis=0)
    scaled = X[:, sizes > 0] / sizes[sizes > 0]
    n_columns = scaled.shape[1]
    degree = max(d for d in (1, 2, 3) if d == 1 or math.comb(n_columns + d, d) * WAVES.rows_per_trend <= n)
    trend = values(monomials(n_columns, degree), scaled)
    return np.asarray(y - trend @ np.linalg.lstsq(trend, y, rcond=None)[0])


def _of_sums(
    table: DirectTable, residual: FloatArray, functions: FunctionSet, effort: Effort
) -> tuple[list[Wave], float]:
    """The wave of a sum of products that stands out most, if one does, and how many seconds it took by count."""
    X, n_columns = table.X[: len(residual)], table.n_columns
    if not functions.allows({"square", "cube"}):
        return [], 0.0
    angles, before = products_of(n_columns), amplitudes_of(n_columns)
    products, amplitudes = (np.stack([node_values(node, X) for node in nodes]) for nodes in (angles, before))
    tried, best, amplitude = 0.0, None, amplitudes[0]
    likely = likely_amplitudes(residual, amplitudes)
    left = effort.seconds
    for number in likely:
        found, n_tried, used = strongest_sum(products, residual, amplitudes[number], left, effort.out_of_time)
        tried, left = tried + n_tried, left - used
        if found is not None and (best is None or found.share > best.share):
            best, amplitude = found, amplitudes[number]
        if best is not None and best.share > ANGLES.clear:
            break
    if best is None:
        return [], effort.seconds - left
    summed = products[list(best.products)].T
    wave = Wave(tuple(angles[i] for i in best.products), *refined(summed, residual, np.array(best.factors), amplitude))
    known = stands_out(wave.share, len(residual), tried) and _turns(summed, wave) >= WAVES.least_turns
    return ([wave] if known else []), effort.seconds - left


def _of_squares(X: FloatArray, residual: FloatArray, angles: list[Node]) -> list[Wave]:
    """The two waves that sin(u) sin(v) is the sum of, of two angles u and v, however many turns each has.

    The product shows under neither angle, but its square does: 4 sin²(u) sin²(v) is (1 - cos 2u)(1 - cos 2v).
    """
    twice = _found(X, residual**2 - np.mean(residual**2), [(angle,) for angle in angles], WAVES.grids[0])
    if len(twice) < 2 or twice[0].angles == twice[1].angles:
        return []
    look = tuple(wave.angles[0] for wave in twice)
    values = np.stack([node_values(node, X) for node in look], axis=1)
    found: list[Wave] = []
    for sign in (1.0, -1.0):
        start = np.array([twice[0].frequencies[0], sign * twice[1].frequencies[0]]) / 2
        wave = Wave(look, *refined(values, residual, start))
        if not stands_out(wave.share, len(residual), len(angles) * WAVES.grids[0]):
            return []
        found.append(wave)
        residual = _beside(values, wave, residual)
    return found


def _beside(values: FloatArray, wave: Wave, residual: FloatArray) -> FloatArray:
    """What a wave of angles [N, D] leaves."""
    fitted = _sines(values, np.array(wave.frequencies))
    return np.asarray(residual - fitted @ np.linalg.lstsq(fitted, residual, rcond=None)[0])


def angles_of(X: FloatArray, functions: FunctionSet) -> list[Node]:
    """What waves may be waves of, with finite values that differ."""
    columns: list[Node] = [Variable(j) for j in range(X.shape[1])]
    angles = [build("pow", v, Constant(p)) for p in (1.0, 2.0, 3.0) for v in columns]
    angles += [build("inv", v) for v in columns]
    angles += [build("mul", a, b) for a, b in combinations(columns, 2)]
    return [node for node in angles if functions.allows(_operators(node)) and np.isfinite(node_values(node, X)).all()]


def _operators(node: Node) -> set[str]:
    return {node.operator} if isinstance(node, Call) else set()


def node_values(node: Node, X: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        return row_values(node, [str(j) for j in range(X.shape[1])], X)


# --- the scan -----------------------------------------------------------------------------------------------------------


def _looks(angles: list[Node]) -> list[tuple[Node, ...]]:
    """What is scanned together: each angle, pairs of columns, and a column with its square."""
    columns = [angle for angle in angles if isinstance(angle, Variable)]
    squares = [(v, angle) for v in columns for angle in angles if angle == build("pow", v, Constant(2.0))]
    return [*((angle,) for angle in angles), *combinations(columns, 2), *squares]


def _found(X: FloatArray, residual: FloatArray, looks: list[tuple[Node, ...]], grid: int) -> list[Wave]:
    """Up to `waves` waves, each the strongest in what the one before leaves, as long as it stands out from noise."""
    found: list[Wave] = []
    n_frequencies = sum(grid // WAVES.highest if len(look) == 1 else (WAVES.square // 2) ** 2 for look in looks)
    whole = float(residual @ residual)
    seen = [(look, np.stack([node_values(node, X) for node in look], axis=1)) for look in looks]
    seen = [(look, u) for look, u in seen if (np.ptp(u, axis=0) > 0).all()]
    for _ in range(WAVES.waves):
        if not float(residual @ residual) > WAVES.rounding * whole:
            break
        best: Wave | None = None
        scanned = [(*strongest(u, residual, grid if len(look) == 1 else WAVES.square), look, u) for look, u in seen]
        for start, share, look, u in sorted(scanned, key=lambda scan: -scan[1]):
            highest = min(WAVES.between * share, 1.0)
            if not stands_out(highest, len(residual), n_frequencies) or (best is not None and highest < best.share):
                break  # nor does any that has less
            wave = Wave(look, *refined(u, residual, start))
            if _turns(u, wave) >= WAVES.least_turns and (best is None or wave.share > best.share):
                best = wave
        if best is None or not stands_out(best.share, len(residual), n_frequencies):
            break
        found.append(best)
        residual = _beside(np.stack([node_values(node, X) for node in best.angles], axis=1), best, residual)
    return found


def _turns(values: FloatArray, wave: Wave) -> float:
    return float(np.ptp(values @ np.array(wave.frequencies))) / (2 * np.pi)


def strongest(values: FloatArray, residual: FloatArray, grid: int) -> tuple[FloatArray, float]:
    """The frequency [D] of most power of rows at `values` [N, D], on a grid of so many points each way; D is 1 or 2.

    With it goes the share of the squares that its wave has, roughly.
    """
    share = 2.0 / max(len(residual) * float(residual @ residual), 1e-300)
    low, span = values.min(axis=0), np.ptp(values, axis=0)
    places = np.rint((values - low) / span * (grid // WAVES.oversampling - 1)).astype(np.int64)
    limit = grid // WAVES.highest
    unit = 2 * np.pi * (grid // WAVES.oversampling - 1) / (grid * span)
    if values.shape[1] == 1:
        points = np.bincount(places[:, 0], residual, grid)
        power = np.abs(np.fft.rfft(points))[:limit]
        power[0] = 0.0
        first = int(np.argmax(power >= WAVES.alike * power.max()))
        return np.asarray(unit * first), share * float(power[first]) ** 2
    flat = np.bincount(places[:, 0] * grid + places[:, 1], residual, grid * grid)
    power = np.abs(np.fft.rfft2(flat.reshape(grid, grid)))[:, :limit]
    power[limit : grid - limit] = 0.0
    power[0, 0] = 0.0
    rows, columns = np.nonzero(power >= WAVES.alike * power.max())
    turns = np.stack([np.where(rows < grid // 2, rows, rows - grid), columns], axis=1)
    slowest = int(np.argmin(np.abs(turns).sum(axis=1)))
    return unit * turns[slowest], share * float(power[rows[slowest], columns[slowest]]) ** 2


def _sines(values: FloatArray, frequencies: FloatArray, amplitude: FloatArray | float = 1.0) -> FloatArray:
    angle = values @ frequencies
    return np.column_stack([amplitude * np.sin(angle), amplitude * np.cos(angle), np.ones(len(angle))])


def refined(
    values: FloatArray, residual: FloatArray, frequencies: FloatArray, amplitude: FloatArray | float = 1.0
) -> tuple[tuple[float, ...], float, float]:
    """Frequencies where the power has its peak, the phase there, and the share of the variance the wave explains."""

    def solved(trial: FloatArray) -> tuple[FloatArray, float]:
        table = _sines(values, trial, amplitude)
        factors = np.asarray(np.linalg.lstsq(table, residual, rcond=None)[0], float)
        rest = residual - table @ factors
        return factors, float(rest @ rest)

    centred = residual - residual.mean()
    whole = float(centred @ centred)
    middle = values.mean(axis=0)
    factors, squares = solved(frequencies)
    for _ in range(WAVES.steps):
        table = _sines(values, frequencies, amplitude)
        slope = factors[0] * table[:, 1] - factors[1] * table[:, 0]
        joint = np.column_stack([slope[:, None] * (values - middle), table])
        step = np.linalg.lstsq(joint, residual - table @ factors, rcond=None)[0][: len(frequencies)]
        moved = frequencies + step
        new_factors, new_squares = solved(moved)
        if not new_squares < squares:
            break
        frequencies, factors, squares = moved, new_factors, new_squares
    phase = math.atan2(factors[1], factors[0])
    share = 1.0 - squares / whole if whole > 0 else 0.0
    return tuple(frequencies.tolist()), phase, share


# --- formulas -----------------------------------------------------------------------------------------------------------


def _products(found: list[Wave], size: float) -> Iterator[Node]:
    """Two waves as one product: sin(p + a) + sin(p - a) is 2 sin(p) cos(a)."""
    for one, other in combinations(found, 2):
        if one.angles != other.angles:
            continue
        total, change = (
            tuple((f + sign * g) / 2 for f, g in zip(one.frequencies, other.frequencies, strict=True))
            for sign in (1, -1)
        )
        first = Wave(one.angles, total, (one.phase + other.phase) / 2, 1.0).node()
        second = Wave(one.angles, change, (one.phase - other.phase + math.pi) / 2, 1.0).node()
        yield Call("mul", (Constant(2 * math.sqrt(one.share) * size), first, second))
