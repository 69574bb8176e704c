"""Members of a front as tables: HTML for notebooks, data frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from gmeql.formula.printing.notation import four_digits
from gmeql.model.pareto.member import FrontMember


def html_table(members: Iterable[FrontMember], selected: int | None) -> str:
    """Members as an HTML table, every text escaped; row `selected` is marked."""
    rows = []
    for m in members:
        mark = ' style="font-weight:bold"' if m.index == selected else ""
        cells = f"<td>{m.index}</td><td>{m.complexity}</td><td>{four_digits(m.loss)}</td><td>{m.score:.3g}</td>"
        rows.append(f'<tr{mark}>{cells}<td style="text-align:left"><code>{escape(str(m))}</code></td></tr>')
    head = "<tr><th>index</th><th>complexity</th><th>loss</th><th>score</th><th>formula</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def members_frame(members: Sequence[FrontMember]) -> Any:
    """Members as a data frame: complexity, loss, score, formula."""
    columns: dict[str, list[Any]] = {
        "index": [m.index for m in members],
        "complexity": [m.complexity for m in members],
        "loss": [m.loss for m in members],
        "score": [m.score for m in members],
        "formula": [str(m) for m in members],
    }
    return data_frame(columns, "index")


def data_frame(columns: dict[str, list[Any]], index: str) -> Any:
    """Columns as a data frame: of pandas with an index if it is installed, else of polars."""
    try:
        import pandas

        return pandas.DataFrame(columns).set_index(index)
    except ImportError:
        pass
    try:
        import polars

        return polars.DataFrame(columns)
    except ImportError:
        raise ImportError("a data frame needs pandas or polars; install one, or iterate over the front") from None
