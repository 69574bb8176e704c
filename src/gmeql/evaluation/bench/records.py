"""What a benchmark runs with and what it writes down: settings, one record per problem and seed, the file of them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from gmeql.model.files.storage import write_atomic


@dataclass(frozen=True)
class BenchConfig:
    """What a cell needs besides problem and seed. Two records are of one benchmark when these agree."""

    suite: str = "paper"
    method: str = "fitted"
    max_time: float | None = 60.0
    max_candidates: int | None = None
    noise: float = 0.0
    noise_std: float = 0.0
    rows: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.max_time is None and self.max_candidates is None:
            raise ValueError("max_time and max_candidates are both None; give a budget")
        for name in ("max_time", "max_candidates", "rows"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name}={value!r}; it must be greater than 0")
        if self.noise < 0 or self.noise_std < 0 or (self.noise and self.noise_std):
            raise ValueError(f"noise={self.noise}, noise_std={self.noise_std}: give one of them, not negative")


@dataclass(frozen=True)
class BenchRecord:
    """The outcome of one problem and seed. `solved` is None where the truth is unknown; errors are on test rows."""

    problem: str
    seed: int
    method: str
    solved: bool | None
    relative_rmse: float | None
    seconds: float
    candidates: int | None
    expression: str
    truth: str | None
    complexity: int | None
    r2: float | None = None
    reason: str = ""
    exact: str = ""
    error: str = ""
    suite: str = ""
    max_time: float | None = None
    max_candidates: int | None = None
    noise: float = 0.0
    noise_std: float = 0.0
    rows: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""

    @property
    def cell(self) -> tuple[Any, ...]:
        """What tells this record's cell from all others, whichever version computed it."""
        settings = json.dumps(self.options, sort_keys=True, default=str)
        budget = (self.max_time, self.max_candidates, self.noise, self.noise_std, self.rows)
        return (self.suite, self.problem, self.seed, self.method, *budget, settings)


class RecordFile:
    """Records in a file, saved as they come: one JSON object a line, or one JSON array where the name ends in .json."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.is_array = self.path.suffix == ".json"
        if self.path.is_dir():
            raise ValueError(f"records file {self.path} is a folder; give a file")

    def read(self) -> list[BenchRecord]:
        """All records; a last line cut off by a crash is removed from the file."""
        content = self.path.read_bytes() if self.path.exists() else b""
        if self.is_array and content:
            try:
                values = json.loads(content)
            except ValueError as error:
                raise ValueError(f"{self.path} holds no benchmark records ({error}); give another file") from error
            if not isinstance(values, list):
                raise ValueError(f"{self.path} holds no list of benchmark records; give another file")
            return [_record(value, f"{self.path}, entry {n}") for n, value in enumerate(values)]
        whole = content[: content.rfind(b"\n") + 1]
        records = [_record(line, f"{self.path}:{n}") for n, line in enumerate(whole.splitlines(), 1) if line]
        if len(whole) < len(content):
            os.truncate(self.path, len(whole))
        return records

    def append(self, record: BenchRecord) -> None:
        line = json.dumps(asdict(record), default=str, allow_nan=False)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.is_array:
            lines = [json.dumps(asdict(earlier)) for earlier in self.read()]
            write_atomic(self.path, ("[\n" + ",\n".join([*lines, line]) + "\n]\n").encode())
            return
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())


def _record(source: bytes | dict[str, Any], where: str) -> BenchRecord:
    known = {f.name for f in fields(BenchRecord)}
    try:
        values = json.loads(source) if isinstance(source, bytes) else source
        return BenchRecord(**{key: value for key, value in values.items() if key in known})
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{where} is not a benchmark record ({error}); give another file") from error


def read_records(path: str | os.PathLike[str]) -> list[BenchRecord]:
    """The records of a benchmark's file."""
    if not Path(path).is_file():
        raise ValueError(f"records file {os.fspath(path)!r} does not exist")
    return RecordFile(path).read()
