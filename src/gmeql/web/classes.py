"""Classes of a dropped table's column on the page: formulas for their chances."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from gmeql.runs.classes import class_rows
from gmeql.runs.settings import ConfigError
from gmeql.tables.table import Table
from gmeql.web.asking import asked, joined, names_of, of_table


async def add_classes(request: Request) -> Response:
    """Find formulas for the chances of a column's classes."""
    content = await asked(request, "table", "target", "columns")
    target, columns = content.get("target"), names_of(content.get("columns", []))
    if not isinstance(target, str) or not target:
        raise ConfigError("choose the column of classes")

    def check(table: Table) -> None:
        class_rows(table, target, columns=columns or None)

    options = [f"--target={target}", *([f"--columns={joined(columns)}"] if columns else [])]
    return await of_table(request, content, "classes", "classify", f"classes of {target}", options, check)
