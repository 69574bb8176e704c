"""Checkpoints: a header line and a safetensors body with every array of a search; a folder keeps the last three.

Neither a kill nor a full disk harms the last good one.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.model.files.storage import (
    NewerFormatError,
    StorageError,
    canonical_json,
    check_version,
    parse_json,
    read_limited,
    short_text,
    write_atomic,
)
from gmeql.search.groups.table import Grouping
from gmeql.search.losses.effective import InputErrors

CHECKPOINT_FORMAT = "gmeql-checkpoint"
CHECKPOINT_VERSION = 1
GENERATIONS = 3
"""Checkpoints a folder keeps: the newest may be damaged by the disk, the one before by what damaged it."""

MAX_CHECKPOINT_BYTES = 1 << 30
MAX_HEADER_BYTES = 1 << 10
MAX_TREE_BYTES = 16 << 20
MAX_TREE_DEPTH = 64

_CHECKPOINT_NAME = re.compile(r"checkpoint-(\d{8})\.gmeql")
_ARRAY_KEY, _FLOAT_KEY = "__array__", "__float__"
_NONFINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written, or a damaged one was passed over for the generation before it."""


def data_hash(
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    sample_weight: NDArray[np.float64] | None = None,
    names: Iterable[str] = (),
    groups: Grouping | None = None,
    errors: InputErrors | None = None,
) -> str:
    """SHA-256 of everything a search learns from; two data sets share it only when they are equal bit by bit."""
    digest = hashlib.sha256(json.dumps(list(names)).encode())
    if groups is not None:
        digest.update(json.dumps([groups.column, *groups.labels]).encode())
        digest.update(np.ascontiguousarray(groups.codes, dtype="<i8").data)
    for array in (X, y, sample_weight, *(() if errors is None else (errors.x, errors.y))):
        if array is None:
            digest.update(b"none;")
            continue
        array = np.ascontiguousarray(array, dtype="<f8")
        digest.update(f"{array.shape};".encode())
        digest.update(array.data)
    return digest.hexdigest()


def encode_state(state: Any) -> bytes:
    """A nested dict of JSON scalars, lists and NumPy arrays as one checksummed block of bytes."""
    from safetensors.numpy import save

    arrays: dict[str, NDArray[Any]] = {}
    tree = canonical_json(_strip_arrays(state, arrays, "state", 0))
    if len(tree) > MAX_TREE_BYTES:
        raise StorageError(f"the state's plain values take {len(tree)} bytes, more than {MAX_TREE_BYTES}; use arrays")
    body = save({"tree": np.frombuffer(tree, dtype=np.uint8), **arrays})
    return checkpoint_header(body, CHECKPOINT_VERSION) + body


def decode_state(data: bytes, where: str = "checkpoint") -> Any:
    """Read `encode_state`'s bytes back, trusting nothing; whatever is wrong is a `StorageError`."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    end = data.find(b"\n", 0, MAX_HEADER_BYTES)
    header = parse_json(data[:end], where) if end > 0 else None
    version = header.get("version") if isinstance(header, dict) else None
    body = data[end + 1 :]
    if type(version) is not int or data[: end + 1] != checkpoint_header(body, version):
        raise StorageError(f"{where}: its checksum does not match its content; the file is damaged")
    check_version(header, where, CHECKPOINT_FORMAT, CHECKPOINT_VERSION)
    try:
        arrays = load(body)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise StorageError(f"{where}: its arrays cannot be read ({short_text(error)})") from None
    tree = arrays.pop("tree", None)
    if tree is None or tree.dtype != np.uint8 or tree.ndim != 1 or len(tree) > MAX_TREE_BYTES:
        raise StorageError(f"{where}: it holds no readable state")
    try:
        state = _restore_arrays(parse_json(tree.tobytes(), where), arrays, 0)
    except ValueError as error:
        raise StorageError(f"{where}: {short_text(error)}") from None
    if arrays:
        raise StorageError(f"{where}: it holds arrays that its state does not use")
    return state


def checkpoint_header(body: bytes, version: int) -> bytes:
    """The checksum covers the version: a flipped bit there reads as damage, not as a newer gmeql."""
    digest = hashlib.sha256(b"%d\n" % version + body).hexdigest()
    header = {"bytes": len(body), "format": CHECKPOINT_FORMAT, "sha256": digest, "version": version}
    return canonical_json(header) + b"\n"


def _strip_arrays(value: Any, arrays: dict[str, NDArray[Any]], where: str, depth: int) -> Any:
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


def _restore_arrays(value: Any, arrays: dict[str, NDArray[Any]], depth: int) -> Any:
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
        try:
            return decode_state(read_limited(path, MAX_CHECKPOINT_BYTES), str(path)), problems
        except NewerFormatError:
            raise
        except StorageError as error:
            problems.append(str(error))
    if problems:
        raise StorageError(f"{folder}: no generation of the checkpoint is readable: {'; '.join(problems)}")
    return None
