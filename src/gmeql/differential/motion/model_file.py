"""Files of fitted motions: data, never code; the envelope is that of all model files."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gmeql.differential.motion.measured import Columns
from gmeql.differential.motion.systems import SystemFront, SystemMember
from gmeql.formula.expression import Expression
from gmeql.model.files.model_file import MAX_MODEL_BYTES, parse_payload, plain_parameters, whole_number, write_payload
from gmeql.model.files.storage import read_limited
from gmeql.model.pareto.front import Front

FORMAT, VERSION = "gmeql-dynamics", 1
FIELDS = {
    "parameters", "measured", "inputs", "order", "with_time", "fronts", "systems", "selected", "candidates", "seconds",
}  # fmt: skip
MOST_SYSTEMS = 1000


@dataclass(frozen=True)
class StoredMotion:
    """What a file holds: enough to simulate, print and inspect; not the trajectories."""

    parameters: Mapping[str, Any]
    columns: Columns
    fronts: tuple[Front, ...]
    systems: SystemFront
    selected: int
    candidates: int
    seconds: float


def save_motion(path: str | os.PathLike[str], motion: StoredMotion) -> None:
    """Write a fitted motion, atomically."""
    columns = motion.columns
    payload = {
        "parameters": dict(motion.parameters),
        "measured": list(columns.measured),
        "inputs": list(columns.inputs),
        "order": columns.order,
        "with_time": columns.with_time,
        "fronts": [front.to_dict() for front in motion.fronts],
        "systems": [
            {
                "equations": [equation.to_dict() for equation in member.equations],
                "loss": member.loss,
                "complexity": member.complexity,
                "score": member.score,
                "length": member.length,
            }
            for member in motion.systems
        ],
        "selected": motion.selected,
        "candidates": motion.candidates,
        "seconds": motion.seconds,
    }
    write_payload(path, payload, FORMAT, VERSION)


def load_motion(path: str | os.PathLike[str]) -> StoredMotion:
    """Read what `save_motion` wrote; anything wrong with the file is a `StorageError`."""
    return parse_payload(read_limited(path, MAX_MODEL_BYTES), str(path), FORMAT, VERSION, _from_payload)


def _from_payload(payload: Any) -> StoredMotion:
    if not isinstance(payload, dict) or set(payload) != FIELDS:
        raise ValueError(f"a motion's payload must have exactly the fields {sorted(FIELDS)}")
    measured, inputs = (_texts(payload[name], name) for name in ("measured", "inputs"))
    if not measured or type(payload["with_time"]) is not bool:
        raise ValueError("measured must name a state, and with_time be true or false")
    columns = Columns(measured, inputs, whole_number(payload["order"], "order", 1, 2), payload["with_time"])
    for name in ("fronts", "systems"):
        if not isinstance(payload[name], list) or not 1 <= len(payload[name]) <= MOST_SYSTEMS:
            raise ValueError(f"{name} must be a list of 1 to {MOST_SYSTEMS} entries")
    fronts = tuple(Front.from_dict(front) for front in payload["fronts"])
    members = tuple(_member(entry, k, columns) for k, entry in enumerate(payload["systems"]))
    expressions = [e for front in fronts for e in (member.expression for member in front)]
    expressions += [e for member in members for e in member.equations]
    if len(fronts) != len(measured) or any(e.names != columns.names for e in expressions):
        raise ValueError("the equations' columns differ from the states, inputs and time of the model")
    return StoredMotion(
        plain_parameters(payload["parameters"]),
        columns,
        fronts,
        SystemFront(members),
        whole_number(payload["selected"], "selected", 0, len(members) - 1),
        whole_number(payload["candidates"], "candidates", 0, 1 << 62),
        _number(payload["seconds"], "seconds"),
    )


def _member(entry: Any, index: int, columns: Columns) -> SystemMember:
    where = f"systems[{index}]"
    if not isinstance(entry, dict) or set(entry) != {"equations", "loss", "complexity", "score", "length"}:
        raise ValueError(f"{where} must have exactly the fields of a system")
    equations = entry["equations"]
    if not isinstance(equations, list) or len(equations) != len(columns.measured):
        raise ValueError(f"{where}.equations must be a list of {len(columns.measured)} expressions")
    return SystemMember(
        tuple(Expression.from_dict(equation) for equation in equations),
        _number(entry["loss"], f"{where}.loss"),
        whole_number(entry["complexity"], f"{where}.complexity", 0, 1 << 30),
        _number(entry["score"], f"{where}.score"),
        index,
        _number(entry["length"], f"{where}.length"),
    )


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > 1000 or not all(isinstance(name, str) for name in value):
        raise ValueError(f"{where} must be a list of texts")
    return tuple(value)


def _number(value: Any, where: str) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"{where} must be a finite number")
    return float(value)
