"""Categories: a column of a few words becomes a column of 0 and 1 for each of them.

A formula explains numbers; whether a row belongs to a category is one. So a category that shifts the target is a term, and
one that changes a slope is a factor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

import numpy as np

MOST_CATEGORIES = 12
"""A column of more different words is left out: its columns would crowd out the others."""
LEAST_ROWS = 5
"""Rows that a category must have to get a column: fewer tell noise."""
MARK = "="
"""Between the name of a column and a category of it, as in `colour=red`."""


def categories(labels: np.ndarray | None) -> tuple[str, ...]:
    """The words of a column [N] that are categories, sorted; none where there are too many, or but one."""
    if labels is None:
        return ()
    counts = Counter(label for label in labels.tolist() if label)
    if not 2 <= len(counts) <= MOST_CATEGORIES:
        return ()
    frequent = tuple(sorted(label for label, count in counts.items() if count >= LEAST_ROWS))
    return frequent if len(frequent) > 1 else ()


def indicator(labels: np.ndarray, category: str) -> np.ndarray:
    """1 in the rows of a category, else 0 [N]."""
    return np.asarray(labels == category, dtype=np.float64)


def indicator_name(column: str, category: str) -> str:
    """What the column of a category is called."""
    return f"{column}{MARK}{category}"


def column_of(name: str, columns: Collection[str]) -> str:
    """The column among `columns` whose category `name` says; the name itself where it is a column or says none."""
    words = [column for column in columns if name.startswith(indicator_name(column, ""))]
    return max(words, key=len) if words and name not in columns else name


def columns_of(names: Iterable[str], columns: Collection[str]) -> list[str]:
    """The columns that names stand for, each once: of categories their column of words."""
    return list(dict.fromkeys(column_of(name, columns) for name in names))
