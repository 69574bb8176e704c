"""How the files of this folder were written: run once with gmeql 0.1.0 (commit 4f92c3b), `python make.py FOLDER`."""

from __future__ import annotations

import lzma
import sys
import tempfile
from pathlib import Path

import numpy as np

from gmeql import GMEQLRegressor

BUDGET = {"max_candidates": 300, "max_time": None, "random_state": 0}


def tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X [200, 3]; a target that is met at once; one that is not, where smaller tables tell as much."""
    X = np.random.default_rng(0).uniform(1, 3, (200, 3))
    return X, 2.5 * X[:, 0] + 3 * X[:, 1], np.sin(X[:, 0] - X[:, 1]) * X[:, 2]


CHECKPOINTS = {
    "fitted": {"functions": ["+", "*"], "max_complexity": 9, "max_candidates": 4000},
    "fitted-views": {"functions": ["-", "*", "sin"], "max_complexity": 4, "max_candidates": 1000},
    "paper": {"method": "paper", "architecture": [["id", "square"]], "max_candidates": 20_000},
}
"""Parameters of the searches whose checkpoints are kept, each with the budget of the whole search."""
STOP_AT = {"fitted": 1, "fitted-views": 430, "paper": 1}
"""Candidates after which each was ended: inside its first generation, on views of the columns, after one chunk."""


def main(folder: Path) -> None:
    X, easy, hard = tables()
    GMEQLRegressor(**BUDGET).fit(X, easy).save(folder / "model.json")
    GMEQLRegressor(**BUDGET).fit(X, np.column_stack([easy, X[:, 0] * X[:, 1]])).save(folder / "two-targets.json")
    for name, parameters in CHECKPOINTS.items():
        with tempfile.TemporaryDirectory() as place:
            at = STOP_AT[name]
            model = GMEQLRegressor(
                **BUDGET | parameters, checkpoint=place, callbacks=lambda progress, at=at: progress.candidates >= at
            )
            model.fit(X, hard)
            (newest,) = Path(place).iterdir()
            (folder / f"{name}.gmeql.xz").write_bytes(lzma.compress(newest.read_bytes(), preset=9))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
