"""Whole programs: parts that are read twice, parts that are not read."""

from __future__ import annotations

import numpy as np
from fitting_problems import data, walk

from gmeql.fitters import reference
from gmeql.formula.operators import get_operator


def test_parts_that_are_read_twice_and_parts_that_are_not_read() -> None:
    """Networks share nodes, which formulas cannot; random tapes of smooth operators against forward slopes."""
    rng = np.random.default_rng(8)
    X, slots = data()
    n_slots = len(slots)
    operators = [
        get_operator(name).opcode for name in ("add", "sub", "mul", "div", "sin", "cos", "square", "tanh", "id")
    ]
    for _ in range(60):
        length = int(rng.integers(2, 12))
        code = np.full((5, length), -1)
        n_constants = 0
        for k in range(length):
            code[0, k] = rng.choice(operators)
            for side in (0, 1):
                code[1 + side, k] = (
                    rng.integers(n_slots + k) if rng.random() < 0.4 or not k else n_slots + rng.integers(k)
                )
                if rng.random() < 0.5:
                    code[3 + side, k], n_constants = n_constants, n_constants + 1
            if code[0, k] > 4 or code[0, k] == 0:
                n_constants -= code[4, k] >= 0
                code[4, k] = -1
        constants = rng.uniform(0.3, 1.5, n_constants)
        with np.errstate(all="ignore"):
            values, slopes = reference.evaluate(code, constants, n_constants, slots)
        _, output, jacobian = walk(code.astype(np.int16), constants, slots)
        usable = np.isfinite(values) & (np.abs(values) < 1e6) & (np.abs(slopes) < 1e8).all(axis=1)
        np.testing.assert_allclose(output[usable], values[usable], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(jacobian.T[usable], slopes[usable], rtol=1e-6, atol=1e-6)
