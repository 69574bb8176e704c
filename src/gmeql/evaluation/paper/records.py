"""Records: one JSON line per finished cell, appended and flushed, so that a killed run loses at most its last line.

A record holds the cell, the method's config, versions, the sampled curve, the final expression, its errors, whether it
is solved (`judging.SOLVED_RULE`) and has the truth's structure (`judging.STRUCTURE_RULE`), and what it cost.
Tables and figures are pure functions of records.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gmeql._version import versions
from gmeql.evaluation.baselines import mean_absolute_error
from gmeql.evaluation.paper.cells import Cell, table, test_table
from gmeql.evaluation.paper.judging import judge_expression, judge_structure
from gmeql.evaluation.paper.methods import METHODS
from gmeql.evaluation.paper.train import TrainedCell
from gmeql.fitters.threads import available_cores
from gmeql.formula.expression import Expression

Record = dict[str, Any]
FILE = "records.jsonl"


def device() -> str:
    """Where the arrays of JAX live, if it is loaded."""
    import sys

    if "jax" not in sys.modules:
        return f"{available_cores()} CPU cores"
    import jax

    return str(jax.devices()[0].device_kind)


def record_of(trained: TrainedCell, *, where: str | None = None) -> Record:
    """Judge a trained cell and make its record."""
    cell = trained.cell
    X, y = table(cell)
    X_test, y_test = test_table(cell)
    verdict, judged = judge_expression(trained.expression, cell, X, y)
    best = verdict.solved or judge_structure(trained.expression, cell, X, y)[0].solved
    mode: bool | None = None
    if trained.mode is not None:
        same = best and _wiring(trained.mode) == _wiring(trained.expression)
        mode = same or judge_structure(trained.mode, cell, X, y)[0].solved
    return {
        "key": cell.key,
        "cell": dataclasses.asdict(cell),
        "status": "done",
        "solved": verdict.solved,
        "structure": bool(best or mode),
        "structure_best": best,
        "structure_mode": mode,
        "reason": verdict.reason,
        "relative_rmse": _number(verdict.relative_rmse),
        "train_mae": _number(mean_absolute_error(trained.expression, X, y)),
        "test_mae": _number(mean_absolute_error(trained.expression, X_test, y_test)),
        "curve": {
            "unit": METHODS[cell.method].unit,
            "candidates": list(trained.candidates),
            "mae": [_number(m) for m in trained.mae],
        },
        "candidates": trained.total,
        "seconds": trained.seconds,
        "batch": trained.batch,
        "text": str(trained.expression)[:2000],
        "judged": str(judged)[:2000],
        "mode": None if trained.mode is None else str(trained.mode)[:2000],
        "expression": trained.expression.to_dict(),
        "complexity": trained.expression.complexity,
        "config": plain(trained.config),
        "versions": versions("gplearn"),
        "device": where or device(),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _wiring(expression: Expression) -> Expression:
    """The expression with all constants alike."""
    return expression.with_constants((1.0,) * len(expression.constants))


def failure_of(cell: Cell, error: str, attempts: int) -> Record:
    """The record of a cell that died; it counts as missing, so the next start tries again."""
    return {
        "key": cell.key,
        "cell": dataclasses.asdict(cell),
        "status": "failed",
        "error": error[:500],
        "attempts": attempts,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def plain(value: Any) -> Any:
    """Settings as JSON holds them: tuples become lists, numbers that are not finite their name."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def _number(value: float) -> float | None:
    """JSON has no infinity: what is not finite is null."""
    return float(value) if math.isfinite(value) else None


# --- the file ---------------------------------------------------------------------------------------------------


def append(folder: Path, records: Iterable[Record]) -> None:
    """Add lines and make sure they are on the disk."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    torn = path.exists() and path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n")
    with path.open("a", encoding="utf-8") as file:
        if torn:  # a kill in mid-line: what follows must start on its own line
            file.write("\n")
        for record in records:
            file.write(json.dumps(record, allow_nan=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def load(folder: Path) -> dict[str, Record]:
    """Records by key, a finished one before a failed one; lines that are not whole records are passed over."""
    found: dict[str, Record] = {}
    path = folder / FILE
    if not path.exists():
        return found
    with path.open(encoding="utf-8") as file:
        for line in file:
            try:
                record = json.loads(line)
                key, status = record["key"], record["status"]
            except (json.JSONDecodeError, KeyError, TypeError):
                continue
            if status == "done" or found.get(key, {}).get("status") != "done":
                found[key] = record
    return found


def checksum(folder: Path) -> str:
    """SHA-256 of the records' contents, in the order of their keys and without dates and times of day."""
    digest = hashlib.sha256()
    for key, record in sorted(load(folder).items()):
        kept = {name: value for name, value in record.items() if name not in ("written", "seconds")}
        digest.update(json.dumps([key, kept], sort_keys=True).encode())
    return digest.hexdigest()


def select(records: dict[str, Record], cells: Sequence[Cell]) -> list[Record]:
    """The finished records of some cells, in their order."""
    return [records[cell.key] for cell in cells if records.get(cell.key, {}).get("status") == "done"]
