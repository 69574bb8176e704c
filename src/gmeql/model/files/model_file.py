"""Model files: one JSON object `{"format", "version", "gmeql", "checksum", "payload"}`, checked field by field."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from gmeql.formula.expression import Expression
from gmeql.model.certainty.intervals import PredictionBasis
from gmeql.model.files.storage import (
    StorageError,
    canonical_json,
    check_version,
    parse_json,
    read_limited,
    short_text,
    write_atomic,
)
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.search.groups.table import OwnConstants

Model = TypeVar("Model")
MODEL_FORMAT = "gmeql-model"
MODEL_VERSION = 4
"""Version 4 holds names of targets, version 3 constants of groups' own, classes, or what prediction intervals need; version 2
may hold the columns' ranges and the columns of the user's table; what an earlier version can hold is written and read as that
version's."""
MAX_MODEL_BYTES = 4 << 20
"""JSON of this size parses within about 100 MB, whatever it contains; a front of 50 long formulas takes 100 kB."""
MAX_OUTPUTS = 1000
MAX_COLUMNS = 100_000


@dataclass(frozen=True)
class StoredModel:
    """What a model file holds: enough to predict, print and inspect; not the training data."""

    parameters: Mapping[str, Any]
    """Constructor parameters that are plain data (numbers, texts, lists of texts)."""
    feature_names: tuple[str, ...] | None
    """Column names of the training frame; None when it had none."""
    n_features: int
    fronts: tuple[Front, ...]
    """One per target."""
    selected: tuple[int, ...]
    """Index of the chosen member on each front."""
    target_columns: int | None
    """None when y was one-dimensional, else its number of columns."""
    candidates: int
    seconds: float
    ranges: tuple[tuple[float, float], ...] | None = None
    """Smallest and largest training value of each column; None in files of version 1."""
    table_columns: tuple[str, ...] | None = None
    """All columns of the table that the training columns were taken from, in its order; None where it is not known."""
    target_names: tuple[str, ...] | None = None
    """What the targets are called; None where nobody named them."""
    classes: tuple[Any, ...] | None = None
    """Classes that a classifier tells apart; None for a regressor."""
    sharpness: float | None = None
    """Factor on the logits of more than two classes; None for two, and in earlier files."""
    groups: tuple[OwnConstants, ...] | None = None
    """For each front the constants of each group's own; None where the rows had no groups."""
    bases: tuple[PredictionBasis | str, ...] | None = None
    """What prediction intervals of each chosen formula need, or why it has none; None where nobody looked."""


_MODEL_FIELDS = {
    "parameters",
    "feature_names",
    "n_features",
    "fronts",
    "selected",
    "target_columns",
    "candidates",
    "seconds",
}
_OPTIONAL_FIELDS = {"ranges", "table_columns", "target_names", "groups", "classes", "sharpness", "bases"}


def save_model(path: str | os.PathLike[str], model: StoredModel) -> None:
    """Write `model` as a versioned, checksummed JSON file, atomically."""
    payload: dict[str, Any] = {
        "parameters": dict(model.parameters),
        "feature_names": None if model.feature_names is None else list(model.feature_names),
        "n_features": model.n_features,
        "fronts": [
            _without_names(front.to_dict(), _columns(model.feature_names, model.n_features), model.groups is not None)
            for front in model.fronts
        ],
        "selected": list(model.selected),
        "target_columns": model.target_columns,
        "candidates": model.candidates,
        "seconds": model.seconds,
    }
    if model.ranges is not None:
        payload["ranges"] = [list(pair) for pair in model.ranges]
    if model.table_columns is not None:
        payload["table_columns"] = list(model.table_columns)
    if model.target_names is not None:
        payload["target_names"] = list(model.target_names)
    if model.classes is not None:
        payload["classes"] = list(model.classes)
    if model.sharpness is not None:
        payload["sharpness"] = model.sharpness
    if model.groups is not None:
        payload["groups"] = [own.to_dict() for own in model.groups]
    if model.bases is not None:
        payload["bases"] = [basis if isinstance(basis, str) else basis.to_dict() for basis in model.bases]
    version = 3 if model.groups or model.classes or model.bases else 2
    write_payload(path, payload, MODEL_FORMAT, version if model.target_names is None else MODEL_VERSION)


def write_payload(path: str | os.PathLike[str], payload: Any, format_name: str, version: int) -> None:
    """Write plain data as a file of that format and version, with a checksum, atomically."""
    from gmeql._version import __version__  # reading it off the installation takes long

    envelope = {
        "format": format_name,
        "version": version,
        "gmeql": __version__,
        "checksum": checksum_of(payload),
        "payload": payload,
    }
    data = json.dumps(envelope, indent=1, ensure_ascii=True, allow_nan=False).encode()
    if len(data) > MAX_MODEL_BYTES:
        raise StorageError(
            f"{path}: the model takes {len(data)} bytes, more than the {MAX_MODEL_BYTES} a file may have"
        )
    try:
        write_atomic(path, data)
    except OSError as error:
        raise StorageError(f"{path}: cannot be written ({error.strerror or error})") from error


