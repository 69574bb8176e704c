"""Trajectories of known systems, for the tests of `differential/motion`."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.integrate import solve_ivp

from gmeql import GMEQLDynamics
from gmeql.differential.motion.measured import Motion, measure
from gmeql.differential.motion.trajectories import check_trajectories
from gmeql.formula.nodes import Node
from gmeql.formula.parsing import parse_tree

NAMES = ("x", "y")


def hunters(
    points: int = 60, noise: float = 0.0, start: tuple[float, float] = (1.5, 1.0)
) -> tuple[np.ndarray, np.ndarray]:
    """Times and states of x' = x - x y, y' = x y - 0.8 y, with noise in proportion to the values."""
    t = np.linspace(0.0, 8.0, points)
    solved = solve_ivp(
        lambda _, z: [z[0] - z[0] * z[1], z[0] * z[1] - 0.8 * z[1]], (0.0, 8.0), start, t_eval=t, rtol=1e-10, atol=1e-12
    )
    return t, solved.y.T * (1.0 + noise * np.random.default_rng(0).standard_normal(solved.y.T.shape))


@cache
def hunters_motion(noise: float = 0.0) -> Motion:
    """The same, prepared."""
    t, X = hunters(noise=noise)
    return measure(check_trajectories(X, t, names=NAMES))


def tree(text: str, names: tuple[str, ...] = NAMES) -> Node:
    """A formula's tree."""
    return parse_tree(text, names)


def few_sums(motion: Motion, state: int, *more: object) -> list[Node]:
    """In place of all sums of terms, which take long to propose, where they are no matter."""
    return [tree("1.1*x - x*y"), tree("x*y - 0.9*y"), tree("0.5*x")]


def hunters_model(names: list[str], begin: float = 0.0) -> GMEQLDynamics:
    """A model of exact trajectories."""
    t, X = hunters()
    model = GMEQLDynamics(feature_names=names, max_time=None, max_candidates=500, random_state=0, n_jobs=1)
    return model.fit(X, begin + t)
