"""Running cells: each in a process of its own, on cores of its own, under a hard limit. What goes wrong is a record.

Records are JSON lines, appended as cells finish; cells that a file holds already are not run again. A cell that ended
with an error counts as finished (a peer that hangs would hang again); `retry` runs those anew.
"""

from __future__ import annotations

import json
import os
import platform
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import cells as cells_
import metrics
import numpy as np
from cells import Cell
from systems import Interpreter

from gmeql.evaluation.problems import Problem

START = 60.0
"""Seconds a system may take to start, on top of its time and half of that again, before it is ended."""
WARM_UP = 600.0
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def read(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The records of a file; a last line cut off by a crash is passed over."""
    content = Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""
    whole = content[: content.rfind("\n") + 1]
    return [json.loads(line) for line in whole.splitlines() if line.strip()]


def key(record: Mapping[str, Any]) -> tuple:
    """The cell of a record."""
    return tuple(record[field.name] for field in fields(Cell))


def run(
    work: Iterable[tuple[Cell, Problem]],
    interpreters: Mapping[str, Interpreter],
    path: str | os.PathLike[str],
    *,
    runners: Mapping[str, Path],
    cores: Sequence[Sequence[int]],
    deadline: float | None = None,
    retry: bool = False,
    ready: Mapping[str, Callable[[], Any]] | None = None,
    show: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """Run the cells that `path` does not hold, as many at a time as `cores` has groups. Records in the cells' order.

    No cell starts that might not end before the `deadline` (of `time.monotonic`), nor before `ready` of its system
    has returned.
    """
    work = list(work)
    done = {key(record): record for record in read(path) if not (retry and record["error"])}
    todo = [(cell, problem) for cell, problem in work if cell.key not in done]
    free: queue.SimpleQueue[Sequence[int]] = queue.SimpleQueue()
    for group in cores:
        free.put(group)
    lock = threading.Lock()
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    _end_with_a_newline(Path(path))

    def one(cell: Cell, problem: Problem) -> None:
        if ready and cell.system in ready:
            ready[cell.system]()
        group = free.get()
        try:
            if deadline is not None and time.monotonic() + cell.max_time > deadline:
                return
            record = run_cell(cell, problem, interpreters[cell.system], runners[cell.system], group)
        finally:
            free.put(group)
        with lock:
            done[cell.key] = record
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(record, allow_nan=False) + "\n")
                file.flush()
            what = record["error"] or f"R² {record['r2']}, {record['seconds']:.2f} s: {record['formula'][:100]}"
            show(f"{len(done)}/{len(work)} {cell.suite} {cell.problem} noise {cell.noise:g} {cell.system}: {what}")

    with ThreadPoolExecutor(len(cores)) as pool:
        for future in [pool.submit(one, cell, problem) for cell, problem in todo]:
            future.result()
    return [done[cell.key] for cell, _ in work if cell.key in done]


def warm_up(interpreters: Mapping[str, Interpreter], runner: Path, threads: int) -> None:
    """One small run of gmeql whose outcome nobody looks at, so that its compiled kernels are in their cache."""
    if "gmeql" in interpreters:
        X = np.linspace(1, 2, 20)[:, None]
        cell = Cell("", "", 0.0, 0, "gmeql", 1.0, threads)
        _call(cell, X, X[:, 0] ** 2, interpreters["gmeql"], runner, (), limit=WARM_UP)


def run_cell(
    cell: Cell, problem: Problem, interpreter: Interpreter, runner: Path, cores: Sequence[int] = ()
) -> dict[str, Any]:
    """One record: what the system returned, its time, and its accuracy on the test rows."""
    X, y, Xt, yt = cells_.table(problem, cell)
    record: dict[str, Any] = {
        **asdict(cell),
        "truth": cells_.plain_truth(problem),
        "ranges": [[column.low, column.high] for column in problem.columns],
        "n_train": len(y),
        "formula": "",
        "seconds": None,
        "found": None,
        "memory_mb": None,
        "r2": None,
        "max_error": None,
        "error": "",
        "machine": machine(),
    }
    start = time.monotonic()
    try:
        record |= _call(cell, X, y, interpreter, runner, cores)
        record |= metrics.accuracy(record["formula"], Xt, yt)
    except Exception as error:  # noqa: BLE001  whatever a peer does wrong is its record
        record["error"] = f"{type(error).__name__}: {str(error)[-500:]}"
    record["wall"] = time.monotonic() - start
    return record


def _call(
    cell: Cell,
    X: np.ndarray,
    y: np.ndarray,
    interpreter: Interpreter,
    runner: Path,
    cores: Sequence[int],
    *,
    limit: float | None = None,
) -> dict[str, Any]:
    limit = 1.5 * cell.max_time + START if limit is None else limit
    with tempfile.TemporaryDirectory(prefix="gmeql-peer-") as folder:
        place = Path(folder)
        np.savez(place / "data.npz", X=X, y=y)
        job = {
            "data": str(place / "data.npz"),
            "result": str(place / "result.json"),
            "max_time": cell.max_time,
            "seed": cell.seed,
            "threads": cell.threads,
        }
        (place / "job.json").write_text(json.dumps(job))
        with open(place / "log", "wb") as log:
            process = subprocess.Popen(
                [interpreter.python, str(runner), str(place / "job.json")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=place,
                env=_environment(cell.threads, interpreter),
                start_new_session=True,
            )
            if cores and hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(process.pid, cores)
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired as error:
                raise TimeoutError(f"still running after {limit:.0f} s, ended") from error
            finally:
                _end(process)
        if code != 0 or not (place / "result.json").exists():
            last = (place / "log").read_text(errors="replace").strip().splitlines()[-1:] or ["no message"]
            raise RuntimeError(f"exit status {code}: {last[0]}")
        outcome = json.loads((place / "result.json").read_text())
    return {name: outcome[name] for name in ("formula", "seconds", "found", "memory_mb")}


def _environment(threads: int, interpreter: Interpreter) -> dict[str, str]:
    """The caller's environment, with one number of threads for all, no accelerator, and the interpreter's own path."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    kept |= {name: str(threads) for name in THREAD_VARIABLES}
    kept |= {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "", "PYTHONHASHSEED": "0", "MPLBACKEND": "Agg"}
    if interpreter.path:
        kept["PYTHONPATH"] = os.pathsep.join(interpreter.path)
    return kept


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and whatever it started; they are a session of their own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _end_with_a_newline(path: Path) -> None:
    """Cut off what a crash left of the last line, so that the next record starts a line of its own."""
    if path.exists():
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            os.truncate(path, len(whole))


def machine() -> str:
    """The processor's name and number of cores."""
    name = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return f"{name}, {os.cpu_count()} cores"
