"""Milliseconds per training step of method "paper": one run and many seeds side by side, compilation apart.

    PYTHONPATH=src python benchmarks/paper_method.py [--seeds 1,20,160] [--steps 1000] [--layers released] [--engine jax]

Released layers on b1, p = r = 40, 300 rows, float32 (the setting of the issue's target: at most 3 ms a step on two cores;
the authors' TensorFlow code took 320 ms there). `--steps 54000` with `--seeds 160` is the paper's whole budget, timed.
`--parts` also times the parts of a step one by one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gmeql.evaluation.problems import paper_problem
from gmeql.network import repository
from gmeql.network.architecture import Architecture, architecture_preset
from gmeql.paper import relaxed, two_stage
from gmeql.paper.two_stage.state import TrainingProgram, stack_knobs
from gmeql.paper.two_stage.step import draw_noise, log_selections_of, sample, step

PART_REPEATS = 300


def measure(
    architecture: Architecture, X: Any, y: Any, seeds: int, steps: int, chunk: int, refresh: bool, engine: str
) -> dict:
    """Compile one chunk, then time the chunks of one run."""
    config = two_stage.TwoStageConfig(
        stage1_rounds=0, stage2_steps=chunk + steps, chunk_steps=chunk, curve_every=chunk, refresh_elites=refresh
    )
    times = []
    start = time.perf_counter()
    for progress in two_stage.run(architecture, X, y, seeds=range(seeds), config=config, engine=engine):
        times.append(time.perf_counter() - start)
        start = time.perf_counter()
    per_step = [1e3 * t / chunk for t in times[1:]]
    return {
        "seeds": seeds,
        "steps": steps,
        "ms_per_step_median": statistics.median(per_step),
        "ms_per_step_best": min(per_step),
        "us_per_run_and_step": 1e3 * statistics.median(per_step) / seeds,
        "compile_seconds": times[0] - min(times[1:]),
        "run_seconds": sum(times[1:]),
        "best_loss_median": float(np.median(progress.best_loss)),
    }


def parts(architecture: Architecture, X: np.ndarray, y: np.ndarray, seeds: int) -> dict[str, float]:
    """Microseconds of each part of a step, `seeds` side by side, each compiled alone in a loop."""
    config = two_stage.TwoStageConfig(stage1_rounds=0, stage2_steps=200, chunk_steps=200)
    for progress in two_stage.run(architecture, X, y, seeds=range(seeds), config=config):
        pass
    program = TrainingProgram(architecture, config.shape, "float32", False, False, 1)
    knobs = stack_knobs([config] * seeds, "float32")
    state = progress.state.arrays
    columns, targets = jnp.asarray(X.T, jnp.float32), jnp.asarray(y[None], jnp.float32)
    loss_of = partial(relaxed.mean_absolute_error, architecture)
    noise = jax.vmap(lambda s: draw_noise(program, s.seed, s.step))(state)

    def instances(knobs: Any, state: Any, noise: Any) -> Any:
        return log_selections_of(program, knobs, state.logits, sample(program, knobs, state.elites, noise), noise)

    logs = jax.vmap(instances)(knobs, state, noise)
    marks = architecture.fingerprints(relaxed.choices_of(architecture, logs), jnp)
    losses = jax.random.uniform(jax.random.key(0), logs.shape[:2])

    def gradient(logs: Any, weights: Any) -> Any:
        each = jax.vmap(jax.value_and_grad(loss_of, argnums=(0, 1)), in_axes=(0, None, None, None))
        return each(jnp.exp(logs), weights, columns, targets)

    def take(elites: Any, uniforms: Any) -> Any:
        return repository.take(elites, jnp.maximum(repository.draw(elites, uniforms, 1.5, jnp), 0))

    cases = {
        "noise": (lambda s: draw_noise(program, s.seed, s.step), (state,)),
        "sample": (instances, (knobs, state, noise)),
        "loss and gradient": (gradient, (logs, state.weights)),
        "fingerprints": (lambda l: architecture.fingerprints(relaxed.choices_of(architecture, l), jnp), (logs,)),
        "insert": (lambda e, l, m, i: repository.insert(e, l, m, i, jnp), (state.elites, losses, marks, logs)),
        "draw and take": (take, (state.elites, noise.offline)),
        "whole step": (lambda k, s: step(program, k, columns, targets, jnp.bool_(True), s), (knobs, state)),
    }
    return {name: _time_part(function, arguments) for name, (function, arguments) in cases.items()}


def _time_part(function: Any, arguments: Any) -> float:
    """Microseconds a call inside a compiled loop; a carried number keeps the loop from being hoisted or dropped."""

    def body(carry: Any, _: Any) -> Any:
        def tie(leaf: Any) -> Any:
            return leaf + carry.astype(leaf.dtype) if leaf.dtype != bool else leaf

        out = jax.vmap(function)(*jax.tree.map(tie, arguments))
        total = sum(jnp.sum(jnp.where(leaf == leaf, leaf, 0).astype(jnp.float32)) for leaf in jax.tree.leaves(out))
        return jnp.where(total == 0.123, 1.0, 0.0).astype(jnp.float32), None

    loop = jax.jit(lambda: jax.lax.scan(body, jnp.float32(0), None, length=PART_REPEATS)[0]).lower().compile()
    loop()
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        jax.block_until_ready(loop())
        best = min(best, time.perf_counter() - start)
    return 1e6 * best / PART_REPEATS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1,20", help="numbers of seeds side by side")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument(
        "--chunk", type=int, default=0, help="steps a chunk (default: a fifth of --steps, at most 1000)"
    )
    parser.add_argument("--layers", default="released")
    parser.add_argument("--engine", default="auto", help="what trains: auto, jax or cuda")
    parser.add_argument("--refresh", action="store_true")
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--json", help="write the figures to this file too")
    args = parser.parse_args()
    problem = paper_problem("b1")
    X, y = problem.train(problem.generator(0, "train"))
    architecture = architecture_preset(args.layers, X.shape[1])
    print(
        f"{jax.devices()[0]}, jax {jax.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True
    )
    figures: dict[str, Any] = {"device": str(jax.devices()[0]), "layers": args.layers, "measured": []}
    for seeds in map(int, args.seeds.split(",")):
        chunk = args.chunk or min(1000, max(1, args.steps // 5))
        found = measure(architecture, X, y, seeds, args.steps, chunk, args.refresh, args.engine)
        figures["measured"].append(found)
        print(
            f"{seeds:4d} seeds: {found['ms_per_step_median']:.3f} ms a step (best chunk {found['ms_per_step_best']:.3f}), "
            f"{found['us_per_run_and_step']:.2f} us a run and step, compiled in {found['compile_seconds']:.1f} s, "
            f"{args.steps} steps in {found['run_seconds']:.1f} s",
            flush=True,
        )
        if args.parts:
            found["parts_us"] = parts(architecture, X, y, seeds)
            print("      " + ", ".join(f"{name} {us:.0f} us" for name, us in found["parts_us"].items()), flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
