"""Waves of hundreds of thousands of turns, in a target that nothing else explains: one wide scan of each angle.

`waves.py` sees the wave of a column's cube only as far as its time for fine grids goes. Where a wave is nearly all of the
target, its peak stands out even where the scan is coarse: frequencies a whole turn apart, up to half the points of the
grid, where the nearest point blurs a wave to two thirds. That is a sixteenth of the points. The search asks for it late, and
only where the best formula so far leaves nearly everything unexplained: other targets cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gmeql.formula.nodes import Constant, Node, build
from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.waves.waves import FloatArray, Wave, angles_of, node_values, refined
from gmeql.search.polish.waves import stands_out


@dataclass(frozen=True)
class FastWavesConfig:
    """Numbers of the scan."""

    rows: int = 1000  # that frequencies are looked for on
    few_rows: int = 60
    max_columns: int = 10
    unexplained: float = 0.8  # less is left by the best formula so far: the target is no single wave
    grid: int = 1 << 20  # points
    seconds_per_point: float = 4e-8  # of a transform on one core (measured)
    peaks: int = 3  # of each angle that are refined
    offsets: tuple[float, ...] = (0.0, -0.5, 0.5)  # of a frequency, in turns over the rows: peaks fall between
    share: float = 0.3  # of the variance that a wave explains at least


FAST_WAVES = FastWavesConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """The wave that explains most of the target, if one stands out from noise. Draws nothing at random."""
    n = min(len(table.y), FAST_WAVES.rows)
    if table.unexplained < FAST_WAVES.unexplained or n < FAST_WAVES.few_rows:
        return
    if not 1 <= table.n_columns <= FAST_WAVES.max_columns or not functions.allows({"sin", "add", "mul"}):
        return
    X, y = table.X[:n], table.y[:n] - table.y[:n].mean()
    angles = angles_of(X, functions)
    affordable = int(effort.seconds / (FAST_WAVES.seconds_per_point * FAST_WAVES.grid))
    tried = min(affordable, len(angles)) * FAST_WAVES.grid / 2
    for angle in angles[:affordable]:
        if effort.out_of_time():
            return
        u = node_values(angle, X)
        if not np.ptp(u) > 0:
            continue
        waves = [Wave((angle,), *refined(u[:, None], y, np.array([f]))) for f in _starts(u, y)]
        wave = max(waves, key=lambda one: one.share)
        if wave.share > FAST_WAVES.share and stands_out(wave.share, n, tried):
            size = Constant(math.sqrt(2 * wave.share) * float(np.std(y)))
            yield build("add", build("mul", size, wave.node()), Constant(float(table.y[:n].mean())))
            return


def _starts(u: FloatArray, y: FloatArray) -> Iterator[float]:
    """Frequencies near the highest peaks of the power of rows at `u` [N]."""
    grid, span = FAST_WAVES.grid, float(np.ptp(u))
    places = np.rint((u - u.min()) / span * (grid - 1)).astype(np.int64)
    power = np.abs(np.fft.rfft(np.bincount(places, y, grid)))
    power[0] = 0.0
    for turns in np.argpartition(power, -FAST_WAVES.peaks)[-FAST_WAVES.peaks :]:
        for offset in FAST_WAVES.offsets:
            yield 2 * np.pi * (float(turns) + offset) * (grid - 1) / (grid * span)
