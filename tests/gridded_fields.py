"""Fields on grids that several test files share, with the laws they obey."""

from __future__ import annotations

import numpy as np

from gmeql.differential.fields.grid import Grid, read_grid

X = np.linspace(0, 2 * np.pi, 64, endpoint=False)
T = np.linspace(0, 1, 61)


def heat(rate: float = 0.3) -> np.ndarray:
    """u_t = rate * u_xx on a circle, [x, t]."""
    return np.exp(-rate * T) * np.sin(X)[:, None] + 0.5 * np.exp(-4 * rate * T) * np.cos(2 * X)[:, None]


def between_ends() -> tuple[np.ndarray, np.ndarray]:
    """u_t = u_x/x: u = f(x**2 / 2 + t), on an axis that does not close; x and u."""
    x = np.linspace(1, 2, 80)
    return x, np.sin(2 * (x[:, None] ** 2 / 2 + T)) + 0.5 * np.cos(3 * (x[:, None] ** 2 / 2 + T))


def heat_grid() -> Grid:
    return read_grid(heat(), X, T)


def with_noise(u: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    return u + share * u.std() * np.random.default_rng(seed).standard_normal(u.shape)
