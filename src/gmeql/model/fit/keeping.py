"""What is kept of a running search: its course, and checkpoints to go on from."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node
from gmeql.formula.plain import from_plain, to_plain
from gmeql.model.files.checkpoint import CheckpointWarning, data_hash, load_checkpoint, save_checkpoint
from gmeql.model.files.storage import StorageError
from gmeql.model.fit.preparation import PreparedData
from gmeql.search.config import SearchConfig, stored_settings
from gmeql.search.events import Member, Progress

BUDGET_FIELDS = ("max_time", "max_candidates")
"""Settings that may differ between a checkpoint and the run that resumes it."""
MACHINE_FIELDS = ("n_jobs", "device")
"""Settings that do not change what is found, only how fast."""
DERIVED_FIELDS = ("most_summed",)
"""Settings that follow from others; earlier versions did not have them."""
TUNED_FIELDS = (
    "front", "clock", "most_boost", *(f.name for f in fields(SearchConfig) if "device_" in f.name or "looker" in f.name)
)  # fmt: skip
"""Numbers that nobody gives and that versions differ in: from when a formula is taken for right, how time is shared, how much
accelerators and processes beside the search do. A search goes on with today's."""
SEARCHED_SHARE = 0.85
"""A search keeps the end of its time for polishing, so one that ran out of time may have used only this share."""
CONTENT = {"data", "settings", "seed", "reason", "search", "history"}
OPTIONAL_CONTENT = {"seen"}  # earlier versions did not keep it
"""Fields of a checkpoint."""


@dataclass
class History:
    """The course of a run, one entry per progress event: time, candidates and smallest loss so far."""

    elapsed: list[float] = field(default_factory=list)
    candidates: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)

    def add(self, progress: Progress) -> None:
        self.elapsed.append(float(progress.elapsed))
        self.candidates.append(int(progress.candidates))
        loss = float(progress.front[-1].loss)
        self.loss.append(min(loss, self.loss[-1]) if self.loss else loss)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The history as `{"elapsed", "candidates", "loss"}`, one array each."""
        return {
            "elapsed": np.array(self.elapsed, dtype=float),
            "candidates": np.array(self.candidates, dtype=np.int64),
            "loss": np.array(self.loss, dtype=float),
        }

    @classmethod
    def from_arrays(cls, arrays: Any) -> History:
        return cls(arrays["elapsed"].tolist(), arrays["candidates"].tolist(), arrays["loss"].tolist())


class Keeper:
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
        self.seen: dict[Node, Member] = {}
        """Formulas that were on the front for a while, by their trees."""
        known = (data.X, data.y, data.weight, data.names, data.groups, data.errors)
        self.hash = data_hash(*known) if folder is not None else ""
        self.settings = {"search": searcher.__name__} | {
            f.name: repr(getattr(config, f.name))
            for f in fields(config)
            if f.name not in BUDGET_FIELDS + MACHINE_FIELDS + DERIVED_FIELDS + TUNED_FIELDS
        }

    def resume(self) -> tuple[Any, History]:
        """The search of the newest checkpoint, None where there is none, and its course so far."""
        found = load_checkpoint(self.folder) if self.folder is not None else None
        if found is None:
            return None, History()
        content, problems = found
        for problem in problems:
            warnings.warn(f"{problem}; going back to the generation before", CheckpointWarning, stacklevel=4)
        if not isinstance(content, dict) or set(content) - OPTIONAL_CONTENT != CONTENT:
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
                content["search"], self.data.X, self.data.y, config=self.config, **self.data.row_options
            )
            history = History.from_arrays(content["history"])
            for plain, loss in content.get("seen", []):
                expression = Expression(from_plain(plain)[0], self.data.names)
                self.seen[expression.root] = Member(expression, float(loss), expression.complexity)
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
        more_time = config.max_time is None or search.elapsed < SEARCHED_SHARE * config.max_time
        return self.reason not in BUDGET_FIELDS or not (more_candidates and more_time)

    def save_if_due(self, search: Any, history: History) -> None:
        """Save when the last time is long enough ago."""
        if self.folder is not None and time.monotonic() - self.saved_at >= self.interval:
            self.save(search, history)

    def save(self, search: Any, history: History, reason: str = "") -> None:
        """Save now; a disk that refuses, or a state too large for a file, costs a warning, not the search."""
        if self.folder is None:
            return
        content = {
            "data": self.hash,
            "settings": self.settings,
            "seed": self.seed,
            "reason": reason,
            "search": search.state(),
            "history": history.to_arrays(),
            "seen": [[to_plain(root, ()), member.loss] for root, member in self.seen.items()],
        }
        try:
            save_checkpoint(self.folder, content)
        except (OSError, StorageError) as error:
            why = error.strerror if isinstance(error, OSError) else None
            warnings.warn(
                f"checkpoint in {self.folder} could not be written ({why or error}); the search goes on "
                "and keeps its result in memory",
                CheckpointWarning,
                stacklevel=5,
            )
        self.saved_at = time.monotonic()
