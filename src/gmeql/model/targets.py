"""One target or several: a fitted model holds a value for the one, a list of values for several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def as_list(value: Any) -> list[Any]:
    """What a model holds, one entry per target.

    >>> as_list("front"), as_list(["first", "second"])
    (['front'], ['first', 'second'])
    """
    return value if isinstance(value, list) else [value]


def one_or_list(values: Sequence[Any]) -> Any:
    """The inverse of `as_list`: the only value itself, else the list."""
    return values[0] if len(values) == 1 else list(values)


def target_names(count: int, stem: str = "y") -> list[str]:
    """What targets are called, which nobody named: as columns are, by their position from 1 on.

    >>> target_names(1), target_names(2, "prediction")
    (['y'], ['prediction1', 'prediction2'])
    """
    return [stem] if count == 1 else [f"{stem}{j + 1}" for j in range(count)]