def load_model(path: str | os.PathLike[str]) -> StoredModel:
    """Read a model file. Anything wrong with it is a `StorageError`; no code runs whatever it holds."""
    return parse_model(read_limited(path, MAX_MODEL_BYTES), str(path))


def parse_model(data: bytes, where: str = "model") -> StoredModel:
    """`load_model` for bytes at hand; `where` names them in errors."""
    return parse_payload(data, where, MODEL_FORMAT, MODEL_VERSION, _model_from_payload)


def parse_payload(data: bytes, where: str, format_name: str, newest: int, read: Callable[[Any], Model]) -> Model:
    """What `read` makes of the content that `write_payload` wrote; whatever is wrong is a `StorageError`."""
    envelope = parse_json(data, where)
    check_version(envelope, where, format_name, newest)
    if set(envelope) != {"format", "version", "gmeql", "checksum", "payload"}:
        raise StorageError(f"{where}: its fields are not those of a {format_name} file; the file is damaged")
    try:
        checksum = checksum_of(envelope["payload"])
    except (RecursionError, ValueError) as error:
        raise StorageError(f"{where}: its payload cannot be checked ({short_text(error)})") from None
    if envelope["checksum"] != checksum or not isinstance(envelope["gmeql"], str):
        raise StorageError(f"{where}: its checksum does not match its content; the file is damaged, use another copy")
    try:
        return read(envelope["payload"])
    except RecursionError:
        raise StorageError(f"{where}: nested too deeply to be a gmeql model") from None
    except ValueError as error:
        raise StorageError(f"{where}: {short_text(error)}") from None


def checksum_of(payload: Any) -> str:
    return "sha256:" + hashlib.sha256(canonical_json(payload)).hexdigest()


def _columns(feature_names: Iterable[str] | None, count: int) -> list[str]:
    """The column names that every expression of a model has."""
    return [f"x{j + 1}" for j in range(count)] if feature_names is None else list(feature_names)


def _without_names(front: dict[str, Any], columns: list[str], grouped: bool) -> dict[str, Any]:
    """A front's description whose expressions leave out the model's column names: a table may have thousands."""
    for member in front["members"]:
        if grouped or member["expression"]["names"] == columns:
            member["expression"]["names"] = []
    return front


def _with_names(front: Any, columns: list[str], own: OwnConstants | None) -> Any:
    """The front's description with the names that `_without_names` left out; other shapes are judged later."""
    columns = columns if own is None else [*columns, *(f"own {k}" for k in range(own.values.shape[1]))]
    members = front.get("members") if isinstance(front, dict) else None
    for member in members if isinstance(members, list) else ():
        expression = member.get("expression") if isinstance(member, dict) else None
        if isinstance(expression, dict) and expression.get("names") == []:
            expression["names"] = columns
    return front


