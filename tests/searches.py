"""Small fitted searches for tests: data, settings, and what every front must satisfy."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import numpy as np

from gmeql.search.events import Member, Progress
from gmeql.search.search import Search

SMALL: dict[str, Any] = dict(islands_per_generation=4, table_bits=14, n_jobs=1)
"""Settings of a search small enough for tests."""


def waves(n: int = 80, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Nothing exact is found in a small budget here."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 3.0, (n, 2))
    return X, np.sin(3 * X[:, 0]) / (1 + X[:, 1] ** 2) + 0.3 * rng.standard_normal(n)


def parabola(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """An exact formula is found at once here."""
    X = np.random.default_rng(1).uniform(-2.0, 3.0, (n, 2))
    return X, 1.5 * X[:, 0] ** 2 - 0.5 * X[:, 1]


def run(search: Search) -> Progress:
    """The last event of a search, all of whose fronts are in order."""
    for progress in search.run():
        check_front(progress.front)
    assert progress.done and progress.reason
    return progress


def check_front(front: tuple[Member, ...]) -> None:
    """Ever more complex, ever better, the constant first; losses are finite."""
    assert front[0].complexity == 1
    assert all(a.complexity < b.complexity and a.loss > b.loss for a, b in pairwise(front))
    assert all(math.isfinite(member.loss) for member in front)


def texts(progress: Progress) -> list[tuple[str, float, int]]:
    """A front to the last digit."""
    return [(m.expression.exact(), m.loss, m.complexity) for m in progress.front]


def stored(value: Any) -> Any:
    """A state through JSON, as a file would keep it: arrays as lists with their type."""

    def plain(item: Any) -> Any:
        if isinstance(item, np.ndarray):
            return {"array": item.tolist(), "dtype": str(item.dtype), "shape": list(item.shape)}
        if isinstance(item, dict):
            return {key: plain(each) for key, each in item.items()}
        return [plain(each) for each in item] if isinstance(item, list | tuple) else item

    def back(item: Any) -> Any:
        if isinstance(item, dict) and "array" in item:
            return np.array(item["array"], item["dtype"]).reshape(item["shape"])
        if isinstance(item, dict):
            return {key: back(each) for key, each in item.items()}
        return [back(each) for each in item] if isinstance(item, list) else item

    return back(json.loads(json.dumps(plain(value))))


def plain_text(data: dict[str, Any]) -> str:
    """Plain data with arrays as one text, to compare."""
    return json.dumps(data, default=lambda item: item.tolist(), sort_keys=True)
