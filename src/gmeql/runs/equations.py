"""Differential equations in folders of their own: what a table holds for them, model, report, how it went.

equations.json    kind, table, state of the run, as the page lists it
result.json       what was found, as `--json` prints it
log.txt           what the command said
model.json        the model (`GMEQLDynamics.load`, `GMEQLField.load`)
report.html       the page to look at
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from gmeql.model.files.storage import StorageError, parse_json, read_limited, write_atomic
from gmeql.runs.settings import ConfigError
from gmeql.tables.read import read
from gmeql.tables.table import Table

RECORD, RESULT, LOG, REPORT = "equations.json", "result.json", "log.txt", "report.html"
MOST_BYTES = 2**24
TAIL_BYTES = 2**14
FIELDS = {"kind": str, "state": str, "reason": str, "title": str, "source": str, "created": str, "max_time": float}
"""What a record holds, and of which type."""


def trajectories(
    table: Table, time: str, states: Sequence[str], inputs: Sequence[str] = (), runs: str = ""
) -> tuple[Any, Any, Any]:
    """States, times and inputs of every run, of a single one without a list; rows with a missing cell are left out.

    Times that are dates count the days since the first.
    """
    for name, option in ((time, "--time"), *((s, "--states") for s in states), *((i, "--inputs") for i in inputs)):
        table.column(name, option)
    if time in states:
        raise ConfigError(f"{table.source}: --states names {time!r}, the times; name what moves")
    both = [name for name in inputs if name in states]
    if both:
        raise ConfigError(f"{table.source}: --inputs names {both[0]!r}, a state; name what acts from outside")
    moving = table.matrix([*states, *inputs], mend="mend the cell, or leave it empty (its row is then left out)")
    numbers = np.column_stack([_times(table, time), moving])
    label = np.array(table.column(runs, "--runs").words() if runs else ["all"] * len(numbers))
    whole = np.isfinite(numbers).all(axis=1) & (label != "")
    X, t, u = [], [], []
    for value in dict.fromkeys(label[whole].tolist()):
        rows = numbers[whole & (label == value)]
        t.append(rows[:, 0])
        X.append(rows[:, 1 : 1 + len(states)])
        u.append(rows[:, 1 + len(states) :])
    if not X:
        raise ConfigError(f"{table.source}: no row has a time and every state; fill the gaps or name other columns")
    if len(X) == 1:
        return X[0], t[0], u[0] if inputs else None
    return X, t, u if inputs else None


def time_name(table: Table, time: str) -> str:
    """What the times of `trajectories` count."""
    days = table.column(time, "--time").days()
    return time if days is None else f"days of {days.name}"


def _times(table: Table, time: str) -> np.ndarray:
    days = table.column(time, "--time").days()
    return table.matrix([time], mend="mend the cell")[:, 0] if days is None else days.values


# --- fields on a grid ------------------------------------------------------------------------------------------------

Gridded = tuple[dict[str, Any], list[Any], Any]
"""Fields [*space, T] by name, the coordinates of each axis of space, the times."""


def read_gridded(
    path: str, space: Sequence[str], time: str, fields: Sequence[str] = (), *, read: Callable[[str], Table] = read
) -> Gridded:
    """Fields from a file of arrays (.npz), or from a table with a row for each point, which `read` reads; `fields` are
    all others if none are named."""
    if Path(path).suffix.lower() in (".npz", ".npy"):
        return _arrays(path, space, time, fields)
    return gridded(read(path), space, time, fields)


def gridded(table: Table, space: Sequence[str], time: str, fields: Sequence[str] = ()) -> Gridded:
    """Fields of a table in long form: a row for each point of the grid and each time, in any order."""
    axes = [*space, time]
    for name, option in ((time, "--time"), *((s, "--space") for s in space)):
        table.column(name, option)
    chosen = list(fields) or [column.name for column in table.columns if column.name not in axes]
    if not chosen or len(set(axes)) < len(axes) or set(axes) & set(chosen):
        raise ConfigError(f"{table.source}: name the axes of space, the times and at least one field, each column once")
    for name in chosen:
        table.column(name, "--fields")
    mend = "mend the cell; a grid needs every field at every point"
    numbers = table.matrix([*space, *chosen], mend=mend)
    numbers = np.insert(numbers, len(space), _times(table, time), axis=1)
    broken = ~np.isfinite(numbers).all(axis=1)
    if broken.any():
        row = int(table.rows[np.argmax(broken)])
        raise ConfigError(f"{table.source}, row {row}: a cell is empty; a grid needs every field at every point")
    found = [np.unique(column, return_inverse=True) for column in numbers[:, : len(axes)].T]
    shape = tuple(len(values) for values, _ in found)
    places = np.ravel_multi_index([place for _, place in found], shape)
    if len(numbers) != np.prod(shape) or len(np.unique(places)) != len(places):
        sizes = " x ".join(f"{size} {name}" for size, name in zip(shape, axes, strict=True))
        raise ConfigError(
            f"{table.source}: {sizes} are {int(np.prod(shape)):,} points, and the table has {len(numbers):,} rows "
            f"at {len(np.unique(places)):,} of them; give one row for each point and time"
        )
    values = np.empty((len(chosen), len(numbers)))
    values[:, places] = numbers[:, len(axes) :].T
    coordinates = [values for values, _ in found]
    by_name = {name: array.reshape(shape) for name, array in zip(chosen, values, strict=True)}
    return by_name, coordinates[:-1], coordinates[-1]


def _arrays(path: str, space: Sequence[str], time: str, fields: Sequence[str]) -> Gridded:
    """The same of a file of arrays; nothing in it is unpickled."""
    try:
        with np.load(path, allow_pickle=False) as held:
            if not hasattr(held, "files"):
                raise ConfigError(f"{path}: holds one array without a name; write it with numpy.savez(u=, x=, t=)")
            arrays = {name: held[name] for name in held.files}
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except ConfigError:
        raise
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, AttributeError):
        raise ConfigError(f"{path}: is no file of arrays; write one with numpy.savez(u=, x=, t=)") from None
    chosen = list(fields) or [name for name in arrays if name not in (*space, time)]
    for name, option in ((time, "--time"), *((s, "--space") for s in space), *((f, "--fields") for f in chosen)):
        if name not in arrays:
            raise ConfigError(f"{path}: {option} names {name!r}; the file holds {', '.join(arrays) or 'nothing'}")
    return {name: arrays[name] for name in chosen}, [arrays[name] for name in space], arrays[time]


# --- what a run leaves -----------------------------------------------------------------------------------------------


def write_report(found: Any, folder: Path, build: Callable[..., str], **told: Any) -> None:
    """Model, where `found` is one, and report of what was found; `build` makes the page and is `told` the rest."""
    folder.mkdir(parents=True, exist_ok=True)
    if hasattr(found, "save"):
        found.save(folder / "model.json")
    created = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    write_atomic(folder / REPORT, build(found, created=created, **told).encode())


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """How it goes."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / RECORD, json.dumps(dict(record), indent=1).encode())


def read_record(folder: Path) -> dict[str, Any] | None:
    """What `write_record` wrote; None where nothing readable is there."""
    found = _read_object(folder / RECORD)
    good = found is not None and all(isinstance(found.get(name), kind) for name, kind in FIELDS.items())
    return found if good else None


def read_result(folder: Path) -> dict[str, Any]:
    """What was found; empty while nothing is."""
    return _read_object(folder / RESULT) or {}


def _read_object(path: Path) -> dict[str, Any] | None:
    try:
        found = parse_json(read_limited(path, MOST_BYTES), str(path))
    except StorageError:
        return None
    return found if isinstance(found, dict) else None


def last_line(folder: Path) -> str:
    """The last line of what the command said; empty where it said nothing."""
    try:
        with open(folder / LOG, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
