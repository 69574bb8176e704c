"""Runs behind the page: a queue worked off one at a time, each in its folder, which outlives the server."""

from __future__ import annotations

import re
import secrets
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmeql.model.files.storage import StorageError
from gmeql.runs.execute import Stop, execute
from gmeql.runs.folder import Run, make_folder
from gmeql.runs.records import progress_record
from gmeql.runs.settings import FitSettings

if TYPE_CHECKING:
    from gmeql.formula.expression import Expression
    from gmeql.tables.training import Training

SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}")
MAX_QUEUED = 100
CLOSE_SECONDS = 1.5  # what the current run may take to save itself; its last checkpoint is no older than five seconds
MAX_UPLOADS = 50  # the newest are kept


@dataclass
class Job:
    """One queued or running run. `version` counts changes, so that a stream knows when to send again."""

    name: str
    settings: FitSettings | None = None
    stop: Stop = field(default_factory=Stop)
    latest: dict[str, Any] | None = None
    version: int = 0


class Jobs:
    """All runs of one folder, and the thread that works them off."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Condition()
        self._queue: deque[Job] = deque()
        self._current: Job | None = None
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="gmeql-jobs", daemon=True)

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Queue again what an earlier server left unfinished, oldest first, and begin to work."""
        unfinished = [run for run in self.runs() if run.description()["state"] in ("queued", "running")]
        for run in sorted(unfinished, key=lambda run: run.description()["created"]):
            run.update(state="queued", reason="")
            self._queue.append(Job(run.folder.name))
        self._thread.start()

    @property
    def closing(self) -> bool:
        """Whether the server is about to end; streams end then."""
        return self._closing

    def begin_to_close(self) -> None:
        """Stop the current run after its step; it and the queue wait for the next server. Safe in a signal handler."""
        self._closing = True
        current = self._current
        if current is not None and not current.stop.is_set():
            current.stop.for_later = True
            current.stop.set()

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Begin to close, and wait for the thread."""
        self.begin_to_close()
        with self._lock:
            self._lock.notify_all()
        if self._thread.is_alive():
            self._thread.join(seconds)

    # ------------------------------------------------------------------ asking

    def runs(self) -> list[Run]:
        """Every readable run of the folder, newest first."""
        found = []
        for path in self.folder.iterdir():
            if SAFE_NAME.fullmatch(path.name) and (path / "run.json").is_file():
                try:
                    found.append((Run.open(path).description()["created"], path.name, Run(path)))
                except StorageError:
                    continue
        return [run for _, _, run in sorted(found, key=lambda item: item[:2], reverse=True)]

    def run(self, name: str) -> Run | None:
        """The run of that name, or None; names that could leave the folder are none."""
        if not SAFE_NAME.fullmatch(name):
            return None
        try:
            return Run.open(self.folder / name)
        except StorageError:
            return None

    def job(self, name: str) -> Job | None:
        """The queued or running job of that name."""
        with self._lock:
            if self._current is not None and self._current.name == name:
                return self._current
            return next((job for job in self._queue if job.name == name), None)

    def position(self, name: str) -> int | None:
        """0 for the running one, 1 for the next, ...; None when it is neither."""
        with self._lock:
            if self._current is not None and self._current.name == name:
                return 0
            return next((i for i, job in enumerate(self._queue, 1) if job.name == name), None)

    # ------------------------------------------------------------------ doing

    def submit(self, training: Training, settings: FitSettings, **extra: Any) -> Run:
        """Make a run folder and queue it."""
        with self._lock:
            if len(self._queue) >= MAX_QUEUED:
                raise ValueError(f"{MAX_QUEUED} runs are waiting; stop some first")
            folder = make_folder(Path(training.source).name, self.folder)
            run = Run.create(folder, training, replace(settings, out=None), **extra)
            self._queue.append(Job(run.folder.name))
            self._lock.notify_all()
        return run

    def resume(self, run: Run, settings: FitSettings) -> None:
        """Queue a stopped or finished run again, with a new budget."""
        with self._lock:
            if self.position(run.folder.name) is not None:
                raise ValueError("this run is waiting or running already")
            run.update(state="queued", reason="", settings=settings.to_dict())
            self._queue.append(Job(run.folder.name, settings))
            self._lock.notify_all()

    def stop(self, name: str) -> None:
        """End a running run after its step with what it found, or take a waiting one from the queue."""
        with self._lock:
            job = self.job(name)
            if job is None:
                return
            job.stop.set()
            if job in self._queue:
                self._queue.remove(job)
                run = self.run(name)
                if run is not None:
                    run.update(state="stopped", reason="stopped before it began")

    def _work(self) -> None:
        while True:
            with self._lock:
                while not self._queue and not self._closing:
                    self._lock.wait()
                if self._closing:
                    return
                job = self._current = self._queue.popleft()
            try:
                self._execute(job)
            finally:
                with self._lock:
                    job.version += 1
                    self._current = None

    def _execute(self, job: Job) -> None:
        run = self.run(job.name)
        if run is None:
            return

        def watch(progress: Any) -> None:
            job.latest = live_record(progress)
            job.version += 1

        try:
            execute(run, settings=job.settings, on_progress=watch, stop=job.stop)
        except Exception as error:  # noqa: BLE001  the page shows it; the queue goes on
            reason = " ".join(str(error).split())[:500]
            with suppress(StorageError):  # its folder may be gone, or the disk full: then nothing can be noted
                run.update(state="failed", reason=reason or type(error).__name__)


def live_record(progress: Any) -> dict[str, Any]:
    """A progress event for the page: the record, and each formula of the front typeset."""
    record = progress_record(progress)
    for item, member in zip(record["front"], progress.front, strict=True):
        item["mathml"] = typeset(member.expression)
    return record


@lru_cache(maxsize=512)
def typeset(expression: Expression) -> str:
    return str(expression.export("mathml"))


class Uploads:
    """Tables that were dropped on the page, kept as files so that a reload or a restart finds them again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "uploads"

    def add(self, data: bytes, name: str) -> str:
        from gmeql.model.files.storage import write_atomic

        self.folder.mkdir(parents=True, exist_ok=True)
        key = secrets.token_hex(8)
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(name.replace("\\", "/")).name).strip("-.")[-80:] or "table"
        write_atomic(self.folder / f"{key}-{stem}", data)
        for old in sorted(self.folder.iterdir(), key=lambda path: path.stat().st_mtime)[:-MAX_UPLOADS]:
            old.unlink(missing_ok=True)  # runs keep their own copy of the rows
        return key

    def find(self, key: str) -> tuple[str, bytes] | None:
        """(name, bytes) of an upload, or None."""
        if not re.fullmatch(r"[0-9a-f]{16}", key):
            return None
        for path in self.folder.glob(f"{key}-*"):
            return path.name.removeprefix(f"{key}-"), path.read_bytes()
        return None
