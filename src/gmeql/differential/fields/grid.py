"""Gridded data: checked, named, and what the grid says about itself.

Legend: `F` fields, `S` axes of space, `T` times; values are [F, *space, T].
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.differential.fields.config import FIELDS
from gmeql.formula.messages import short

FloatArray = NDArray[Any]
"""Arrays of float64."""
AXES = ("x", "y", "z")
FIELD_NAMES = ("u", "v", "w")


@dataclass(frozen=True)
class Grid:
    """Fields on an evenly spaced grid."""

    values: FloatArray
    names: tuple[str, ...]
    axes: tuple[FloatArray, ...]
    """Coordinates of each axis of space, then the times."""
    axis_names: tuple[str, ...]
    """Names of the axes of space."""
    periodic: tuple[bool, ...]
    """Of each axis of space, then False for time."""

    @property
    def steps(self) -> tuple[float, ...]:
        """Step along each axis of space, then that of time."""
        return tuple(float(axis[1] - axis[0]) for axis in self.axes)

    @property
    def dimensions(self) -> int:
        """Axes of space."""
        return len(self.axis_names)


def read_grid(u: Any, x: Any = None, t: Any = None, *, periodic: Any = "auto") -> Grid:
    """Fields, coordinates and times as given to `GMEQLField.fit`, checked; see there."""
    u, x, t = _from_xarray(u, x, t)
    named = u if isinstance(u, Mapping) else None
    arrays = list(named.values()) if named is not None else list(u) if isinstance(u, list | tuple) else [u]
    if not arrays:
        raise ValueError("u holds no field; give an array [*space, time], a list of them, or a dictionary by name")
    names = tuple(map(str, named)) if named is not None else _field_names(len(arrays))
    values = [_numbers(a, f"u[{n}]" if len(arrays) > 1 else "u") for n, a in zip(names, arrays, strict=True)]
    shape = values[0].shape
    if any(v.shape != shape for v in values):
        raise ValueError(f"all fields must lie on one grid, got shapes {', '.join(str(v.shape) for v in values)}")
    if not 2 <= len(shape) <= 4:
        raise ValueError(f"u must have one to three axes of space and time as its last, got shape {shape}")
    space = x if isinstance(x, list | tuple) and not np.isscalar(x[0] if len(x) else 0.0) else [x]
    if x is None or t is None:
        raise ValueError("give the coordinates of space x (a list of them for several axes) and the times t")
    if len(space) != len(shape) - 1:
        raise ValueError(
            f"x has {len(space)} axes, but u has {len(shape) - 1} axes of space and time as its last: {shape}"
        )
    axis_names = AXES[: len(space)]
    axes = [_axis(a, n, size) for a, n, size in zip([*space, t], [*axis_names, "t"], shape, strict=True)]
    stacked = np.stack(values)
    for name, field in zip(names, stacked, strict=True):
        if np.ptp(field) == 0:
            raise ValueError(f"field {name} is constant, so nothing moves it")
    clash = set(names) & {*axis_names, "t"}
    if clash:
        raise ValueError(f"a field is called {min(clash)!r}, which is the name of an axis; give it another name")
    return Grid(stacked, names, tuple(axes), axis_names, (*_periodic(periodic, stacked, axis_names), False))


def _from_xarray(u: Any, x: Any, t: Any) -> tuple[Any, Any, Any]:
    """Arrays of xarray as plain ones: the last dimension is time, or the one called t or time."""
    if not (hasattr(u, "dims") and hasattr(u, "coords")):
        return u, x, t
    fields = dict(u.data_vars) if hasattr(u, "data_vars") else {str(u.name or "u"): u}
    first = next(iter(fields.values()))
    dims = list(first.dims)
    time = next((d for d in dims if str(d).lower() in ("t", "time")), dims[-1])
    order = [*(d for d in dims if d != time), time]
    plain = {name: np.asarray(f.transpose(*order).values) for name, f in fields.items()}
    coordinates = [np.asarray(first.coords[d].values) if d in first.coords else None for d in order]
    return plain, (coordinates[:-1] if x is None else x), (coordinates[-1] if t is None else t)


def _field_names(count: int) -> tuple[str, ...]:
    return FIELD_NAMES[:count] if count <= len(FIELD_NAMES) else tuple(f"u{k + 1}" for k in range(count))


def _numbers(given: Any, name: str) -> FloatArray:
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={short(given)} must be an array of numbers") from None
    bad = int((~np.isfinite(array)).sum())
    if bad:
        where = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ValueError(
            f"{name} has {bad} values that are no finite numbers, the first at {where}; fill or cut them out"
        )
    return array


def _axis(given: Any, name: str, size: int) -> FloatArray:
    axis = _numbers(given, name)
    if axis.ndim != 1 or len(axis) != size:
        raise ValueError(f"{name} must have {size} values, one for each point of u along it, got shape {axis.shape}")
    if size < FIELDS.least_points:
        raise ValueError(f"{name} has {size} points; at least {FIELDS.least_points} are needed for derivatives")
    steps = np.diff(axis)
    if not (steps > 0).all():
        raise ValueError(f"{name} must increase; step {int(np.argmax(steps <= 0))} does not")
    even = np.linspace(axis[0], axis[-1], size)
    if np.abs(axis - even).max() > FIELDS.even * steps.mean():
        raise ValueError(
            f"{name} must be evenly spaced; its steps go from {steps.min():g} to {steps.max():g}: interpolate u"
        )
    return even


def _periodic(given: Any, values: FloatArray, names: Sequence[str]) -> list[bool]:
    """Which axes of space close on themselves: as said, or where the seam looks like any other place."""
    if isinstance(given, bool):
        return [given] * len(names)
    if given == "auto":
        return [_closes(values, axis + 1) for axis in range(len(names))]
    if isinstance(given, list | tuple) and len(given) == len(names) and all(isinstance(g, bool) for g in given):
        return list(given)
    raise ValueError(f"periodic={short(given)} must be True, False, 'auto', or one of True and False for each axis")


def _closes(values: FloatArray, axis: int) -> bool:
    """Whether differences of first and second order over the seam are like those elsewhere, for every field."""
    for order in (1, 2):
        closed = np.concatenate([values, np.take(values, range(order), axis=axis)], axis=axis)
        differences = np.moveaxis(np.diff(closed, n=order, axis=axis), axis, 0)
        size = np.sqrt((differences.reshape(len(differences), -1) ** 2).mean(axis=1))
        if size[-order:].max() > FIELDS.seam * np.sqrt((size[:-order] ** 2).mean()) + 1e-300:
            return False
    return True


def noise_of(values: FloatArray) -> float:
    """Standard deviation of the noise of one field [*space, T], from differences of high order along each axis."""
    order = FIELDS.difference
    factor = math.sqrt(math.comb(2 * order, order))
    found = []
    for axis in range(values.ndim):
        differences = np.diff(values, n=order, axis=axis)
        found.append(float(np.sqrt(np.mean(differences**2))) / factor)
    return min(found)


def correlation_points(values: FloatArray, axis: int) -> float:
    """Correlation length of a smooth field along an axis, in points: its spread over that of its slope."""
    slope = np.diff(values, axis=axis)
    size = float(np.sqrt(np.mean(slope**2)))
    centred = values - values.mean()
    return float(np.sqrt(np.mean(centred**2))) / size if size > 0 else float(values.shape[axis])
