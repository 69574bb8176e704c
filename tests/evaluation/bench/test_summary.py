"""Records summed up, as numbers and as a table."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from gmeql.evaluation.bench import summarise, table
from oracle import bench


def printed(view: Any, width: int) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width).print(view)
    return stream.getvalue()


def test_the_table_counts_failures_and_cuts_only_formulas() -> None:
    records = bench(options={"failure": "raise"}, problems=["b1", "b6"])
    wide = printed(table(records), 160)
    assert "2 of 4 runs solved" in wide and "1/2 (1 failed)" in wide and "1.2*sin(1.1*x1)*cos(0.9*x2)" in wide
    narrow = printed(table(bench(problems=["b4"]), width=84), 84).splitlines()[-2]
    assert "2/2" in narrow and "…" in narrow


def test_a_summary_shows_a_solved_formula_before_others() -> None:
    first, second = summarise(bench(options={"failure": "wrong"}))
    assert (first.problem, first.runs, first.solved, first.errors) == ("b1", 2, 1, 0)
    assert first.expression != "x1" and first.median_candidates == 100.5
    assert second.problem == "b5" and second.max_seconds >= second.median_seconds
