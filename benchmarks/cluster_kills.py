"""Kill workers of a real local cluster in the middle of fits, and hold what comes out against the same fit on threads.

usage: python benchmarks/cluster_kills.py --backend ray|dask|loky [--kills 10] [--workers 3] [--candidates 20000]

A cluster of several worker processes is started. Each fit has a seed and a candidate budget; somewhere on its way a worker
that is busy with an assignment is killed (SIGKILL). Shown: every fit ends by itself, and with the very front and
number of candidates of the fit on threads. A kill counts when the fit lost an assignment by it; one that came too late is
tried again. The exit status is 0 only if every kill was survived.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib

from kill_resume import table

SEEDS = 2
TRIES = 6
"""Fits in which one kill may miss."""


def fit(seed: int, candidates: int, n_jobs: int, callback: Callable[[Any], Any] | None = None) -> tuple[Any, ...]:
    from gmeql import GMEQLRegressor

    model = GMEQLRegressor(
        max_candidates=candidates,
        max_time=None,
        max_complexity=20,
        random_state=seed,
        n_jobs=n_jobs,
        callbacks=callback,
    ).fit(*table())
    return tuple((m.expression.exact(), m.loss) for m in model.front_), model.candidates_


# --- clusters: each yields a function that lists its worker processes -----------------------------------------------------


@contextmanager
def loky(workers: int) -> Iterator[Callable[[], list[int]]]:
    yield lambda: descendants("LokyProcess")


@contextmanager
def ray(workers: int) -> Iterator[Callable[[], list[int]]]:
    import ray as library
    from ray.util.joblib import register_ray

    library.init(address="local", num_cpus=workers, include_dashboard=False, log_to_driver=False,
                 logging_level=logging.ERROR, object_store_memory=200 * 2**20)  # fmt: skip
    register_ray()
    try:
        yield lambda: descendants("ray::_Servant")
    finally:
        library.shutdown()


@contextmanager
def dask(workers: int) -> Iterator[Callable[[], list[int]]]:
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=logging.ERROR)
    with cluster, Client(cluster):
        yield lambda: descendants("spawn_main")


def descendants(name: str) -> list[int]:
    """Processes below this one whose command line holds `name`."""
    parents, named = {}, []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if name in (entry / "cmdline").read_text():
                    named.append(int(entry.name))
            except OSError:  # it ended meanwhile
                continue

    def is_ours(pid: int) -> bool:
        while pid not in (0, 1, os.getpid()):
            pid = parents.get(pid, 0)
        return pid == os.getpid()

    return [pid for pid in named if is_ours(pid)]


# --- killing ----------------------------------------------------------------------------------------------------------------


class Killer(threading.Thread):
    """Kills one busy worker once the search has tried so many candidates. Is itself the callback that counts them."""

    def __init__(self, after: float, workers: list[int]) -> None:
        super().__init__(daemon=True)
        self.after = after
        self.workers = workers
        self.killed = 0
        self.due = threading.Event()
        self.over = threading.Event()
        self.start()

    def __call__(self, progress: Any) -> None:
        if progress.candidates >= self.after:
            self.due.set()

    def run(self) -> None:
        self.due.wait()
        while not self.killed and not self.over.is_set():
            busy = [pid for pid in self.workers if _is_running(pid)]
            self.over.wait(0.01)
            busy = [pid for pid in busy if _is_running(pid)]
            if busy:
                self.killed = random.choice(busy)
                os.kill(self.killed, signal.SIGKILL)

    def end(self) -> None:
        self.over.set()
        self.due.set()
        self.join()


def _is_running(pid: int) -> bool:
    """Whether a thread of the process is on a processor or waits for one; a worker without work sleeps."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return any((task / "stat").read_text().rpartition(")")[2].split()[0] == "R" for task in tasks)
    except OSError:
        return False


class Losses(logging.Handler):
    """Counts assignments that were lost with their worker, from what gmeql says about it."""

    def __init__(self) -> None:
        super().__init__()
        self.assignments = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.assignments += "its assignment goes to another" in record.getMessage()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--backend", choices=("loky", "dask", "ray"), required=True)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--candidates", type=int, default=20_000)
    args = parser.parse_args()
    random.seed(0)
    losses = Losses()
    log = logging.getLogger("gmeql.search.workers")
    log.addHandler(losses)
    log.propagate = False

    seeds = range(min(SEEDS, args.kills))
    expected = {seed: fit(seed, args.candidates, 2) for seed in seeds}
    print(f"on threads: {len(seeds)} fits of {args.candidates:,} candidates", flush=True)
    survived = 0
    with {"loky": loky, "dask": dask, "ray": ray}[args.backend](args.workers) as list_workers:
        with joblib.parallel_config(args.backend):
            started = time.perf_counter()
            same = fit(0, args.candidates, args.workers) == expected[0]
            print(f"{args.backend}, nobody killed: {'same front' if same else 'ANOTHER FRONT'}, "
                  f"{time.perf_counter() - started:.1f} s", flush=True)  # fmt: skip
            for kill in range(args.kills):
                survived += one_kill(args, kill, expected, losses, list_workers)
    print(
        f"{survived} of {args.kills} kills survived ({args.backend}, {args.workers} workers): same front as on threads"
    )
    return 0 if survived == args.kills and same else 1


def one_kill(
    args: argparse.Namespace, kill: int, expected: dict[int, Any], losses: Losses, list_workers: Callable[[], list[int]]
) -> bool:
    seed = kill % len(expected)
    for _ in range(TRIES):
        before = losses.assignments
        after = random.uniform(0.0, 0.6) * args.candidates
        killer: Killer | None = None

        def watch(progress: Any, after: float = after) -> None:
            nonlocal killer
            if killer is None:  # the workers of this fit are there by now
                killer = Killer(after, list_workers())
            killer(progress)

        started = time.perf_counter()
        try:
            found = fit(seed, args.candidates, args.workers, watch)
        except Exception as error:  # noqa: BLE001  whatever ends a fit is what is counted here
            print(f"kill {kill + 1}: the fit failed, {type(error).__name__}: {error}", flush=True)
            return False
        finally:
            if killer is not None:
                killer.end()
        same = found == expected[seed]
        if same and losses.assignments == before:
            print(f"kill {kill + 1}: came when the work was done, {time.perf_counter() - started:.1f} s", flush=True)
            continue
        assert killer is not None
        print(f"kill {kill + 1}: seed {seed}, process {killer.killed} after {after:,.0f} candidates, "
              f"{losses.assignments - before} assignment lost: {'same front' if same else 'ANOTHER FRONT'}, "
              f"{time.perf_counter() - started:.1f} s", flush=True)  # fmt: skip
        return same
    print(f"kill {kill + 1}: {TRIES} times no assignment was lost; give --candidates more", flush=True)
    return False


if __name__ == "__main__":
    sys.exit(main())
