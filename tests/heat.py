"""A field that spreads like heat, for the tests of `differential/fields`."""

from __future__ import annotations

from functools import cache

import numpy as np

from gmeql import GMEQLField

X = np.linspace(0, 2 * np.pi, 48, endpoint=False)
T = np.linspace(0, 1, 31)
U = np.exp(-0.3 * T) * np.sin(X)[:, None] + 0.5 * np.exp(-1.2 * T) * np.cos(2 * X)[:, None]
"""[48, 31], u_t = 0.3 u_xx."""


def long_form(time: str = "t", space: str = "x") -> str:
    """The same as a table with a row for each point and time."""
    rows = [f"{t},{x},{U[i, j]}" for j, t in enumerate(T.tolist()) for i, x in enumerate(X.tolist())]
    return "\n".join([f"{time},{space},u", *rows])


@cache
def heat_model() -> GMEQLField:
    """Its law, found without the open-form search."""
    return GMEQLField(functions=[], random_state=0).fit({"u": U}, x=X, t=T)
