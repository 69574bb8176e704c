"""Worker processes that train cells: each owned by a thread that takes batches off a queue and appends the records.

Only the standard library is imported here before a worker has set its environment: NumPy's and JAX's libraries read it
when they are loaded.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

ATTEMPTS = 2
"""How often a cell is tried before it counts as failed."""


def _prepare_worker() -> None:
    """One core per worker: two workers that each think they own the machine are slower than two that do not."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def _end_with(parent: int) -> None:
    """A worker whose command was killed must not train on for nobody."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def train_and_judge(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Runs in a worker process: cells of one batch to records."""
    from gmeql.evaluation.paper.cells import Cell
    from gmeql.evaluation.paper.plan import budget_plan
    from gmeql.evaluation.paper.records import record_of
    from gmeql.evaluation.paper.train import train

    batch = [Cell(**cell) for cell in cells]
    return [record_of(trained) for trained in train(batch, budget_plan(batch[0].budget))]


class TrainingPool:
    """Threads that each own one worker process, take batches off a queue and append the records."""

    def __init__(
        self, folder: Path, missing: int, say: Callable[[str], None], job: Callable[..., Any] | None = None
    ) -> None:
        self.folder, self.missing, self.say = folder, missing, say
        self.job = job or train_and_judge
        self.finished = 0
        self.error: BaseException | None = None
        self.lock = threading.Lock()
        self.stopped = threading.Event()

    def work(self, batches: Sequence[Sequence[Any]], workers: int) -> None:
        """Train all batches, in this process where `workers` is 0; returns when none is left."""
        jobs: queue.SimpleQueue[tuple[list[Any], int]] = queue.SimpleQueue()
        for batch in batches:
            jobs.put((list(batch), 1))
        if workers == 0:
            return self._worker(jobs, None)
        threads = [
            threading.Thread(target=self._guarded_worker, args=(jobs, self._start()), daemon=True)
            for _ in range(min(workers, len(batches)))
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.5)
            if self.error is not None:
                raise self.error
        except BaseException:  # interrupted: leave no process behind, then go on unwinding
            self.stopped.set()
            for child in multiprocessing.active_children():
                child.terminate()
            raise

    def _guarded_worker(self, jobs: queue.SimpleQueue[tuple[list[Any], int]], executor: ProcessPoolExecutor) -> None:
        try:
            self._worker(jobs, executor)
        except BaseException as error:  # noqa: BLE001  # a full disk, say: raised where the caller sees it
            self.error = error

    def _worker(self, jobs: queue.SimpleQueue[tuple[list[Any], int]], executor: ProcessPoolExecutor | None) -> None:
        while not self.stopped.is_set():
            try:
                batch, attempt = jobs.get_nowait()
            except queue.Empty:
                break
            try:
                cells = [dict(cell.__dict__) for cell in batch]
                found = self.job(cells) if executor is None else executor.submit(self.job, cells).result()
            except BrokenProcessPool:
                executor = self._start()
                self._retry(jobs, batch, attempt, "the worker process died")
            except Exception as error:  # noqa: BLE001  # whatever a method raises is reported with its cell
                self._retry(jobs, batch, attempt, f"{type(error).__name__}: {error}")
            else:
                self._keep(found)
        if executor is not None:
            executor.shutdown(wait=False)

    @staticmethod
    def _start() -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, mp_context=context, initializer=_prepare_worker)

    def _retry(self, jobs: queue.SimpleQueue[tuple[list[Any], int]], batch: list[Any], attempt: int, why: str) -> None:
        """Try the cells of a dead batch once more, each on its own; then give up and say so."""
        from gmeql.evaluation.paper.records import failure_of

        if self.stopped.is_set():
            return
        self.say(f"{batch[0].key}{f' and {len(batch) - 1} more' if len(batch) > 1 else ''}: {why} (attempt {attempt})")
        if attempt >= ATTEMPTS:
            self._keep([failure_of(cell, why, attempt) for cell in batch])
            return
        for cell in batch:
            jobs.put(([cell], attempt + 1))

    def _keep(self, found: list[dict[str, Any]]) -> None:
        from gmeql.evaluation.paper.records import append

        with self.lock:
            append(self.folder, found)
            self.finished += len(found)
            cell = found[0]["cell"]
            setting = "" if cell["setting"] == "standard" else f" {cell['setting']}"
            noise = f" noise {cell['noise']:g}" if cell["noise"] else ""
            problems = ",".join(dict.fromkeys(record["cell"]["problem"] for record in found))
            what = f"{cell['method']}{setting}{noise} on {problems}"
            self.say(f"[{self.finished}/{self.missing}] {what}: {len(found)} run{'s' * (len(found) > 1)}")
