"""One search from start to end: progress, callbacks, checkpoints, Ctrl-C. What the estimator does once per target.

A run never loses what it found: an interrupt ends it early, a full disk costs it the checkpoint, never the front.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gmeql.fitters.cpu import default_threads, is_compiled
from gmeql.model.checkpoint import CheckpointWarning, data_hash, load_checkpoint, save_checkpoint
from gmeql.model.front import Front
from gmeql.model.methods import METHODS
from gmeql.model.preparation import PreparedData
from gmeql.model.storage import StorageError
from gmeql.search.config import SearchConfig, stored_settings
from gmeql.search.events import Member, Progress
from gmeql.search.search import Search

CHECKPOINT_SECONDS = 30.0
BUDGET_FIELDS = ("max_time", "max_candidates")
"""Settings that may differ between a checkpoint and the run that resumes it."""
MACHINE_FIELDS = ("n_jobs", "device")
"""Settings that do not change what is found, only how fast."""

KEPT_MEMBERS = 1000
"""Formulas that were on the front for a while, kept beside it for `Front.others`."""
_CONTENT = {"data", "settings", "seed", "reason", "search", "history"}
"""Fields of a checkpoint."""

Callback = Callable[[Progress], Any]


class InterruptedWarning(UserWarning):
    """Ctrl-C ended a fit early; what was found is kept."""


@dataclass
class History:
    """The course of a run, one entry per progress event: time, candidates and smallest loss so far."""

    elapsed: list[float] = field(default_factory=list)
    candidates: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)

    def add(self, progress: Progress) -> None:
        self.elapsed.append(float(progress.elapsed))
        self.candidates.append(int(progress.candidates))
        self.loss.append(float(progress.front[-1].loss))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The history as `{"elapsed", "candidates", "loss"}`, one array each."""
        return {
            "elapsed": np.array(self.elapsed, dtype=float),
            "candidates": np.array(self.candidates, dtype=np.int64),
            "loss": np.array(self.loss, dtype=float),
        }

    @classmethod
    def from_arrays(cls, arrays: Any) -> History:
        return cls(arrays["elapsed"].tolist(), arrays["candidates"].tolist(), arrays["loss"].tolist())


@dataclass(frozen=True)
class RunResult:
    """What a run leaves behind."""

    front: Front
    history: History
    candidates: int
    seconds: float
    reason: str
    interrupted: bool
    state: dict[str, Any] | None
    """The search's state, to go on from; None when it was cut in the middle of a step."""


def run_search(
    data: PreparedData,
    *,
    method: str = "fitted",
    config: SearchConfig,
    seed: int,
    callbacks: Sequence[Callback] = (),
    checkpoint: Path | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    previous: RunResult | None = None,
) -> RunResult:
    """Search `data` until the budget of `config` is spent, a callback returns True, or Ctrl-C.

    With `checkpoint`, a folder, the state is saved there every `checkpoint_seconds` and at the end, and a state already
    there is continued. `previous` is an earlier run on the same data to go on from, with the budget on top of its own.
    """
    searcher = METHODS[method].load()
    if method == "fitted" and config.max_time is not None:
        load_kernels()
    keeper = _Keeper(searcher, data, config, seed, checkpoint, checkpoint_seconds)
    search, history = keeper.resume()
    if search is None and previous is not None and previous.state is not None:
        config, history = _extended(config, previous), previous.history
        search = searcher.from_state(previous.state, data.X, data.y, sample_weight=data.weight, config=config)
    if search is None:
        search = searcher(data.X, data.y, sample_weight=data.weight, names=data.names, config=config, seed=seed)
    last: Progress | None = None
    seen: dict[Any, Member] = {}
    reason = ""
    whole = True
    with _deferred_interrupt() as interrupt:
        events: Any = search.run()
        try:
            for event in () if keeper.is_complete(search) else events:
                last = data.restore_progress(event)
                history.add(last)
                if len(seen) < KEPT_MEMBERS:
                    seen |= {m.expression.root: m for m in last.front}
                if not last.done:
                    keeper.save_if_due(search, history)
                stop = [bool(callback(last)) for callback in callbacks]  # every callback sees every event
                if any(stop):
                    reason = "stopped by a callback"
                    break
                if interrupt.is_set():
                    reason = "interrupted"
                    break
        except KeyboardInterrupt:
            if last is None and not search.front:
                raise
            reason = "interrupted"
            whole = False
        finally:
            events.close()
        if whole and last is not None:
            keeper.save(search, history, last.reason)
        state = search.state() if whole else None
        if whole and reason:  # ended from outside: what lies in the islands still has to reach the front
            search.finish(reason)
    members = [data.restore_member(m) for m in search.front]
    for member in members:
        seen.pop(member.expression.root, None)
    front = Front.from_members(
        members,
        rows=data.rows,
        target_spread=data.target_spread,
        target_largest=data.target_largest,
        beaten=seen.values(),
    )
    return RunResult(
        front=front,
        history=history,
        candidates=int(search.candidates),
        seconds=float(search.elapsed),
        reason=reason or (last.reason if last is not None else keeper.reason),
        interrupted=reason == "interrupted",
        state=state,
    )


