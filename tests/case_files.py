"""Cases as the reader of case files gets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def variable(name: str = "x", low: float = 0, high: float = 1, **more: Any) -> dict:
    return {"name": name, "low": low, "high": high, "dist": "uniform", **more}


def case(**changes: Any) -> dict:
    return {"name": "c", "formula": "x**2", "variables": [variable()], "n_train": 20, "n_test": 5} | changes


def write(path: Path, cases: Any) -> Path:
    path.write_text(json.dumps(cases))
    return path
