"""A run folder: all of a fit on disk, readable by people and enough to resume, predict and reproduce.

    run.json          settings, versions, seed, fingerprint of the data, state of the run
    data.parquet      the training rows as they were used
    progress.jsonl    one line per change of the front, or a few per second
    checkpoints/      states of the search, to resume from
    model.json        the model (`GMEQLRegressor.load`)
    front.csv         the front as a table
    report.html       the page to look at

Every file but the growing log is written beside its place and moved there, so a kill leaves the last good one.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from gmeql._version import versions
from gmeql.model.files.storage import StorageError, write_atomic
from gmeql.runs.records import log_entries
from gmeql.runs.settings import DEFAULT_SECONDS, ConfigError, FitSettings
from gmeql.tables.cells import Note
from gmeql.tables.training import Training

FORMAT = "gmeql-run"
VERSION = 1
MAX_LOG_LINES = 200_000
TAIL_BYTES = 2**18
STATES = ("queued", "running", "done", "stopped", "failed")
FIELDS = {"settings": dict, "versions": dict, "created": str, "reason": str, "state": str}
DATA_FIELDS = {"source": str, "target": str, "rows": int, "columns": list}
"""What run.json and its part on the data hold at least, and of which type."""


def default_folder(source: str, base: str | Path = "gmeql-runs") -> Path:
    """A fresh name under `base`: the data's name and the time."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(source).stem if source else "data").strip("-.") or "data"
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    folder = Path(base) / f"{stem[:60]}-{stamp}"
    number = 2
    while folder.exists():
        folder = Path(base) / f"{stem[:60]}-{stamp}-{number}"
        number += 1
    return folder


def make_folder(source: str, base: str | Path) -> Path:
    """The same, made at once: of two that ask at the same moment, each gets a folder of its own."""
    while True:
        folder = default_folder(source, base)
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        return folder


