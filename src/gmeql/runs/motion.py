"""Laws of motion in folders of their own: trajectories of a table, model, report, and a record of how it went.

motion.json       states, source, state of the fit, equations
model.json        the model (`GMEQLDynamics.load`)
report.html       the page to look at
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmeql.model.storage import StorageError, parse_json, read_limited, write_atomic
from gmeql.runs.settings import ConfigError
from gmeql.tables.table import Table

if TYPE_CHECKING:
    from gmeql.differential.motion.dynamics import GMEQLDynamics

RECORD = "motion.json"
MOST_BYTES = 2**22


def trajectories(
    table: Table, time: str, states: Sequence[str], inputs: Sequence[str] = (), runs: str = ""
) -> tuple[Any, Any, Any]:
    """States, times and inputs of every run, of a single one without a list; rows with a missing cell are left out."""
    for name, option in ((time, "--time"), *((s, "--states") for s in states), *((i, "--inputs") for i in inputs)):
        table.column(name, option)
    numbers = table.matrix([time, *states, *inputs])
    label = table.column(runs, "--runs").values if runs else np.zeros(len(numbers))
    whole = np.isfinite(numbers).all(axis=1)
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


def write_motion(model: GMEQLDynamics, folder: Path, *, source: str, time: str, command: str = "") -> None:
    """Model and report of a fit."""
    from gmeql.report.motion import build

    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "model.json")
    created = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    page = build(model, source=source, created=created, command=command, time=time)
    write_atomic(folder / "report.html", page.encode())


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """How it goes."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / RECORD, json.dumps(dict(record), indent=1).encode())


def read_record(folder: Path) -> dict[str, Any] | None:
    """What `write_record` wrote; None where nothing readable is there."""
    try:
        found = parse_json(read_limited(folder / RECORD, MOST_BYTES), str(folder))
    except StorageError:
        return None
    wanted = {"state": str, "reason": str, "states": list, "source": str, "created": str, "equations": list}
    good = isinstance(found, dict) and all(isinstance(found.get(name), kind) for name, kind in wanted.items())
    return found if good else None
