"""Progress and fronts as plain data: what the log of a run, `--json` and the web page's stream carry."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmeql.model.certainty.alternatives import alternatives
from gmeql.search.events import reason_text

if TYPE_CHECKING:
    from gmeql.formula.expression import Expression
    from gmeql.model.pareto.front import Front
    from gmeql.model.pareto.member import FrontMember
    from gmeql.search.events import Progress
    from gmeql.search.groups.table import OwnConstants

UNSEEN_COLUMNS = ("unseen_error", "unseen_standard_error", "pole", "stays_above", "stays_below")
LOG_SECONDS = 0.25  # a line of the log at most this often, unless the front changed


def alternative_records(front: Front, n: int = 10) -> list[dict[str, Any]]:
    """Formulas beside the chosen one, with their shares of the evidence; a ValueError where the loss has none."""
    return [
        {"weight": one.weight, "complexity": one.complexity, "loss": one.loss, "formula": str(one.expression)}
        for one in alternatives(front, n)
    ]


def alternatives_csv(records: Sequence[Mapping[str, Any]]) -> str:
    """The same as a table."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, ("weight", "complexity", "loss", "formula"), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return buffer.getvalue()


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
        **({"note": progress.note} if progress.note else {}),
    }


def member_record(member: Any) -> dict[str, Any]:
    """A member of a front as plain data: formula, loss, complexity, and what it promises on unseen rows where that is
    known; a loss that is not finite becomes None."""
    loss = float(member.loss)
    return {
        "formula": str(member.expression),
        "loss": loss if np.isfinite(loss) else None,
        "complexity": int(member.complexity),
        "outlook": None if member.outlook is None else member.outlook.to_dict(),
    }


def front_csv(front: Front) -> str:
    """The front as CSV: index, complexity, loss, score, formula, and what each promises on unseen rows: the error with
    its standard error, whether it has a pole, between which values it stays. What is not known or not finite is empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["index", "complexity", "loss", "score", "formula", *UNSEEN_COLUMNS])
    for member in front:
        figures = [member.index, member.complexity, repr(member.loss), f"{member.score:.6g}", str(member)]
        writer.writerow([*figures, *_unseen_cells(member)])
    return buffer.getvalue()


def groups_csv(own: OwnConstants, expression: Expression, n_columns: int) -> str:
    """The own constants of a formula as CSV, a line for each group."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    constants = own.of_formula(expression.root, n_columns)
    writer.writerow([own.column, *constants])
    for g, label in enumerate(own.labels):
        writer.writerow([label, *(repr(values[g]) for values in constants.values())])
    return buffer.getvalue()


def _unseen_cells(member: FrontMember) -> list[str]:
    if member.outlook is None:
        return [""] * len(UNSEEN_COLUMNS)
    known = member.outlook.to_dict()
    bounds = (known["low"], known["high"]) if member.outlook.bounds.finite else (None, None)
    numbers = ["" if value is None else repr(value) for value in (known["error"], known["standard_error"], *bounds)]
    return [*numbers[:2], "yes" if known["pole"] else "no", *numbers[2:]]


class ProgressLog:
    """Appends progress events to a log, one JSON object a line: when the front changes, and else a few times a second."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "a", encoding="utf-8")
        self._written_at = -np.inf
        self._front: tuple[tuple[int, float], ...] = ()

    def __enter__(self) -> ProgressLog:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, progress: Progress) -> None:
        """Write the event down, unless nothing new has happened for too short a time."""
        now = time.monotonic()
        front = tuple((int(member.complexity), float(member.loss)) for member in progress.front)
        if progress.done or front != self._front or now - self._written_at >= LOG_SECONDS:
            record = progress_record(progress)
            if front == self._front and not progress.done:
                del record["front"]  # the one before still holds
            self._file.write(json.dumps(record, ensure_ascii=False) + "\n")
            self._file.flush()
            self._written_at, self._front = now, front


def log_entries(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Log lines that are whole; one cut off by a kill is passed over."""
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and isinstance(entry.get("elapsed"), int | float):
            yield entry