def whole_number(value: Any, where: str, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{where} must be a whole number from {low} to {high}")
    return value


def _model_from_payload(payload: Any) -> StoredModel:
    if not isinstance(payload, dict) or set(payload) - _OPTIONAL_FIELDS != _MODEL_FIELDS:
        raise ValueError(f"a model's payload must have exactly the fields {sorted(_MODEL_FIELDS)}")
    n_features = whole_number(payload["n_features"], "n_features", 1, MAX_COLUMNS)
    names = payload["feature_names"]
    if names is not None and (
        not isinstance(names, list) or len(names) != n_features or not all(isinstance(n, str) for n in names)
    ):
        raise ValueError(f"feature_names must be null or a list of {n_features} texts")
    if not isinstance(payload["fronts"], list) or not 1 <= len(payload["fronts"]) <= MAX_OUTPUTS:
        raise ValueError(f"fronts must be a list of 1 to {MAX_OUTPUTS} fronts")
    columns = _columns(names, n_features)
    groups = _check_groups(payload.get("groups"), len(payload["fronts"]))
    owns: list[OwnConstants | None] = [None] * len(payload["fronts"]) if groups is None else list(groups)
    fronts = tuple(
        Front.from_dict(_with_names(front, columns, own)) for front, own in zip(payload["fronts"], owns, strict=True)
    )
    if groups is not None:
        fronts = tuple(_named_by_groups(front, own, columns) for front, own in zip(fronts, groups, strict=True))
    for front in fronts if groups is None else ():
        for member in front:
            if len(member.expression.names) != n_features:
                raise ValueError(f"an expression has {len(member.expression.names)} columns, the model {n_features}")
            if names is not None and list(member.expression.names) != names:
                raise ValueError("an expression's column names differ from the model's feature_names")
    selected = payload["selected"]
    if not isinstance(selected, list) or len(selected) != len(fronts):
        raise ValueError(f"selected must be a list of {len(fronts)} indices, one per front")
    selected = tuple(
        whole_number(k, f"selected[{i}]", 0, len(front) - 1)
        for i, (k, front) in enumerate(zip(selected, fronts, strict=True))
    )
    target_columns = payload["target_columns"]
    if target_columns is not None:
        target_columns = whole_number(target_columns, "target_columns", 1, MAX_OUTPUTS)
    if len(fronts) != (target_columns or 1):
        raise ValueError(f"target_columns is {target_columns!r}, but there are {len(fronts)} fronts")
    seconds = payload["seconds"]
    if type(seconds) not in (int, float) or not 0 <= seconds < 1e18:
        raise ValueError("seconds must be a number of at least 0")
    return StoredModel(
        parameters=plain_parameters(payload["parameters"]),
        feature_names=None if names is None else tuple(names),
        n_features=n_features,
        fronts=fronts,
        selected=selected,
        target_columns=target_columns,
        candidates=whole_number(payload["candidates"], "candidates", 0, 1 << 62),
        seconds=float(seconds),
        ranges=_check_ranges(payload.get("ranges"), n_features),
        table_columns=_check_table_columns(payload.get("table_columns")),
        target_names=_check_target_names(payload.get("target_names"), len(fronts)),
        classes=_check_classes(payload.get("classes"), len(fronts)),
        sharpness=_check_sharpness(payload.get("sharpness")),
        groups=groups,
        bases=_check_bases(payload.get("bases"), [f[k].expression for f, k in zip(fronts, selected, strict=True)]),
    )


def _check_sharpness(sharpness: Any) -> float | None:
    if sharpness is not None and not (type(sharpness) in (int, float) and 0 < sharpness <= 1):
        raise ValueError("sharpness must be a number above 0, of at most 1")
    return None if sharpness is None else float(sharpness)


def _check_classes(classes: Any, n_fronts: int) -> tuple[Any, ...] | None:
    if classes is None:
        return None
    plain = isinstance(classes, list) and all(isinstance(label, str | int | float | bool) for label in classes)
    if not plain or len(classes) != (2 if n_fronts == 1 else n_fronts) or len(set(classes)) < len(classes):
        raise ValueError("classes must be different texts or numbers, two for one front, else one for each")
    return tuple(classes)


def _check_groups(groups: Any, n_fronts: int) -> tuple[OwnConstants, ...] | None:
    if groups is None:
        return None
    if not isinstance(groups, list) or len(groups) != n_fronts:
        raise ValueError(f"groups must be a list of {n_fronts} tables, one per front")
    return tuple(OwnConstants.from_dict(table) for table in groups)


def _named_by_groups(front: Front, own: OwnConstants, columns: list[str]) -> Front:
    """The front whose formulas call the columns behind the table's what they are: own constants of groups."""

    def named(member: FrontMember) -> FrontMember:
        names = own.names(member.expression.root, columns)
        if len(member.expression.names) != len(names):
            raise ValueError(f"an expression has {len(member.expression.names)} columns, the model {len(names)}")
        return replace(member, expression=Expression(member.expression.root, names))

    return replace(front, members=tuple(map(named, front.members)))


def _check_ranges(ranges: Any, n_features: int) -> tuple[tuple[float, float], ...] | None:
    if ranges is None:
        return None
    if not isinstance(ranges, list) or len(ranges) != n_features or not all(_is_range(pair) for pair in ranges):
        raise ValueError(f"ranges must be a list of {n_features} pairs, the smallest and the largest value of a column")
    return tuple((float(low), float(high)) for low, high in ranges)


def _is_range(pair: Any) -> bool:
    numbers = isinstance(pair, list) and len(pair) == 2 and all(type(value) in (int, float) for value in pair)
    return numbers and all(map(math.isfinite, pair)) and pair[0] <= pair[1]


def _check_table_columns(names: Any) -> tuple[str, ...] | None:
    if names is None:
        return None
    if not isinstance(names, list) or len(names) > MAX_COLUMNS or not all(isinstance(name, str) for name in names):
        raise ValueError(f"table_columns must be a list of at most {MAX_COLUMNS} texts")
    return tuple(names)


def _check_target_names(names: Any, n_fronts: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if not isinstance(names, list) or len(names) != n_fronts or not all(isinstance(name, str) for name in names):
        raise ValueError(f"target_names must be a list of {n_fronts} texts, one per front")
    return tuple(names)


def _check_bases(bases: Any, expressions: list[Expression]) -> tuple[PredictionBasis | str, ...] | None:
    if bases is None:
        return None
    if not isinstance(bases, list) or len(bases) != len(expressions):
        raise ValueError(f"bases must be a list of {len(expressions)}, one for each target")
    return tuple(
        basis if isinstance(basis, str) else PredictionBasis.from_dict(basis, expression)
        for basis, expression in zip(bases, expressions, strict=True)
    )


def plain_parameters(parameters: Any) -> dict[str, Any]:
    """Parameters are plain data: scalars, lists and objects of them, a few levels deep. `fit` judges their values."""

    def plain(value: Any, depth: int) -> bool:
        if isinstance(value, list):
            return depth < 8 and len(value) <= 10_000 and all(plain(v, depth + 1) for v in value)
        if isinstance(value, dict):
            return depth < 8 and len(value) <= 1_000 and all(plain(v, depth + 1) for v in value.values())
        return value is None or isinstance(value, (bool, int, float, str))

    if not isinstance(parameters, dict) or not plain(parameters, 0):
        raise ValueError("parameters must be an object of plain numbers, texts and lists")
    return parameters
