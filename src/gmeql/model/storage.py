"""Model files and checkpoints: data only, and neither a kill nor a full disk harms the last good one.

A model file is one JSON object `{"format", "version", "gmeql", "checksum", "payload"}`. A checkpoint is a header line
and a safetensors body with every array of the search; a folder keeps the last three. Neither can hold code: nothing is
unpickled, evaluated or imported. Whatever is wrong with a file, reading it raises `StorageError` and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.model.front import Front

MODEL_FORMAT = "gmeql-model"
MODEL_VERSION = 1
CHECKPOINT_FORMAT = "gmeql-checkpoint"
CHECKPOINT_VERSION = 1
GENERATIONS = 3
"""Checkpoints a folder keeps: the newest may be damaged by the disk, the one before by what damaged it."""

MAX_MODEL_BYTES = 4 << 20
"""JSON of this size parses within about 100 MB, whatever it contains; a front of 50 long formulas takes 100 kB."""
MAX_CHECKPOINT_BYTES = 1 << 30
MAX_HEADER_BYTES = 1 << 10
MAX_TREE_BYTES = 16 << 20
MAX_TREE_DEPTH = 64
MAX_OUTPUTS = 1000
MAX_COLUMNS = 100_000

_CHECKPOINT_NAME = re.compile(r"checkpoint-(\d{8})\.gmeql")
_ARRAY_KEY, _FLOAT_KEY = "__array__", "__float__"
_NONFINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class StorageError(ValueError):
    """A file cannot be read or written as what it should be; the message names the file and what is wrong with it."""


class NewerFormatError(StorageError):
    """The file was written by a newer gmeql than this one."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written, or a damaged one was passed over for the generation before it."""


# --- bytes on disk ---------------------------------------------------------------------------------------------------


