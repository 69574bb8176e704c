"""Waves that fade, grow or stay: A exp(-k u) cos(w u + p) + c, or with u² in the exponent, by a scan of k and w.

A fit of such a formula converges only from near its frequency, and islands meet the wave and its envelope together too
seldom. For every pair of k and w on a grid the three factors follow from linear equations (variable projection: Golub and
Pereyra 1973), so the whole scan is a few matrix products; the best pairs are fitted to convergence. Fewer than two turns
over the rows are enough, which a periodogram (`waves.py`) leaves to others.

Legend: `N` rows, `K` rates, `W` frequencies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Call, Constant, Node, Variable, build
from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.polish.scoring import JudgedRows, Scored, refit

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class DampedConfig:
    """Numbers of the scan."""

    rows: int = 400  # that formulas are looked for on
    few_rows: int = 12  # twice the constants, and some
    max_columns: int = 4
    rates: tuple[float, ...] = (0.4, 0.8, 1.5, 2.5, 4.0, 6.5, 10.0, 16.0)  # k times the column's range; 0 is tried too
    turns_step: float = 0.2  # a wave loses its place by a fifth of a turn between two of the grid, a fit finds it
    most_turns: float = 16.0
    rows_per_turn: float = 3.0  # fewer rows to a turn tell nothing of a wave
    fitted: int = 3  # pairs of each column and envelope, and waves without one, that are fitted to convergence
    steps: int = 60
    proposed: int = 2
    ridge: float = 1e-10  # share of the diagonal added to the equations: slow waves are nearly constants
    seconds_per_value: float = 2e-8  # of one row, rate and frequency on one core (measured)


DAMPED = DampedConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """Waves that fit better than anything so far, the best first. Draws nothing at random."""
    n = min(len(table.y), DAMPED.rows)
    if not 1 <= table.n_columns <= DAMPED.max_columns or n < DAMPED.few_rows:
        return
    if not functions.allows({"cos", "exp", "mul", "add"}):
        return
    rows = JudgedRows.of(table.X[:n], table.y[:n], table.weights[:n], [f"x{i}" for i in range(table.n_columns)])
    turns = np.arange(DAMPED.turns_step, min(DAMPED.most_turns, n / DAMPED.rows_per_turn), DAMPED.turns_step)
    cost = DAMPED.seconds_per_value * n * len(turns) * (2 * len(DAMPED.rates) + 1)
    left = effort.seconds
    starts: list[Node] = []
    for column in range(table.n_columns):
        for power in (1, 2):
            left -= cost
            if left < 0 or effort.out_of_time():
                break
            starts += _starts(rows, column, power, turns)
    found = refit(starts, rows, keep_recognised=False, max_steps=DAMPED.steps)
    yield from _leading(found, table)


def _leading(found: list[Scored], table: DirectTable) -> Iterator[Node]:
    """The shortest descriptions, of different shape, that fit better than the best formula so far."""
    shapes: set[int] = set()
    for scored in sorted(found, key=lambda s: s.length):
        if len(shapes) < DAMPED.proposed and scored.complexity not in shapes:
            shapes.add(scored.complexity)
            if table.error(scored.root) < table.unexplained:
                yield scored.root


def _starts(rows: JudgedRows, column: int, power: int, turns: FloatArray) -> list[Node]:
    """Formulas at the pairs of rate and frequency that leave least, with and without a constant beside the wave."""
    u = rows.X[:, column]
    low, span = float(u.min()), float(np.ptp(u))
    if not span > 0:
        return []
    decaying = (u - low) / span if power == 1 else (u / np.abs(u).max()) ** 2
    # a wave that grows with u² is nobody's
    rates = np.array([0.0, *DAMPED.rates, *(-rate for rate in DAMPED.rates)] if power == 1 else DAMPED.rates)
    frequencies = 2 * np.pi * turns / span
    left = np.stack([_left(rows, np.exp(-rate * decaying), u, frequencies) for rate in rates])  # [K, W]
    unit = span if power == 1 else float(np.abs(u).max()) ** 2
    fading = rates != 0
    return [
        formula
        for errors, of in ((left[fading], rates[fading]), (left[~fading], rates[~fading]))
        for r, w in _least(errors)
        for formula in _formulas(rows, column, power, float(of[r] / unit), float(frequencies[w]))
    ]


def _least(errors: FloatArray) -> Iterator[tuple[int, int]]:
    """Places of the least of `errors` [K, W], no two at neighbouring frequencies: these lead to the same formula."""
    errors = errors.copy()
    for _ in range(DAMPED.fitted if errors.size else 0):
        r, w = np.unravel_index(int(np.argmin(errors)), errors.shape)
        if not math.isfinite(errors[r, w]):
            return
        yield int(r), int(w)
        errors[:, max(w - 1, 0) : w + 2] = math.inf


def _left(rows: JudgedRows, envelope: FloatArray, u: FloatArray, frequencies: FloatArray) -> FloatArray:
    """Weighted squares that the best multiples of envelope times cosine and sine, and a constant, leave: [W]."""
    angle = u[:, None] * frequencies
    weights, y = rows.weights, rows.target
    cosine, sine = envelope[:, None] * np.cos(angle), envelope[:, None] * np.sin(angle)
    parts = np.stack([cosine, sine, np.ones_like(cosine)], axis=2)  # [N, W, 3]
    matrices = np.einsum("nwi,n,nwj->wij", parts, weights, parts, optimize=True)
    diagonal = np.einsum("wii->wi", matrices)
    matrices[:, range(3), range(3)] += DAMPED.ridge * diagonal + 1e-300
    sides = np.einsum("nwi,n->wi", parts, weights * y)
    factors = np.linalg.solve(matrices, sides[:, :, None])[:, :, 0]
    return np.asarray(float(weights @ y**2) - np.einsum("wi,wi->w", sides, factors))


def _formulas(rows: JudgedRows, column: int, power: int, rate: float, frequency: float) -> list[Node]:
    """A exp(-k u^power) cos(w u + p), and the same plus a constant, with the factors that fit best."""
    u, root_weights = rows.X[:, column], np.sqrt(rows.weights)
    with np.errstate(all="ignore"):
        envelope = np.exp(-rate * u**power)
        parts = np.stack([envelope * np.cos(frequency * u), envelope * np.sin(frequency * u), np.ones(len(u))], axis=1)
    if not np.isfinite(parts).all():
        return []
    found: list[Node] = []
    for used in (parts[:, :2], parts):
        cosine, sine, *constant = np.linalg.lstsq(used * root_weights[:, None], rows.target * root_weights)[0].tolist()
        size, phase = math.hypot(cosine, sine), math.atan2(-sine, cosine)
        v: Node = Variable(column)
        fading = build("exp", build("mul", Constant(-rate), v if power == 1 else build("square", v)))
        wave = Call("cos", (Call("add", (build("mul", Constant(frequency), v), Constant(phase))),))
        product = Call("mul", (Constant(size), fading, wave) if rate else (Constant(size), wave))
        found.append(Call("add", (product, Constant(constant[0]))) if constant else product)
    return found
