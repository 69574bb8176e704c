"""A run folder: all of a fit on disk, readable by people and enough to resume, predict and reproduce.

    run.json          settings, versions, seed, fingerprint of the data, state of the run
    data.parquet      the training rows as they were used
    progress.jsonl    one line per change of the front, or a few per second
    checkpoints/      states of the search, to resume from
    model.json        the model (`GMEQLRegressor.load`)
    front.csv         the front as a table
    report.html       the page to look at

Every file but the growing log is written beside its place and moved there, so a kill leaves the last good one.
`execute` is the one way to run a fit in a folder; the command line and the web page both call it.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import platform
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmeql.config import DEFAULT_SECONDS, ConfigError, FitSettings
from gmeql.steering import Steering, merge
from gmeql.storage import StorageError, write_atomic
from gmeql.tables import Note, Training

if TYPE_CHECKING:
    from gmeql.estimator import GMEQLRegressor
    from gmeql.front import Front
    from gmeql.search import Progress

FORMAT = "gmeql-run"
VERSION = 1
CHECKPOINT_SECONDS = 5.0  # a killed process loses at most this much of its search
LOG_SECONDS = 0.25  # a line of the log at most this often, unless the front changed
MAX_LOG_LINES = 200_000
TAIL_BYTES = 2**18
STATES = ("queued", "running", "done", "stopped", "failed")
REPORTED_PACKAGES = ("numpy", "scipy", "numba", "jax", "scikit-learn", "sympy", "polars")


def versions() -> dict[str, str]:
    """Versions of gmeql, Python and the packages that a result depends on."""
    from importlib.metadata import PackageNotFoundError, version

    from gmeql import __version__

    found = {"gmeql": __version__, "python": platform.python_version(), "platform": platform.platform()}
    for package in REPORTED_PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


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


def reason_text(reason: str) -> str:
    """Why a search ended, for people."""
    known = {
        "max_time": "time is up",
        "max_candidates": "all candidates are tried",
        "exact": "the formula is exact",
        "no gain": "nothing better for a long time",
    }
    return known.get(reason, str(reason))


def progress_record(progress: Progress) -> dict[str, Any]:
    """A progress event as plain data: what the log, `--json` and the web page's stream carry."""
    return {
        "elapsed": round(float(progress.elapsed), 3),
        "candidates": int(progress.candidates),
        "rate": round(float(progress.rate), 1),
        "islands": int(progress.islands),
        "best": member_record(progress.best) if progress.best is not None else None,
        "front": [member_record(member) for member in progress.front],
        "done": bool(progress.done),
        "reason": reason_text(progress.reason),
    }


