"""The fit on an accelerator: the solver against NumPy, several devices against one."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from gmeql.fitters.device.levenberg_marquardt import _solve_damped


def test_damped_steps_are_those_of_numpy_and_singular_systems_are_told() -> None:
    """Constants that are padded take no step."""
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(3, 4, 4))
    roots[2, :, 3] = 0.0
    hessian = roots @ roots.transpose(0, 2, 1)
    hessian[2] = np.outer([1.0, 2.0, 0.0, 0.0], [1.0, 2.0, 0.0, 0.0])  # of rank 1
    gradient = rng.normal(size=(3, 4))
    damping = np.array([1e-3, 0.5, 0.0])
    used = np.array([[True] * 4, [True, True, False, False], [True, True, False, False]])
    with jax.enable_x64(True):
        step, solved = (
            np.asarray(a) for a in _solve_damped(*map(jax.numpy.asarray, (hessian, gradient, damping, used)))
        )
    assert solved.tolist() == [True, True, False]
    for b in range(2):
        n = used[b].sum()
        own = hessian[b, :n, :n]
        expected = np.linalg.solve(own + damping[b] * np.diag(np.diag(own)), gradient[b, :n])
        np.testing.assert_allclose(step[b, :n], expected, rtol=1e-9)
        assert not step[b, n:].any()


SHARED = """
import json, sys
import jax, numpy as np
from gmeql.fitters.device import engine
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.fitters.programs import from_expression, input_slots
assert len(jax.devices()) == int(sys.argv[1])
X = np.random.default_rng(0).uniform(0.5, 2, (50, 2))
x, y = Variable(0), Variable(1)
root = Call("add", (Call("mul", (Constant(1.0), Call("square", (x,)))), Call("mul", (Constant(1.0), y))))
starts = np.random.default_rng(1).normal(size=(70, 2))
result = engine.fit([from_expression(root, 2)] * 70, starts, input_slots(X)[0], X.sum(axis=1), max_steps=3)
print(json.dumps([a.tolist() for a in result]))
"""


@pytest.mark.slow
def test_several_devices_share_a_batch_and_change_nothing() -> None:
    outputs = []
    for count in (1, 4):
        flags = f"--xla_force_host_platform_device_count={count}"
        environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
        command = [sys.executable, "-c", SHARED, str(count)]
        outputs.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert outputs[0] == outputs[1] and len(json.loads(outputs[0])[1]) == 70
