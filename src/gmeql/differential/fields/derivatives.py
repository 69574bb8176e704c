"""Derivatives of gridded fields as columns: spectral, by finite differences or by local polynomials.

Along a periodic axis without noise derivatives are those of the Fourier series. Elsewhere they are those of local
polynomials (Savitzky and Golay 1964): narrow ones are finite differences of high order, wide ones smooth the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.signal import savgol_filter

from gmeql.differential.fields.config import FIELDS
from gmeql.differential.fields.grid import FloatArray, Grid, correlation_points, noise_of

Orders = tuple[int, ...]
METHODS = {
    "auto": "spectral along periodic axes without noise, else local polynomials as wide as the noise asks for",
    "spectral": "of the Fourier series; every axis of space must be periodic",
    "finite": "finite differences of eighth order",
    "polynomial": "local polynomials, one correlation length to each side",
}
"""The one table of ways to take derivatives."""


@dataclass(frozen=True)
class Jets:
    """Fields and their derivatives on the grid."""

    names: tuple[str, ...]
    """Coordinates of space, then fields, then derivatives such as u_xx."""
    jets: tuple[tuple[int, Orders] | None, ...]
    """Field and orders of each column; None for coordinates."""
    columns: tuple[FloatArray, ...]
    """Values [*space, T] of each column."""
    rates: tuple[FloatArray, ...]
    """Time derivative of each field."""
    smooth: FloatArray
    """The fields with less noise [F, *space, T]."""
    noise: tuple[float, ...]
    """Standard deviation of each field's noise."""
    margin: tuple[int, ...]
    """Points at the ends of each axis where derivatives lean to one side; 0 where it is periodic."""

    def index(self, field: int, orders: Orders) -> int:
        """The column of a derivative."""
        return self.jets.index((field, orders))


def jet_name(field: str, orders: Orders, axes: Sequence[str]) -> str:
    """u, u_x, u_xxy, ..."""
    letters = "".join(axis * order for axis, order in zip(axes, orders, strict=True))
    return f"{field}_{letters}" if letters else field


def all_orders(dimensions: int, highest: int) -> list[Orders]:
    """Orders of all derivatives up to the highest, lowest first."""
    found = [o for o in product(range(highest + 1), repeat=dimensions) if sum(o) <= highest]
    return sorted(found, key=lambda o: (sum(o), tuple(-k for k in o)))


def take_derivatives(grid: Grid, order: int, method: str) -> Jets:
    """Columns of all derivatives up to `order`."""
    S = grid.dimensions
    noise = tuple(noise_of(field) for field in grid.values)
    smooth, lines = [], []
    for field, sigma in zip(grid.values, noise, strict=True):
        noisy = sigma > FIELDS.quiet * float(np.std(field))
        widths = [half_width(field, axis, noisy, method) for axis in range(S + 1)]
        lines.append(widths)
        smooth.append(_smoothed(field, widths, grid) if noisy and method != "finite" else field)
    names, jets, columns, rates = list(grid.axis_names), [None] * S, _coordinates(grid), []
    found: list[tuple[int, Orders]] = [(f, (0,) * S) for f in range(len(grid.names))]
    found += [(f, o) for o in all_orders(S, order)[1:] for f in range(len(grid.names))]
    for f, orders in found:
        values = smooth[f]
        for axis, k in enumerate(orders):
            values = _derivative(values, axis, k, grid, lines[f][axis], method) if k else values
        names.append(jet_name(grid.names[f], orders, grid.axis_names))
        columns.append(values)
    for f in range(len(grid.names)):
        rates.append(_derivative(smooth[f], S, 1, grid, lines[f][S], method))
    margin = tuple(0 if p else max(w[axis] for w in lines) for axis, p in enumerate(grid.periodic))
    return Jets(tuple(names), (*jets, *found), tuple(columns), tuple(rates), np.stack(smooth), noise, margin)


def half_width(field: FloatArray, axis: int, noisy: bool, method: str) -> int:
    """Points to each side that a local polynomial sees."""
    most = int(field.shape[axis] - 1) // 2
    if method == "finite" or (method == "auto" and not noisy):
        return min(FIELDS.exact_half_width, most)
    width = round(FIELDS.smooth_lengths * correlation_points(_coarse(field, axis), axis))
    return min(max(width, FIELDS.exact_half_width), most, max(most // 3, FIELDS.exact_half_width))


def _coarse(field: FloatArray, axis: int) -> FloatArray:
    """The field with its noise averaged away along an axis, so that its slope is its own."""
    window = max(5, 2 * (field.shape[axis] // 24) + 1)
    return np.asarray(savgol_filter(field, window, 2, axis=axis))


def _coordinates(grid: Grid) -> list[FloatArray]:
    shape = grid.values.shape[1:]
    meshes = np.meshgrid(*grid.axes, indexing="ij")
    return [np.broadcast_to(mesh, shape) for mesh in meshes[: grid.dimensions]]


def _smoothed(field: FloatArray, widths: Sequence[int], grid: Grid) -> FloatArray:
    for axis, width in enumerate(widths):
        field = local_derivative(field, axis, 0, 1.0, width, grid.periodic[axis])
    return field


def _derivative(values: FloatArray, axis: int, order: int, grid: Grid, width: int, method: str) -> FloatArray:
    spectral = method == "spectral" or (method == "auto" and width <= FIELDS.exact_half_width)
    if spectral and grid.periodic[axis]:
        return spectral_derivative(values, axis, order, grid.steps[axis])
    return local_derivative(values, axis, order, grid.steps[axis], width, grid.periodic[axis])


def spectral_derivative(values: FloatArray, axis: int, order: int, step: float) -> FloatArray:
    """Derivative of the Fourier series along a periodic axis."""
    n = values.shape[axis]
    waves = 2 * np.pi * np.fft.rfftfreq(n, step)
    factor = (1j * waves) ** order
    if n % 2 == 0 and order % 2:
        factor[-1] = 0.0  # the highest wave has no odd derivative on the grid
    shape = [1] * values.ndim
    shape[axis] = len(waves)
    return np.asarray(np.fft.irfft(np.fft.rfft(values, axis=axis) * factor.reshape(shape), n, axis=axis))


def local_derivative(values: FloatArray, axis: int, order: int, step: float, width: int, periodic: bool) -> FloatArray:
    """Derivative of local polynomials that see `width` points to each side."""
    degree = min(2 * width, FIELDS.polynomial + (2 if width <= FIELDS.exact_half_width else 0))
    mode = "wrap" if periodic else "interp"
    return np.asarray(savgol_filter(values, 2 * width + 1, degree, deriv=order, delta=step, axis=axis, mode=mode))
