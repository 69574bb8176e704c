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


def given_names(y: Any) -> tuple[str, ...] | None:
    """What the columns of a frame, or a series, are called; None where `y` has no names.

    >>> import pandas as pd
    >>> given_names(pd.DataFrame({"up": [1.0], "down": [2.0]})), given_names([[1.0, 2.0]])
    (('up', 'down'), None)
    """
    columns = getattr(y, "columns", None)
    names = [getattr(y, "name", None)] if columns is None else list(columns)
    return tuple(map(str, names)) if all(isinstance(name, str) and name for name in names) else None


def names_of(model: Any) -> list[str]:
    """What the targets of a fitted model are called: by their names, by their classes, or by their position."""
    classes = getattr(model, "classes_", None)
    if classes is not None:
        return [f"logit of {label}" for label in (classes[1:] if len(classes) == 2 else classes)]
    given = getattr(model, "target_names_", None)
    return target_names(len(as_list(model.selected_index_))) if given is None else list(given)
