"""Bytes on disk: written whole or not at all, read with a limit, and JSON that is strict.

Nothing here can hold code: nothing is unpickled, evaluated or imported. Whatever is wrong with a file, reading it raises
`StorageError` and nothing else.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import stat
from pathlib import Path
from typing import Any


class StorageError(ValueError):
    """A file cannot be read or written as what it should be; the message names the file and what is wrong with it."""


class NewerFormatError(StorageError):
    """The file was written by a newer gmeql than this one."""


def write_atomic(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to `path` so that at every moment the path holds either the old content or the new, whole.

    A temporary file in the same folder, fsync, rename over the target, fsync of the folder. An `OSError` names `path`.
    """
    path = Path(path)
    temporary = path.parent / f".{path.name}.{secrets.token_hex(6)}.tmp"
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None
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


def parse_json(data: bytes, where: str) -> Any:
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
            f"{where}: not valid JSON ({short_text(error)}); the file is damaged or not from gmeql"
        ) from None


def canonical_json(value: Any) -> bytes:
    """JSON that is the same bytes for the same value, for checksums."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def short_text(error: BaseException) -> str:
    """The first line of an error, cut to what a message can hold."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."


def check_version(header: Any, where: str, format_name: str, newest: int) -> None:
    """Refuse what is not a file of that format, or of a version that this gmeql does not know yet."""
    if not isinstance(header, dict) or header.get("format") != format_name:
        raise StorageError(f'{where}: not a {format_name} file (its "format" field does not say so)')
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise StorageError(f"{where}: its version is missing or not a positive whole number; the file is damaged")
    if version > newest:
        raise NewerFormatError(
            f"{where}: written by a newer gmeql (format {version}; this one reads up to {newest}); upgrade gmeql"
        )
