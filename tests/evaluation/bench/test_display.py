"""What the terminal shows while a benchmark runs."""

from __future__ import annotations

import io

from rich.console import Console

from oracle import bench


def test_plain_lines_where_there_is_no_terminal() -> None:
    lines = io.StringIO()
    bench(show=Console(file=lines, width=160), options={"failure": "raise"}, problems=["b1", "b6"])
    assert "b1 seed 0: solved" in lines.getvalue() and "b1 seed 1: FAILED" in lines.getvalue()
    assert "RuntimeError: no luck" in lines.getvalue()


def test_a_live_table_on_a_terminal() -> None:
    live = io.StringIO()
    bench(show=Console(file=live, width=160, force_terminal=True), problems=["b1"])
    assert "b1" in live.getvalue() and "solved" in live.getvalue()
