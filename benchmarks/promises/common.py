"""What the checks of promises share: their report, a table, the command to be watched."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np

GMEQL = [sys.executable, "-m", "gmeql"]
SECONDS = 300.0
"""How long a command or a wait may take before it counts as broken."""


class Report:
    """Checks so far: a line for each, and whether all were good."""

    def __init__(self) -> None:
        self.good = Counter[bool]()

    def add(self, name: str, good: bool, detail: str = "") -> None:
        self.good[good] += 1
        print(f"{'good' if good else 'BAD '}  {name}{': ' if detail else ''}{detail}", flush=True)

    def skip(self, name: str, why: str) -> None:
        print(f"----  {name}: {why}", flush=True)

    def end(self) -> int:
        print(f"{self.good[True]} of {self.good.total()} checks good")
        return 1 if self.good[False] else 0


def table() -> tuple[np.ndarray, np.ndarray]:
    """A law of Planck's form with noise, so that a search never ends before its budget."""
    rng = np.random.default_rng(7)
    X = rng.uniform(0.5, 4, (150, 2))
    return X, X[:, 0] ** 3 / np.expm1(X[:, 0] / X[:, 1]) + 0.01 * rng.standard_normal(len(X))


def write_table(path: Path) -> Path:
    X, y = table()
    lines = [",".join(map(repr, map(float, row))) for row in np.column_stack([X, y])]
    path.write_text("\n".join(["a,b,y", *lines, ""]), encoding="ascii")
    return path


def fit_command(data: Path, folder: Path, candidates: int) -> list[str]:
    budget = ["--max-candidates", str(candidates), "--seed", "0"]
    return [*GMEQL, "fit", str(data), "--target", "y", *budget, "--quiet", "--out", str(folder)]