def write_atomic(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to `path` so that at every moment the path holds either the old content or the new, whole.

    A temporary file in the same folder, fsync, rename over the target, fsync of the folder.
    """
    path = Path(path)
    temporary = path.parent / f".{path.name}.{secrets.token_hex(6)}.tmp"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read_limited(path: str | os.PathLike[str], limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes; anything else is a `StorageError` before it is read."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise StorageError(f"{path}: not a regular file; give the path of a file that gmeql saved")
        if status.st_size > limit:
            raise StorageError(f"{path}: {status.st_size} bytes, more than the {limit} that such a file may have")
        with open(path, "rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror or error})") from error
    if len(data) > limit:
        raise StorageError(f"{path}: more than the {limit} bytes that such a file may have")
    return data


def data_hash(
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    sample_weight: NDArray[np.float64] | None = None,
    names: Iterable[str] = (),
) -> str:
    """SHA-256 of everything a search learns from; two data sets share it only when they are equal bit by bit."""
    digest = hashlib.sha256(json.dumps(list(names)).encode())
    for array in (X, y, sample_weight):
        if array is None:
            digest.update(b"none;")
            continue
        array = np.ascontiguousarray(array, dtype="<f8")
        digest.update(f"{array.shape};".encode())
        digest.update(array.data)
    return digest.hexdigest()


# --- JSON ------------------------------------------------------------------------------------------------------------


def _reject_constant(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("an object names a field twice")
    return result


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:40]} is beyond what float64 holds")
    return value


def _parse_json(data: bytes, where: str) -> Any:
    """Strict JSON: UTF-8, no NaN or infinity, no field twice."""
    try:
        return json.loads(
            data.decode("utf-8"),
            parse_constant=_reject_constant,
            parse_float=_finite_float,
            object_pairs_hook=_unique_pairs,
        )
    except RecursionError:
        raise StorageError(f"{where}: nested too deeply to be a gmeql file") from None
    except ValueError as error:  # also UnicodeDecodeError, JSONDecodeError and integers of thousands of digits
        raise StorageError(
            f"{where}: not valid JSON ({_short(error)}); the file is damaged or not from gmeql"
        ) from None


def _canonical_json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def _short(error: BaseException) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."


def _check_version(header: Any, where: str, format_name: str, newest: int) -> None:
    if not isinstance(header, dict) or header.get("format") != format_name:
        raise StorageError(f'{where}: not a {format_name} file (its "format" field does not say so)')
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise StorageError(f"{where}: its version is missing or not a positive whole number; the file is damaged")
    if version > newest:
        raise NewerFormatError(
            f"{where}: written by a newer gmeql (format {version}; this one reads up to {newest}); upgrade gmeql"
        )


# --- model files -----------------------------------------------------------------------------------------------------


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


def save_model(path: str | os.PathLike[str], model: StoredModel) -> None:
    """Write `model` as a versioned, checksummed JSON file, atomically."""
    from gmeql._version import __version__

    payload = {
        "parameters": dict(model.parameters),
        "feature_names": None if model.feature_names is None else list(model.feature_names),
        "n_features": model.n_features,
        "fronts": [
            _without_names(front.to_dict(), _columns(model.feature_names, model.n_features)) for front in model.fronts
        ],
        "selected": list(model.selected),
        "target_columns": model.target_columns,
        "candidates": model.candidates,
        "seconds": model.seconds,
    }
    envelope = {
        "format": MODEL_FORMAT,
        "version": MODEL_VERSION,
        "gmeql": __version__,
        "checksum": _checksum(payload),
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
    envelope = _parse_json(data, where)
    _check_version(envelope, where, MODEL_FORMAT, MODEL_VERSION)
    if set(envelope) != {"format", "version", "gmeql", "checksum", "payload"}:
        raise StorageError(f"{where}: its fields are not those of a {MODEL_FORMAT} file; the file is damaged")
    try:
        checksum = _checksum(envelope["payload"])
    except (RecursionError, ValueError) as error:
        raise StorageError(f"{where}: its payload cannot be checked ({_short(error)})") from None
    if envelope["checksum"] != checksum or not isinstance(envelope["gmeql"], str):
        raise StorageError(f"{where}: its checksum does not match its content; the file is damaged, use another copy")
    try:
        return _model_from_payload(envelope["payload"])
    except RecursionError:
        raise StorageError(f"{where}: nested too deeply to be a gmeql model") from None
    except ValueError as error:
        raise StorageError(f"{where}: {_short(error)}") from None


def _checksum(payload: Any) -> str:
    return "sha256:" + hashlib.sha256(_canonical_json(payload)).hexdigest()


def _columns(feature_names: Iterable[str] | None, count: int) -> list[str]:
    """The column names that every expression of a model has."""
    return [f"x{j + 1}" for j in range(count)] if feature_names is None else list(feature_names)


def _without_names(front: dict[str, Any], columns: list[str]) -> dict[str, Any]:
    """A front's description whose expressions leave out the model's column names: a table may have thousands."""
    for member in front["members"]:
        if member["expression"]["names"] == columns:
            member["expression"]["names"] = []
    return front


def _with_names(front: Any, columns: list[str]) -> Any:
    """The front's description with the names that `_without_names` left out; other shapes are judged later."""
    members = front.get("members") if isinstance(front, dict) else None
    for member in members if isinstance(members, list) else ():
        expression = member.get("expression") if isinstance(member, dict) else None
        if isinstance(expression, dict) and expression.get("names") == []:
            expression["names"] = columns
    return front


def _whole(value: Any, where: str, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{where} must be a whole number from {low} to {high}")
    return value


def _model_from_payload(payload: Any) -> StoredModel:
    if not isinstance(payload, dict) or set(payload) != _MODEL_FIELDS:
        raise ValueError(f"a model's payload must have exactly the fields {sorted(_MODEL_FIELDS)}")
    n_features = _whole(payload["n_features"], "n_features", 1, MAX_COLUMNS)
    names = payload["feature_names"]
    if names is not None and (
        not isinstance(names, list) or len(names) != n_features or not all(isinstance(n, str) for n in names)
    ):
        raise ValueError(f"feature_names must be null or a list of {n_features} texts")
    if not isinstance(payload["fronts"], list) or not 1 <= len(payload["fronts"]) <= MAX_OUTPUTS:
        raise ValueError(f"fronts must be a list of 1 to {MAX_OUTPUTS} fronts")
    columns = _columns(names, n_features)
    fronts = tuple(Front.from_dict(_with_names(front, columns)) for front in payload["fronts"])
    for front in fronts:
        for member in front:
            if len(member.expression.names) != n_features:
                raise ValueError(f"an expression has {len(member.expression.names)} columns, the model {n_features}")
            if names is not None and list(member.expression.names) != names:
                raise ValueError("an expression's column names differ from the model's feature_names")
    selected = payload["selected"]
    if not isinstance(selected, list) or len(selected) != len(fronts):
        raise ValueError(f"selected must be a list of {len(fronts)} indices, one per front")
    selected = tuple(
        _whole(k, f"selected[{i}]", 0, len(front) - 1)
        for i, (k, front) in enumerate(zip(selected, fronts, strict=True))
    )
    target_columns = payload["target_columns"]
    if target_columns is not None:
        target_columns = _whole(target_columns, "target_columns", 1, MAX_OUTPUTS)
    if len(fronts) != (target_columns or 1):
        raise ValueError(f"target_columns is {target_columns!r}, but there are {len(fronts)} fronts")
    seconds = payload["seconds"]
    if type(seconds) not in (int, float) or not 0 <= seconds < 1e18:
        raise ValueError("seconds must be a number of at least 0")
    return StoredModel(
        parameters=_check_parameters(payload["parameters"]),
        feature_names=None if names is None else tuple(names),
        n_features=n_features,
        fronts=fronts,
        selected=selected,
        target_columns=target_columns,
        candidates=_whole(payload["candidates"], "candidates", 0, 1 << 62),
        seconds=float(seconds),
    )


def _check_parameters(parameters: Any) -> dict[str, Any]:
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


# --- checkpoints -----------------------------------------------------------------------------------------------------


def encode_state(state: Any) -> bytes:
    """A nested dict of JSON scalars, lists and NumPy arrays as one checksummed block of bytes."""
    from safetensors.numpy import save

    arrays: dict[str, NDArray] = {}
    tree = _canonical_json(_strip_arrays(state, arrays, "state", 0))
    if len(tree) > MAX_TREE_BYTES:
        raise StorageError(f"the state's plain values take {len(tree)} bytes, more than {MAX_TREE_BYTES}; use arrays")
    body = save({"tree": np.frombuffer(tree, dtype=np.uint8), **arrays})
    return _checkpoint_header(body, CHECKPOINT_VERSION) + body


def decode_state(data: bytes, where: str = "checkpoint") -> Any:
    """Read `encode_state`'s bytes back, trusting nothing; whatever is wrong is a `StorageError`."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    end = data.find(b"\n", 0, MAX_HEADER_BYTES)
    header = _parse_json(data[:end], where) if end > 0 else None
    version = header.get("version") if isinstance(header, dict) else None
    body = data[end + 1 :]
    if type(version) is not int or data[: end + 1] != _checkpoint_header(body, version):
        raise StorageError(f"{where}: its checksum does not match its content; the file is damaged")
    _check_version(header, where, CHECKPOINT_FORMAT, CHECKPOINT_VERSION)
    try:
        arrays = load(body)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise StorageError(f"{where}: its arrays cannot be read ({_short(error)})") from None
    tree = arrays.pop("tree", None)
    if tree is None or tree.dtype != np.uint8 or tree.ndim != 1 or len(tree) > MAX_TREE_BYTES:
        raise StorageError(f"{where}: it holds no readable state")
    try:
        state = _restore_arrays(_parse_json(tree.tobytes(), where), arrays, 0)
    except ValueError as error:
        raise StorageError(f"{where}: {_short(error)}") from None
    if arrays:
        raise StorageError(f"{where}: it holds arrays that its state does not use")
    return state


def _checkpoint_header(body: bytes, version: int) -> bytes:
    """The checksum covers the version: a flipped bit there reads as damage, not as a newer gmeql."""
    digest = hashlib.sha256(b"%d\n" % version + body).hexdigest()
    header = {"bytes": len(body), "format": CHECKPOINT_FORMAT, "sha256": digest, "version": version}
    return _canonical_json(header) + b"\n"


def _strip_arrays(value: Any, arrays: dict[str, NDArray], where: str, depth: int) -> Any:
    """The JSON tree of `value`; arrays move to `arrays` and leave a reference behind."""
    if depth > MAX_TREE_DEPTH:
        raise TypeError(f"{where}: nested deeper than {MAX_TREE_DEPTH} levels")
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
            raise TypeError(f"{where}: arrays of {value.dtype} cannot be stored; use bool, integers or floats")
        name = f"a{len(arrays)}"
        arrays[name] = np.array(value, dtype=value.dtype.newbyteorder("="), order="C")
        return {_ARRAY_KEY: name}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {_FLOAT_KEY: str(value)}
    if isinstance(value, (list, tuple)):
        return [_strip_arrays(v, arrays, f"{where}[{i}]", depth + 1) for i, v in enumerate(value)]
    if isinstance(value, Mapping):
        result = {}
        for key, item in value.items():
            if not isinstance(key, str) or key in (_ARRAY_KEY, _FLOAT_KEY):
                raise TypeError(f"{where}: the key {key!r} cannot be stored; keys are texts other than reserved ones")
            result[key] = _strip_arrays(item, arrays, f"{where}.{key}", depth + 1)
        return result
    raise TypeError(f"{where}: {type(value).__name__} cannot be stored; use scalars, lists, dicts and arrays")


def _restore_arrays(value: Any, arrays: dict[str, NDArray], depth: int) -> Any:
    if depth > MAX_TREE_DEPTH:
        raise ValueError(f"its state is nested deeper than {MAX_TREE_DEPTH} levels")
    if isinstance(value, list):
        return [_restore_arrays(v, arrays, depth + 1) for v in value]
    if not isinstance(value, dict):
        return value
    if _ARRAY_KEY in value:
        name = value[_ARRAY_KEY]
        if len(value) != 1 or not isinstance(name, str) or name not in arrays:
            raise ValueError("its state refers to an array that is not there")
        return arrays.pop(name)
    if _FLOAT_KEY in value:
        if len(value) != 1 or value[_FLOAT_KEY] not in _NONFINITE:
            raise ValueError("its state holds a number that cannot be read")
        return _NONFINITE[value[_FLOAT_KEY]]
    return {key: _restore_arrays(item, arrays, depth + 1) for key, item in value.items()}


def checkpoint_files(folder: str | os.PathLike[str]) -> list[Path]:
    """The checkpoints in `folder`, newest first; empty when there are none."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StorageError(f"{folder}: cannot be read ({error.strerror or error})") from error
    return [Path(folder) / name for name in sorted(filter(_CHECKPOINT_NAME.fullmatch, names), reverse=True)]


def save_checkpoint(folder: str | os.PathLike[str], state: Any) -> Path:
    """Add `state` as the newest generation in `folder` (made if need be) and drop all but the last three.

    Raises `OSError` when the disk refuses; the generations before stay as they are.
    """
    data = encode_state(state)
    if len(data) > MAX_CHECKPOINT_BYTES:
        raise StorageError(f"{folder}: the checkpoint takes {len(data)} bytes, more than {MAX_CHECKPOINT_BYTES}")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = checkpoint_files(folder)
    last = _CHECKPOINT_NAME.fullmatch(files[0].name) if files else None
    path = folder / f"checkpoint-{int(last[1]) + 1 if last else 1:08d}.gmeql"
    write_atomic(path, data)
    for old in files[GENERATIONS - 1 :]:
        old.unlink(missing_ok=True)
    for leftover in folder.glob(".checkpoint-*.gmeql.*.tmp"):  # of a process that was killed while writing
        leftover.unlink(missing_ok=True)
    return path


def load_checkpoint(folder: str | os.PathLike[str]) -> tuple[Any, list[str]] | None:
    """The newest readable state in `folder` and what was wrong with newer ones; None when there is no checkpoint.

    A damaged generation is passed over for the one before it. One from a newer gmeql is an error at once: an older
    generation would silently undo what that program did.
    """
    problems: list[str] = []
    for path in checkpoint_files(folder):
        data = read_limited(path, MAX_CHECKPOINT_BYTES)
        try:
            return decode_state(data, str(path)), problems
        except NewerFormatError:
            raise
        except StorageError as error:
            problems.append(str(error))
    if problems:
        raise StorageError(f"{folder}: no generation of the checkpoint is readable: {'; '.join(problems)}")
    return None
