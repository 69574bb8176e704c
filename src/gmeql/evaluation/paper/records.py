"""Records: one JSON line per finished cell, appended and flushed, so that a killed run loses at most its last line.

A record holds the cell, the method's config, versions, the sampled curve, the final expression, its errors, whether it
is solved, and what it cost. Tables and figures are pure functions of records.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from gmeql._version import versions
from gmeql.evaluation.baselines import mean_absolute_error, refit
from gmeql.evaluation.paper.cells import UNITS, Cell, Outcome, table, test_table
from gmeql.evaluation.problems import Verdict, judge, paper_problem
from gmeql.formula.expression import Expression

Record = dict[str, Any]
FILE = "records.jsonl"
MAX_JUDGED_CONSTANTS = 40
"""An expression with more constants than this is not the truth of any of the eight problems."""
NEAR = 0.1
"""A run counts only if its own final expression came this near: RMSE on the training rows in units of std(y), the
noise not counted."""
EXACT = 1e-9
"""RMSE, in units of std(y), that the refitted expression must reach on noise-free training rows."""
HOPELESS = 1e-6
"""RMSE on the noise-free test rows, in units of std(y), beyond which no cutting makes a refitted expression the truth;
under noise, the noise itself: a formula that holds the truth ends well below it."""
SOLVED_RULE = (
    "solved: the final expression has an RMSE below a tenth of the standard deviation on the training rows; with its "
    "constants refitted in double precision, and nothing else changed, it fits them exactly; and without terms that "
    "carry nothing it equals the truth on 10,000 fresh points to 1e-8 of the standard deviation and is no longer than "
    "needed (with noise: it has the truth's structure). The same rule for every method."
)


def device() -> str:
    """Where the arrays of JAX live, if it is loaded."""
    import sys

    if "jax" not in sys.modules:
        return f"{os.cpu_count()} CPU cores"
    import jax

    return str(jax.devices()[0].device_kind)


def record_of(outcome: Outcome, *, where: str | None = None) -> Record:
    """Judge an outcome and make its record."""
    cell = outcome.cell
    X, y = table(cell)
    X_test, y_test = test_table(cell)
    verdict, judged = judge_expression(outcome.expression, cell, X, y)
    return {
        "key": cell.key,
        "cell": dataclasses.asdict(cell),
        "status": "done",
        "solved": verdict.solved,
        "reason": verdict.reason,
        "relative_rmse": _number(verdict.relative_rmse),
        "train_mae": _number(mean_absolute_error(outcome.expression, X, y)),
        "test_mae": _number(mean_absolute_error(outcome.expression, X_test, y_test)),
        "curve": {
            "unit": UNITS[cell.method],
            "candidates": list(outcome.candidates),
            "mae": [_number(m) for m in outcome.mae],
        },
        "candidates": outcome.total,
        "seconds": outcome.seconds,
        "batch": outcome.batch,
        "text": str(outcome.expression)[:2000],
        "judged": str(judged)[:2000],
        "expression": outcome.expression.to_dict(),
        "complexity": outcome.expression.complexity,
        "config": plain(outcome.config),
        "versions": versions("gplearn"),
        "device": where or device(),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }


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


def judge_expression(expression: Expression, cell: Cell, X: np.ndarray, y: np.ndarray) -> tuple[Verdict, Expression]:
    """Decide `SOLVED_RULE` for an expression: refit, cut what carries nothing, compare with the truth."""
    problem = paper_problem(cell.problem)
    if len(expression.constants) > MAX_JUDGED_CONSTANTS:
        return _unsolved(f"{len(expression.constants)} constants", expression, cell), expression
    with np.errstate(all="ignore"):
        distance = float(np.sqrt(np.mean((expression(X) - y) ** 2)) / np.std(y))
    if not distance < NEAR + cell.noise / float(np.std(y)):
        return _unsolved(f"the run ended {distance:.2g} std(y) from the data", expression, cell), expression
    if expression.is_protected:
        with np.errstate(all="ignore"):
            same = np.allclose(expression.natural()(X), expression(X), rtol=1e-9, atol=1e-9)
        if not same:
            return _unsolved("a protected function acts outside its domain", expression, cell), expression
        expression = expression.natural()
    fitted = refit(expression, X, y)
    loss = _mean_square(fitted, X, y)
    verdict = _unsolved("the refitted expression is not the truth", fitted, cell)
    if not verdict.relative_rmse < (cell.noise / float(np.std(y)) if cell.noise else HOPELESS):
        return verdict, fitted  # and a long expression is spared minutes of algebra
    if not cell.noise and not math.sqrt(loss) < EXACT * float(np.std(y)):
        return judge(fitted, problem), fitted
    first: tuple[Verdict, Expression] | None = None
    for candidate in (fitted, *_without_ballast(fitted, loss, X, y)):
        verdict = judge(candidate, problem, noise_std=cell.noise)
        if verdict.solved:
            return verdict, candidate
        first = first or (verdict, candidate)
    assert first is not None  # the fitted expression itself was judged
    return first


def _unsolved(reason: str, expression: Expression, cell: Cell) -> Verdict:
    """The verdict on an expression that cannot be the truth, with its error on the test rows."""
    X, y = test_table(cell)
    with np.errstate(all="ignore"):
        error = (expression(X) - y) / float(np.std(y))
        return Verdict(False, reason, float(np.max(np.abs(error))), float(np.sqrt(np.mean(error**2))))


def _mean_square(expression: Expression, X: np.ndarray, y: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        loss = float(np.mean((expression(X) - y) ** 2))
    return loss if math.isfinite(loss) else math.inf


def _without_ballast(fitted: Expression, loss: float, X: np.ndarray, y: np.ndarray) -> Iterator[Expression]:
    """Shorter forms of a fitted expression. Cutting cannot improve a fit: what fits better has become another formula,
    found by the cutting and not by the method, and is left out."""
    from gmeql.search import polish

    rows = polish.Rows.of(X, y, None, fitted.names)
    least = 0.99 * loss if loss > rows.floor else 0.0
    found = [scored for scored in polish.prune(fitted.root, rows) if scored.loss >= least]
    for scored in sorted(found, key=lambda s: s.length)[:3]:
        yield Expression(scored.root, fitted.names)


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
