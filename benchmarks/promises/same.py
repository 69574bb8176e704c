"""One seed and one budget give one front: threads, workers, pickling, files, kills and resumes."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from common import GMEQL, SECONDS, Report, fit_command, table, write_table


def repickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own bytes


def front_of(model: Any) -> list[tuple[str, float]]:
    return [(member.expression.exact(), member.loss) for member in model.front_]


def same(report: Report, *, kills: int, candidates: int, fresh: bool) -> None:
    import joblib

    from gmeql import GMEQLRegressor
    from gmeql.model.fit.ranges import RangeWarning

    X, y = table()

    def fit(n_jobs: int = 1) -> Any:
        return GMEQLRegressor(max_candidates=candidates, max_time=None, random_state=0, n_jobs=n_jobs)

    model = fit().fit(X, y)
    front = front_of(model)
    report.add("two threads", front_of(fit(2).fit(X, y)) == front, f"{len(front)} formulas")
    for backend, package in (("loky", "joblib"), ("dask", "distributed"), ("ray", "ray")):
        if find_spec(package) is None:
            report.skip(f"workers of {backend}", "not installed")
        elif backend == "loky":
            with joblib.parallel_config("loky", n_jobs=2):
                report.add("workers of loky", front_of(fit(2).fit(X, y)) == front)
        else:
            with cluster(backend), joblib.parallel_config(backend):
                report.add(f"workers of {backend}", front_of(fit(2).fit(X, y)) == front)
    report.add("fitted after pickling", front_of(repickled(fit()).fit(X, y)) == front)
    far = np.vstack([X, 50 * X, -X])
    with np.errstate(all="ignore"), warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore", RangeWarning)  # rows far outside are asked for on purpose
        expected = model.predict(far).tobytes()
        report.add("pickled after fitting", repickled(model).predict(far).tobytes() == expected)
        model.save(Path(folder) / "model.json")
        loaded = GMEQLRegressor.load(Path(folder) / "model.json")
        report.add("saved and loaded", loaded.predict(far).tobytes() == expected and front_of(loaded) == front)
    killed(report, kills, 10 * candidates)
    if fresh:
        first_and_second_process(report)


@contextmanager
def cluster(backend: str) -> Iterator[None]:
    """A small cluster of Dask or Ray on this machine, known to joblib."""
    if backend == "dask":
        from distributed import Client  # type: ignore[import-not-found]

        with Client(n_workers=2, threads_per_worker=1, dashboard_address=None):
            yield
    else:
        import ray  # type: ignore[import-not-found]
        from ray.util.joblib import register_ray  # type: ignore[import-not-found]

        ray.init(num_cpus=2, include_dashboard=False)
        register_ray()
        yield
        ray.shutdown()


def killed(report: Report, kills: int, candidates: int) -> None:
    """`gmeql fit` killed at random times and resumed, until it was killed often enough, or ends before that."""
    moments = random.Random(0)
    done = rounds = same_front = 0
    with tempfile.TemporaryDirectory() as name:
        data = write_table(Path(name) / "table.csv")
        start = time.monotonic()
        subprocess.run(fit_command(data, Path(name) / "whole", candidates), check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - start
        expected = (Path(name) / "whole" / "front.csv").read_bytes()
        while done < kills:
            folder = Path(name) / f"killed-{rounds}"
            ended, before = False, done
            while not ended:
                known = (folder / "run.json").exists()
                command = [*GMEQL, "resume", str(folder), "--quiet"] if known else fit_command(data, folder, candidates)
                process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                try:
                    wait = moments.uniform(0, seconds) if done < kills else SECONDS
                    _, error = process.communicate(timeout=wait)
                    ended = True
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()
                    done += 1
            rounds += 1
            good = process.returncode == 0 and (folder / "front.csv").read_bytes() == expected
            same_front += good
            if not good:
                report.skip(f"run {rounds}, {done - before} kills", f"ended with {process.returncode}: {error[-500:]}")
                break
    detail = f"{done} kills in {rounds} runs of {candidates} candidates, {same_front} ended on the unbroken run's front"
    report.add("killed and resumed", done >= kills and same_front == rounds, detail)


def first_and_second_process(report: Report) -> None:
    """Without kernels on disk, and with those that the first process left there."""
    with tempfile.TemporaryDirectory() as name:
        data = write_table(Path(name) / "table.csv")
        fronts = []
        for number in range(2):
            folder = Path(name) / str(number)
            environment = os.environ | {"NUMBA_CACHE_DIR": f"{name}/kernels"}
            subprocess.run(fit_command(data, folder, 6000), env=environment, check=True, stdout=subprocess.DEVNULL)
            fronts.append((folder / "front.csv").read_bytes())
    report.add("first process and second", fronts[0] == fronts[1])
