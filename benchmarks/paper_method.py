"""Milliseconds per training step of method "paper": one run and many seeds side by side, compilation apart.

    PYTHONPATH=src python benchmarks/paper_method.py [--seeds 1,20,160] [--steps 1000] [--layers released] [--engine jax]

Released layers on b1, p = r = 40, 300 rows, float32 (the setting of the issue's target: at most 3 ms a step on two cores;
the authors' TensorFlow code took 320 ms there). `--steps 54000` with `--seeds 160` is the paper's whole budget, timed.
`--parts` also times the parts of a step one by one. `--compare 20` times nothing: from one state, 40 steps old, it takes
one and 20 steps in float32, by JAX and by the kernel, and says how far each is from JAX's float64, in learning rates. Adam
divides gradients by their own size, so the sign of one that is nearly 0 is a whole rate, and rounding decides it; a fault
would move most numbers, and at the first step.
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
from gmeql.paper.two_stage.chunks import cuda_chunks, jax_chunks
from gmeql.paper.two_stage.config import Chunk
from gmeql.paper.two_stage.inputs import checked_data
from gmeql.paper.two_stage.state import TrainingProgram, initial_state, stack_knobs
from gmeql.paper.two_stage.step import draw_noise, log_selections_of, sample, step

PART_REPEATS = 300
WARM_STEPS = 40
"""Steps before those that are compared: elites and Adam's means are there then."""


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


def compare(
    architecture: Architecture, X: Any, y: Any, seeds: int, steps: int, driver: Any, **changes: Any
) -> list[dict]:
    """How far one step and `steps` of them in float32 end from those in float64, by JAX and by the kernel on a device."""
    config = two_stage.TwoStageConfig(
        **{"stage1_rounds": 0, "stage2_steps": WARM_STEPS + steps, "chunk_steps": WARM_STEPS + steps} | changes
    )
    state = initial_state(architecture, config, list(range(seeds)), "float32")

    def after(n: int, dtype: str, state: Any, on_device: bool, fresh: bool = False) -> Any:
        columns, targets = (array.astype(dtype) for array in checked_data(X, y, seeds))
        knobs = stack_knobs([config] * seeds, dtype)
        chunks = (
            cuda_chunks(driver, knobs, columns, targets) if on_device else jax_chunks(dtype, knobs, columns, targets)
        )
        at_once = n if on_device else 1  # JAX compiles for every number of steps anew
        program = TrainingProgram(architecture, config.shape, dtype, False, False, at_once)
        for first in range(0, n, at_once):
            state = chunks(program, Chunk(first, at_once, fresh and first == 0, 2), state)[0]
        return jax.tree.map(np.asarray, state)

    state = after(WARM_STEPS, "float32", state, False, fresh=True)
    double = jax.tree.map(lambda leaf: leaf.astype("float64") if leaf.dtype == np.float32 else leaf, state)
    found = []
    for n in (1, steps):
        exact = after(n, "float64", double, False)
        for name, on_device in (("jax", False), ("kernel", True)):
            here = after(n, "float32", state, on_device)
            off = np.concatenate([
                np.abs(np.asarray(getattr(here, part), float) - getattr(exact, part)).ravel() / rate
                for part, rate in (("logits", config.logits_rate), ("weights", config.weights_rate))
            ])  # fmt: skip
            shares = {f"off_by_{share:g}": float((off > share).mean()) for share in (0.001, 0.01, 0.1)}
            found.append(
                {"steps": n, "by": name, "median": float(np.median(off)), "largest": float(off.max())} | shares
            )
    return found


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
    parser.add_argument("--compare", type=int, help="steps after which float32 is held against float64")
    parser.add_argument("--json", help="write the figures to this file too")
    args = parser.parse_args()
    problem = paper_problem("b1")
    X, y = problem.train(problem.generator(0, "train"))
    architecture = architecture_preset(args.layers, X.shape[1])
    print(
        f"{jax.devices()[0]}, jax {jax.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True
    )
    if args.compare:
        from gmeql.fitters.cuda.driver import drivers

        for found in compare(architecture, X, y, int(args.seeds.split(",")[0]), args.compare, drivers()[0]):
            print(json.dumps(found), flush=True)
        return
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
