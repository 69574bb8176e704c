"""Files of fitted laws of fields: data, never code; the envelope is that of all model files."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gmeql.model.files.model_file import MAX_MODEL_BYTES, parse_payload, plain_parameters, whole_number, write_payload
from gmeql.model.files.storage import read_limited
from gmeql.model.pareto.front import Front

FORMAT, VERSION = "gmeql-field", 1
ENTRIES = {"parameters", "fields", "columns", "order", "periodic", "noise", "fronts", "selected"}
MOST_FIELDS, MOST_AXES, MOST_ORDER = 100, 3, 6


@dataclass(frozen=True)
class StoredField:
    """What a file holds: laws, and what it takes to apply them to other data; not the data."""

    parameters: Mapping[str, Any]
    fields: tuple[str, ...]
    columns: tuple[str, ...]
    order: int
    periodic: tuple[bool, ...]
    noise: tuple[float, ...]
    fronts: tuple[Front, ...]
    selected: tuple[int, ...]


def save_field(path: str | os.PathLike[str], field: StoredField) -> None:
    """Write fitted laws, atomically."""
    payload = {
        "parameters": dict(field.parameters),
        "fields": list(field.fields),
        "columns": list(field.columns),
        "order": field.order,
        "periodic": list(field.periodic),
        "noise": list(field.noise),
        "fronts": [front.to_dict() for front in field.fronts],
        "selected": list(field.selected),
    }
    write_payload(path, payload, FORMAT, VERSION)


def load_field(path: str | os.PathLike[str]) -> StoredField:
    """Read what `save_field` wrote; anything wrong with the file is a `StorageError`."""
    return parse_payload(read_limited(path, MAX_MODEL_BYTES), str(path), FORMAT, VERSION, _from_payload)


def _from_payload(payload: Any) -> StoredField:
    if not isinstance(payload, dict) or set(payload) != ENTRIES:
        raise ValueError(f"a field's payload must have exactly the entries {sorted(ENTRIES)}")
    fields = _listed(payload, "fields", str, 1, MOST_FIELDS)
    columns = _listed(payload, "columns", str, len(fields), 10_000)
    periodic = _listed(payload, "periodic", bool, 1, MOST_AXES)
    noise = _listed(payload, "noise", float, len(fields), len(fields))
    fronts = tuple(Front.from_dict(front) for front in _listed(payload, "fronts", dict, len(fields), len(fields)))
    places = _listed(payload, "selected", int, len(fields), len(fields))
    if not all(math.isfinite(sigma) and sigma >= 0 for sigma in noise):
        raise ValueError("noise must be finite and not negative")
    if any(member.expression.names != columns for front in fronts for member in front):
        raise ValueError("the laws' columns differ from those of the model")
    return StoredField(
        plain_parameters(payload["parameters"]),
        fields,
        columns,
        whole_number(payload["order"], "order", 1, MOST_ORDER),
        periodic,
        noise,
        fronts,
        tuple(whole_number(k, "selected", 0, len(front) - 1) for k, front in zip(places, fronts, strict=True)),
    )


def _listed(payload: Mapping[str, Any], name: str, kind: type, least: int, most: int) -> tuple[Any, ...]:
    value = payload[name]
    if not isinstance(value, list) or not least <= len(value) <= most or not all(type(v) is kind for v in value):
        raise ValueError(f"{name} must be a list of {least} to {most} entries of type {kind.__name__}")
    return tuple(value)
