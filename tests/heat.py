"""A field that spreads like heat, for the tests of `differential/fields`."""

from __future__ import annotations

from functools import cache

import numpy as np

from gmeql import GMEQLField

X = np.linspace(0, 2 * np.pi, 48, endpoint=False)
T = np.linspace(0, 1, 31)
U = np.exp(-0.3 * T) * np.sin(X)[:, None] + 0.5 * np.exp(-1.2 * T) * np.cos(2 * X)[:, None]
"""[48, 31], u_t = 0.3 u_xx."""


@cache
def heat_model() -> GMEQLField:
    """Its law, found without the open-form search."""
    return GMEQLField(functions=[], random_state=0).fit({"u": U}, x=X, t=T)