@lru_cache(maxsize=1)
def load_kernels() -> None:
    """Load the compiled parts of the search, or compile them where this machine never did (some twenty seconds, once).

    A smallest search calls all of them. Without it, the first fit would spend its `max_time` on the compiler. Numba
    compiles one function at a time, so the two large ones are compiled in two processes; both write to the cache.
    """
    rows = np.arange(1.0, 9.0)
    search = Search(rows[:, None], np.sin(rows), config=SearchConfig(max_candidates=1, n_jobs=1))
    if not is_compiled() and default_threads() > 1:
        with suppress(OSError), subprocess.Popen(
            [sys.executable, "-c", "from gmeql.fitters.cpu import compile_kernel; compile_kernel()"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ):  # fmt: skip
            search.draw_once()
    for _ in search.run():
        pass


class _Keeper:
    """Saves a search's state from time to time, and finds the one to continue."""

    def __init__(
        self, searcher: Any, data: PreparedData, config: SearchConfig, seed: int, folder: Path | None, interval: float
    ) -> None:
        self.searcher = searcher
        self.data = data
        self.config = config
        self.seed = seed
        self.folder = folder
        self.interval = interval
        self.saved_at = time.monotonic()
        self.reason = ""
        self.hash = data_hash(data.X, data.y, data.weight, data.names) if folder is not None else ""
        self.settings = {"search": searcher.__name__} | {
            f.name: repr(getattr(config, f.name))
            for f in fields(config)
            if f.name not in BUDGET_FIELDS + MACHINE_FIELDS
        }

    def resume(self) -> tuple[Search | None, History]:
        found = load_checkpoint(self.folder) if self.folder is not None else None
        if found is None:
            return None, History()
        content, problems = found
        for problem in problems:
            warnings.warn(f"{problem}; going back to the generation before", CheckpointWarning, stacklevel=4)
        if not isinstance(content, dict) or set(content) != _CONTENT:
            raise StorageError(f"{self.folder}: the checkpoint does not hold a search; choose another folder")
        if content["data"] != self.hash:
            raise StorageError(
                f"{self.folder}: the checkpoint belongs to another data set; choose another folder, or delete this one"
            )
        stored = stored_settings(content["settings"])
        for name, value in self.settings.items():
            if stored.get(name) != value:
                raise StorageError(
                    f"{self.folder}: the checkpoint was made with {name}={stored.get(name)}, this run has {value}; "
                    "use the same settings, or another folder"
                )
        try:
            search = self.searcher.from_state(
                content["search"], self.data.X, self.data.y, sample_weight=self.data.weight, config=self.config
            )
            history = History.from_arrays(content["history"])
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise StorageError(f"{self.folder}: the checkpoint's search cannot be continued ({error})") from error
        self.reason = str(content["reason"])
        return search, history

    def is_complete(self, search: Any) -> bool:
        """Whether the search that was resumed had ended, and the present budget gives it nothing more."""
        if not self.reason:
            return False
        config = self.config
        more_candidates = config.max_candidates is None or search.candidates < config.max_candidates
        # A search keeps the last tenth of its time for polishing, so one that ran out of time may have used less.
        more_time = config.max_time is None or search.elapsed < 0.85 * config.max_time
        return self.reason not in BUDGET_FIELDS or not (more_candidates and more_time)

    def save_if_due(self, search: Search, history: History) -> None:
        if self.folder is not None and time.monotonic() - self.saved_at >= self.interval:
            self.save(search, history)

    def save(self, search: Search, history: History, reason: str = "") -> None:
        if self.folder is None:
            return
        content = {
            "data": self.hash,
            "settings": self.settings,
            "seed": self.seed,
            "reason": reason,
            "search": search.state(),
            "history": history.to_arrays(),
        }
        try:
            save_checkpoint(self.folder, content)
        except OSError as error:
            warnings.warn(
                f"checkpoint in {self.folder} could not be written ({error.strerror or error}); the search goes on "
                "and keeps its result in memory",
                CheckpointWarning,
                stacklevel=4,
            )
        self.saved_at = time.monotonic()


@contextmanager
def _deferred_interrupt() -> Iterator[threading.Event]:
    """Hold back the first Ctrl-C until the search is between two steps; a second one acts at once.

    Only in the main thread and where nobody else handles the signal.
    """
    pressed = threading.Event()
    original = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or original is not signal.default_int_handler:
        yield pressed
        return

    def remember(signum: int, frame: Any) -> None:
        pressed.set()
        signal.signal(signal.SIGINT, original)

    signal.signal(signal.SIGINT, remember)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, original)


def _extended(config: SearchConfig, previous: RunResult) -> SearchConfig:
    """`config` with its budget counted from where `previous` ended."""
    changes: dict[str, Any] = {}
    if config.max_time is not None:
        changes["max_time"] = config.max_time + previous.seconds
    if config.max_candidates is not None:
        changes["max_candidates"] = config.max_candidates + previous.candidates
    return replace(config, **changes)


def share_budget(config: SearchConfig, targets_left: int, seconds_spent: float, candidates_spent: int) -> SearchConfig:
    """The budget of the next of several targets: an even share of what the earlier ones left, at least one step."""
    changes: dict[str, Any] = {}
    if config.max_time is not None:
        changes["max_time"] = max((config.max_time - seconds_spent) / targets_left, 1e-3)
    if config.max_candidates is not None:
        changes["max_candidates"] = max(math.ceil((config.max_candidates - candidates_spent) / targets_left), 1)
    return replace(config, **changes)