@dataclass(frozen=True)
class Run:
    """One run folder. Reading and writing only; `execute` does the work."""

    folder: Path

    # ------------------------------------------------------------------ making and opening

    @classmethod
    def create(cls, folder: str | Path, training: Training, settings: FitSettings, **extra: Any) -> Run:
        """Make the folder (which must not hold a run yet) with its data and description."""
        folder = Path(folder)
        run = cls(folder)
        if (folder / "run.json").exists():
            raise StorageError(
                f"{folder}: holds a run already; go on with 'gmeql resume {folder}' or choose another --out"
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomic(folder / "data.parquet", _pack(training))
        except OSError as error:
            raise StorageError(
                f"{folder}: cannot be written ({error.strerror or error}); choose another --out"
            ) from None
        run.write_description(
            {
                "format": FORMAT,
                "version": VERSION,
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
                "versions": versions(),
                "settings": settings.to_dict(),
                "seed": settings.seed,
                "data": {
                    "source": training.source,
                    "fingerprint": training.fingerprint,
                    "group_column": training.group_column,
                    "rows": len(training.y),
                    "columns": list(training.names),
                    "table_columns": None if training.table_names is None else list(training.table_names),
                    "target": training.target,
                    "weighted": training.weights is not None,
                    "y_errors": training.y_errors is not None,
                    "x_errors": training.x_errors is not None,
                    "notes": [[note.code, note.message, note.count] for note in training.notes],
                },
                "state": "queued",
                "reason": "",
                **extra,
            }
        )
        return run

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """An existing run folder; anything else is a `StorageError`."""
        run = cls(Path(folder))
        run.description()
        return run

    def description(self) -> dict[str, Any]:
        """The content of run.json, checked for shape."""
        path = self.folder / "run.json"
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise StorageError(f"{self.folder}: is not a run folder (no run.json); give the --out of a fit") from None
        except (OSError, ValueError) as error:
            raise StorageError(f"{path}: cannot be read ({error}); start a new run") from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise StorageError(f"{path}: is not the description of a run; give the --out of a fit")
        if not isinstance(content.get("version"), int) or content["version"] > VERSION:
            raise StorageError(f"{path}: was written by a newer gmeql; update with 'pip install -U gmeql'")
        data = content.get("data")
        if (
            not isinstance(data, dict)
            or not all(isinstance(content.get(name), kind) for name, kind in FIELDS.items())
            or not all(isinstance(data.get(name), kind) for name, kind in DATA_FIELDS.items())
            or content.get("state") not in STATES
        ):
            raise StorageError(f"{path}: is damaged; start a new run")
        return content

    def write_description(self, content: Mapping[str, Any]) -> None:
        self.write("run.json", json.dumps(content, indent=1, ensure_ascii=False).encode())

    def update(self, **changes: Any) -> None:
        """Change entries of run.json."""
        self.write_description(self.description() | changes)

    def write(self, name: str, data: bytes) -> Path:
        """Write one file of the folder atomically."""
        path = self.folder / name
        try:
            write_atomic(path, data)
        except OSError as error:
            raise StorageError(f"{path}: cannot be written ({error.strerror or error}); free some space") from None
        return path

    # ------------------------------------------------------------------ what it holds

    def settings(self) -> FitSettings:
        path = self.folder / "run.json"
        try:
            return FitSettings.from_dict(self.description()["settings"], str(path))
        except ConfigError as error:
            raise StorageError(str(error)) from None

    def training(self) -> Training:
        """The training rows; a `StorageError` when they are not those the run was started with."""
        data = self.description()["data"]
        path = self.folder / "data.parquet"
        training = _unpack(path, data)
        if training.fingerprint != data.get("fingerprint"):
            raise StorageError(f"{path}: is not the data that this run was started with; start a new run")
        return training

    def with_more_time(self, settings: FitSettings, seconds: float | None) -> FitSettings:
        """Settings whose budget ends `seconds` after what the run has spent; None: its rest, or as much again.

        A search counts its time from its first start on, over all resumes.
        """
        if settings.max_time is None and seconds is None:
            return settings
        spent = float((self.last_progress() or {}).get("elapsed", 0.0))
        if seconds is None and settings.max_time is not None and spent < 0.95 * settings.max_time:
            return settings
        return replace(settings, max_time=spent + (seconds if seconds is not None else DEFAULT_SECONDS))

    @property
    def continues(self) -> Path | None:
        """Folder of the run whose formulas this one keeps, beside it unless its whole path is given; None without."""
        earlier = self.description().get("continues")
        return self.folder.parent / str(earlier) if earlier else None

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def model_path(self) -> Path:
        return self.folder / "model.json"

    @property
    def log_path(self) -> Path:
        return self.folder / "progress.jsonl"

    def history(self) -> Iterator[dict[str, Any]]:
        """Lines of progress.jsonl, oldest first."""
        try:
            file = open(self.log_path, encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return
        with file:
            yield from itertools.islice(log_entries(file), MAX_LOG_LINES)

    def last_progress(self) -> dict[str, Any] | None:
        """The newest line of the log with the newest front, or None. Reads the end of the log only."""
        try:
            with open(self.log_path, "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
                lines = file.read().decode("utf-8", "replace").splitlines()
        except FileNotFoundError:
            return None
        newest: dict[str, Any] | None = None
        for entry in log_entries(reversed(lines)):
            newest = entry if newest is None else newest
            if "front" in entry:
                return newest | {"front": entry["front"]}
        return newest


def _pack(training: Training) -> bytes:
    """Columns by position, since names may be anything: x0.., y, weight, row."""
    import polars as pl

    columns: dict[str, Any] = {f"x{i}": column for i, column in enumerate(training.X.T)}
    columns["y"] = training.y
    if training.weights is not None:
        columns["weight"] = training.weights
    if training.groups is not None:
        columns["group"] = list(training.groups)
    if training.y_errors is not None:
        columns["y_error"] = training.y_errors
    if training.x_errors is not None:
        columns |= {f"x_error{i}": column for i, column in enumerate(training.x_errors.T)}
    columns["row"] = training.rows
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    return buffer.getvalue()


def _columns(frame: Any, name: str, count: int) -> np.ndarray:
    return np.ascontiguousarray(frame.select([f"{name}{i}" for i in range(count)]).to_numpy(), dtype=float)


def _unpack(path: Path, data: Mapping[str, Any]) -> Training:
    import polars as pl

    names = tuple(data.get("columns", ()))
    try:
        frame = pl.read_parquet(io.BytesIO(path.read_bytes()))
        X = _columns(frame, "x", len(names))
        weights = frame["weight"].to_numpy() if data.get("weighted") else None
        notes = tuple(Note(str(code), str(message), int(count)) for code, message, count in data.get("notes", ()))
        return Training(
            X,
            frame["y"].to_numpy(),
            names,
            data["target"],
            weights,
            frame["row"].to_numpy(),
            notes,
            str(data["source"]),
            tuple(map(str, data["table_columns"])) if data.get("table_columns") else None,
            tuple(frame["group"].to_list()) if data.get("group_column") else None,
            data.get("group_column"),
            frame["y_error"].to_numpy() if data.get("y_errors") else None,
            _columns(frame, "x_error", len(names)) if data.get("x_errors") else None,
        )
    except FileNotFoundError:
        raise StorageError(f"{path}: is missing; start a new run") from None
    except (pl.exceptions.PolarsError, OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path}: is damaged ({type(error).__name__}); start a new run") from None
