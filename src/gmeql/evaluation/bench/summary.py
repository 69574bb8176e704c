"""Records summed up: one line per problem, and the table for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from gmeql.evaluation.bench.records import BenchRecord

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Summary:
    """One problem over its seeds. `solved` is None where the truth is unknown."""

    problem: str
    runs: int
    solved: int | None
    errors: int
    median_seconds: float
    max_seconds: float
    median_candidates: float | None
    median_relative_rmse: float | None
    expression: str
    truth: str | None


def summarise(records: Iterable[BenchRecord]) -> list[Summary]:
    """One line per problem, in the order the problems first appear."""
    groups: dict[str, list[BenchRecord]] = {}
    for record in records:
        groups.setdefault(record.problem, []).append(record)

    def middle(values: Iterable[float | None]) -> float | None:
        present = [value for value in values if value is not None]
        return float(median(present)) if present else None

    return [
        Summary(
            problem=name,
            runs=len(group),
            solved=None if all(r.solved is None for r in group) else sum(bool(r.solved) for r in group),
            errors=sum(bool(r.error) for r in group),
            median_seconds=float(median(r.seconds for r in group)),
            max_seconds=max(r.seconds for r in group),
            median_candidates=middle(r.candidates for r in group),
            median_relative_rmse=middle(r.relative_rmse for r in group),
            expression=min(group, key=lambda r: (not r.solved, r.error != "", r.seed)).expression,
            truth=group[0].truth,
        )
        for name, group in groups.items()
    ]


def table(records: Sequence[BenchRecord], *, problems: Sequence[str] = (), seeds: int = 0, width: int = 160) -> Table:
    """The summary as a table for people, for a terminal of this `width`; `problems` not yet run stand there empty."""
    from rich.table import Table
    from rich.text import Text

    judged = [record for record in records if record.solved is not None]
    share = f"{sum(bool(r.solved) for r in judged)} of {len(judged)} runs solved" if judged else f"{len(records)} runs"
    view = Table(title=share, title_justify="left", expand=False)
    rows = {summary.problem: summary for summary in summarise(records)}
    first = max(map(len, [*problems, *rows, "problem"]))
    view.add_column("problem", no_wrap=True)
    for heading in ("solved", "seconds", "worst", "candidates", "relative RMSE"):
        view.add_column(heading, justify="right", no_wrap=True)
    # On a narrow terminal long formulas are cut, not the numbers; 72 is what the numbers and lines take.
    view.add_column("formula", overflow="ellipsis", no_wrap=True, max_width=max(8, width - first - 72))
    for name in [*problems, *(name for name in rows if name not in problems)]:
        s = rows.get(name)
        if s is None:
            view.add_row(Text(name), f"0/{seeds}")
            continue
        share = f"{'-' if s.solved is None else s.solved}/{s.runs}" + (f" ({s.errors} failed)" if s.errors else "")
        view.add_row(
            Text(name),
            share,
            f"{s.median_seconds:.2f}",
            f"{s.max_seconds:.1f}",
            "" if s.median_candidates is None else f"{s.median_candidates:,.0f}",
            "" if s.median_relative_rmse is None else f"{s.median_relative_rmse:.1e}",
            Text(s.expression),
        )
    return view