def member_record(member: Any) -> dict[str, Any]:
    """Formula, loss and complexity of a member of a front as plain data; a loss that is not finite becomes None."""
    loss = float(member.loss)
    return {
        "formula": str(member.expression),
        "loss": loss if np.isfinite(loss) else None,
        "complexity": int(member.complexity),
    }


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
                    "rows": len(training.y),
                    "columns": list(training.names),
                    "target": training.target,
                    "weighted": training.weights is not None,
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
        except FileNotFoundError:
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
            or not isinstance(content.get("settings"), dict)
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
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def model_path(self) -> Path:
        return self.folder / "model.json"

    def history(self) -> Iterator[dict[str, Any]]:
        """Lines of progress.jsonl, oldest first."""
        try:
            file = open(self.folder / "progress.jsonl", encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return
        with file:
            yield from itertools.islice(_entries(file), MAX_LOG_LINES)

    def last_progress(self) -> dict[str, Any] | None:
        """The newest line of the log with the newest front, or None. Reads the end of the log only."""
        try:
            with open(self.folder / "progress.jsonl", "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
                lines = file.read().decode("utf-8", "replace").splitlines()
        except FileNotFoundError:
            return None
        newest: dict[str, Any] | None = None
        for entry in _entries(reversed(lines)):
            newest = entry if newest is None else newest
            if "front" in entry:
                return newest | {"front": entry["front"]}
        return newest


def _entries(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Log lines that are whole; one cut off by a kill is passed over."""
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and isinstance(entry.get("elapsed"), int | float):
            yield entry


def _pack(training: Training) -> bytes:
    """Columns by position, since names may be anything: x0.., y, weight, row."""
    import polars as pl

    columns: dict[str, Any] = {f"x{i}": column for i, column in enumerate(training.X.T)}
    columns["y"] = training.y
    if training.weights is not None:
        columns["weight"] = training.weights
    columns["row"] = training.rows
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    return buffer.getvalue()


def _unpack(path: Path, data: Mapping[str, Any]) -> Training:
    import polars as pl

    names = tuple(data.get("columns", ()))
    try:
        frame = pl.read_parquet(io.BytesIO(path.read_bytes()))
        X = np.ascontiguousarray(frame.select([f"x{i}" for i in range(len(names))]).to_numpy(), dtype=float)
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
        )
    except FileNotFoundError:
        raise StorageError(f"{path}: is missing; start a new run") from None
    except (pl.exceptions.PolarsError, OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path}: is damaged ({type(error).__name__}); start a new run") from None


class ProgressLog:
    """Appends progress events to progress.jsonl: when the front changes, and else a few times a second."""

    def __init__(self, run: Run) -> None:
        self._file = open(run.folder / "progress.jsonl", "a", encoding="utf-8")
        self._written_at = -np.inf
        self._front: tuple[tuple[int, float], ...] = ()

    def __enter__(self) -> ProgressLog:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, progress: Progress) -> None:
        now = time.monotonic()
        front = tuple((int(member.complexity), float(member.loss)) for member in progress.front)
        if progress.done or front != self._front or now - self._written_at >= LOG_SECONDS:
            record = progress_record(progress)
            if front == self._front and not progress.done:
                del record["front"]  # the one before still holds
            self._file.write(json.dumps(record, ensure_ascii=False) + "\n")
            self._file.flush()
            self._written_at, self._front = now, front


# ------------------------------------------------------------------------------------------------- running


class Stop(threading.Event):
    """A wish to end a run after its step. With `for_later` set, the run stays queued and its report is not written."""

    def __init__(self) -> None:
        super().__init__()
        self.for_later = False


@dataclass(frozen=True)
class Outcome:
    """What became of a run: a fitted model or None, how it ended, and where the report lies."""

    model: GMEQLRegressor | None
    state: str
    reason: str
    report: Path | None = None


def execute(
    run: Run,
    *,
    training: Training | None = None,
    settings: FitSettings | None = None,
    on_progress: Callable[[Progress], Any] | None = None,
    stop: Stop | None = None,
) -> Outcome:
    """Fit the run's data, from its newest checkpoint if there is one, and write model, front and report.

    `stop` ends the search after the step it is in; what was found is kept. `settings` may change the budget of a
    resumed run. Raises `StorageError` when the folder cannot be read or written; any other error of the fit is noted in
    run.json and raised again.
    """
    training = training if training is not None else run.training()
    settings = settings if settings is not None else run.settings()
    stop = stop if stop is not None else Stop()
    steering = Steering.of(settings, training.names)
    searched = steering.extend(training)
    run.update(state="running", reason="", settings=settings.to_dict(), pid=os.getpid())
    last: list[Progress] = []
    with ProgressLog(run) as log:

        def watch(progress: Progress) -> bool:
            progress = _written_out(progress, steering, training)
            last[:] = [progress]
            log.add(progress)
            if on_progress is not None:
                on_progress(progress)
            return stop.is_set()

        try:
            model = _fit(run, searched, settings, steering, watch)
        except Exception as error:
            run.update(state="failed", reason=f"{type(error).__name__}: {error}"[:500])
            if isinstance(error, ValueError) and last and not any(np.isfinite(m.loss) for m in last[0].front):
                return Outcome(None, "failed", "no formula was found")
            raise
    if steering.active or run.description().get("continues"):
        model = _steered_model(run, model, training, settings, steering)
    save_results(run, model)
    if stop.is_set() and stop.for_later:
        run.update(state="queued", reason="")
        return Outcome(model, "queued", "")
    state = "stopped" if stop.is_set() else "done"
    reason = "stopped" if stop.is_set() else reason_text(last[0].reason if last else "")
    run.update(state=state, reason=reason)
    return Outcome(model, state, reason, write_report(run, model, training))


def _fit(
    run: Run, searched: Training, settings: FitSettings, steering: Steering, watch: Callable[[Progress], bool]
) -> GMEQLRegressor:
    from gmeql.estimator import GMEQLRegressor

    options = settings.estimator_options()
    functions = steering.functions(settings.functions, standard_functions())
    options["functions"] = None if functions is None else list(functions)
    model = GMEQLRegressor(
        **options,
        verbose=0,
        checkpoint=str(run.checkpoints),
        checkpoint_interval=CHECKPOINT_SECONDS,
        callbacks=[watch],
    )
    return model.fit(frame_of(searched), searched.y, sample_weight=searched.weights)


def standard_functions() -> tuple[str, ...]:
    """Names of the functions that a search uses when none are given."""
    from gmeql.search import DEFAULT_FUNCTIONS

    return tuple(DEFAULT_FUNCTIONS)


def _written_out(progress: Progress, steering: Steering, training: Training) -> Progress:
    if not steering.active:
        return progress
    front = tuple(merge(progress.front, steering, training.names))
    return replace(progress, front=front, best=front[-1] if front else progress.best)


def _steered_model(
    run: Run, model: GMEQLRegressor, training: Training, settings: FitSettings, steering: Steering
) -> GMEQLRegressor:
    """The model over the real columns, with what an earlier run on the same data already knew."""
    from gmeql.estimator import GMEQLRegressor

    members = merge(model.front_, steering, training.names)
    earlier = run.description().get("continues")
    if earlier:
        members += merge(_known_members(run.folder.parent / str(earlier), training), steering, training.names)
    if not members:
        raise ConfigError("--forbid: every formula that was found holds something forbidden; give it more time")
    _save_front(run, training, settings, members, model.candidates_, model.seconds_)
    return GMEQLRegressor.load(run.model_path)


def _known_members(folder: Path, training: Training) -> list[Any]:
    """The front of an earlier run, if it was fitted to the same rows."""
    from gmeql.estimator import GMEQLRegressor

    try:
        earlier = Run.open(folder)
        if earlier.description()["data"].get("fingerprint") != training.fingerprint:
            return []
        return list(GMEQLRegressor.load(earlier.model_path).front_)
    except StorageError:
        return []


def _save_front(
    run: Run, training: Training, settings: FitSettings, members: list[Any], candidates: int, seconds: float
) -> Front:
    from gmeql.front import Front
    from gmeql.storage import StoredModel, save_model

    front = Front.from_members(
        members,
        rows=len(training.y),
        target_spread=float(training.y.std()),
        target_largest=float(np.abs(training.y).max()),
    )
    rule = settings.selection if settings.selection != "validation" else "best"
    save_model(
        run.model_path,
        StoredModel(
            parameters=settings.estimator_options(),
            feature_names=training.names,
            n_features=len(training.names),
            fronts=(front,),
            selected=(front.select(rule).index,),
            target_columns=None,
            candidates=int(candidates),
            seconds=float(seconds),
        ),
    )
    return front


def save_emergency(run: Run, training: Training, settings: FitSettings, progress: Progress) -> bool:
    """Write model and front from one progress event alone, for a process that must end now."""
    members = [member for member in progress.front if np.isfinite(member.loss)]
    if not members:
        return False
    front = _save_front(run, training, settings, members, progress.candidates, progress.elapsed)
    run.write("front.csv", front_csv(front).encode())
    run.update(state="stopped", reason="stopped")
    return True


def frame_of(training: Training) -> Any:
    """The training columns as a data frame with their names."""
    import polars as pl

    return pl.DataFrame(training.X, schema=[(name, pl.Float64) for name in training.names], orient="row")


def save_results(run: Run, model: GMEQLRegressor) -> None:
    """Write model.json and front.csv."""
    model.save(run.model_path)
    run.write("front.csv", front_csv(model.front_).encode())


def front_csv(front: Any) -> str:
    """The front as CSV: index, complexity, loss, score, formula."""
    import csv

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["index", "complexity", "loss", "score", "formula"])
    for member in front:
        writer.writerow([member.index, member.complexity, repr(member.loss), f"{member.score:.6g}", str(member)])
    return buffer.getvalue()


def write_report(run: Run, model: GMEQLRegressor, training: Training) -> Path:
    """Build report.html from the model and the folder."""
    from gmeql import report

    description = run.description()
    page = report.build(
        front=model.front_,
        selected=model.selected_index_,
        training=training,
        history=list(run.history()),
        settings=description["settings"],
        versions=description["versions"],
        created=description["created"],
        command=reproduce_command(description),
    )
    return run.write("report.html", page.encode())


def reproduce_command(description: Mapping[str, Any]) -> str:
    """A command line that repeats the run; by candidates where they are the budget, which repeats exactly."""
    import shlex

    settings = replace(FitSettings.from_dict(description["settings"]), out=None)
    words = ["gmeql", "fit", str(description["data"]["source"]), "--target", str(description["data"]["target"])]
    default = FitSettings()
    for key, value in settings.to_dict().items():
        if key in ("target", "out") or value is None or getattr(settings, key) == getattr(default, key):
            continue
        option = "--" + key.replace("_", "-")
        if value is True:
            words.append(option)
        elif value is False:
            words.append("--no-" + key.replace("_", "-"))
        elif key in ("pin", "forbid"):
            words += [word for item in value for word in (option, item)]
        else:
            words += [option, ",".join(_quoted(item) for item in value) if isinstance(value, list) else str(value)]
    return shlex.join(words + (["--seed", "0"] if settings.seed == 0 else []))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if "," in name or '"' in name else name
