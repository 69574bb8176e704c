"""Sine, exponential, logarithm and tanh over their whole range, against NumPy."""

from __future__ import annotations

import numpy as np
from fitting_problems import one_node, walk

from gmeql.formula.operators import get_operator


def test_kernel_functions_over_their_whole_range() -> None:
    rng = np.random.default_rng(0)
    cases = {
        "sin": np.concatenate(
            [
                rng.uniform(-50, 50, 2000),
                rng.uniform(-1e6, 1e6, 500),
                rng.uniform(-5e8, 5e8, 500),
                np.pi / 2 * rng.integers(-300_000_000, 300_000_000, 500),
                [0.0, np.pi, -np.pi / 2],
            ]
        ),
        "exp": np.concatenate([rng.uniform(-30, 30, 2000), rng.uniform(-690, 690, 500), [0.0]]),
        "log": np.concatenate([10 ** rng.uniform(-300, 300, 2000), rng.uniform(0.5, 2.0, 500), [1.0]]),
        "tanh": np.concatenate([rng.uniform(-3, 3, 2000), rng.uniform(-400, 400, 500)]),
    }
    for name, values in cases.items():
        operator = get_operator(name)
        plain, _, _ = walk(one_node(operator.opcode, False), np.array([1.0]), values[None])
        np.testing.assert_allclose(plain, operator.natural(np, values), rtol=1e-14, atol=2e-16, err_msg=name)
    outside = np.array([[1e9, np.inf, np.nan]])
    for name in ("sin", "cos", "exp"):
        plain, _, _ = walk(one_node(get_operator(name).opcode, False), np.array([1.0]), outside)
        assert not np.isfinite(plain).any(), name
