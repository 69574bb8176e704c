"""Training runs of EQL, one network per task, all side by side."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from gmeql.evaluation.baselines.eql.config import EQLConfig
from gmeql.evaluation.baselines.eql.network import initial_weights, training_chunk
from gmeql.evaluation.baselines.eql.expressions import read_off
from gmeql.evaluation.baselines.tasks import BaselineResult, Budget, Curve, Task


def fit(tasks: Sequence[Task], budget: Budget, config: EQLConfig | None = None) -> list[BaselineResult]:
    """Train one network per task, all side by side. `budget.candidates` counts training steps."""
    config = config or EQLConfig()
    started = time.perf_counter()
    rows = {len(task.y) for task in tasks}
    if len(rows) != 1:
        raise ValueError(f"the tasks of one EQL call need equally many rows, got {sorted(rows)}; call once per size")
    columns = max(task.X.shape[1] for task in tasks)
    x_scales = np.ones((len(tasks), columns))
    y_scales = np.array([(config.scale_data and np.std(task.y)) or 1.0 for task in tasks])
    X = np.zeros((len(tasks), rows.pop(), columns), np.float32)  # missing columns stay zero and are masked below
    for t, task in enumerate(tasks):
        width = task.X.shape[1]
        if config.scale_data:
            x_scales[t, :width] = np.maximum(np.abs(task.X).max(axis=0), 1e-12)
        X[t, :, :width] = task.X / x_scales[t, :width]
    y = np.stack([task.y for task in tasks]) / y_scales[:, None]

    fresh = initial_weights(config, columns, [task.seed for task in tasks])
    masks = [np.ones_like(w) for w in fresh]
    for t, task in enumerate(tasks):
        masks[0][t, task.X.shape[1] :] = 0.0
    warmup = round(config.warmup_share * budget.candidates)
    main = round(config.main_share * budget.candidates)
    phases = [  # steps, rate, regularisation
        (warmup, 10 * config.learning_rate, config.regularisation),
        (main, config.learning_rate, config.regularisation),
        (budget.candidates - warmup - main, config.learning_rate / 10, 0.0),
    ]
    chunk = training_chunk(config)
    data = jnp.asarray(X), jnp.asarray(y, jnp.float32)
    start = [jnp.asarray(w * m) for w, m in zip(fresh, masks, strict=True)]
    state = (start, [jnp.ones_like(w) for w in start], jnp.zeros(len(tasks)), jnp.zeros(len(tasks), jnp.int32))
    device_masks, device_fresh = [jnp.asarray(m) for m in masks], start
    size = max(1, budget.candidates // config.curve_points)
    done, points = 0, []
    for number, (steps, rate, strength) in enumerate(phases):
        if number == 2:  # cut small weights, then tune the others without the norm
            masks = [m * (np.abs(np.asarray(w)) > config.prune_below) for m, w in zip(masks, state[0], strict=True)]
            device_masks = [jnp.asarray(m, jnp.float32) for m in masks]
            state = (state[0], [jnp.ones_like(w) for w in state[0]], *state[2:])
        left = steps
        while left > 0 and time.perf_counter() - started < budget.seconds:
            count = min(size, left)
            state, mae = chunk(state, *data, device_masks, device_fresh, rate, strength, steps=count)
            left, done = left - count, done + count
            points.append((done, time.perf_counter() - started, np.asarray(mae, float) * y_scales))
    weights = [np.asarray(w, float) * m for w, m in zip(state[0], masks, strict=True)]
    seconds = (time.perf_counter() - started) / len(tasks)
    results = []
    for t, task in enumerate(tasks):
        expression = read_off([w[t] for w in weights], task.names or (), x_scales[t], y_scales[t], config)
        curve = Curve(
            tuple(p[0] for p in points),
            tuple(p[1] / len(tasks) for p in points),
            tuple(float(p[2][t]) if np.isfinite(p[2][t]) else math.inf for p in points),
        )
        results.append(BaselineResult("eql", task.seed, expression, curve, seconds, done, dataclasses.asdict(config)))
    return results
