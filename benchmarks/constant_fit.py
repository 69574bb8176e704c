"""Fitted candidates per second: constants of b7's true structure by Levenberg-Marquardt, five steps forced.

    PYTHONPATH=src python benchmarks/constant_fit.py [--candidates 20000] [--threads 1,2] [--json FILE]

300 rows. The network spells b7 with ten weights, four of which are not redundant and stay free. Every candidate starts
from other constants; all engines take the same programs and the same starts: the CPU engine in float64 on each number
of threads, SciPy's least_squares one candidate at a time (six evaluations of function and exact Jacobian, as many as
five steps take; and as called by default, with numeric slopes), and the
accelerator where there is one: the whole call, transfers included, and the kernel alone; compilation stands apart.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gmeql.fitters.programs import Program, from_expression, input_slots, stack
from gmeql.fitters.reference import evaluate
from gmeql.formula.nodes import Call, Constant, Node, Variable

ROWS = 300
STEPS = 5
TRUTH = (1.1, 0.9, 2.1, 1.2)


def true_structure() -> Node:
    """b7: 1.1 x1 + 0.9 x2 + 2.1 x1 x2 cos(1.2 x3)."""
    x1, x2, x3 = (Variable(i) for i in range(3))

    def product(*factors: Node | float) -> Node:
        return Call("mul", tuple(Constant(f) if isinstance(f, float) else f for f in factors))

    wave = Call("cos", (product(TRUTH[3], x3),))
    return Call("add", (product(TRUTH[0], x1), product(TRUTH[1], x2), product(TRUTH[2], x1, x2, wave)))


def problem(n: int) -> tuple[Program, np.ndarray, np.ndarray, np.ndarray]:
    """The program, its input slots [S, N], the target [N], and n starts [n, P] around the truth."""
    rng = np.random.default_rng(7)
    X = rng.uniform(0.0, 10.0, (ROWS, 3))
    program = from_expression(true_structure(), 3)
    slots, _ = input_slots(X)
    target, _ = evaluate(program.code, program.start, program.n_free, slots)
    starts = program.start * (1 + 0.5 * rng.standard_normal((n, len(program.start))))
    return program, slots, target, starts


def timed(action: Callable[[], Any], repeats: int) -> tuple[float, float, Any]:
    """Seconds of the first call and median seconds of the next ones."""
    times = []
    result = None
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - begin)
    return times[0], statistics.median(times[1:]), result


def record(engine: str, n: int, first: float, seconds: float, losses: np.ndarray, **more: Any) -> dict[str, Any]:
    return {
        "engine": engine, "candidates": n, "per_second": n / seconds, "seconds": seconds,
        "compile_seconds": max(first - seconds, 0.0), "median_loss": float(np.median(losses)),
        "solved_share": float(np.mean(losses < 1e-10)), **more,
    }  # fmt: skip


def arrays(program: Program, starts: np.ndarray) -> tuple[np.ndarray, ...]:
    """The batch as the sampler writes it."""
    codes, lengths, n_free, own = stack([program])
    n = len(starts)
    constants = np.zeros((n, own.shape[1]))
    constants[:, : starts.shape[1]] = starts
    return np.repeat(codes, n, axis=0), np.repeat(lengths, n), np.repeat(n_free, n), constants


def measure_cpu(n: int, threads: int, repeats: int) -> dict[str, Any]:
    from gmeql.fitters.cpu import fit_arrays

    program, slots, target, starts = problem(n)
    codes, lengths, n_free, constants = arrays(program, starts)
    weights = np.ones(ROWS)

    def action() -> Any:
        return fit_arrays(
            codes, lengths, n_free, constants.copy(), slots, target, weights, max_steps=STEPS, tolerance=0.0,
            forced=True, n_threads=threads,
        )  # fmt: skip

    first, seconds, result = timed(action, repeats)
    return record(f"cpu float64, {threads} thread{'s' * (threads > 1)}", n, first, seconds, result.losses)


def measure_scipy(n: int, exact: bool) -> dict[str, Any]:
    from scipy.optimize import least_squares

    program, slots, target, starts = problem(n)
    x1, x2, x3 = slots[:3]

    def residual(c: np.ndarray) -> np.ndarray:
        return c[0] * x1 + c[1] * x2 + c[2] * x1 * x2 * np.cos(c[3] * x3) - target

    def jacobian(c: np.ndarray) -> np.ndarray:
        product, angle = x1 * x2, c[3] * x3
        return np.stack([x1, x2, product * np.cos(angle), -c[2] * product * x3 * np.sin(angle)], axis=1)

    order = [program.leaves.index(leaf) for leaf in range(4)]
    options: dict[str, Any] = dict(method="lm", max_nfev=STEPS + 1, jac=jacobian) if exact else {}

    def action() -> np.ndarray:
        return np.array([2 * least_squares(residual, start[order], **options).cost / ROWS for start in starts])

    first, seconds, losses = timed(action, 1)
    name = (
        "scipy least_squares, lm, exact slopes, 6 evaluations" if exact else "scipy least_squares, as called by default"
    )
    return record(name, n, first, seconds, losses)


def measure_device(n: int, repeats: int) -> dict[str, Any]:
    from gmeql.fitters.cuda.engine import fit_arrays

    program, slots, target, starts = problem(n)
    codes, lengths, n_free, constants = arrays(program, starts)
    weights = np.ones(ROWS)

    def action() -> Any:
        return fit_arrays(
            codes, lengths, n_free, constants, slots, target, weights, max_steps=STEPS, tolerance=0.0, forced=True
        )

    first, seconds, result = timed(action, repeats)
    return record(f"accelerator float64, {n} a batch, sent and fetched", n, first, seconds, result.losses)


def measure_kernel(n: int, repeats: int) -> dict[str, Any]:
    """The kernel alone, by the card's own clock: candidates lie there already."""
    import cupy

    from gmeql.fitters.cuda import engine
    from gmeql.fitters.cuda.driver import CudaDriver
    from gmeql.fitters.cuda.launch import launch_fit, send_data
    from gmeql.fitters.cuda.source import SIZES, size_of
    from gmeql.fitters.kernel.arrays import FitData

    program, slots, target, starts = problem(n)
    codes, lengths, n_free, constants = arrays(program, starts)
    driver = CudaDriver(0)
    data, _kept = send_data(driver, [FitData(slots, target, np.ones(ROWS))], None)
    candidates = engine.Joined(codes, lengths, n_free, n_free, constants, np.zeros(n, np.int32), np.full(n, np.inf))
    sent = engine.packed(candidates)
    launched = engine.launch_packed(driver, sent, data, (STEPS, 1, 0.0))
    number = int(size_of(lengths[:1], n_free[:1])[0])
    chosen, listed, taken = launched.of_size[number]
    times = []
    for _ in range(repeats + 1):
        driver.fill(launched.there, sent.whole)
        driver.fill(taken, None)
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record(driver.queues[0])
        launch_fit(driver, SIZES[number], launched.batch, data, chosen, listed, taken, most=n)
        end.record(driver.queues[0])
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begin, end) / 1000)
    losses = launched.fetched(driver)["losses"]
    return record(f"accelerator float64, {n} a batch, kernel alone", n, times[0], statistics.median(times[1:]), losses)


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=20_000, help="candidates of the CPU engine")
    parser.add_argument("--scipy-candidates", type=int, default=200)
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--batches", type=numbers, default=[4096, 16384, 65536, 262144])
    parser.add_argument("--json", help="write the records to this file")
    arguments = parser.parse_args()

    records: list[dict[str, Any]] = []
    print(f"{'engine':58} {'candidates/s':>12} {'s a batch':>10} {'compile s':>10} {'median loss':>12} {'solved':>7}")

    def show(entry: dict[str, Any]) -> None:
        records.append(entry)
        print(
            f"{entry['engine']:58} {entry['per_second']:12,.0f} {entry['seconds']:10.4f} {entry['compile_seconds']:10.1f} "
            f"{entry['median_loss']:12.3g} {entry['solved_share']:7.2f}",
            flush=True,
        )
        if arguments.json:
            machine = {"cores": os.cpu_count(), "python": platform.python_version(), "machine": platform.machine()}
            with open(arguments.json, "w", encoding="utf-8") as file:
                json.dump({"rows": ROWS, "steps": STEPS, "machine": machine, "records": records}, file, indent=2)

    if importlib.util.find_spec("numba"):
        for threads in arguments.threads:
            show(measure_cpu(arguments.candidates, threads, arguments.repeats))
    else:
        print("numba is not installed here: no CPU engine")
    if importlib.util.find_spec("scipy"):
        for exact in (True, False):
            show(measure_scipy(arguments.scipy_candidates, exact))
        by_cpu = [r["per_second"] for r in records if r["engine"].startswith("cpu")]
        for entry in records:
            if by_cpu and entry["engine"].startswith("scipy"):
                print(
                    f"the CPU engine fits {max(by_cpu) / entry['per_second']:,.0f} times as many as {entry['engine']}"
                )
    else:
        print("scipy is not installed here: nothing to compare with")
    from gmeql.fitters.cuda.driver import why_not

    if why_not():
        print(f"no accelerator here: {why_not()}")
        return
    for batch in arguments.batches:
        show(measure_device(batch, arguments.repeats))
        show(measure_kernel(batch, arguments.repeats))


if __name__ == "__main__":
    main()
