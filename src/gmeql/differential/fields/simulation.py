"""Laws of fields integrated forward in time on their grid (method of lines)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.integrate import solve_ivp

from gmeql.differential.fields.config import FIELDS
from gmeql.differential.fields.derivatives import (
    Orders,
    all_orders,
    half_width,
    jet_name,
    local_derivative,
    spectral_derivative,
)
from gmeql.differential.fields.grid import FloatArray, Grid
from gmeql.formula.expression import Expression


def simulate(
    expressions: Sequence[Expression], grid: Grid, start: FloatArray, times: FloatArray, order: int
) -> FloatArray:
    """Fields [F, *space, T] from `start` [F, *space] on, at `times`.

    Along axes that are not periodic the points at the ends follow the data of `grid`, in between the law rules.
    """
    shape = start.shape
    fields = [(f, orders) for orders in all_orders(grid.dimensions, order) for f in range(len(grid.names))]
    used = {e.names[c] for e in expressions for c in e.variables}
    meshes = np.meshgrid(*grid.axes[:-1], indexing="ij")
    edge = _edge(grid, shape[1:])

    def columns(values: FloatArray) -> FloatArray:
        table = [mesh.reshape(-1) for mesh in meshes]
        for f, orders in fields:
            wanted = jet_name(grid.names[f], orders, grid.axis_names) in used or not any(orders)
            table.append(_derivative(values[f], orders, grid).reshape(-1) if wanted else np.zeros(values[f].size))
        return np.stack(table, axis=1)

    def rate(time: float, state: FloatArray) -> FloatArray:
        values = state.reshape(shape)
        X = columns(values)
        rates = np.stack([e(X).reshape(shape[1:]) for e in expressions])
        if edge.any():
            rates[:, edge] = _edge_rates(grid, time)[:, edge]
        return np.where(np.isfinite(rates), rates, 0.0).reshape(-1)

    method = "BDF" if start.size <= FIELDS.dense_points else "RK45"
    with np.errstate(all="ignore"):
        found = solve_ivp(rate, (times[0], times[-1]), start.reshape(-1), method, t_eval=times, rtol=1e-6, atol=1e-8)
    result = np.full((*shape, len(times)), np.nan)
    result[..., : found.y.shape[1]] = found.y.reshape(*shape, -1)
    return result


def _derivative(values: FloatArray, orders: Orders, grid: Grid) -> FloatArray:
    for axis, k in enumerate(orders):
        if not k:
            continue
        if grid.periodic[axis]:
            values = spectral_derivative(values, axis, k, grid.steps[axis])
        else:
            width = half_width(values, axis, noisy=False, method="finite")
            values = local_derivative(values, axis, k, grid.steps[axis], width, periodic=False)
    return values


def _edge(grid: Grid, shape: Sequence[int]) -> FloatArray:
    """Points at the ends of axes that are not periodic."""
    edge = np.zeros(shape, dtype=bool)
    for axis, periodic in enumerate(grid.periodic[:-1]):
        if not periodic:
            lines = np.moveaxis(edge, axis, 0)
            lines[:1] = True
            lines[-1:] = True
    return edge


def _edge_rates(grid: Grid, time: float) -> FloatArray:
    """How fast the data change at a time."""
    times = grid.axes[-1]
    k = int(np.clip(np.searchsorted(times, time) - 1, 0, len(times) - 2))
    return np.asarray((grid.values[..., k + 1] - grid.values[..., k]) / (times[k + 1] - times[k]))
