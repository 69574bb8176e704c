"""Training runs of DSR, one policy per task, all side by side."""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gmeql.evaluation.baselines.dsr.config import DSRConfig, Library, library_of
from gmeql.evaluation.baselines.dsr.constants import fit_constants, links, rewards_of
from gmeql.evaluation.baselines.dsr.host import HostJudge, expression_of
from gmeql.evaluation.baselines.dsr.policy import SampledTexts, initial_policy, policy_step, sample
from gmeql.evaluation.baselines.refitting import mean_absolute_error, refit
from gmeql.evaluation.baselines.tasks import BaselineResult, Budget, Curve, Task


@functools.cache
def _compiled(config: DSRConfig, library: Library) -> Any:
    """Compiled parts: sample for T policies, fit and reward a batch, train T policies."""

    @jax.jit
    def draw(policies: Any, keys: Any, usable: Any) -> SampledTexts:
        return jax.vmap(lambda p, k, u: sample(p, k, u, config, library))(policies, keys, usable)

    @jax.jit
    def judge(batch: SampledTexts, X_fit: Any, y_fit: Any, X: Any, y: Any) -> Any:
        tokens = jnp.moveaxis(batch.tokens, 1, 0)  # [T, L, B] -> [L, T, B]
        tree = links(tokens, library)
        if library.constant >= 0:
            constants = fit_constants(tokens, tree, X_fit, y_fit, config, library)
        else:
            constants = jnp.ones((1, *tokens.shape[1:]))
        rewards, mae = rewards_of(tokens, tree, constants, X, y, library)
        best = jnp.argmax(rewards, axis=1)
        rows = jnp.arange(rewards.shape[0])
        return rewards, rewards[rows, best], mae[rows, best], tokens[:, rows, best].T, constants[:, rows, best].T

    @jax.jit
    def learn(policies: Any, moments: Any, batch: SampledTexts, rewards: Any) -> Any:
        return jax.vmap(lambda p, m, b, r: policy_step(p, m, b, r, config, library))(policies, moments, batch, rewards)

    @jax.jit
    def split(keys: Any) -> Any:
        pairs = jax.vmap(jax.random.split)(keys)
        return pairs[:, 0], pairs[:, 1]

    return draw, judge, learn, split


def _fits_on_device(config: DSRConfig, rows: int) -> bool:
    if config.constants != "auto":
        return config.constants == "device"
    return jax.default_backend() != "cpu" or not config.use_constants or rows <= 32


@dataclass
class BestExpression:
    reward: float = -1.0
    mae: float = math.inf
    tokens: np.ndarray | None = None
    constants: np.ndarray | None = None
    solved_at: int = 0  # expressions drawn when the refitted best became exact; 0: not yet


def fit(tasks: Sequence[Task], budget: Budget, config: DSRConfig | None = None) -> list[BaselineResult]:
    """Train one policy per task, all side by side. `budget.candidates` counts sampled expressions of a task."""
    config = config or DSRConfig()
    started = time.perf_counter()
    if len({len(task.y) for task in tasks}) != 1:
        raise ValueError("the tasks of one DSR call need equally many rows; call once per size")
    variables = max(task.X.shape[1] for task in tasks)
    library = library_of(config, variables)
    usable = np.ones((len(tasks), library.size), bool)
    X = np.zeros((len(tasks), len(tasks[0].y), variables), np.float32)
    for t, task in enumerate(tasks):
        X[t, :, : task.X.shape[1]] = task.X
        usable[t, library.first_variable + task.X.shape[1] : library.first_variable + variables] = False
    y = np.stack([task.y for task in tasks]).astype(np.float32)
    few = min(config.fit_rows, X.shape[1])
    data = [jnp.asarray(a) for a in (X[:, :few], y[:, :few], X, y)]
    draw, judge_on_device, learn, split = _compiled(config, library)
    on_device = _fits_on_device(config, X.shape[1])
    judge_on_host = None if on_device else HostJudge(tasks, config, library)

    starts = [initial_policy(config, library, task.seed) for task in tasks]
    policies = {name: jnp.stack([jnp.asarray(p[name]) for p in starts]) for name in starts[0]}
    zeros = jax.tree.map(jnp.zeros_like, policies)
    moments = (zeros, zeros, jnp.zeros(len(tasks)))
    keys = jnp.stack([jax.random.key(task.seed, impl="threefry2x32") for task in tasks])
    tokens_usable = jnp.asarray(usable)
    best = [BestExpression() for _ in tasks]
    drawn, points = 0, []
    batches = -(-budget.candidates // config.batch_size)
    for number in range(batches):
        keys, draws = split(keys)
        batch = draw(policies, draws, tokens_usable)
        outcome = judge_on_device(batch, *data) if judge_on_host is None else judge_on_host(batch)
        policies, moments = learn(policies, moments, batch, jnp.asarray(outcome[0], jnp.float32))
        drawn += config.batch_size
        _note_best(best, tasks, outcome[1:], drawn, config, library)
        if number % config.check_every == 0 or number == batches - 1:
            points.append((drawn, time.perf_counter() - started, [b.mae for b in best]))
        if all(b.solved_at for b in best) or time.perf_counter() - started > budget.seconds:
            points.append((drawn, time.perf_counter() - started, [b.mae for b in best]))
            break
    seconds = (time.perf_counter() - started) / len(tasks)
    results = []
    for t, (task, b) in enumerate(zip(tasks, best, strict=True)):
        expression = expression_of(b.tokens, b.constants, task.names or (), library)
        curve = Curve(
            tuple(p[0] for p in points), tuple(p[1] / len(tasks) for p in points), tuple(float(p[2][t]) for p in points)
        )
        results.append(
            BaselineResult(
                "dsr",
                task.seed,
                refit(expression, task.X, task.y),
                curve,
                seconds,
                b.solved_at or drawn,
                dataclasses.asdict(config),
            )
        )
    return results


def _note_best(
    best: list[BestExpression], tasks: Sequence[Task], outcome: Any, drawn: int, config: DSRConfig, library: Library
) -> None:
    """Keep the best expression of each task; a good one is refitted in double precision to see whether it is exact."""
    rewards, maes, tokens, constants = (np.asarray(part) for part in outcome)
    for t, (b, task) in enumerate(zip(best, tasks, strict=True)):
        if b.solved_at or rewards[t] <= b.reward:
            continue
        b.reward, b.mae, b.tokens, b.constants = float(rewards[t]), float(maes[t]), tokens[t], constants[t]
        if b.reward > 1 - 1e-4:
            exact = refit(expression_of(b.tokens, b.constants, task.names or (), library), task.X, task.y)
            error = np.sqrt(np.mean((exact(task.X) - task.y) ** 2)) / (np.std(task.y) or 1.0)
            if error < config.stop_below:
                b.solved_at, b.mae = drawn, mean_absolute_error(exact, task.X, task.y)
