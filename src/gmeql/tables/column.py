"""One column of a table, judged: numbers, text, or text among numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gmeql.tables.categories import categories, indicator, indicator_name
from gmeql.tables.cells import Note, show
from gmeql.tables.dates import day_numbers, since_name

Kind = Literal["number", "broken", "text", "empty"]


@dataclass(frozen=True)
class TableColumn:
    """One column, judged. `values` has NaN where a cell is missing or text; `broken` means text among numbers."""

    name: str
    values: np.ndarray
    kind: Kind
    missing: int = 0
    texts: int = 0
    first_text: tuple[int, str] | None = None
    labels: np.ndarray | None = None
    """The words of a column of text or of numbers with a unit [N], empty where one is missing; None for other columns."""

    def indicators(self) -> list[TableColumn]:
        """A column of 0 and 1 for each category of a text column that has some."""
        if self.kind != "text" or self.labels is None:
            return []
        return [
            TableColumn(indicator_name(self.name, category), indicator(self.labels, category), "number")
            for category in categories(self.labels)
        ]

    def days(self) -> TableColumn | None:
        """The days since the first of a text column that holds dates; None for any other."""
        days = day_numbers(self.labels) if self.kind == "text" else None
        if days is None:
            return None
        first = float(np.floor(np.nanmin(days)))
        return TableColumn(since_name(self.name, first), days - first, "number", missing=self.missing)

    @property
    def explains(self) -> bool:
        """Whether it can explain a target: by its numbers, its categories or its dates."""
        return self.kind == "number" or bool(self.indicators()) or self.days() is not None

    def words(self) -> list[str]:
        """What stands in each row, as text, for groups; empty where nothing does."""
        if self.labels is not None:
            return [str(label) for label in self.labels]
        return ["" if np.isnan(value) else f"{value:.15g}" for value in self.values]

    @property
    def n_different(self) -> int:
        """How many different cells it holds, missing ones left out."""
        if self.labels is not None:
            return len(set(self.labels.tolist()) - {""})
        return len(np.unique(self.values[~np.isnan(self.values)]))

    @property
    def constant(self) -> bool:
        finite = self.values[np.isfinite(self.values)]
        return self.kind == "number" and finite.size > 0 and bool(np.all(finite == finite[0]))

    @property
    def summary(self) -> str:
        """A few words for lists of columns."""
        if self.kind in ("text", "empty"):
            if self.days() is not None:
                return "dates"
            found = len(self.indicators())
            return "empty" if self.kind == "empty" else f"{found} categories" if found else "text"
        finite = self.values[np.isfinite(self.values)]
        if finite.size == 0:
            return "no finite number"
        words = (
            f"constant {_brief(finite[0])}" if self.constant else f"{_brief(finite.min())} to {_brief(finite.max())}"
        )
        words += f", {self.missing} missing" if self.missing else ""
        return words + (
            f", {self.texts} {'cell is' if self.texts == 1 else 'cells are'} text" if self.kind == "broken" else ""
        )


def _brief(value: float) -> str:
    """A value in four digits, or to the last before its point where a power of ten would hide them."""
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e6 else f"{value:.4g}"


def with_indicators(chosen: list[TableColumn], notes: list[Note]) -> list[TableColumn]:
    """The columns with those of 0 and 1 in place of text columns that hold categories, and days in place of dates, which
    notes tell."""
    found: list[TableColumn] = []
    for column in chosen:
        if (days := column.days()) is not None:
            found.append(days)
            text = f"column {show(column.name)} holds dates: {show(days.name)} counts the days"
            notes.append(Note("dates", text))
            continue
        indicators = column.indicators()
        found += indicators or [column]
        if indicators:
            names = ", ".join(show(one.name) for one in indicators)
            text = f"column {show(column.name)} holds {len(indicators)} categories, each a column of 0 and 1: {names}"
            neither = int(np.sum(np.sum([one.values for one in indicators], axis=0) == 0))
            text += f" ({neither} rows are none of them: empty, or too rare)" if neither else ""
            notes.append(Note("categories", text, len(indicators)))
    return found
